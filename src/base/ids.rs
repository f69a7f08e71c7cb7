//! Ids, offsets and epochs. Offsets and epochs are plain integers with names: they are compared and added on every
//! record, and Kafka's own sentinel values (-1, -2) must pass through unchanged.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use serde::{Deserialize, Serialize};

pub type Offset = i64;
pub type LeaderEpoch = i32;
pub type PartitionIndex = i32;
pub type BrokerId = i32;
pub type ProducerId = i64;
pub type ProducerEpoch = i16;

pub const NO_PRODUCER_ID: ProducerId = -1;
pub const NO_PRODUCER_EPOCH: ProducerEpoch = -1;
pub const NO_SEQUENCE: i32 = -1;
pub const NO_LEADER_EPOCH: LeaderEpoch = -1;
pub const NO_BROKER: BrokerId = -1;
pub const NO_OFFSET: Offset = -1;

/// A topic's identity for ever (KIP-516): a topic deleted and made again under the same name has another id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TopicId(pub uuid::Uuid);

impl TopicId {
    pub const ZERO: TopicId = TopicId(uuid::Uuid::nil());

    pub fn is_zero(self) -> bool {
        self.0.is_nil()
    }

    pub fn from_bytes(bytes: [u8; 16]) -> TopicId {
        TopicId(uuid::Uuid::from_bytes(bytes))
    }

    /// Reads what `Display` writes: 22 characters of URL-safe base64 without padding, as in `partition.metadata`.
    pub fn parse_base64(text: &str) -> Option<TopicId> {
        let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(text.trim()).ok()?;
        Some(TopicId::from_bytes(bytes.try_into().ok()?))
    }
}

impl fmt::Display for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(self.0.as_bytes()))
    }
}

/// A partition by its topic's name. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicPartition {
    pub topic: Arc<str>,
    pub partition: PartitionIndex,
}

impl TopicPartition {
    pub fn new(topic: impl Into<Arc<str>>, partition: PartitionIndex) -> TopicPartition {
        TopicPartition { topic: topic.into(), partition }
    }

    /// The directory's name on disk, as Kafka names it.
    pub fn dir_name(&self) -> String {
        format!("{}-{}", self.topic, self.partition)
    }

    /// The inverse of [`TopicPartition::dir_name`]; `None` for names that are no partition directory.
    pub fn parse_dir_name(name: &str) -> Option<TopicPartition> {
        let (topic, partition) = name.rsplit_once('-')?;
        if topic.is_empty() || partition.is_empty() || !partition.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        Some(TopicPartition::new(topic, partition.parse().ok()?))
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

/// Java's `String.hashCode`, over UTF-16 units: it decides which partition of an internal topic owns a group.
pub fn java_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// Kafka's `Utils.abs(hash) % partitions`, where the absolute value of `i32::MIN` is 0.
pub fn partition_for_key(key: &str, partitions: i32) -> PartitionIndex {
    let hash = java_hash(key);
    let absolute = if hash == i32::MIN { 0 } else { hash.abs() };
    absolute % partitions.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn java_hash_matches_java() {
        assert_eq!(java_hash(""), 0);
        assert_eq!(java_hash("hello"), 99_162_322);
        assert_eq!(java_hash("polygenelubricants"), i32::MIN);
        assert_eq!(partition_for_key("polygenelubricants", 50), 0);
    }

    #[test]
    fn directory_names_round_trip() {
        let partition = TopicPartition::new("a-b.c", 12);
        assert_eq!(TopicPartition::parse_dir_name(&partition.dir_name()), Some(partition));
        for name in ["a", "-1", "a-", "a--1x", "a-1.deleted"] {
            assert_eq!(TopicPartition::parse_dir_name(name), None, "{name}");
        }
    }

    #[test]
    fn topic_id_text_round_trips() {
        let id = TopicId::from_bytes(*b"0123456789abcdef");
        assert_eq!(TopicId::parse_base64(&id.to_string()), Some(id));
        assert_eq!(TopicId::parse_base64("short"), None);
    }
}
