//! What is configured on topics, brokers, groups, client-metrics subscriptions and loggers: looking at it and changing it.

pub mod alter_configs;
pub mod describe_configs;
pub mod incremental_alter_configs;
pub mod list_config_resources;

use std::collections::BTreeMap;

use crate::api::{Broker, Refused, RequestContext};
use crate::base::{BrokerId, ErrorCode};
use crate::controller::decide::configs::{ConfigChange, ConfigReply, ResourceOutcome};
use crate::controller::decide::{Decision, Refusal};
use crate::metadata::config::{BrokerLayers, Lookup};
use crate::metadata::{Image, ResourceKind};
use crate::telemetry::Reason;
use crate::telemetry::logs::{self, LogControl};
use crate::wire::messages::StrBytes;

/// The kind of resource whose changes stay on the node that was asked.
pub const BROKER_LOGGER: i8 = 8;

/// What this node knows when it looks at configs.
#[derive(Clone, Copy)]
struct View<'a> {
    image: &'a Image,
    node_id: BrokerId,
    /// What was set at start.
    fixed: &'a dyn Lookup,
    log_control: &'a LogControl,
}

impl<'a> View<'a> {
    fn of(broker: &'a Broker, image: &'a Image) -> View<'a> {
        View {
            image,
            node_id: broker.options.node_id,
            fixed: &*broker.options.static_properties,
            log_control: &broker.log_control,
        }
    }

    fn layers(&self) -> BrokerLayers<'a> {
        BrokerLayers::of(self.image, self.node_id, self.fixed)
    }
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// Decides a change on the newest image, keeps it unless the client only wants to know, and waits until it holds here.
async fn change(
    broker: &Broker,
    context: &RequestContext,
    validate_only: bool,
    keys: &ChangedKeys,
    decide: impl Fn(&Image, &ConfigChange<'_>) -> Decision<ConfigReply> + Send + 'static,
) -> Result<Vec<ResourceOutcome>, Refused> {
    // A broker's own settings are changed through that broker, which hands the request on.
    let node_id = context.connection.forwarded_by.unwrap_or(broker.options.node_id);
    let fixed = broker.options.static_properties.clone();
    let decide = move |image: &Image| {
        let below = BrokerLayers::of(image, node_id, &*fixed);
        decide(image, &ConfigChange { node_id, below, loggers: logs::LOGGERS })
    };
    if validate_only {
        return Ok(decide(&broker.image()).reply.outcomes);
    }
    let (reply, _) = broker
        .controller
        .change(decide)
        .await
        .map_err(|error| Refused::because(Reason::Internal, error.to_string()))?;
    broker.log_control.change(reply.log_levels.iter().map(|change| (&*change.logger, change.level.as_deref())));
    log_changes(&reply.outcomes, keys, context.client_id_or_empty());
    Ok(reply.outcomes)
}

/// Code and message of an outcome.
fn told(result: &Result<(), Refusal>) -> (i16, Option<StrBytes>) {
    match result {
        Ok(()) => (ErrorCode::NONE.code(), None),
        Err(refusal) => (refusal.code.code(), refusal.message.as_deref().map(text)),
    }
}

/// The keys that a request names for each resource, by the resource's kind and name.
type ChangedKeys = BTreeMap<(i8, String), Vec<String>>;

/// Says in the log what was changed and by whom; refused changes are the client's to know.
fn log_changes(outcomes: &[ResourceOutcome], keys: &ChangedKeys, client_id: &str) {
    for outcome in outcomes.iter().filter(|outcome| outcome.result.is_ok()) {
        let keys = keys.get(&(outcome.kind, outcome.name.clone())).map(|keys| keys.join(", "));
        let (kind, name) = (kind_name(outcome.kind), outcome.name.as_str());
        tracing::info!(kind, name, keys, client_id, "configs changed");
    }
}

/// As Kafka's tools call it (`--entity-type`).
fn kind_name(kind: i8) -> &'static str {
    match ResourceKind::from_id(kind) {
        Some(ResourceKind::Topic) => "topic",
        Some(ResourceKind::Broker) => "broker",
        Some(ResourceKind::BrokerLogger) => "broker-logger",
        Some(ResourceKind::ClientMetrics) => "client-metrics",
        Some(ResourceKind::Group) => "group",
        None => "unknown",
    }
}
