//! The offsets a group has committed. Whoever commits last in the log wins; a commit inside a transaction waits, unseen, for the
//! transaction's end and then loses against a plain commit made after it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::record::OffsetValue;
use crate::base::{LeaderEpoch, Offset, PartitionIndex, ProducerId, TimestampMs, TopicId};

/// The position of a replayed record among all that the machine has replayed.
pub type Position = u64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedOffset {
    pub offset: Offset,
    pub leader_epoch: LeaderEpoch,
    pub metadata: Box<str>,
    pub commit_timestamp: TimestampMs,
    pub expire_timestamp: Option<TimestampMs>,
    pub topic_id: TopicId,
    position: Position,
}

impl CommittedOffset {
    fn new(value: &OffsetValue<'_>, position: Position) -> CommittedOffset {
        CommittedOffset {
            offset: value.offset,
            leader_epoch: value.leader_epoch,
            metadata: value.metadata.into(),
            commit_timestamp: value.commit_timestamp,
            expire_timestamp: value.expire_timestamp,
            topic_id: value.topic_id,
            position,
        }
    }

    /// Committed under the same name for another topic, one that was deleted since.
    pub fn is_of_another_topic(&self, topic_id: TopicId) -> bool {
        !topic_id.is_zero() && !self.topic_id.is_zero() && topic_id != self.topic_id
    }
}

type Partitions<T> = BTreeMap<PartitionIndex, T>;
type Topics<T> = HashMap<Arc<str>, Partitions<T>>;

#[derive(Clone, Debug, Default)]
pub struct GroupOffsets {
    committed: Topics<CommittedOffset>,
    /// By producer: what its open transaction will commit.
    pending: HashMap<ProducerId, Topics<CommittedOffset>>,
}

impl GroupOffsets {
    pub fn is_empty(&self) -> bool {
        self.committed.is_empty()
    }

    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    pub fn committed(&self, topic: &str, partition: PartitionIndex) -> Option<&CommittedOffset> {
        self.committed.get(topic)?.get(&partition)
    }

    /// Whether a transaction that has not ended yet will commit this partition.
    pub fn is_pending(&self, topic: &str, partition: PartitionIndex) -> bool {
        self.pending
            .values()
            .any(|topics| topics.get(topic).is_some_and(|partitions| partitions.contains_key(&partition)))
    }

    pub fn topics(&self) -> impl Iterator<Item = (&Arc<str>, &Partitions<CommittedOffset>)> {
        self.committed.iter()
    }

    /// Partitions of the topic that have an offset, committed or pending, unless the newest of those is of another topic of this name.
    pub fn partitions_of(&self, topic: &str, topic_id: TopicId) -> Vec<PartitionIndex> {
        let mut newest: BTreeMap<PartitionIndex, &CommittedOffset> = BTreeMap::new();
        let pending = self.pending.values().filter_map(|topics| topics.get(topic));
        for (partition, offset) in self.committed.get(topic).into_iter().chain(pending).flatten() {
            let known = newest.entry(*partition).or_insert(offset);
            if offset.position > known.position {
                *known = offset;
            }
        }
        newest.into_iter().filter(|(_, offset)| !offset.is_of_another_topic(topic_id)).map(|(index, _)| index).collect()
    }

    /// Everything that has an offset, committed or pending.
    pub fn everything(&self) -> Vec<(Arc<str>, PartitionIndex)> {
        let mut all: Vec<(Arc<str>, PartitionIndex)> = std::iter::once(&self.committed)
            .chain(self.pending.values())
            .flatten()
            .flat_map(|(topic, partitions)| partitions.keys().map(|partition| (topic.clone(), *partition)))
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    pub fn replay_commit(
        &mut self,
        topic: &str,
        partition: PartitionIndex,
        value: &OffsetValue<'_>,
        position: Position,
    ) {
        put(&mut self.committed, topic, partition, CommittedOffset::new(value, position));
    }

    pub fn replay_pending(
        &mut self,
        producer: ProducerId,
        topic: &str,
        partition: PartitionIndex,
        value: &OffsetValue<'_>,
        position: Position,
    ) {
        let topics = self.pending.entry(producer).or_default();
        put(topics, topic, partition, CommittedOffset::new(value, position));
    }

    /// An offset is deleted, and with it what open transactions would commit there.
    pub fn replay_deletion(&mut self, topic: &str, partition: PartitionIndex) {
        take(&mut self.committed, topic, partition);
        self.pending.retain(|_, topics| {
            take(topics, topic, partition);
            !topics.is_empty()
        });
    }

    /// The transaction has ended.
    pub fn replay_end(&mut self, producer: ProducerId, committed: bool) {
        let Some(topics) = self.pending.remove(&producer) else { return };
        if !committed {
            return;
        }
        for (topic, partitions) in topics {
            for (partition, offset) in partitions {
                let later = self.committed(&topic, partition).is_some_and(|plain| plain.position > offset.position);
                if !later {
                    put(&mut self.committed, &topic, partition, offset);
                }
            }
        }
    }
}

fn put(topics: &mut Topics<CommittedOffset>, topic: &str, partition: PartitionIndex, offset: CommittedOffset) {
    match topics.get_mut(topic) {
        Some(partitions) => {
            partitions.insert(partition, offset);
        }
        None => {
            topics.insert(topic.into(), BTreeMap::from([(partition, offset)]));
        }
    }
}

fn take(topics: &mut Topics<CommittedOffset>, topic: &str, partition: PartitionIndex) {
    if let Some(partitions) = topics.get_mut(topic) {
        partitions.remove(&partition);
        if partitions.is_empty() {
            topics.remove(topic);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(offset: Offset) -> OffsetValue<'static> {
        OffsetValue {
            offset,
            leader_epoch: -1,
            metadata: "",
            commit_timestamp: 0,
            expire_timestamp: None,
            topic_id: TopicId::ZERO,
        }
    }

    fn offset(offsets: &GroupOffsets) -> Option<Offset> {
        offsets.committed("t", 0).map(|committed| committed.offset)
    }

    #[test]
    fn a_transactional_commit_is_seen_when_its_transaction_commits() {
        let mut offsets = GroupOffsets::default();
        offsets.replay_commit("t", 0, &value(5), 1);
        offsets.replay_pending(7, "t", 0, &value(50), 2);
        assert_eq!((offset(&offsets), offsets.is_pending("t", 0)), (Some(5), true));
        offsets.replay_end(7, true);
        assert_eq!((offset(&offsets), offsets.is_pending("t", 0)), (Some(50), false));
    }

    #[test]
    fn an_aborted_one_is_never_seen() {
        let mut offsets = GroupOffsets::default();
        offsets.replay_pending(7, "t", 0, &value(50), 1);
        offsets.replay_end(7, false);
        assert_eq!((offset(&offsets), offsets.has_pending()), (None, false));
    }

    #[test]
    fn a_plain_commit_made_after_a_pending_one_survives() {
        let mut offsets = GroupOffsets::default();
        offsets.replay_pending(7, "t", 0, &value(50), 1);
        offsets.replay_commit("t", 0, &value(6), 2);
        offsets.replay_end(7, true);
        assert_eq!(offset(&offsets), Some(6));
    }

    #[test]
    fn a_deletion_takes_pending_ones_along() {
        let mut offsets = GroupOffsets::default();
        offsets.replay_pending(7, "t", 0, &value(50), 1);
        offsets.replay_deletion("t", 0);
        offsets.replay_end(7, true);
        assert_eq!((offset(&offsets), offsets.is_empty()), (None, true));
    }

    #[test]
    fn the_end_of_an_unknown_transaction_and_the_deletion_of_an_unknown_offset_do_nothing() {
        let mut offsets = GroupOffsets::default();
        offsets.replay_end(7, true);
        offsets.replay_deletion("t", 0);
        assert!(offsets.is_empty() && !offsets.has_pending());
    }
}
