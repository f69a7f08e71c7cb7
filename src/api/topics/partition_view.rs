//! A partition as Metadata and DescribeTopicPartitions tell it: a leader that is not alive is no leader, and while nobody leads the
//! in-sync set is told as Kafka has it, empty, with the last member among the eligible replicas (KIP-966).

use crate::base::ids::NO_BROKER;
use crate::base::{BrokerId, ErrorCode};
use crate::controller::decide::rules::keeps_eligible;
use crate::metadata::{Image, PartitionState};
use crate::wire::messages;

pub(super) struct PartitionView {
    pub(super) leader: BrokerId,
    pub(super) isr: Vec<BrokerId>,
    pub(super) elr: Vec<BrokerId>,
    pub(super) offline: Vec<BrokerId>,
}

impl PartitionView {
    pub(super) fn of(image: &Image, state: &PartitionState) -> PartitionView {
        let leader = if image.is_live(state.leader) { state.leader } else { NO_BROKER };
        let (mut isr, mut elr) = (state.isr.clone(), state.elr.clone());
        if !state.has_leader() && keeps_eligible(image) {
            elr.append(&mut isr);
            elr.sort_unstable();
        }
        let offline = state.replicas.iter().copied().filter(|id| !has_replica(image, state, *id)).collect();
        PartitionView { leader, isr, elr, offline }
    }

    pub(super) fn error(&self) -> ErrorCode {
        if self.leader == NO_BROKER { ErrorCode::LEADER_NOT_AVAILABLE } else { ErrorCode::NONE }
    }
}

/// Whether the broker is alive, and the directory of its replica too.
fn has_replica(image: &Image, state: &PartitionState, id: BrokerId) -> bool {
    let directory = state.directory_of(id).filter(|directory| !directory.is_nil());
    image.broker(id).is_some_and(|broker| {
        !broker.fenced && directory.is_none_or(|directory| broker.directories.contains(&directory))
    })
}

pub(super) fn broker_ids<'a>(ids: impl IntoIterator<Item = &'a BrokerId>) -> Vec<messages::BrokerId> {
    ids.into_iter().map(|id| messages::BrokerId(*id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::topics::fixture::image;
    use crate::metadata::MetadataRecord;

    #[test]
    fn while_nobody_leads_the_in_sync_set_is_told_as_kafka_tells_it() {
        let mut image = image(&[]);
        let state =
            PartitionState { leader: NO_BROKER, isr: vec![2], elr: vec![1], ..PartitionState::new(vec![1, 2], vec![]) };
        let told = |image: &Image| {
            let view = PartitionView::of(image, &state);
            let error = view.error();
            (view.isr, view.elr, view.offline, error)
        };
        assert_eq!(told(&image), (vec![2], vec![1], vec![2], ErrorCode::LEADER_NOT_AVAILABLE));
        let on = MetadataRecord::Feature { name: "eligible.leader.replicas.version".into(), level: 1 };
        image.apply(image.offset + 1, &on).unwrap();
        assert_eq!(told(&image), (vec![], vec![1, 2], vec![2], ErrorCode::LEADER_NOT_AVAILABLE));
    }

    #[test]
    fn a_replica_whose_directory_failed_is_offline() {
        let lost = uuid::Uuid::from_u128(500);
        let state = PartitionState::new(vec![1], vec![lost]);
        assert_eq!(PartitionView::of(&image(&[]), &state).offline, [1]);
    }
}
