//! What DescribeQuorum tells.

use uuid::Uuid;

use super::core::Core;
use super::network::Acked;
use super::types::{Metrics, next_index};
use crate::base::ids::NO_BROKER;
use crate::base::{BrokerId, LeaderEpoch, NodeAddress, Offset, TimestampMs};

/// The quorum as this node sees it; what the others have, only the leader knows. Offsets are those of the Raft log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumDescription {
    /// -1 while nobody is known to lead.
    pub leader_id: BrokerId,
    pub leader_epoch: LeaderEpoch,
    /// Offsets below are agreed on.
    pub high_watermark: Offset,
    pub voters: Vec<VoterDescription>,
    pub observers: Vec<VoterDescription>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VoterDescription {
    pub id: BrokerId,
    /// Nil where it is not known.
    pub directory_id: Uuid,
    pub address: Option<NodeAddress>,
    /// -1 where it is not known.
    pub log_end_offset: Offset,
    /// -1 where the node was not heard of.
    pub last_fetch_ms: TimestampMs,
    pub last_caught_up_ms: TimestampMs,
}

fn offset(index: u64) -> Offset {
    Offset::try_from(index).unwrap_or(Offset::MAX)
}

impl Core {
    pub(super) fn describe(&self, directory_id: Uuid) -> QuorumDescription {
        let metrics = self.metrics();
        let leadership = self.leadership.borrow().clone();
        let voters: Vec<BrokerId> = metrics.membership_config.voter_ids().collect();
        let others = metrics.membership_config.membership().learner_ids();
        let one = |id: BrokerId| self.describe_node(&metrics, id, directory_id);
        QuorumDescription {
            leader_id: leadership.leader.unwrap_or(NO_BROKER),
            leader_epoch: LeaderEpoch::try_from(leadership.term).unwrap_or(LeaderEpoch::MAX),
            high_watermark: offset(next_index(metrics.last_applied)),
            voters: voters.into_iter().map(one).collect(),
            observers: others.map(one).collect(),
        }
    }

    fn describe_node(&self, metrics: &Metrics, id: BrokerId, directory_id: Uuid) -> VoterDescription {
        let address = self.address_of(metrics, id);
        if id == self.node_id {
            let now = self.host.clock.now_ms();
            let log_end_offset = offset(next_index(self.storage.log.last()));
            return VoterDescription {
                id,
                directory_id,
                address,
                log_end_offset,
                last_fetch_ms: now,
                last_caught_up_ms: now,
            };
        }
        let known = self.published.image.load().broker(id).and_then(|broker| broker.directories.first().copied());
        let directory_id = known.unwrap_or_default();
        let matched = metrics.replication.as_ref().and_then(|matched| matched.get(&id).copied());
        let acked = matched.is_some().then(|| self.links.acked.lock().get(&id).copied()).flatten();
        match (matched, acked) {
            (Some(matched), Some(Acked { answered_ms, caught_up_ms, .. })) => VoterDescription {
                id,
                directory_id,
                address,
                log_end_offset: offset(next_index(matched)),
                last_fetch_ms: answered_ms,
                last_caught_up_ms: caught_up_ms,
            },
            _ => VoterDescription {
                id,
                directory_id,
                address,
                log_end_offset: -1,
                last_fetch_ms: -1,
                last_caught_up_ms: -1,
            },
        }
    }
}
