//! Who leads instead of us (KIP-951): a client that came to the wrong broker is told the right one with the refusal.

use crate::api::cluster::nodes::{self, Node};
use crate::api::{Broker, RequestContext};
use crate::base::{BrokerId, ErrorCode, LeaderEpoch, PartitionIndex, TopicId};

/// Whether an error says that somebody else leads.
pub fn is_about_leader(error: ErrorCode) -> bool {
    matches!(error, ErrorCode::NOT_LEADER_OR_FOLLOWER | ErrorCode::FENCED_LEADER_EPOCH)
}

/// The leader of a partition and its epoch, when there is one.
pub fn leader(broker: &Broker, topic: TopicId, index: PartitionIndex) -> Option<(BrokerId, LeaderEpoch)> {
    let image = broker.image();
    let state = image.topic_by_id(topic)?.partition(index)?;
    state.has_leader().then_some((state.leader, state.leader_epoch))
}

/// Where the client reaches these brokers, each once.
pub fn endpoints(broker: &Broker, context: &RequestContext, mut ids: Vec<BrokerId>) -> Vec<Node> {
    ids.sort_unstable();
    ids.dedup();
    let image = broker.image();
    let nodes = ids.iter().filter_map(|id| nodes::node(image.broker(*id)?, &broker.options, context));
    nodes.filter(|node| !node.host.is_empty()).collect()
}
