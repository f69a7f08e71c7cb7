//! Broker settings of tiered storage and of quotas.

use crate::metadata::config::key::{Key, keys};

/// Sorted by name.
pub static KEYS: &[Key] = keys! {
    "alter.log.dirs.replication.quota.window.num" Int "11" [AtLeast(1)] ReadOnly:
        "Samples kept for the quota on moves between log directories.";
    "alter.log.dirs.replication.quota.window.size.seconds" Int "1" [AtLeast(1)] ReadOnly:
        "Length of a sample for the quota on moves between log directories.";
    "client.quota.callback.class" Class null [Any] ReadOnly:
        "Java class that computes quotas; Barnabas loads no Java classes.";
    "controller.quota.window.num" Int "11" [AtLeast(1)] ReadOnly:
        "Samples kept for the quota on changes of topics.";
    "controller.quota.window.size.seconds" Int "1" [AtLeast(1)] ReadOnly:
        "Length of a sample for the quota on changes of topics.";
    "follower.fetch.last.tiered.offset.enable" Boolean "false" [Any] ClusterWide:
        "Whether a new follower begins behind what tiered storage holds.";
    "follower.replication.throttled.rate" Long "9223372036854775807" [AtLeast(0)] ClusterWide internal:
        "Bytes per second that throttled followers fetch at most.";
    "leader.replication.throttled.rate" Long "9223372036854775807" [AtLeast(0)] ClusterWide internal:
        "Bytes per second that leaders send to throttled replicas at most.";
    "quota.window.num" Int "11" [AtLeast(1)] ReadOnly:
        "Samples kept for client quotas.";
    "quota.window.size.seconds" Int "1" [AtLeast(1)] ReadOnly:
        "Length of a sample for client quotas.";
    "remote.fetch.max.wait.ms" Int "500" [AtLeast(1)] ClusterWide:
        "How long a fetch waits for tiered storage.";
    "remote.list.offsets.request.timeout.ms" Long "30000" [AtLeast(1)] ClusterWide:
        "How long ListOffsets waits for tiered storage.";
    "remote.log.index.file.cache.total.size.bytes" Long "1073741824" [AtLeast(1)] ClusterWide:
        "Disk space for indexes fetched from tiered storage.";
    "remote.log.index.file.cache.ttl.ms" Long "900000" [AtLeast(-1)] ReadOnly internal:
        "How long an index fetched from tiered storage is kept unused.";
    "remote.log.manager.copier.thread.pool.size" Int "10" [AtLeast(1)] ClusterWide:
        "Threads that copy segments to tiered storage.";
    "remote.log.manager.copy.max.bytes.per.second" Long "9223372036854775807" [AtLeast(1)] ClusterWide:
        "Bytes per second that are copied to tiered storage at most.";
    "remote.log.manager.copy.quota.window.num" Int "11" [AtLeast(1)] ReadOnly:
        "Samples kept for the quota on copying to tiered storage.";
    "remote.log.manager.copy.quota.window.size.seconds" Int "1" [AtLeast(1)] ReadOnly:
        "Length of a sample for the quota on copying to tiered storage.";
    "remote.log.manager.expiration.thread.pool.size" Int "10" [AtLeast(1)] ClusterWide:
        "Threads that delete expired segments from tiered storage.";
    "remote.log.manager.fetch.max.bytes.per.second" Long "9223372036854775807" [AtLeast(1)] ClusterWide:
        "Bytes per second that are read from tiered storage at most.";
    "remote.log.manager.fetch.quota.window.num" Int "11" [AtLeast(1)] ReadOnly:
        "Samples kept for the quota on reading from tiered storage.";
    "remote.log.manager.fetch.quota.window.size.seconds" Int "1" [AtLeast(1)] ReadOnly:
        "Length of a sample for the quota on reading from tiered storage.";
    "remote.log.manager.follower.thread.pool.size" Int "2" [AtLeast(1)] ClusterWide:
        "Threads that keep followers informed about tiered storage.";
    "remote.log.manager.task.interval.ms" Long "30000" [AtLeast(1)] ReadOnly:
        "How often it is checked what goes to or leaves tiered storage.";
    "remote.log.manager.task.retry.backoff.max.ms" Long "30000" [AtLeast(1)] ReadOnly internal:
        "Longest pause before work on tiered storage is repeated.";
    "remote.log.manager.task.retry.backoff.ms" Long "500" [AtLeast(1)] ReadOnly internal:
        "First pause before work on tiered storage is repeated.";
    "remote.log.manager.task.retry.jitter" Double "0.2" [UpTo(0.5)] ReadOnly internal:
        "Random part of the pause before work on tiered storage is repeated.";
    "remote.log.manager.thread.pool.size" Int "2" [AtLeast(1)] ReadOnly:
        "Threads that plan the work on tiered storage.";
    "remote.log.metadata.custom.metadata.max.bytes" Int "128" [AtLeast(0)] ReadOnly:
        "Largest text that a storage plugin may keep with a segment.";
    "remote.log.metadata.manager.class.name" String "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager" [NotEmpty] ReadOnly:
        "Java class that keeps the index of tiered storage; Barnabas loads no Java classes.";
    "remote.log.metadata.manager.class.path" String null [Any] ReadOnly:
        "Where the class of remote.log.metadata.manager.class.name is found.";
    "remote.log.metadata.manager.impl.prefix" String "rlmm.config." [NotEmpty] ReadOnly:
        "Prefix of the configs that go to the index of tiered storage.";
    "remote.log.metadata.manager.listener.name" String null [NotEmpty] ReadOnly:
        "Listener by which the index of tiered storage reaches the brokers.";
    "remote.log.reader.max.pending.tasks" Int "100" [AtLeast(1)] ReadOnly:
        "Reads from tiered storage that may wait.";
    "remote.log.reader.threads" Int "10" [AtLeast(1)] ClusterWide:
        "Threads that read from tiered storage.";
    "remote.log.storage.manager.class.name" String null [NotEmpty] ReadOnly:
        "Java class that reaches tiered storage; Barnabas loads no Java classes.";
    "remote.log.storage.manager.class.path" String null [Any] ReadOnly:
        "Where the class of remote.log.storage.manager.class.name is found.";
    "remote.log.storage.manager.impl.prefix" String "rsm.config." [NotEmpty] ReadOnly:
        "Prefix of the configs that go to the plugin of tiered storage.";
    "remote.log.storage.system.enable" Boolean "false" [Any] ReadOnly:
        "Whether tiered storage is there to be used by topics.";
    "replica.alter.log.dirs.io.max.bytes.per.second" Long "9223372036854775807" [AtLeast(0)] ClusterWide internal:
        "Bytes per second that are moved between log directories at most.";
    "replication.quota.window.num" Int "11" [AtLeast(1)] ReadOnly:
        "Samples kept for replication quotas.";
    "replication.quota.window.size.seconds" Int "1" [AtLeast(1)] ReadOnly:
        "Length of a sample for replication quotas.";
};
