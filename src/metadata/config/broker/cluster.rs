//! Broker settings of nodes, the metadata quorum and replication.

use crate::metadata::config::key::{Key, keys};

/// Sorted by name.
pub static KEYS: &[Key] = keys! {
    "auto.leader.rebalance.enable" Boolean "true" [Any] ReadOnly:
        "Whether leadership returns to the preferred replicas by itself.";
    "broker.heartbeat.interval.ms" Int "500" [Any] ReadOnly:
        "How often a broker tells the controller that it lives.";
    "broker.id" Int "-1" [Any] ReadOnly:
        "Older name of node.id; -1 leaves it to node.id.";
    "broker.rack" String null [Any] ReadOnly:
        "Rack or zone of this broker, for placing replicas and for reading nearby.";
    "broker.session.timeout.ms" Int "5000" [Any] ReadOnly:
        "How long the controller waits for a broker's heartbeat before it fences the broker.";
    "cluster.id" String null [Any] ReadOnly ours:
        "Id that a new cluster gets; made up when it is not set.";
    "controlled.shutdown.enable" Boolean "true" [Any] ReadOnly:
        "Whether a stopping broker hands its leaderships over first.";
    "controller.listener.names" List "CONTROLLER" [Some] ReadOnly:
        "Listeners that carry the traffic between controllers and brokers.";
    "controller.performance.always.log.threshold.ms" Long "2000" [AtLeast(0)] ReadOnly internal:
        "Controller events slower than this are always logged.";
    "controller.performance.sample.period.ms" Long "60000" [AtLeast(100)] ReadOnly internal:
        "How often the controller logs how long its events take.";
    "controller.quorum.append.linger.ms" Int "25" [AtLeast(0)] ReadOnly:
        "How long the controller's leader gathers records before it writes them.";
    "controller.quorum.auto.join.enable" Boolean "false" [Any] ReadOnly:
        "Whether a controller joins the voters by itself.";
    "controller.quorum.bootstrap.servers" List "" [Servers] ReadOnly:
        "Addresses of controllers, host:port, to find the quorum by.";
    "controller.quorum.election.backoff.max.ms" Int "1000" [AtLeast(0)] ReadOnly:
        "Longest pause before another election after a lost one.";
    "controller.quorum.election.timeout.ms" Int "1000" [AtLeast(0)] ReadOnly:
        "How long a candidate waits for votes before it tries again.";
    "controller.quorum.fetch.max.bytes" Int "1048576" [AtLeast(1)] ReadOnly:
        "Most bytes that one fetch of the metadata log asks for.";
    "controller.quorum.fetch.snapshot.max.bytes" Int "1048576" [AtLeast(1)] ReadOnly:
        "Most bytes that one fetch of a metadata snapshot asks for.";
    "controller.quorum.fetch.timeout.ms" Int "2000" [AtLeast(0)] ReadOnly:
        "How long a voter goes without hearing from the leader before it stands for election.";
    "controller.quorum.request.timeout.ms" Int "2000" [AtLeast(0)] ReadOnly:
        "How long a controller waits for another one's answer.";
    "controller.quorum.retry.backoff.ms" Int "20" [AtLeast(0)] ReadOnly:
        "Pause before a request to another controller is repeated.";
    "controller.quorum.voters" List "" [Voters] ReadOnly:
        "The fixed set of voters, id@host:port each.";
    "controller.socket.timeout.ms" Int "30000" [Any] ReadOnly:
        "How long a connection to the controller may be silent.";
    "initial.broker.registration.timeout.ms" Int "60000" [Any] ReadOnly:
        "How long a starting broker tries to register before it gives up.";
    "inter.broker.listener.name" String null [Any] ReadOnly:
        "Listener that brokers use among themselves; when it is not set, security.inter.broker.protocol decides.";
    "internal.metadata.delete.delay.millis" Long "60000" [Any] ReadOnly internal:
        "How long deleted files of the metadata log stay on disk.";
    "internal.metadata.log.segment.bytes" Int null [Any] ReadOnly internal:
        "Segment size of the metadata log for tests.";
    "internal.metadata.max.batch.size.in.bytes" Int "8388608" [Any] ReadOnly internal:
        "Largest batch of the metadata log.";
    "leader.imbalance.check.interval.seconds" Long "300" [AtLeast(1)] ReadOnly:
        "How often it is checked whether leadership should return to the preferred replicas.";
    "metadata.log.dir" String null [Any] ReadOnly:
        "Directory of the metadata log; when it is not set, the first data directory.";
    "metadata.log.max.record.bytes.between.snapshots" Long "20971520" [AtLeast(1)] ReadOnly:
        "Bytes of metadata records after which a snapshot is made.";
    "metadata.log.max.snapshot.interval.ms" Long "3600000" [AtLeast(0)] ReadOnly:
        "Time after which a snapshot of the metadata is made if anything changed.";
    "metadata.log.segment.bytes" Int "1073741824" [AtLeast(8_388_608)] ReadOnly:
        "Size at which a new segment of the metadata log begins.";
    "metadata.log.segment.ms" Long "604800000" [Any] ReadOnly:
        "Age at which a new segment of the metadata log begins.";
    "metadata.max.idle.interval.ms" Int "500" [AtLeast(0)] ReadOnly:
        "How often the controller writes an empty record when nothing else happens; 0 never.";
    "metadata.max.retention.bytes" Long "104857600" [Any] ReadOnly:
        "Size of metadata log and snapshots above which the oldest go.";
    "metadata.max.retention.ms" Long "604800000" [Any] ReadOnly:
        "Age above which parts of the metadata log and snapshots go.";
    "node.id" Int "1" [AtLeast(0)] ReadOnly:
        "This node's number, unlike that of every other node of the cluster.";
    "num.replica.alter.log.dirs.threads" Int null [Any] ReadOnly:
        "Threads that move partitions between log directories.";
    "num.replica.fetchers" Int "1" [AtLeast(1)] ClusterWide:
        "Connections by which a follower fetches from one leader.";
    "process.roles" List "broker,controller" [SomeOf(&["broker", "controller"])] ReadOnly:
        "What this node is: broker, controller, or both.";
    "replica.fetch.backoff.ms" Int "1000" [AtLeast(0)] ReadOnly:
        "Pause before a failed fetch from a leader is repeated.";
    "replica.fetch.max.bytes" Int "1048576" [AtLeast(0)] ReadOnly:
        "Bytes that a follower asks for per partition.";
    "replica.fetch.min.bytes" Int "1" [Any] ReadOnly:
        "Bytes that a leader gathers before it answers a follower, within replica.fetch.wait.max.ms.";
    "replica.fetch.response.max.bytes" Int "10485760" [AtLeast(0)] ReadOnly:
        "Bytes that a follower asks for in all.";
    "replica.fetch.wait.max.ms" Int "500" [Any] ReadOnly:
        "How long a leader waits for new records before it answers a follower.";
    "replica.high.watermark.checkpoint.interval.ms" Long "5000" [Any] ReadOnly:
        "How often the high watermarks are written down.";
    "replica.lag.time.max.ms" Long "30000" [Any] ReadOnly:
        "A follower that has not caught up for this long leaves the in-sync set.";
    "replica.selector.class" String null [Any] ReadOnly:
        "Class that chooses the replica a consumer reads from.";
    "replica.socket.receive.buffer.bytes" Int "65536" [Any] ReadOnly:
        "Receive buffer of a follower's connections; -1 leaves it to the system.";
    "replica.socket.timeout.ms" Int "30000" [Any] ReadOnly:
        "How long a follower waits for its leader's answer.";
    "server.max.startup.time.ms" Long "9223372036854775807" [AtLeast(0)] ReadOnly internal:
        "How long a start may take before the node gives up.";
    "unstable.api.versions.enable" Boolean "false" [Any] ReadOnly internal:
        "Whether versions of APIs that are not finished are served.";
    "unstable.feature.versions.enable" Boolean "false" [Any] ReadOnly internal:
        "Whether levels of features that are not finished may be switched on.";
};
