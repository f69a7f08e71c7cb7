//! Decisions about offsets and whole groups: commit, delete, expire, and what goes with a deleted topic.

use std::sync::Arc;

use super::classic::Phase;
use super::config::GroupConfig;
use super::machine::{Group, Machine};
use super::record::{OffsetKey, OffsetValue, Record};
use super::words::{CommitOffsets, Now, OffsetToCommit};
use crate::base::{ErrorCode, PartitionIndex, TopicId};

/// Deletions, as they will stand in the log: offsets first, then groups.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Deletions {
    pub offsets: Vec<(Arc<str>, Arc<str>, PartitionIndex)>,
    pub groups: Vec<Arc<str>>,
}

impl Deletions {
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty() && self.groups.is_empty()
    }

    pub fn records(&self) -> impl Iterator<Item = Record<'_>> {
        let offsets = self.offsets.iter().map(|(group, topic, partition)| Record::Offset {
            key: OffsetKey { group, topic, partition: *partition },
            value: None,
        });
        offsets.chain(self.groups.iter().map(|group| Record::Group { group, value: None }))
    }
}

impl Machine {
    /// OffsetCommit: one code for the whole request, or which offsets are accepted. Whoever names no generation may commit to a group
    /// that nobody is a member of, and makes it where there is none (traps 34).
    pub fn decide_commit<'a>(
        &self,
        commit: &CommitOffsets<'a>,
        now: Now,
        config: &GroupConfig,
    ) -> Result<Vec<Result<Record<'a>, ErrorCode>>, ErrorCode> {
        match self.group(commit.group) {
            Some(group) => group.classic().decide_commit(commit.member, commit.generation)?,
            None if commit.generation < 0 => {}
            None if commit.group_id_not_found_known => return Err(ErrorCode::GROUP_ID_NOT_FOUND),
            None => return Err(ErrorCode::ILLEGAL_GENERATION),
        }
        let expire_timestamp = commit.retention_ms.map(|retention_ms| now.timestamp_ms.saturating_add(retention_ms));
        let record = |offset: &OffsetToCommit<'a>| {
            let too_large = offset.metadata.len() > config.offset_metadata_max
                && offset.metadata.encode_utf16().count() > config.offset_metadata_max;
            if too_large || offset.metadata.len() > i16::MAX as usize {
                return Err(ErrorCode::OFFSET_METADATA_TOO_LARGE);
            }
            Ok(Record::Offset {
                key: OffsetKey { group: commit.group, topic: offset.topic, partition: offset.partition },
                value: Some(OffsetValue {
                    offset: offset.offset,
                    leader_epoch: offset.leader_epoch,
                    metadata: offset.metadata,
                    commit_timestamp: now.timestamp_ms,
                    expire_timestamp,
                    topic_id: offset.topic_id,
                }),
            })
        };
        Ok(commit.offsets.iter().map(record).collect())
    }

    /// After a commit was accepted: in some phases it counts as a sign of life.
    pub fn note_commit(&mut self, commit: &CommitOffsets<'_>, now: Now) {
        let member_id = commit.member.member_id;
        if !member_id.is_empty() && self.group(commit.group).is_some_and(|group| group.classic().commit_keeps_session())
        {
            self.note_alive(commit.group, member_id, now);
        }
    }

    /// OffsetDelete v0 (KIP-496): one code for the whole request, or one for each partition and the deletions.
    pub fn decide_delete_offsets(
        &self,
        group_name: &str,
        partitions: &[(&str, PartitionIndex)],
    ) -> Result<(Vec<ErrorCode>, Deletions), ErrorCode> {
        let (name, group) = self.groups.get_key_value(group_name).ok_or(ErrorCode::GROUP_ID_NOT_FOUND)?;
        let classic = group.classic();
        if classic.phase() != Phase::Empty && !classic.is_consumer_group() {
            return Err(ErrorCode::NON_EMPTY_GROUP);
        }
        let mut deletions = Deletions::default();
        let mut decide = |topic: &str, partition: PartitionIndex| {
            if classic.is_subscribed_to(topic) {
                return ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC;
            }
            if group.offsets.committed(topic, partition).is_some() || group.offsets.is_pending(topic, partition) {
                deletions.offsets.push((name.clone(), topic.into(), partition));
            }
            ErrorCode::NONE
        };
        let codes = partitions.iter().map(|(topic, partition)| decide(topic, *partition)).collect();
        Ok((codes, deletions))
    }

    /// DeleteGroups: a group without members goes, with all its offsets.
    pub fn decide_delete_group(&self, name: &str) -> Result<Deletions, ErrorCode> {
        let (name, group) = self.groups.get_key_value(name).ok_or(ErrorCode::GROUP_ID_NOT_FOUND)?;
        if group.classic().phase() != Phase::Empty {
            return Err(ErrorCode::NON_EMPTY_GROUP);
        }
        let offsets = group.offsets.everything();
        Ok(Deletions {
            offsets: offsets.into_iter().map(|(topic, partition)| (name.clone(), topic, partition)).collect(),
            groups: vec![name.clone()],
        })
    }

    /// Offsets of deleted topics go with them, but not those that were committed since for a new topic of the same name.
    pub fn decide_topics_deleted(&self, topics: &[(Arc<str>, TopicId)]) -> Deletions {
        let mut deletions = Deletions::default();
        for (name, group) in self.groups() {
            for (topic, topic_id) in topics {
                let partitions = group.offsets.partitions_of(topic, *topic_id);
                deletions
                    .offsets
                    .extend(partitions.into_iter().map(|partition| (name.clone(), topic.clone(), partition)));
            }
        }
        deletions
    }

    /// `offsets.retention.minutes` (KIP-211): offsets that nobody needs any more, and groups that have neither members nor offsets.
    pub fn decide_expiry(&self, now: Now, config: &GroupConfig) -> Deletions {
        let mut deletions = Deletions::default();
        for (name, group) in self.groups() {
            let mut keeps_offsets = group.offsets.has_pending();
            for (topic, partitions) in group.offsets.topics() {
                for partition in partitions.keys() {
                    if group.offset_is_expired(topic, *partition, now, config) {
                        deletions.offsets.push((name.clone(), topic.clone(), *partition));
                    } else {
                        keeps_offsets = true;
                    }
                }
            }
            if !keeps_offsets && group.classic().is_deserted() {
                deletions.groups.push(name.clone());
            }
        }
        deletions
    }
}

impl Group {
    fn offset_is_expired(&self, topic: &str, partition: PartitionIndex, now: Now, config: &GroupConfig) -> bool {
        let Some(committed) = self.offsets.committed(topic, partition) else { return false };
        let Some(since) = self.classic().offsets_age_since(committed.commit_timestamp) else { return false };
        if self.classic().is_subscribed_to(topic) || self.offsets.is_pending(topic, partition) {
            return false;
        }
        match committed.expire_timestamp {
            Some(at) => now.timestamp_ms >= at,
            None => now.timestamp_ms.saturating_sub(since) >= config.offsets_retention_ms,
        }
    }
}
