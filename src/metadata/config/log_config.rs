//! A topic's settings, typed: what log and replica work by. Made by [`LogConfig::effective`] from the topic's overrides and the
//! broker's settings under them.

use super::layers::{BrokerLayers, Lookup, converted};
use super::throttled::ThrottledReplicas;
use super::topic;
use super::value::Value;

/// What happens to old records. Neither keeps them for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanupPolicy {
    pub delete: bool,
    pub compact: bool,
}

/// The codec that batches are stored in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompressionType {
    /// As they came.
    Producer,
    Uncompressed,
    Gzip {
        /// 1 to 9; -1 is the codec's own choice.
        level: i32,
    },
    Snappy,
    Lz4 {
        level: i32,
    },
    Zstd {
        level: i32,
    },
}

/// Whose time a record carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageTimestampType {
    CreateTime,
    LogAppendTime,
}

/// All topic configs. Names are Kafka's with `_` for `.`; i64::MAX in a time or count means never.
#[derive(Clone, Debug, PartialEq)]
pub struct LogConfig {
    pub cleanup: CleanupPolicy,
    pub compression: CompressionType,
    pub compression_gzip_level: i32,
    pub compression_lz4_level: i32,
    pub compression_zstd_level: i32,
    pub delete_retention_ms: i64,
    pub deadletterqueue_group_enable: bool,
    pub file_delete_delay_ms: i64,
    pub flush_messages: i64,
    pub flush_ms: i64,
    pub follower_throttled_replicas: ThrottledReplicas,
    pub index_interval_bytes: u64,
    pub leader_throttled_replicas: ThrottledReplicas,
    /// -2: take `retention_bytes`.
    pub local_retention_bytes: i64,
    /// -2: take `retention_ms`.
    pub local_retention_ms: i64,
    pub max_compaction_lag_ms: i64,
    pub max_decompressed_message_bytes: usize,
    pub max_message_bytes: usize,
    pub message_timestamp_after_max_ms: i64,
    pub message_timestamp_before_max_ms: i64,
    pub message_timestamp_type: MessageTimestampType,
    pub min_cleanable_dirty_ratio: f64,
    pub min_compaction_lag_ms: i64,
    pub min_insync_replicas: i32,
    pub preallocate: bool,
    pub remote_copy_lag_bytes: i64,
    pub remote_copy_lag_ms: i64,
    pub remote_log_copy_disable: bool,
    pub remote_log_delete_on_disable: bool,
    pub remote_storage_enable: bool,
    /// `None`: no limit.
    pub retention_bytes: Option<u64>,
    /// `None`: for ever.
    pub retention_ms: Option<i64>,
    pub segment_bytes: u64,
    pub segment_index_bytes: u64,
    pub segment_jitter_ms: i64,
    pub segment_ms: i64,
    pub unclean_leader_election_enable: bool,
}

impl Default for LogConfig {
    fn default() -> LogConfig {
        LogConfig::effective(&(), &super::layers::DEFAULTS_ONLY)
    }
}

impl LogConfig {
    /// The settings that count for a topic with these overrides. A value that cannot be read is passed over: it was refused when
    /// somebody tried to set it, and a file from elsewhere must not keep a partition from opening.
    pub fn effective(overrides: &dyn Lookup, below: &BrokerLayers<'_>) -> LogConfig {
        let values = Values { overrides, below };
        LogConfig {
            cleanup: values.cleanup(),
            compression: values.compression(),
            compression_gzip_level: values.int("compression.gzip.level"),
            compression_lz4_level: values.int("compression.lz4.level"),
            compression_zstd_level: values.int("compression.zstd.level"),
            delete_retention_ms: values.long("delete.retention.ms"),
            deadletterqueue_group_enable: values.boolean("errors.deadletterqueue.group.enable"),
            file_delete_delay_ms: values.long("file.delete.delay.ms"),
            flush_messages: values.long("flush.messages"),
            flush_ms: values.long("flush.ms"),
            follower_throttled_replicas: values.throttled("follower.replication.throttled.replicas"),
            index_interval_bytes: values.size("index.interval.bytes"),
            leader_throttled_replicas: values.throttled("leader.replication.throttled.replicas"),
            local_retention_bytes: values.long("local.retention.bytes"),
            local_retention_ms: values.long("local.retention.ms"),
            max_compaction_lag_ms: values.long("max.compaction.lag.ms"),
            max_decompressed_message_bytes: values.memory_size("max.decompressed.message.bytes"),
            max_message_bytes: values.memory_size("max.message.bytes"),
            message_timestamp_after_max_ms: values.long("message.timestamp.after.max.ms"),
            message_timestamp_before_max_ms: values.long("message.timestamp.before.max.ms"),
            message_timestamp_type: values.timestamp_type(),
            min_cleanable_dirty_ratio: values.double("min.cleanable.dirty.ratio"),
            min_compaction_lag_ms: values.long("min.compaction.lag.ms"),
            min_insync_replicas: values.int("min.insync.replicas"),
            preallocate: values.boolean("preallocate"),
            remote_copy_lag_bytes: values.long("remote.copy.lag.bytes"),
            remote_copy_lag_ms: values.long("remote.copy.lag.ms"),
            remote_log_copy_disable: values.boolean("remote.log.copy.disable"),
            remote_log_delete_on_disable: values.boolean("remote.log.delete.on.disable"),
            remote_storage_enable: values.boolean("remote.storage.enable"),
            retention_bytes: u64::try_from(values.long("retention.bytes")).ok(),
            retention_ms: Some(values.long("retention.ms")).filter(|ms| *ms >= 0),
            segment_bytes: values.segment_bytes(),
            segment_index_bytes: values.size("segment.index.bytes"),
            segment_jitter_ms: values.long("segment.jitter.ms"),
            segment_ms: values.long("segment.ms"),
            unclean_leader_election_enable: values.boolean("unclean.leader.election.enable"),
        }
    }
}

/// The value of one topic key as it counts, typed and canonical.
///
/// `None` only for keys that are unknown or have no default.
pub fn effective_value(name: &str, overrides: &dyn Lookup, below: &BrokerLayers<'_>) -> Option<Value> {
    Values { overrides, below }.value(name)
}

struct Values<'a> {
    overrides: &'a dyn Lookup,
    below: &'a BrokerLayers<'a>,
}

impl Values<'_> {
    fn value(&self, name: &str) -> Option<Value> {
        let key = topic::find(name)?;
        if let Some(value) = self.overrides.value(name).and_then(|text| key.parse(text).ok()) {
            return Some(value);
        }
        topic::broker_names(name)
            .iter()
            .find_map(|broker| {
                let text = self.below.set_value(broker.name)?;
                key.parse(&converted(key, *broker, text)?).ok()
            })
            .or_else(|| key.default_value())
    }

    fn long(&self, name: &str) -> i64 {
        match self.value(name) {
            Some(Value::Integer(number)) => number,
            _ => 0,
        }
    }

    fn int(&self, name: &str) -> i32 {
        i32::try_from(self.long(name)).unwrap_or(i32::MAX)
    }

    fn size(&self, name: &str) -> u64 {
        u64::try_from(self.long(name)).unwrap_or(0)
    }

    fn memory_size(&self, name: &str) -> usize {
        usize::try_from(self.long(name)).unwrap_or(0)
    }

    fn boolean(&self, name: &str) -> bool {
        self.value(name) == Some(Value::Boolean(true))
    }

    fn double(&self, name: &str) -> f64 {
        match self.value(name) {
            Some(Value::Double(number)) => number,
            _ => 0.0,
        }
    }

    fn text(&self, name: &str) -> String {
        self.value(name).map(|value| value.to_string()).unwrap_or_default()
    }

    fn list(&self, name: &str) -> Vec<String> {
        match self.value(name) {
            Some(Value::List(items)) => items,
            _ => Vec::new(),
        }
    }

    fn cleanup(&self) -> CleanupPolicy {
        let policies = self.list("cleanup.policy");
        let has = |policy: &str| policies.iter().any(|one| one == policy);
        CleanupPolicy { delete: has("delete"), compact: has("compact") }
    }

    fn compression(&self) -> CompressionType {
        match self.text("compression.type").as_str() {
            "uncompressed" => CompressionType::Uncompressed,
            "gzip" => CompressionType::Gzip { level: self.int("compression.gzip.level") },
            "snappy" => CompressionType::Snappy,
            "lz4" => CompressionType::Lz4 { level: self.int("compression.lz4.level") },
            "zstd" => CompressionType::Zstd { level: self.int("compression.zstd.level") },
            _ => CompressionType::Producer,
        }
    }

    fn timestamp_type(&self) -> MessageTimestampType {
        match self.text("message.timestamp.type").as_str() {
            "LogAppendTime" => MessageTimestampType::LogAppendTime,
            _ => MessageTimestampType::CreateTime,
        }
    }

    fn throttled(&self, name: &str) -> ThrottledReplicas {
        ThrottledReplicas::parse(&self.list(name)).unwrap_or_default()
    }

    fn segment_bytes(&self) -> u64 {
        match self.size("internal.segment.bytes") {
            0 => self.size("segment.bytes"),
            bytes => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::layers::DEFAULTS_ONLY;
    use super::*;

    fn map(pairs: &[(&'static str, &'static str)]) -> BTreeMap<&'static str, &'static str> {
        pairs.iter().copied().collect()
    }

    #[test]
    fn defaults_are_kafkas() {
        let config = LogConfig::default();
        assert_eq!(config.cleanup, CleanupPolicy { delete: true, compact: false });
        assert_eq!(config.compression, CompressionType::Producer);
        assert_eq!(config.retention_ms, Some(604_800_000));
        assert_eq!(config.retention_bytes, None);
        assert_eq!(config.segment_bytes, 1_073_741_824);
        assert_eq!(config.segment_ms, 604_800_000);
        assert_eq!(config.max_message_bytes, 1_048_588);
        assert_eq!(config.flush_messages, i64::MAX);
        assert_eq!(config.min_cleanable_dirty_ratio, 0.5);
        assert_eq!(config.min_insync_replicas, 1);
    }

    #[test]
    fn a_topic_override_beats_every_layer() {
        let fixed = map(&[("log.retention.ms", "3"), ("log.roll.hours", "2")]);
        let below = BrokerLayers { fixed: &fixed, ..DEFAULTS_ONLY };
        let config = LogConfig::effective(&map(&[("retention.ms", "5")]), &below);
        assert_eq!(config.retention_ms, Some(5));
        assert_eq!(config.segment_ms, 7_200_000);
    }

    #[test]
    fn layers_go_from_broker_to_default_to_static() {
        let broker = map(&[("log.segment.bytes", "2000000")]);
        let default = map(&[("log.segment.bytes", "3000000"), ("message.max.bytes", "7")]);
        let fixed = map(&[("message.max.bytes", "8"), ("log.preallocate", "true")]);
        let below = BrokerLayers { broker: &broker, broker_default: &default, fixed: &fixed };
        let config = LogConfig::effective(&(), &below);
        assert_eq!((config.segment_bytes, config.max_message_bytes, config.preallocate), (2_000_000, 7, true));
    }

    #[test]
    fn the_more_precise_synonym_wins_in_whatever_layer() {
        let default = map(&[("log.retention.hours", "1")]);
        let fixed = map(&[("log.retention.minutes", "2")]);
        let below = BrokerLayers { broker_default: &default, fixed: &fixed, ..DEFAULTS_ONLY };
        assert_eq!(LogConfig::effective(&(), &below).retention_ms, Some(120_000));
        let unlimited = map(&[("log.retention.hours", "-1")]);
        let below = BrokerLayers { fixed: &unlimited, ..DEFAULTS_ONLY };
        assert_eq!(LogConfig::effective(&(), &below).retention_ms, None);
        let negative = map(&[("log.retention.ms", "-9")]);
        let below = BrokerLayers { fixed: &negative, ..DEFAULTS_ONLY };
        assert_eq!(LogConfig::effective(&(), &below).retention_ms, None);
    }

    #[test]
    fn values_that_cannot_be_read_are_passed_over() {
        let config = LogConfig::effective(&map(&[("retention.ms", "soon"), ("cleanup.policy", "")]), &DEFAULTS_ONLY);
        assert_eq!(config.retention_ms, Some(604_800_000));
        assert_eq!(config.cleanup, CleanupPolicy { delete: false, compact: false });
    }

    #[test]
    fn a_codec_carries_its_level() {
        let config = LogConfig::effective(
            &map(&[("compression.type", "zstd"), ("compression.zstd.level", "5")]),
            &DEFAULTS_ONLY,
        );
        assert_eq!(config.compression, CompressionType::Zstd { level: 5 });
    }
}
