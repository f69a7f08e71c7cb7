//! Log levels of this node (KIP-412). They are no metadata: the change is made on the spot and forgotten at the next start.

use super::edit::{Edit, EditOp};
use super::{ConfigChange, refuse_doubled_keys};
use crate::base::{BrokerId, ErrorCode};
use crate::controller::decide::Refusal;
use crate::telemetry::logs::ROOT_LOGGER;

const LEVELS: [&str; 6] = ["DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN"];

/// A logger's new level; `None` makes it follow the one above it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLevelChange {
    pub logger: String,
    pub level: Option<String>,
}

pub(super) fn decide(node: &str, edits: &[Edit], with: &ConfigChange<'_>) -> Result<Vec<LogLevelChange>, Refusal> {
    let invalid_request = |message: String| Err(Refusal::new(ErrorCode::INVALID_REQUEST, message));
    match node.parse::<BrokerId>() {
        Ok(id) if id == with.node_id => {}
        Ok(id) => return invalid_request(format!("Unexpected node id. Expected {}, but received {id}", with.node_id)),
        Err(_) => return invalid_request(format!("Node id must be an integer, but it is: {node}")),
    }
    refuse_doubled_keys(edits.iter().map(|edit| edit.name.as_str()))?;
    edits.iter().map(|edit| decide_one(edit, with)).collect()
}

fn decide_one(edit: &Edit, with: &ConfigChange<'_>) -> Result<LogLevelChange, Refusal> {
    let Edit { name, op, value } = edit;
    let invalid_request = |message: String| Err(Refusal::new(ErrorCode::INVALID_REQUEST, message));
    let invalid_config = |message: String| Err(Refusal::new(ErrorCode::INVALID_CONFIG, message));
    let known = name == ROOT_LOGGER || with.loggers.contains(&name.as_str());
    match (op, value.as_deref()) {
        (EditOp::Append | EditOp::Subtract, _) => {
            invalid_request(format!("{} operation is not allowed for the BROKER_LOGGER resource", op.name()))
        }
        (EditOp::Unknown(id), _) => {
            invalid_request(format!("Unknown operation type {id} is not allowed for the BROKER_LOGGER resource"))
        }
        _ if !known => invalid_config(format!("Logger {name} does not exist!")),
        (EditOp::Delete, _) if name == ROOT_LOGGER => {
            invalid_request("Removing the log level of the root logger is not allowed".to_owned())
        }
        (EditOp::Set, Some(level)) if LEVELS.contains(&level) => {
            Ok(LogLevelChange { logger: name.clone(), level: Some(level.to_owned()) })
        }
        (EditOp::Set, level) => invalid_config(format!(
            "Cannot set the log level of {name} to {} as it is not a supported log level. Valid log levels are {}",
            level.unwrap_or("null"),
            LEVELS.join(", ")
        )),
        (EditOp::Delete, _) => Ok(LogLevelChange { logger: name.clone(), level: None }),
    }
}
