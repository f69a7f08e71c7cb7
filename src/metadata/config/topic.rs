//! The 37 topic configs (and an internal one), the broker settings that they fall back on, and the check of a topic's overrides.

use std::collections::BTreeMap;

use super::key::{self, Key, keys};
use super::layers::{BrokerLayers, BrokerName};
use super::log_config::LogConfig;

const CODECS: &[&str] = &["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"];
const TIMESTAMP_TYPES: &[&str] = &["CreateTime", "LogAppendTime"];
const CLEANUP_POLICIES: &[&str] = &["compact", "delete"];

/// Sorted by name.
pub static TOPIC_KEYS: &[Key] = keys! {
    "cleanup.policy" List "delete" [SubsetOf(CLEANUP_POLICIES)] ClusterWide:
        "What happens to old records: delete drops segments by age and size, compact keeps the newest record of each key; nothing keeps all.";
    "compression.gzip.level" Int "-1" [GzipLevel] ClusterWide:
        "Level used when the broker itself compresses with gzip; -1 is the codec's own choice.";
    "compression.lz4.level" Int "9" [Between(1, 17)] ClusterWide:
        "Level used when the broker itself compresses with lz4.";
    "compression.type" String "producer" [OneOf(CODECS)] ClusterWide:
        "Codec that batches are stored in; producer keeps them as they came.";
    "compression.zstd.level" Int "3" [Between(-131_072, 22)] ClusterWide:
        "Level used when the broker itself compresses with zstd.";
    "delete.retention.ms" Long "86400000" [AtLeast(0)] ClusterWide:
        "How long compaction keeps delete markers, so that a reader who began at the start sees them.";
    "errors.deadletterqueue.group.enable" Boolean "false" [Any] ClusterWide:
        "Whether share groups may write their dead letters to this topic.";
    "file.delete.delay.ms" Long "60000" [AtLeast(0)] ClusterWide:
        "How long the file of a dropped segment stays on disk, for readers that still use it.";
    "flush.messages" Long "9223372036854775807" [AtLeast(1)] ClusterWide:
        "Sync to disk after this many records, whatever the flush policy.";
    "flush.ms" Long "9223372036854775807" [AtLeast(0)] ClusterWide:
        "Sync to disk records that are older than this, whatever the flush policy.";
    "follower.replication.throttled.replicas" List "" [ThrottledReplicas] ClusterWide:
        "Replicas whose fetching counts against the follower quota: partition:broker pairs, or *.";
    "index.interval.bytes" Int "4096" [AtLeast(0)] ClusterWide:
        "How many bytes of log lie between two entries of the offset index.";
    "internal.segment.bytes" Int null [Any] ClusterWide internal:
        "Segment size for tests, below the bound of segment.bytes.";
    "leader.replication.throttled.replicas" List "" [ThrottledReplicas] ClusterWide:
        "Replicas whose being fetched counts against the leader quota: partition:broker pairs, or *.";
    "local.retention.bytes" Long "-2" [AtLeast(-2)] ClusterWide:
        "Bytes kept on local disk under tiered storage; -2 takes retention.bytes.";
    "local.retention.ms" Long "-2" [AtLeast(-2)] ClusterWide:
        "Time kept on local disk under tiered storage; -2 takes retention.ms.";
    "max.compaction.lag.ms" Long "9223372036854775807" [AtLeast(1)] ClusterWide:
        "Longest time that a record may stay uncompacted.";
    "max.decompressed.message.bytes" Int "2147483639" [Between(1, 2_147_483_639)] ClusterWide:
        "Largest size that one batch may decompress to.";
    "max.message.bytes" Int "1048588" [AtLeast(0)] ClusterWide:
        "Largest batch that a producer may send, as it comes (compressed).";
    "message.timestamp.after.max.ms" Long "3600000" [AtLeast(0)] ClusterWide:
        "How far a record's timestamp may lie ahead of the broker's clock.";
    "message.timestamp.before.max.ms" Long "9223372036854775807" [AtLeast(0)] ClusterWide:
        "How far a record's timestamp may lie behind the broker's clock.";
    "message.timestamp.type" String "CreateTime" [OneOf(TIMESTAMP_TYPES)] ClusterWide:
        "Whose time a record carries: the producer's or that of the append.";
    "min.cleanable.dirty.ratio" Double "0.5" [UpTo(1.0)] ClusterWide:
        "Share of the log that must be uncompacted before a compaction is worth it.";
    "min.compaction.lag.ms" Long "0" [AtLeast(0)] ClusterWide:
        "Shortest time that a record stays uncompacted.";
    "min.insync.replicas" Int "1" [AtLeast(1)] ClusterWide:
        "How many in-sync copies acks=all needs; the number of replicas caps it.";
    "preallocate" Boolean "false" [Any] ClusterWide:
        "Whether a new segment's file gets its full size at once.";
    "remote.copy.lag.bytes" Long "-1" [AtLeast(-1)] ClusterWide:
        "Bytes of closed segments that wait before they are copied to tiered storage; -1 follows local retention.";
    "remote.copy.lag.ms" Long "0" [AtLeast(-1)] ClusterWide:
        "How long a closed segment waits before it is copied to tiered storage; -1 follows local retention.";
    "remote.log.copy.disable" Boolean "false" [Any] ClusterWide:
        "Whether tiered data of this topic is only read, no longer written.";
    "remote.log.delete.on.disable" Boolean "false" [Any] ClusterWide:
        "Whether switching tiered storage off deletes what it holds.";
    "remote.storage.enable" Boolean "false" [Any] ClusterWide:
        "Whether closed segments go to tiered storage.";
    "retention.bytes" Long "-1" [Any] ClusterWide:
        "Size of a partition above which its oldest segments go; -1 knows no limit.";
    "retention.ms" Long "604800000" [AtLeast(-1)] ClusterWide:
        "Age above which segments go; -1 keeps them for ever.";
    "segment.bytes" Int "1073741824" [AtLeast(1_048_576)] ClusterWide:
        "Size at which a new segment begins; retention and compaction work on whole ones.";
    "segment.index.bytes" Int "10485760" [AtLeast(4)] ClusterWide:
        "Size of the offset index at which a new segment begins.";
    "segment.jitter.ms" Long "0" [AtLeast(0)] ClusterWide:
        "Largest random amount by which a segment begins earlier than segment.ms says.";
    "segment.ms" Long "604800000" [AtLeast(1)] ClusterWide:
        "Age at which a new segment begins even if the old one is not full.";
    "unclean.leader.election.enable" Boolean "false" [Any] ClusterWide:
        "Whether a replica that is out of sync may lead when no other is left, at the price of records.";
};

pub fn find(name: &str) -> Option<&'static Key> {
    key::find(TOPIC_KEYS, name)
}

const HOUR_MS: i64 = 3_600_000;
const MINUTE_MS: i64 = 60_000;

macro_rules! broker_names {
    ($($topic:literal => $($broker:literal $(* $factor:ident)?),+;)*) => {
        /// The broker keys that stand behind a topic key, the most precise one first; empty for a key that only topics have.
        pub fn broker_names(topic_key: &str) -> &'static [BrokerName] {
            match topic_key {
                $($topic => &[$(BrokerName { name: $broker, factor: broker_names!(@factor $($factor)?) }),+],)*
                _ => &[],
            }
        }
    };
    (@factor) => { 1 };
    (@factor $factor:ident) => { $factor };
}

broker_names! {
    "cleanup.policy" => "log.cleanup.policy";
    "compression.gzip.level" => "compression.gzip.level";
    "compression.lz4.level" => "compression.lz4.level";
    "compression.type" => "compression.type";
    "compression.zstd.level" => "compression.zstd.level";
    "delete.retention.ms" => "log.cleaner.delete.retention.ms";
    "file.delete.delay.ms" => "log.segment.delete.delay.ms";
    "flush.messages" => "log.flush.interval.messages";
    "flush.ms" => "log.flush.interval.ms", "log.flush.scheduler.interval.ms";
    "index.interval.bytes" => "log.index.interval.bytes";
    "local.retention.bytes" => "log.local.retention.bytes";
    "local.retention.ms" => "log.local.retention.ms";
    "max.compaction.lag.ms" => "log.cleaner.max.compaction.lag.ms";
    "max.decompressed.message.bytes" => "max.decompressed.message.bytes";
    "max.message.bytes" => "message.max.bytes";
    "message.timestamp.after.max.ms" => "log.message.timestamp.after.max.ms";
    "message.timestamp.before.max.ms" => "log.message.timestamp.before.max.ms";
    "message.timestamp.type" => "log.message.timestamp.type";
    "min.cleanable.dirty.ratio" => "log.cleaner.min.cleanable.ratio";
    "min.compaction.lag.ms" => "log.cleaner.min.compaction.lag.ms";
    "min.insync.replicas" => "min.insync.replicas";
    "preallocate" => "log.preallocate";
    "remote.copy.lag.bytes" => "log.remote.copy.lag.bytes";
    "remote.copy.lag.ms" => "log.remote.copy.lag.ms";
    "retention.bytes" => "log.retention.bytes";
    "retention.ms" => "log.retention.ms", "log.retention.minutes" * MINUTE_MS, "log.retention.hours" * HOUR_MS;
    "segment.bytes" => "log.segment.bytes";
    "segment.index.bytes" => "log.index.size.max.bytes";
    "segment.jitter.ms" => "log.roll.jitter.ms", "log.roll.jitter.hours" * HOUR_MS;
    "segment.ms" => "log.roll.ms", "log.roll.hours" * HOUR_MS;
    "unclean.leader.election.enable" => "unclean.leader.election.enable";
}

/// Checks all overrides of a topic together, as CreateTopics and the config changes do; `below` is what the topic falls back on.
///
/// # Errors
/// The sentence to answer with INVALID_CONFIG.
pub fn validate_topic(overrides: &BTreeMap<String, String>, below: &BrokerLayers<'_>) -> Result<(), String> {
    for name in overrides.keys() {
        find(name).ok_or_else(|| format!("Unknown topic config name: {name}"))?;
    }
    for (name, value) in overrides {
        if let Some(key) = find(name) {
            key.parse(value)?;
        }
    }
    let config = LogConfig::effective(overrides, below);
    if config.min_compaction_lag_ms > config.max_compaction_lag_ms {
        return Err(format!(
            "conflict topic config setting min.compaction.lag.ms ({}) > max.compaction.lag.ms ({})",
            config.min_compaction_lag_ms, config.max_compaction_lag_ms
        ));
    }
    if config.remote_storage_enable {
        return Err("Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
            .to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::layers::DEFAULTS_ONLY;
    use super::*;

    fn validate(overrides: &[(&str, &str)]) -> Result<(), String> {
        let overrides = overrides.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        validate_topic(&overrides, &DEFAULTS_ONLY)
    }

    fn refusal(name: &str, value: &str) -> String {
        validate(&[(name, value)]).expect_err("refused")
    }

    #[test]
    fn the_table_is_sound_and_complete() {
        key::assert_sound(TOPIC_KEYS);
        assert_eq!(TOPIC_KEYS.iter().filter(|key| !key.internal).count(), 37);
    }

    #[test]
    fn every_default_may_be_set_again() {
        for key in TOPIC_KEYS {
            if let Some(default) = key.default {
                assert_eq!(validate(&[(key.name, default)]), Ok(()), "{}", key.name);
            }
        }
    }

    #[test]
    fn refusals_say_what_kafka_says() {
        let cases = [
            ("cleanup.policy", "delte", "String must be one of: compact, delete"),
            ("compression.gzip.level", "0", "Value must be between 1 and 9 or equal to -1"),
            ("compression.lz4.level", "18", "Value must be no more than 17"),
            ("flush.messages", "0", "Value must be at least 1"),
            ("max.message.bytes", "5000000000", "Not a number of type INT"),
            ("message.timestamp.type", "createtime", "String must be one of: CreateTime, LogAppendTime"),
            ("min.cleanable.dirty.ratio", "1.5", "Value must be no more than 1"),
            ("preallocate", "yes", "Expected value to be either true or false"),
            ("retention.ms", "", "Not a number of type LONG"),
        ];
        for (name, value, why) in cases {
            assert_eq!(refusal(name, value), format!("Invalid value {value} for configuration {name}: {why}"));
        }
        assert_eq!(refusal("log.retention.ms", "1"), "Unknown topic config name: log.retention.ms");
        assert_eq!(
            refusal("leader.replication.throttled.replicas", "0-1"),
            "Invalid value [0-1] for configuration leader.replication.throttled.replicas: \
             leader.replication.throttled.replicas must be the literal '*' or a list of replicas in the following format: \
             [partitionId]:[brokerId],[partitionId]:[brokerId],..."
        );
        assert_eq!(
            refusal("cleanup.policy", "delete,delete"),
            "Configuration 'cleanup.policy' values must not be duplicated."
        );
    }

    #[test]
    fn lags_that_contradict_each_other_are_refused() {
        assert_eq!(
            validate(&[("min.compaction.lag.ms", "1000"), ("max.compaction.lag.ms", "10")]),
            Err("conflict topic config setting min.compaction.lag.ms (1000) > max.compaction.lag.ms (10)".to_owned())
        );
    }

    #[test]
    fn tiered_storage_is_refused_and_its_limits_are_not() {
        assert!(validate(&[("remote.storage.enable", "true")]).is_err());
        assert_eq!(validate(&[("local.retention.ms", "1000"), ("retention.ms", "10")]), Ok(()));
    }
}
