//! Edits of single keys: set, delete, and for lists append and subtract.

use crate::base::ErrorCode;
use crate::controller::decide::Refusal;
use crate::metadata::config::value::split_list;
use crate::metadata::config::{Kind, broker, topic};
use crate::metadata::{ConfigOverrides, ResourceKind};

/// One key's change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    pub name: String,
    pub op: EditOp,
    pub value: Option<String>,
}

/// Kafka's operations (`AlterConfigOp`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditOp {
    Set,
    Delete,
    Append,
    Subtract,
    Unknown(i8),
}

impl EditOp {
    pub fn from_id(id: i8) -> EditOp {
        match id {
            0 => EditOp::Set,
            1 => EditOp::Delete,
            2 => EditOp::Append,
            3 => EditOp::Subtract,
            other => EditOp::Unknown(other),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            EditOp::Set => "SET",
            EditOp::Delete => "DELETE",
            EditOp::Append => "APPEND",
            EditOp::Subtract => "SUBTRACT",
            EditOp::Unknown(_) => "UNKNOWN",
        }
    }
}

/// Only a delete needs no value.
pub(super) fn refuse_nulls(edits: &[Edit]) -> Result<(), Refusal> {
    let without = edits.iter().filter(|edit| edit.op != EditOp::Delete && edit.value.is_none());
    refuse_null_names(without.map(|edit| edit.name.as_str()).collect())
}

pub(super) fn refuse_null_names(names: Vec<&str>) -> Result<(), Refusal> {
    if names.is_empty() {
        return Ok(());
    }
    Err(Refusal::new(ErrorCode::INVALID_REQUEST, format!("Null value not supported for : {}", names.join(", "))))
}

/// The resource's state after the edits.
pub(super) fn apply(kind: ResourceKind, before: &ConfigOverrides, edits: &[Edit]) -> Result<ConfigOverrides, Refusal> {
    let mut after = before.clone();
    for edit in edits {
        let value = edit.value.as_deref().unwrap_or_default();
        match edit.op {
            EditOp::Set => drop(after.insert(edit.name.clone(), value.to_owned())),
            EditOp::Delete => drop(after.remove(&edit.name)),
            EditOp::Append | EditOp::Subtract => {
                let default = list_default(kind, edit)?;
                let old = split_list(after.get(&edit.name).map_or(default, String::as_str));
                after.insert(edit.name.clone(), combine(old, edit.op, split_list(value)).join(","));
            }
            EditOp::Unknown(id) => {
                return Err(Refusal::new(ErrorCode::INVALID_REQUEST, format!("Unknown operations type {id}")));
            }
        }
    }
    Ok(after)
}

fn combine(mut items: Vec<String>, op: EditOp, change: Vec<String>) -> Vec<String> {
    for item in change {
        if op == EditOp::Subtract {
            items.retain(|one| *one != item);
        } else if !items.contains(&item) {
            items.push(item);
        }
    }
    items
}

/// What a list holds that was never set; anything but a list is refused.
fn list_default(kind: ResourceKind, edit: &Edit) -> Result<&'static str, Refusal> {
    let invalid_config = |message| Err(Refusal::new(ErrorCode::INVALID_CONFIG, message));
    let key = match kind {
        ResourceKind::Topic => topic::find(&edit.name),
        ResourceKind::Broker => match broker::find_for_listener(&edit.name) {
            Some((key, _)) if key.kind == Kind::List => Some(key),
            Some(_) => {
                let op = edit.op.name().to_ascii_lowercase();
                return invalid_config(format!("Config value {op} is not allowed for config key: {}", edit.name));
            }
            None => return invalid_config(format!("Unknown config name: {}", edit.name)),
        },
        // Kafka has lists here too, but edits them only as a whole.
        ResourceKind::Group | ResourceKind::ClientMetrics | ResourceKind::BrokerLogger => None,
    };
    match key {
        Some(key) if key.kind == Kind::List => Ok(key.default.unwrap_or_default()),
        _ => {
            let op = edit.op.name();
            invalid_config(format!("Can't {op} to key {} because its type is not LIST.", edit.name))
        }
    }
}
