//! Broker settings of logs: what topics inherit, and how logs are kept on disk.

use crate::metadata::config::key::{Key, keys};

const LOG_FORMATS: &[&str] = &["text", "json"];
const FLUSH_POLICIES: &[&str] = &["sync", "interval", "os"];

/// Sorted by name.
pub static KEYS: &[Key] = keys! {
    "alter.config.policy.class.name" Class null [Any] ReadOnly:
        "Java class that judges config changes; Barnabas loads no Java classes.";
    "auto.create.topics.enable" Boolean "true" [Any] ReadOnly:
        "Whether a topic comes into being when a client asks for it by name.";
    "compression.gzip.level" Int "-1" [GzipLevel] ClusterWide:
        "Level used when the broker itself compresses with gzip; -1 is the codec's own choice.";
    "compression.lz4.level" Int "9" [Between(1, 17)] ClusterWide:
        "Level used when the broker itself compresses with lz4.";
    "compression.type" String "producer" [OneOf(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"])] ClusterWide:
        "Codec that batches are stored in; producer keeps them as they came.";
    "compression.zstd.level" Int "3" [Between(-131_072, 22)] ClusterWide:
        "Level used when the broker itself compresses with zstd.";
    "cordoned.log.dirs" List "" [Distinct] PerBroker:
        "Log directories that get no new partitions; * is all of them.";
    "create.topic.policy.class.name" Class null [Any] ReadOnly:
        "Java class that judges new topics; Barnabas loads no Java classes.";
    "default.replication.factor" Int "1" [Any] ReadOnly:
        "Copies of a topic that is created without saying how many.";
    "delete.topic.enable" Boolean "true" [Any] ReadOnly:
        "Whether topics can be deleted.";
    "flush.interval.ms" Long "1000" [AtLeast(1)] ReadOnly ours:
        "With flush.policy interval: how often what was written is synced to disk.";
    "flush.policy" String "sync" [OneOf(FLUSH_POLICIES)] ReadOnly ours:
        "When records are safe: sync answers acks=all after they are on disk, interval syncs every flush.interval.ms, os leaves it to the system.";
    "log.cleaner.backoff.ms" Long "15000" [AtLeast(0)] ClusterWide:
        "How long compaction rests when there is nothing to do.";
    "log.cleaner.dedupe.buffer.size" Long "134217728" [Any] ClusterWide:
        "Memory for the keys of a compaction, over all threads.";
    "log.cleaner.delete.retention.ms" Long "86400000" [AtLeast(0)] ClusterWide:
        "How long compaction keeps delete markers.";
    "log.cleaner.enable" Boolean "true" [Any] ReadOnly:
        "Whether logs are compacted at all.";
    "log.cleaner.io.buffer.load.factor" Double "0.9" [Any] ClusterWide:
        "How full the key memory of a compaction may get.";
    "log.cleaner.io.buffer.size" Int "524288" [AtLeast(0)] ClusterWide:
        "Memory for reading and writing of compactions, over all threads.";
    "log.cleaner.io.max.bytes.per.second" Double "1.7976931348623157E308" [Any] ClusterWide:
        "Bytes per second that compactions read and write at most.";
    "log.cleaner.max.compaction.lag.ms" Long "9223372036854775807" [AtLeast(1)] ClusterWide:
        "Longest time that a record may stay uncompacted.";
    "log.cleaner.min.cleanable.ratio" Double "0.5" [UpTo(1.0)] ClusterWide:
        "Share of a log that must be uncompacted before a compaction is worth it.";
    "log.cleaner.min.compaction.lag.ms" Long "0" [AtLeast(0)] ClusterWide:
        "Shortest time that a record stays uncompacted.";
    "log.cleaner.threads" Int "1" [AtLeast(0)] ClusterWide:
        "Compactions that run at once.";
    "log.cleanup.policy" List "delete" [SubsetOf(&["compact", "delete"])] ClusterWide:
        "What happens to old records: delete, compact, both, or nothing.";
    "log.dir" List "./data" [Some] ReadOnly:
        "Data directory, where log.dirs is not set.";
    "log.dir.failure.timeout.ms" Long "30000" [AtLeast(1)] ReadOnly:
        "How long a broker runs on without telling the controller about a failed directory.";
    "log.dirs" List null [Some] ReadOnly:
        "Data directories, one for each disk; the first holds the metadata where metadata.log.dir is not set.";
    "log.flush.interval.messages" Long "9223372036854775807" [AtLeast(1)] ClusterWide:
        "Sync a partition to disk after this many records.";
    "log.flush.interval.ms" Long null [Any] ClusterWide:
        "Sync records to disk that are older than this; when it is not set, log.flush.scheduler.interval.ms counts.";
    "log.flush.offset.checkpoint.interval.ms" Int "60000" [AtLeast(0)] ReadOnly:
        "How often it is written down how far partitions are on disk, which bounds recovery.";
    "log.flush.scheduler.interval.ms" Long "9223372036854775807" [Any] ReadOnly:
        "How often it is checked whether a partition is due for a sync.";
    "log.flush.start.offset.checkpoint.interval.ms" Int "60000" [AtLeast(0)] ReadOnly:
        "How often it is written down where partitions start.";
    "log.format" String "text" [OneOf(LOG_FORMATS)] ReadOnly ours:
        "How the broker's own log is written to standard error: text, or json with one object a line.";
    "log.index.interval.bytes" Int "4096" [AtLeast(0)] ClusterWide:
        "How many bytes of log lie between two entries of the offset index.";
    "log.index.size.max.bytes" Int "10485760" [AtLeast(4)] ClusterWide:
        "Size of the offset index at which a new segment begins.";
    "log.initial.task.delay.ms" Long "30000" [AtLeast(0)] ReadOnly internal:
        "How long after the start the log's periodic work begins.";
    "log.level" String "info" [NotEmpty] ReadOnly ours:
        "What the broker's own log shows: a level, and levels of single modules behind it, as in info,barnabas::coordinator=debug.";
    "log.local.retention.bytes" Long "-2" [AtLeast(-2)] ClusterWide:
        "Bytes kept on local disk under tiered storage; -2 takes log.retention.bytes.";
    "log.local.retention.ms" Long "-2" [AtLeast(-2)] ClusterWide:
        "Time kept on local disk under tiered storage; -2 takes log.retention.ms.";
    "log.message.timestamp.after.max.ms" Long "3600000" [AtLeast(0)] ClusterWide:
        "How far a record's timestamp may lie ahead of the broker's clock.";
    "log.message.timestamp.before.max.ms" Long "9223372036854775807" [AtLeast(0)] ClusterWide:
        "How far a record's timestamp may lie behind the broker's clock.";
    "log.message.timestamp.type" String "CreateTime" [OneOf(&["CreateTime", "LogAppendTime"])] ClusterWide:
        "Whose time a record carries: the producer's or that of the append.";
    "log.preallocate" Boolean "false" [Any] ClusterWide:
        "Whether a new segment's file gets its full size at once.";
    "log.remote.copy.lag.bytes" Long "-1" [AtLeast(-1)] ClusterWide:
        "Bytes of closed segments that wait before they are copied to tiered storage; -1 follows local retention.";
    "log.remote.copy.lag.ms" Long "0" [AtLeast(-1)] ClusterWide:
        "How long a closed segment waits before it is copied to tiered storage; -1 follows local retention.";
    "log.retention.bytes" Long "-1" [Any] ClusterWide:
        "Size of a partition above which its oldest segments go; -1 knows no limit.";
    "log.retention.check.interval.ms" Long "300000" [AtLeast(1)] ReadOnly:
        "How often it is checked which segments retention drops.";
    "log.retention.hours" Int "168" [Any] ReadOnly:
        "Age above which segments go, where neither minutes nor ms are set.";
    "log.retention.minutes" Int null [Any] ReadOnly:
        "Age above which segments go, where ms is not set.";
    "log.retention.ms" Long null [Any] ClusterWide:
        "Age above which segments go; -1 keeps them for ever; when it is not set, minutes and then hours count.";
    "log.roll.hours" Int "168" [AtLeast(1)] ReadOnly:
        "Age at which a new segment begins, where ms is not set.";
    "log.roll.jitter.hours" Int "0" [AtLeast(0)] ReadOnly:
        "Largest random amount by which a segment begins earlier, where ms is not set.";
    "log.roll.jitter.ms" Long null [Any] ClusterWide:
        "Largest random amount by which a segment begins earlier; when it is not set, hours count.";
    "log.roll.ms" Long null [Any] ClusterWide:
        "Age at which a new segment begins; when it is not set, hours count.";
    "log.scrub.bytes.per.second" Long "10485760" [AtLeast(0)] ReadOnly ours:
        "Bytes per second that are read from disk to compare stored batches with their checksums; 0 switches that off.";
    "log.scrub.interval.ms" Long "604800000" [AtLeast(1)] ReadOnly ours:
        "How often all logs are read to compare stored batches with their checksums, in milliseconds from begin to begin.";
    "log.segment.bytes" Int "1073741824" [AtLeast(1_048_576)] ClusterWide:
        "Size at which a new segment begins.";
    "log.segment.delete.delay.ms" Long "60000" [AtLeast(0)] ClusterWide:
        "How long the file of a dropped segment stays on disk.";
    "max.decompressed.message.bytes" Int "2147483639" [Between(1, 2_147_483_639)] ClusterWide:
        "Largest size that one batch may decompress to.";
    "message.max.bytes" Int "1048588" [AtLeast(0)] ClusterWide:
        "Largest batch that a producer may send, as it comes (compressed).";
    "min.insync.replicas" Int "1" [AtLeast(1)] ClusterWide:
        "How many in-sync copies acks=all needs; the number of replicas caps it.";
    "num.partitions" Int "1" [AtLeast(1)] ReadOnly:
        "Partitions of a topic that is created without saying how many.";
    "num.recovery.threads.per.data.dir" Int "2" [AtLeast(1)] ClusterWide:
        "Partitions of a data directory that are recovered at once after an unclean stop.";
    "unclean.leader.election.enable" Boolean "false" [Any] ClusterWide:
        "Whether a replica that is out of sync may lead when no other is left, at the price of records.";
    "unclean.leader.election.interval.ms" Long "300000" [AtLeast(1)] ReadOnly internal:
        "How often unclean elections are tried.";
};
