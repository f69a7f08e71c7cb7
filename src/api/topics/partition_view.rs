//! A partition as Metadata and DescribeTopicPartitions tell it: a leader that is not alive is no leader.

use crate::base::ids::NO_BROKER;
use crate::base::{BrokerId, ErrorCode};
use crate::metadata::{Image, PartitionState};
use crate::wire::messages;

pub(super) struct PartitionView {
    pub(super) leader: BrokerId,
    pub(super) offline: Vec<BrokerId>,
}

impl PartitionView {
    pub(super) fn of(image: &Image, state: &PartitionState) -> PartitionView {
        PartitionView {
            leader: if image.is_live(state.leader) { state.leader } else { NO_BROKER },
            offline: state.replicas.iter().copied().filter(|id| !image.is_live(*id)).collect(),
        }
    }

    pub(super) fn error(&self) -> ErrorCode {
        if self.leader == NO_BROKER { ErrorCode::LEADER_NOT_AVAILABLE } else { ErrorCode::NONE }
    }
}

pub(super) fn broker_ids<'a>(ids: impl IntoIterator<Item = &'a BrokerId>) -> Vec<messages::BrokerId> {
    ids.into_iter().map(|id| messages::BrokerId(*id)).collect()
}
