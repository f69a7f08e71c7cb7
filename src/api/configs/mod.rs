//! What is configured on topics, brokers, groups, client-metrics subscriptions and loggers: looking at it and changing it.

pub mod alter_configs;
pub mod describe_configs;
pub mod incremental_alter_configs;
pub mod list_config_resources;
pub mod log_levels;

use crate::base::{BrokerId, ErrorCode};
use crate::controller::decide::Refusal;
use crate::controller::decide::configs::ResourceOutcome;
use crate::metadata::Image;
use crate::metadata::config::{BrokerLayers, Lookup};
use crate::wire::messages::StrBytes;

pub use log_levels::LogLevels;

/// What this node knows when it looks at configs.
#[derive(Clone, Copy)]
struct View<'a> {
    image: &'a Image,
    node_id: BrokerId,
    /// What was set at start.
    fixed: &'a dyn Lookup,
    log_levels: &'a LogLevels,
}

impl<'a> View<'a> {
    fn layers(&self) -> BrokerLayers<'a> {
        BrokerLayers::of(self.image, self.node_id, self.fixed)
    }
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// Code and message of an outcome.
fn told(result: &Result<(), Refusal>) -> (i16, Option<StrBytes>) {
    match result {
        Ok(()) => (ErrorCode::NONE.code(), None),
        Err(refusal) => (refusal.code.code(), refusal.message.as_deref().map(text)),
    }
}

/// Says in the log what was changed and by whom; refused changes are the client's to know.
fn log_changes(outcomes: &[ResourceOutcome], client_id: &str) {
    for outcome in outcomes.iter().filter(|outcome| outcome.result.is_ok()) {
        tracing::info!(resource_type = outcome.kind, resource = outcome.name, client_id, "configs changed");
    }
}
