//! OffsetFetch: what a group has committed. Every partition that is asked for is answered; never committed is -1 without an error
//! (traps 29).

use std::sync::Arc;

use super::machine::{Group, Machine};
use super::offsets::CommittedOffset;
use super::words::{FetchedOffset, FetchedTopic, TopicToFetch};
use crate::base::ids::{NO_LEADER_EPOCH, NO_OFFSET};
use crate::base::{ErrorCode, PartitionIndex};

impl Machine {
    /// The offsets asked for, in that order. `require_stable` (KIP-447) refuses partitions that an open transaction will commit.
    pub fn fetch(&self, group: &str, topics: &[TopicToFetch<'_>], require_stable: bool) -> Vec<FetchedTopic> {
        let group = self.group(group);
        let one = |asked: &TopicToFetch<'_>, partition: PartitionIndex| {
            let Some(group) = group else { return FetchedOffset::none(partition) };
            let committed = group.offsets.committed(asked.topic, partition);
            let of_this_topic = committed.filter(|offset| !offset.is_of_another_topic(asked.topic_id));
            group.fetched(asked.topic, partition, of_this_topic, require_stable)
        };
        let topic = |asked: &TopicToFetch<'_>| FetchedTopic {
            topic: asked.topic.into(),
            partitions: asked.partitions.iter().map(|partition| one(asked, *partition)).collect(),
        };
        topics.iter().map(topic).collect()
    }

    /// Everything the group has committed, by topic name and partition.
    pub fn fetch_all(&self, group: &str, require_stable: bool) -> Vec<FetchedTopic> {
        let Some(group) = self.group(group) else { return Vec::new() };
        let mut topics: Vec<FetchedTopic> = group
            .offsets
            .topics()
            .map(|(topic, partitions)| FetchedTopic {
                topic: Arc::clone(topic),
                partitions: partitions
                    .iter()
                    .map(|(partition, offset)| group.fetched(topic, *partition, Some(offset), require_stable))
                    .collect(),
            })
            .collect();
        topics.sort_unstable_by(|a, b| a.topic.cmp(&b.topic));
        topics
    }
}

impl Group {
    fn fetched(
        &self,
        topic: &str,
        partition: PartitionIndex,
        committed: Option<&CommittedOffset>,
        require_stable: bool,
    ) -> FetchedOffset {
        if require_stable && self.offsets.is_pending(topic, partition) {
            return FetchedOffset { error: ErrorCode::UNSTABLE_OFFSET_COMMIT, ..FetchedOffset::none(partition) };
        }
        match committed {
            Some(committed) => FetchedOffset {
                partition,
                offset: committed.offset,
                leader_epoch: committed.leader_epoch,
                metadata: committed.metadata.clone(),
                error: ErrorCode::NONE,
            },
            None => FetchedOffset::none(partition),
        }
    }
}

impl FetchedOffset {
    fn none(partition: PartitionIndex) -> FetchedOffset {
        FetchedOffset {
            partition,
            offset: NO_OFFSET,
            leader_epoch: NO_LEADER_EPOCH,
            metadata: "".into(),
            error: ErrorCode::NONE,
        }
    }
}
