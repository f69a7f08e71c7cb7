//! Topics and the state of their partitions. What a partition's leader and followers may do follows from this and nothing else.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::MetadataRecord;
use crate::base::{BrokerId, LeaderEpoch, PartitionIndex, TopicId};

/// A topic. Cheap to clone; partitions are dense from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    pub name: Arc<str>,
    pub id: TopicId,
    pub partitions: Vec<Arc<PartitionState>>,
}

impl Topic {
    /// The partition, or `None` for an index (also a negative one) that the topic does not have.
    pub fn partition(&self, index: PartitionIndex) -> Option<&Arc<PartitionState>> {
        self.partitions.get(usize::try_from(index).ok()?)
    }

    pub fn partition_count(&self) -> i32 {
        i32::try_from(self.partitions.len()).unwrap_or(i32::MAX)
    }

    /// Replicas of its first partition, as Kafka reports a topic's replication factor.
    pub fn replication_factor(&self) -> i16 {
        let replicas = self.partitions.first().map_or(0, |partition| partition.replicas.len());
        i16::try_from(replicas).unwrap_or(i16::MAX)
    }

    /// The record that makes this topic as it is now.
    pub fn to_record(&self) -> MetadataRecord {
        MetadataRecord::Topic {
            id: self.id,
            name: self.name.to_string(),
            partitions: self.partitions.iter().map(|partition| (**partition).clone()).collect(),
        }
    }

    /// Each partition with its index.
    pub fn indexed(&self) -> impl Iterator<Item = (PartitionIndex, &Arc<PartitionState>)> {
        (0..).zip(&self.partitions)
    }
}

/// One partition's assignment, leadership and in-sync set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionState {
    /// In order of preference; the first one is the preferred leader.
    pub replicas: Vec<BrokerId>,
    pub isr: Vec<BrokerId>,
    /// Eligible leader replicas (KIP-966): out of the in-sync set but holding everything below the high watermark.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elr: Vec<BrokerId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_known_elr: Vec<BrokerId>,
    /// `base::ids::NO_BROKER` while nobody may lead.
    pub leader: BrokerId,
    #[serde(default)]
    pub leader_epoch: LeaderEpoch,
    /// Grows with each change of this partition; a change proposed against an older one is refused (KIP-497).
    #[serde(default)]
    pub partition_epoch: i32,
    /// The log directory of each replica, in the order of `replicas` (KIP-858).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<Uuid>,
    /// Replicas that a reassignment brings in; they are among `replicas` already (KIP-455).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adding: Vec<BrokerId>,
    /// Replicas that a reassignment takes away; they are among `replicas` until it is done (KIP-455).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removing: Vec<BrokerId>,
    /// The leader was elected from outside the in-sync set and has not yet said that it is done recovering (KIP-704).
    #[serde(default, skip_serializing_if = "is_false")]
    pub recovering: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
pub(super) fn is_false(flag: &bool) -> bool {
    !*flag
}

impl PartitionState {
    /// A new partition: every replica in sync, the first one leads.
    pub fn new(replicas: Vec<BrokerId>, directories: Vec<Uuid>) -> PartitionState {
        let leader = replicas.first().copied().unwrap_or(crate::base::ids::NO_BROKER);
        PartitionState {
            isr: replicas.clone(),
            replicas,
            elr: Vec::new(),
            last_known_elr: Vec::new(),
            leader,
            leader_epoch: 0,
            partition_epoch: 0,
            directories,
            adding: Vec::new(),
            removing: Vec::new(),
            recovering: false,
        }
    }

    /// Whether a reassignment is under way.
    pub fn is_reassigning(&self) -> bool {
        !self.adding.is_empty() || !self.removing.is_empty()
    }

    /// The replica that leads when there is a choice.
    pub fn preferred_leader(&self) -> BrokerId {
        self.replicas.first().copied().unwrap_or(crate::base::ids::NO_BROKER)
    }

    pub fn has_leader(&self) -> bool {
        self.leader >= 0
    }

    /// The directory in which `broker` holds its replica, if it is a replica and has one.
    pub fn directory_of(&self, broker: BrokerId) -> Option<Uuid> {
        let at = self.replicas.iter().position(|replica| *replica == broker)?;
        self.directories.get(at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_or_missing_partition_is_none() {
        let state = Arc::new(PartitionState::new(vec![1, 2], vec![]));
        let topic = Topic { name: "t".into(), id: TopicId::ZERO, partitions: vec![state] };
        assert_eq!(topic.partition(0).map(|p| p.leader), Some(1));
        assert_eq!(topic.partition(1), None);
        assert_eq!(topic.partition(-1), None);
        assert_eq!(topic.replication_factor(), 2);
    }

    #[test]
    fn a_partition_without_replicas_has_no_leader() {
        assert!(!PartitionState::new(vec![], vec![]).has_leader());
    }
}
