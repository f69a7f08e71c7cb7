//! Changing configs: AlterConfigs replaces everything that is set on a resource, IncrementalAlterConfigs (KIP-339) edits it key by
//! key. Each resource is judged by itself and changes as a whole or not at all.
//!
//! The order in which things are found wrong is Kafka's, because the code that a client sees depends on it.

mod edit;
mod loggers;

use std::collections::{BTreeMap, BTreeSet};

use super::{Decision, Refusal};
use crate::base::{BrokerId, ErrorCode};
use crate::metadata::config::{BrokerLayers, broker, validate_client_metrics, validate_group, validate_topic};
use crate::metadata::{ConfigOverrides, ConfigResource, Image, MetadataRecord, ResourceKind, topic_name};

pub use edit::{Edit, EditOp};
pub use loggers::LogLevelChange;

/// One resource of an IncrementalAlterConfigs request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceEdits {
    /// As on the wire; kinds that nobody knows are refused by number.
    pub kind: i8,
    pub name: String,
    pub edits: Vec<Edit>,
}

/// One resource of an AlterConfigs request: everything that shall be set on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceValues {
    pub kind: i8,
    pub name: String,
    pub values: Vec<(String, Option<String>)>,
}

/// What changes are decided with besides image and request.
pub struct ConfigChange<'a> {
    /// The node that was asked: broker configs and log levels of others are not its business.
    pub node_id: BrokerId,
    /// What topics and groups fall back on.
    pub below: BrokerLayers<'a>,
    /// Loggers whose level can be set.
    pub loggers: &'a [&'a str],
}

/// The outcome for one resource, in the request's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceOutcome {
    pub kind: i8,
    pub name: String,
    pub result: Result<(), Refusal>,
}

/// Answers, and log levels to set on this node. Both, like the records, are to be dropped when the client only wants to know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigReply {
    pub outcomes: Vec<ResourceOutcome>,
    pub log_levels: Vec<LogLevelChange>,
}

/// Decides an IncrementalAlterConfigs request.
pub fn incremental_alter_configs(
    image: &Image,
    resources: &[ResourceEdits],
    with: &ConfigChange<'_>,
) -> Decision<ConfigReply> {
    let doubled = doubled(resources.iter().map(|resource| (resource.kind, resource.name.as_str())));
    let mut decision = Decision::unchanged(ConfigReply::default());
    for resource in resources {
        let result = if doubled.contains(&(resource.kind, resource.name.as_str())) {
            Err(named_twice())
        } else {
            edit::refuse_nulls(&resource.edits).and_then(|()| match ResourceKind::from_id(resource.kind) {
                Some(ResourceKind::BrokerLogger) => {
                    let levels = loggers::decide(&resource.name, &resource.edits, with)?;
                    decision.reply.log_levels.extend(levels);
                    Ok(Vec::new())
                }
                Some(kind) => edit_resource(image, kind, resource, with),
                None => Err(unknown_kind(resource.kind)),
            })
        };
        settle(&mut decision, resource.kind, &resource.name, result);
    }
    decision
}

/// Decides an AlterConfigs request.
pub fn alter_configs(image: &Image, resources: &[ResourceValues], with: &ConfigChange<'_>) -> Decision<ConfigReply> {
    let doubled = doubled(resources.iter().map(|resource| (resource.kind, resource.name.as_str())));
    let mut decision = Decision::unchanged(ConfigReply::default());
    for resource in resources {
        let result = if doubled.contains(&(resource.kind, resource.name.as_str())) {
            Err(named_twice())
        } else {
            match ResourceKind::from_id(resource.kind) {
                None | Some(ResourceKind::BrokerLogger) => Err(unknown_kind(resource.kind)),
                Some(kind) => replace_values(image, kind, resource, with),
            }
        };
        settle(&mut decision, resource.kind, &resource.name, result);
    }
    decision
}

fn settle(decision: &mut Decision<ConfigReply>, kind: i8, name: &str, result: Result<Vec<MetadataRecord>, Refusal>) {
    let result = result.map(|records| decision.records.extend(records));
    decision.reply.outcomes.push(ResourceOutcome { kind, name: name.to_owned(), result });
}

fn edit_resource(
    image: &Image,
    kind: ResourceKind,
    resource: &ResourceEdits,
    with: &ConfigChange<'_>,
) -> Result<Vec<MetadataRecord>, Refusal> {
    check_broker_name(kind, &resource.name, with)?;
    refuse_doubled_keys(resource.edits.iter().map(|edit| edit.name.as_str()))?;
    let resource_key = ConfigResource::new(kind, &resource.name);
    let before = image.configs(&resource_key).map(|values| (**values).clone()).unwrap_or_default();
    let after = edit::apply(kind, &before, &resource.edits)?;
    check(image, &resource_key, &before, &after, with)?;
    Ok(records(resource_key, &before, &after))
}

fn replace_values(
    image: &Image,
    kind: ResourceKind,
    resource: &ResourceValues,
    with: &ConfigChange<'_>,
) -> Result<Vec<MetadataRecord>, Refusal> {
    check_broker_name(kind, &resource.name, with)?;
    let nulls = resource.values.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| name.as_str());
    edit::refuse_null_names(nulls.collect())?;
    refuse_doubled_keys(resource.values.iter().map(|(name, _)| name.as_str()))?;
    let resource_key = ConfigResource::new(kind, &resource.name);
    let before = image.configs(&resource_key).map(|values| (**values).clone()).unwrap_or_default();
    let after: ConfigOverrides =
        resource.values.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?))).collect();
    check(image, &resource_key, &before, &after, with)?;
    Ok(records(resource_key, &before, &after))
}

/// The edits that lead from one state to the other.
fn records(resource: ConfigResource, before: &ConfigOverrides, after: &ConfigOverrides) -> Vec<MetadataRecord> {
    let record =
        |name: &String, value| MetadataRecord::Config { resource: resource.clone(), name: name.clone(), value };
    let gone = before.keys().filter(|name| !after.contains_key(*name)).map(|name| record(name, None));
    let set = after.iter().filter(|(name, value)| before.get(*name) != Some(value));
    gone.chain(set.map(|(name, value)| record(name, Some(value.clone())))).collect()
}

/// Judges the whole state that a resource would have.
fn check(
    image: &Image,
    resource: &ConfigResource,
    before: &ConfigOverrides,
    after: &ConfigOverrides,
    with: &ConfigChange<'_>,
) -> Result<(), Refusal> {
    let invalid_config = |message| Refusal::new(ErrorCode::INVALID_CONFIG, message);
    match resource.kind {
        ResourceKind::Topic => check_topic(image, &resource.name, after, with),
        ResourceKind::Broker => check_broker(image, &resource.name, before, after),
        ResourceKind::Group if resource.name.is_empty() => {
            Err(Refusal::new(ErrorCode::INVALID_REQUEST, "Default group resources are not allowed."))
        }
        ResourceKind::Group => validate_group(after, &with.below).map_err(invalid_config),
        ResourceKind::ClientMetrics if resource.name.is_empty() => {
            Err(Refusal::new(ErrorCode::INVALID_REQUEST, "Subscription name can't be empty"))
        }
        ResourceKind::ClientMetrics => {
            validate_client_metrics(after).map_err(|(code, message)| Refusal::new(code, message))
        }
        ResourceKind::BrokerLogger => Err(unknown_kind(resource.kind.id())),
    }
}

fn check_topic(
    image: &Image,
    name: &str,
    after: &BTreeMap<String, String>,
    with: &ConfigChange<'_>,
) -> Result<(), Refusal> {
    if name.is_empty() {
        return Err(Refusal::new(ErrorCode::INVALID_REQUEST, "Default topic resources are not allowed."));
    }
    topic_name::validate(name).map_err(|message| Refusal::new(ErrorCode::INVALID_TOPIC_EXCEPTION, message))?;
    validate_topic(after, &with.below).map_err(|message| Refusal::new(ErrorCode::INVALID_CONFIG, message))?;
    match image.topic(name) {
        Some(_) => Ok(()),
        None => Err(Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, format!("The topic '{name}' does not exist."))),
    }
}

fn check_broker(image: &Image, name: &str, before: &ConfigOverrides, after: &ConfigOverrides) -> Result<(), Refusal> {
    broker::validate_dynamic(after, name.is_empty())
        .map_err(|message| Refusal::new(ErrorCode::INVALID_REQUEST, message))?;
    check_min_insync(image, name, before, after)
}

/// With eligible leader replicas on (KIP-966), what counts as in sync must be the same everywhere and always known.
fn check_min_insync(
    image: &Image,
    broker_name: &str,
    before: &ConfigOverrides,
    after: &ConfigOverrides,
) -> Result<(), Refusal> {
    const KEY: &str = "min.insync.replicas";
    if image.feature("eligible.leader.replicas.version") == 0 {
        return Ok(());
    }
    let (old, new) = (before.get(KEY), after.get(KEY));
    if broker_name.is_empty() && old.is_some() && new.is_none() {
        let message = "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.";
        return Err(Refusal::new(ErrorCode::INVALID_CONFIG, message));
    }
    if !broker_name.is_empty() && old != new && new.is_some() {
        let message = "Broker-level min.insync.replicas cannot be altered while ELR is enabled.";
        return Err(Refusal::new(ErrorCode::INVALID_CONFIG, message));
    }
    Ok(())
}

/// A broker resource names the asked node, or by the empty name all of them.
fn check_broker_name(kind: ResourceKind, name: &str, with: &ConfigChange<'_>) -> Result<(), Refusal> {
    if kind != ResourceKind::Broker || name.is_empty() {
        return Ok(());
    }
    match name.parse::<BrokerId>() {
        Ok(id) if id == with.node_id => Ok(()),
        Ok(id) => {
            let message = format!("Unexpected broker id, expected {}, but received {id}", with.node_id);
            Err(Refusal::new(ErrorCode::INVALID_REQUEST, message))
        }
        Err(_) => {
            let message = format!("Node id must be an integer, but it is: {name}");
            Err(Refusal::new(ErrorCode::INVALID_REQUEST, message))
        }
    }
}

fn refuse_doubled_keys<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), Refusal> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(Refusal::new(ErrorCode::INVALID_REQUEST, "Error due to duplicate config keys"));
        }
    }
    Ok(())
}

fn doubled<'a>(resources: impl Iterator<Item = (i8, &'a str)>) -> BTreeSet<(i8, &'a str)> {
    let mut seen = BTreeSet::new();
    resources.filter(|resource| !seen.insert(*resource)).collect()
}

fn named_twice() -> Refusal {
    Refusal::new(ErrorCode::INVALID_REQUEST, "Each resource must appear at most once.")
}

fn unknown_kind(kind: i8) -> Refusal {
    Refusal::new(ErrorCode::INVALID_REQUEST, format!("Unknown resource type {kind}"))
}

#[cfg(test)]
mod tests;
