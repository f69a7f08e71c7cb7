//! What elections and in-sync sets depend on besides the image itself: a topic's in-sync minimum, whether it would rather lose
//! records than wait, and whether eligible leader replicas are kept (KIP-966).

use super::features::ELIGIBLE_LEADER_REPLICAS;
use crate::base::BrokerId;
use crate::metadata::config::log_config::effective_value;
use crate::metadata::config::{BrokerLayers, Lookup, Value};
use crate::metadata::{ConfigResource, Image, Topic};

/// Where the rules are read: the configs of the image above those that the controller's node was started with.
#[derive(Clone, Copy)]
pub struct Rules<'a> {
    pub node_id: BrokerId,
    /// What was set at start.
    pub fixed: &'a dyn Lookup,
}

/// The rules of one topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicRules {
    /// `min.insync.replicas`, never more than the topic has replicas.
    pub min_isr: usize,
    /// `unclean.leader.election.enable`
    pub unclean_elections: bool,
    /// Replicas that leave the in-sync set stay eligible while it is below its minimum.
    pub keeps_eligible: bool,
}

impl Rules<'_> {
    pub fn of(&self, image: &Image, topic: &Topic) -> TopicRules {
        let below = BrokerLayers::of(image, self.node_id, self.fixed);
        let overrides = image.configs(&ConfigResource::topic(&*topic.name)).map(|set| &**set);
        let value = |name: &str| effective_value(name, &overrides, &below);
        let min_isr = match value("min.insync.replicas") {
            Some(Value::Integer(count)) => usize::try_from(count).unwrap_or(1),
            _ => 1,
        };
        let replicas = usize::try_from(topic.replication_factor()).unwrap_or(1);
        TopicRules {
            min_isr: min_isr.min(replicas).max(1),
            unclean_elections: value("unclean.leader.election.enable") == Some(Value::Boolean(true)),
            keeps_eligible: keeps_eligible(image),
        }
    }
}

/// Whether eligible leader replicas are on.
pub fn keeps_eligible(image: &Image) -> bool {
    image.feature(ELIGIBLE_LEADER_REPLICAS) > 0
}
