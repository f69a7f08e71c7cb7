//! Broker settings of share groups (KIP-932), their dead letters, and streams groups (KIP-1071).

use crate::metadata::config::key::{Key, keys};

/// Sorted by name.
pub static KEYS: &[Key] = keys! {
    "errors.deadletterqueue.auto.create.topics.enable" Boolean "false" [Any] ClusterWide:
        "Whether the topic for a share group's dead letters comes into being by itself.";
    "errors.deadletterqueue.topic.name.prefix" String "dlq." [Any] ClusterWide:
        "How the name of a dead-letter topic must begin.";
    "group.share.assignment.interval.ms" Int "1000" [AtLeast(0)] ClusterWide:
        "Shortest time between two assignments of a share group.";
    "group.share.assignor.offload.enable" Boolean "true" [Any] ClusterWide internal:
        "Whether assignments of share groups are computed beside the coordinator.";
    "group.share.assignors" List "simple" [Some] ReadOnly:
        "Assignors that the broker offers to share groups; one at most counts.";
    "group.share.delivery.count.limit" Int "5" [Between(2, 10)] ReadOnly:
        "How often a record is delivered to a share group before it is given up.";
    "group.share.dlq.manager.class.name" String "org.apache.kafka.server.share.dlq.DefaultShareGroupDLQManager" [Any] ReadOnly internal:
        "Class that writes dead letters of share groups.";
    "group.share.heartbeat.interval.ms" Int "5000" [AtLeast(1)] ReadOnly:
        "How often members of a share group send a heartbeat.";
    "group.share.initialize.retry.interval.ms" Int "30000" [AtLeast(1)] ReadOnly internal:
        "Pause before the state of a share partition is initialised again.";
    "group.share.max.assignment.interval.ms" Int "15000" [AtLeast(0)] ReadOnly:
        "Largest assignment interval that a share group may set.";
    "group.share.max.delivery.count.limit" Int "10" [Between(5, 25)] ReadOnly:
        "Largest delivery limit that a share group may set.";
    "group.share.max.heartbeat.interval.ms" Int "15000" [AtLeast(1)] ReadOnly:
        "Largest heartbeat interval that a share group may set.";
    "group.share.max.partition.max.record.locks" Int "4000" [Between(2000, 10_000)] ReadOnly:
        "Largest number of record locks per partition that a share group may set.";
    "group.share.max.record.lock.duration.ms" Int "60000" [Between(30_000, 3_600_000)] ReadOnly:
        "Longest record lock that a share group may set.";
    "group.share.max.session.timeout.ms" Int "60000" [AtLeast(1)] ReadOnly:
        "Largest session timeout that a share group may set.";
    "group.share.max.share.sessions" Int "2000" [AtLeast(1)] ReadOnly:
        "Share sessions that a broker keeps at most.";
    "group.share.max.size" Int "200" [Between(1, 1000)] ReadOnly:
        "Most members of a share group.";
    "group.share.min.assignment.interval.ms" Int "0" [AtLeast(0)] ReadOnly:
        "Smallest assignment interval that a share group may set.";
    "group.share.min.delivery.count.limit" Int "2" [Between(2, 5)] ReadOnly:
        "Smallest delivery limit that a share group may set.";
    "group.share.min.heartbeat.interval.ms" Int "5000" [AtLeast(1)] ReadOnly:
        "Smallest heartbeat interval that a share group may set.";
    "group.share.min.partition.max.record.locks" Int "100" [Between(100, 2000)] ReadOnly:
        "Smallest number of record locks per partition that a share group may set.";
    "group.share.min.record.lock.duration.ms" Int "15000" [Between(1000, 30_000)] ReadOnly:
        "Shortest record lock that a share group may set.";
    "group.share.min.session.timeout.ms" Int "45000" [AtLeast(1)] ReadOnly:
        "Smallest session timeout that a share group may set.";
    "group.share.partition.max.record.locks" Int "2000" [Between(100, 10_000)] ReadOnly:
        "Records of a partition that a share group may hold locked at once.";
    "group.share.persister.class.name" String "org.apache.kafka.server.share.persister.DefaultStatePersister" [Any] ReadOnly internal:
        "Class that keeps the state of share groups.";
    "group.share.record.lock.duration.ms" Int "30000" [Between(1000, 3_600_000)] ReadOnly:
        "How long a consumer of a share group holds a record before it is offered again.";
    "group.share.session.timeout.ms" Int "45000" [AtLeast(1)] ReadOnly:
        "How long a member of a share group may be silent before it is removed.";
    "group.streams.acceptable.recovery.lag" Long "10000" [AtLeast(0)] ReadOnly internal:
        "Lag up to which a streams task counts as caught up.";
    "group.streams.assignment.interval.ms" Int "1000" [AtLeast(0)] ClusterWide:
        "Shortest time between two assignments of a streams group.";
    "group.streams.assignor.offload.enable" Boolean "true" [Any] ClusterWide internal:
        "Whether assignments of streams groups are computed beside the coordinator.";
    "group.streams.assignors" List "sticky" [Some] ReadOnly:
        "Assignors that the broker offers to streams groups; the first one is the default.";
    "group.streams.heartbeat.interval.ms" Int "5000" [AtLeast(1)] ReadOnly:
        "How often members of a streams group send a heartbeat.";
    "group.streams.initial.rebalance.delay.ms" Int "3000" [AtLeast(0)] ReadOnly:
        "How long the first assignment of a new streams group waits for more members.";
    "group.streams.max.assignment.interval.ms" Int "15000" [AtLeast(0)] ReadOnly:
        "Largest assignment interval that a streams group may set.";
    "group.streams.max.heartbeat.interval.ms" Int "15000" [AtLeast(1)] ReadOnly:
        "Largest heartbeat interval that a streams group may set.";
    "group.streams.max.session.timeout.ms" Int "60000" [AtLeast(1)] ReadOnly:
        "Largest session timeout that a streams group may set.";
    "group.streams.max.size" Int "2147483647" [AtLeast(1)] ReadOnly:
        "Most members of a streams group.";
    "group.streams.max.standby.replicas" Int "2" [AtLeast(0)] ReadOnly:
        "Most standby replicas that a streams group may set.";
    "group.streams.max.warmup.replicas" Int "20" [AtLeast(0)] ReadOnly internal:
        "Most warm-up replicas that a streams group may set.";
    "group.streams.min.assignment.interval.ms" Int "0" [AtLeast(0)] ReadOnly:
        "Smallest assignment interval that a streams group may set.";
    "group.streams.min.heartbeat.interval.ms" Int "5000" [AtLeast(1)] ReadOnly:
        "Smallest heartbeat interval that a streams group may set.";
    "group.streams.min.session.timeout.ms" Int "45000" [AtLeast(1)] ReadOnly:
        "Smallest session timeout that a streams group may set.";
    "group.streams.min.task.offset.interval.ms" Int "15000" [AtLeast(1)] ReadOnly internal:
        "Smallest interval for telling task offsets that a streams group may set.";
    "group.streams.num.standby.replicas" Int "0" [AtLeast(0)] ReadOnly:
        "Standby replicas of each stateful streams task.";
    "group.streams.num.warmup.replicas" Int "2" [AtLeast(0)] ReadOnly internal:
        "Warm-up replicas that a streams group may use at once.";
    "group.streams.rack.aware.assignment.tags" List "" [Distinct] ReadOnly:
        "Client tags over which a streams group spreads its standby replicas.";
    "group.streams.session.timeout.ms" Int "45000" [AtLeast(1)] ReadOnly:
        "How long a member of a streams group may be silent before it is removed.";
    "group.streams.task.offset.interval.ms" Int "60000" [AtLeast(1)] ReadOnly internal:
        "How often members of a streams group tell their task offsets.";
    "group.streams.topology.description.plugin.class" Class null [Any] ReadOnly:
        "Java class that keeps descriptions of streams topologies; Barnabas loads no Java classes.";
    "share.coordinator.append.linger.ms" Int "-1" [AtLeast(-1)] ReadOnly:
        "How long the share coordinator gathers records before it writes them; -1 adapts.";
    "share.coordinator.cached.buffer.max.bytes" Int "1048588" [AtLeast(524_288)] ClusterWide:
        "Largest buffer that the share coordinator keeps for reuse.";
    "share.coordinator.cold.partition.snapshot.interval.ms" Int "300000" [AtLeast(1)] ReadOnly internal:
        "How often the state of idle share partitions is written as a snapshot.";
    "share.coordinator.load.buffer.size" Int "5242880" [AtLeast(1)] ReadOnly:
        "Bytes read at once when the share state is loaded.";
    "share.coordinator.snapshot.update.records.per.snapshot" Int "500" [Between(0, 500)] ReadOnly:
        "Updates of a share partition's state between two snapshots.";
    "share.coordinator.state.topic.compression.codec" Int "0" [Any] ReadOnly:
        "Codec number of the topic of share state: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.";
    "share.coordinator.state.topic.min.isr" Short "2" [AtLeast(1)] ReadOnly:
        "In-sync copies that the topic of share state needs; the number of replicas caps it.";
    "share.coordinator.state.topic.num.partitions" Int "50" [AtLeast(1)] ReadOnly:
        "Partitions of the topic of share state; fixed once it exists.";
    "share.coordinator.state.topic.prune.interval.ms" Int "300000" [AtLeast(1)] ReadOnly internal:
        "How often outdated share state is dropped.";
    "share.coordinator.state.topic.replication.factor" Short "3" [AtLeast(1)] ReadOnly:
        "Copies of the topic of share state; as many as there are brokers when there are fewer.";
    "share.coordinator.state.topic.segment.bytes" Int "104857600" [AtLeast(1)] ReadOnly:
        "Segment size of the topic of share state.";
    "share.coordinator.threads" Int "1" [AtLeast(1)] ReadOnly:
        "Threads of the share coordinator.";
    "share.coordinator.write.timeout.ms" Int "5000" [AtLeast(1)] ReadOnly:
        "How long a write of share state waits for its replicas.";
    "share.fetch.purgatory.purge.interval.requests" Int "1000" [Any] ReadOnly:
        "Finished share fetches that may wait to be cleared away.";
};
