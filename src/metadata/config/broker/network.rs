//! Broker settings of listeners, connections, threads, fetches and metrics.

use crate::metadata::config::key::{Key, keys};

/// Sorted by name.
pub static KEYS: &[Key] = keys! {
    "advertised.listeners" List null [Some] ReadOnly:
        "Where clients are told to connect; when it is not set, each client is told the address it reached the broker by.";
    "background.threads" Int "10" [AtLeast(1)] ClusterWide:
        "Threads for work in the background.";
    "config.providers" List "" [Distinct] ClusterWide:
        "Java classes that fetch configs from elsewhere; Barnabas loads no Java classes.";
    "connections.max.idle.ms" Long "600000" [Any] ReadOnly:
        "Connections without a request for this long are closed.";
    "delete.records.purgatory.purge.interval.requests" Int "1" [Any] ReadOnly:
        "Finished DeleteRecords requests that may wait to be cleared away.";
    "early.start.listeners" List null [Distinct] ReadOnly:
        "Listeners that accept connections before the broker knows its permissions.";
    "fetch.max.bytes" Int "57671680" [AtLeast(1024)] ReadOnly:
        "Most bytes that one fetch answer holds, whatever the client asks for.";
    "fetch.purgatory.purge.interval.requests" Int "1000" [Any] ReadOnly:
        "Finished fetches that may wait to be cleared away.";
    "http.listener" String "127.0.0.1:9644" [Any] ReadOnly ours:
        "Address of the HTTP server with metrics and health, host:port; empty switches it off.";
    "kafka.metrics.polling.interval.secs" Int "10" [AtLeast(1)] ReadOnly:
        "How often the reporters of kafka.metrics.reporters are fed.";
    "kafka.metrics.reporters" List "" [Distinct] ReadOnly:
        "Java classes that report metrics; Barnabas serves them over http.listener instead.";
    "listener.security.protocol.map" String "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT" [Any] PerBroker:
        "Security protocol of each listener name, name:protocol each.";
    "listeners" List "PLAINTEXT://127.0.0.1:9092" [Some] PerBroker:
        "Where the broker listens, name://host:port each; an empty host is every address.";
    "max.connection.creation.rate" Int "2147483647" [AtLeast(0)] ClusterWide:
        "New connections per second that the broker accepts at most.";
    "max.connections" Int "2147483647" [AtLeast(0)] ClusterWide:
        "Connections that the broker has open at most.";
    "max.connections.per.ip" Int "2147483647" [AtLeast(0)] ClusterWide:
        "Connections from one address at most.";
    "max.connections.per.ip.overrides" String "" [Any] ClusterWide:
        "Exceptions from max.connections.per.ip, address:count each.";
    "max.incremental.fetch.session.cache.slots" Int "1000" [AtLeast(0)] ReadOnly:
        "Incremental fetch sessions that the broker keeps at most.";
    "max.request.partition.size.limit" Int "2000" [AtLeast(1)] ReadOnly:
        "Partitions that one DescribeTopicPartitions answer lists at most.";
    "metric.reporters" List "org.apache.kafka.common.metrics.JmxReporter" [Distinct] ClusterWide:
        "Java classes that report metrics; Barnabas serves them over http.listener instead.";
    "metrics.num.samples" Int "2" [AtLeast(1)] ReadOnly:
        "Samples that a metric is computed from.";
    "metrics.recording.level" String "INFO" [Any] ReadOnly:
        "How detailed metrics are recorded: INFO, DEBUG or TRACE.";
    "metrics.sample.window.ms" Long "30000" [AtLeast(1)] ReadOnly:
        "Length of a sample that a metric is computed from.";
    "num.io.threads" Int "8" [AtLeast(1)] ClusterWide:
        "Threads that work on requests.";
    "num.network.threads" Int "3" [AtLeast(1)] ClusterWide:
        "Threads that read requests and write answers.";
    "producer.purgatory.purge.interval.requests" Int "1000" [Any] ReadOnly:
        "Finished produce requests that may wait to be cleared away.";
    "queued.max.request.bytes" Long "-1" [Any] ReadOnly:
        "Bytes of requests that may wait for a thread; -1 knows no limit.";
    "queued.max.requests" Int "500" [AtLeast(1)] ReadOnly:
        "Requests that may wait for a thread.";
    "request.timeout.ms" Int "30000" [Any] ReadOnly:
        "How long the broker waits for answers to its own requests.";
    "socket.connection.setup.timeout.max.ms" Long "30000" [Any] ReadOnly:
        "Longest time that the broker's own connections may take to set up.";
    "socket.connection.setup.timeout.ms" Long "10000" [Any] ReadOnly:
        "First time limit for setting up the broker's own connections.";
    "socket.listen.backlog.size" Int "50" [AtLeast(1)] ReadOnly:
        "Connections that may wait to be accepted.";
    "socket.receive.buffer.bytes" Int "102400" [Any] ReadOnly:
        "Receive buffer of a connection; -1 leaves it to the system.";
    "socket.request.max.bytes" Int "104857600" [AtLeast(1)] ReadOnly:
        "Largest request that the broker reads.";
    "socket.send.buffer.bytes" Int "102400" [Any] ReadOnly:
        "Send buffer of a connection; -1 leaves it to the system.";
    "telemetry.max.bytes" Int "1048576" [AtLeast(1)] ReadOnly:
        "Largest metrics push that a client may send.";
};
