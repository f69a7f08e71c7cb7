//! Broker settings of classic and consumer groups and of committed offsets.

use crate::metadata::config::key::{Key, keys};

/// Sorted by name.
pub static KEYS: &[Key] = keys! {
    "group.consumer.assignment.interval.ms" Int "1000" [AtLeast(0)] ClusterWide:
        "Shortest time between two assignments of a consumer group.";
    "group.consumer.assignor.offload.enable" Boolean "true" [Any] ClusterWide internal:
        "Whether assignments of consumer groups are computed beside the coordinator.";
    "group.consumer.assignors" List "uniform,range" [Some] ReadOnly:
        "Assignors that the broker offers to consumer groups; the first one is the default.";
    "group.consumer.heartbeat.interval.ms" Int "5000" [AtLeast(1)] ReadOnly:
        "How often members of a consumer group send a heartbeat.";
    "group.consumer.max.assignment.interval.ms" Int "15000" [AtLeast(0)] ReadOnly:
        "Largest assignment interval that a consumer group may set.";
    "group.consumer.max.heartbeat.interval.ms" Int "15000" [AtLeast(1)] ReadOnly:
        "Largest heartbeat interval that a consumer group may set.";
    "group.consumer.max.session.timeout.ms" Int "60000" [AtLeast(1)] ReadOnly:
        "Largest session timeout that a consumer group may set.";
    "group.consumer.max.size" Int "2147483647" [AtLeast(1)] ReadOnly:
        "Most members of a consumer group.";
    "group.consumer.migration.policy" String "bidirectional" [OneOfAnyCase(&["DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"])] ReadOnly:
        "Whether groups move between the classic and the consumer protocol while they run, and in which direction.";
    "group.consumer.min.assignment.interval.ms" Int "0" [AtLeast(0)] ReadOnly:
        "Smallest assignment interval that a consumer group may set.";
    "group.consumer.min.heartbeat.interval.ms" Int "5000" [AtLeast(1)] ReadOnly:
        "Smallest heartbeat interval that a consumer group may set.";
    "group.consumer.min.session.timeout.ms" Int "45000" [AtLeast(1)] ReadOnly:
        "Smallest session timeout that a consumer group may set.";
    "group.consumer.regex.refresh.interval.ms" Int "600000" [AtLeast(10_000)] ReadOnly internal:
        "How often subscriptions by regular expression are resolved again.";
    "group.consumer.session.timeout.ms" Int "45000" [AtLeast(1)] ReadOnly:
        "How long a member of a consumer group may be silent before it is removed.";
    "group.coordinator.append.linger.ms" Int "-1" [AtLeast(-1)] ReadOnly:
        "How long the group coordinator gathers records before it writes them; -1 adapts.";
    "group.coordinator.background.threads" Int "2" [AtLeast(1)] ReadOnly:
        "Threads of the group coordinator for slow work.";
    "group.coordinator.cached.buffer.max.bytes" Int "1048588" [AtLeast(524_288)] ClusterWide:
        "Largest buffer that the group coordinator keeps for reuse.";
    "group.coordinator.rebalance.protocols" List "classic,consumer,streams" [SomeOf(&["consumer", "classic", "share", "streams"])] ReadOnly:
        "Kinds of groups that are served.";
    "group.coordinator.threads" Int "4" [AtLeast(1)] ReadOnly:
        "Threads of the group coordinator.";
    "group.initial.rebalance.delay.ms" Int "3000" [Any] ReadOnly:
        "How long the first rebalance of a new classic group waits for more members.";
    "group.max.session.timeout.ms" Int "1800000" [Any] ReadOnly:
        "Largest session timeout that a member of a classic group may ask for.";
    "group.max.size" Int "2147483647" [AtLeast(1)] ReadOnly:
        "Most members of a classic group.";
    "group.min.session.timeout.ms" Int "6000" [Any] ReadOnly:
        "Smallest session timeout that a member of a classic group may ask for.";
    "offset.metadata.max.bytes" Int "4096" [Any] ReadOnly:
        "Largest metadata text that a client may commit with an offset.";
    "offsets.commit.timeout.ms" Int "5000" [AtLeast(1)] ReadOnly:
        "How long a commit of offsets waits for its replicas.";
    "offsets.load.buffer.size" Int "5242880" [AtLeast(1)] ReadOnly:
        "Bytes read at once when the committed offsets are loaded.";
    "offsets.retention.check.interval.ms" Long "600000" [AtLeast(1)] ReadOnly:
        "How often it is checked which committed offsets are too old.";
    "offsets.retention.minutes" Int "10080" [AtLeast(1)] ReadOnly:
        "How long the offsets of a group without members are kept.";
    "offsets.topic.compression.codec" Int "0" [Any] ReadOnly:
        "Codec number of the topic of committed offsets: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.";
    "offsets.topic.num.partitions" Int "50" [AtLeast(1)] ReadOnly:
        "Partitions of the topic of committed offsets; fixed once it exists.";
    "offsets.topic.replication.factor" Short "3" [AtLeast(1)] ReadOnly:
        "Copies of the topic of committed offsets; as many as there are brokers when there are fewer.";
    "offsets.topic.segment.bytes" Int "104857600" [AtLeast(1)] ReadOnly:
        "Segment size of the topic of committed offsets.";
};
