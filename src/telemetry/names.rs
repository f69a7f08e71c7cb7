//! Every metric by name, type, help and labels. Where Kafka has the quantity, the name is the one that users of Prometheus' JMX
//! exporter (its published Kafka rules) or of kafka_exporter have on their dashboards; what is only ours is `barnabas_*`.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
    Summary,
}

/// A metric that a page may hold.
#[derive(Debug)]
pub struct Metric {
    pub name: &'static str,
    pub kind: Kind,
    pub help: &'static str,
    pub labels: &'static [&'static str],
}

macro_rules! metrics {
    ($($constant:ident = $kind:ident $name:literal [$($label:literal),*] $help:literal;)*) => {
        $(
            #[doc = $help]
            pub static $constant: Metric =
                Metric { name: $name, kind: Kind::$kind, help: $help, labels: &[$($label),*] };
        )*

        /// All of them, in the order in which they are listed here.
        pub static ALL: &[&Metric] = &[$(&$constant,)*];
    };
}

metrics! {
    // Topics. The line without a topic is the sum over all topics, as Kafka's is: filter by topic="" or topic!="".
    MESSAGES_IN = Counter "kafka_server_brokertopicmetrics_messagesin_total" ["topic"] "Records appended for producers; without a topic: over all.";
    BYTES_IN = Counter "kafka_server_brokertopicmetrics_bytesin_total" ["topic"] "Bytes of record batches appended for producers.";
    BYTES_OUT = Counter "kafka_server_brokertopicmetrics_bytesout_total" ["topic"] "Bytes of record batches sent to consumers.";
    BYTES_REJECTED = Counter "kafka_server_brokertopicmetrics_bytesrejected_total" ["topic"] "Bytes of record batches refused, for size or content.";
    PRODUCE_REQUESTS = Counter "kafka_server_brokertopicmetrics_totalproducerequests_total" ["topic"] "Partitions of the topic that Produce requests named.";
    FETCH_REQUESTS = Counter "kafka_server_brokertopicmetrics_totalfetchrequests_total" ["topic"] "Partitions of the topic that Fetch requests read.";
    FAILED_PRODUCE_REQUESTS = Counter "kafka_server_brokertopicmetrics_failedproducerequests_total" ["topic"] "Partitions of Produce requests that were answered with an error.";
    FAILED_FETCH_REQUESTS = Counter "kafka_server_brokertopicmetrics_failedfetchrequests_total" ["topic"] "Partitions of Fetch requests that were answered with an error.";

    // APIs. As in Kafka, Fetch appears as Fetch and again as FetchConsumer or FetchFollower.
    REQUESTS = Counter "kafka_network_requestmetrics_requests_total" ["request", "version"] "Requests answered.";
    REQUEST_ERRORS = Counter "kafka_network_requestmetrics_errors_total" ["request", "error"] "Answers by error code, NONE included.";
    REQUEST_TOTAL_TIME = Summary "kafka_network_requestmetrics_totaltimems" ["request"] "Milliseconds from the arrival of a request to its answer.";
    REQUEST_BYTES = Summary "kafka_network_requestmetrics_requestbytes" ["request"] "Size of requests.";
    RESPONSE_BYTES = Summary "barnabas_response_bytes" ["request"] "Size of answers.";
    REQUEST_SECONDS = Histogram "barnabas_request_seconds" ["request"] "Seconds from the arrival of a request to its answer, as a histogram that can be summed over brokers.";

    // Connections.
    CONNECTIONS = Gauge "kafka_server_socket_server_metrics_connection_count" ["listener"] "Open connections.";
    CONNECTIONS_CREATED = Counter "kafka_server_socket_server_metrics_connection_creation_total" ["listener"] "Connections accepted.";
    CONNECTIONS_CLOSED = Counter "kafka_server_socket_server_metrics_connection_close_total" ["listener"] "Connections ended.";
    INCOMING_BYTES = Counter "kafka_server_socket_server_metrics_incoming_byte_total" ["listener"] "Bytes read from sockets.";
    OUTGOING_BYTES = Counter "kafka_server_socket_server_metrics_outgoing_byte_total" ["listener"] "Bytes written to sockets.";
    CLIENT_SOFTWARE = Counter "barnabas_client_connections_total" ["software_name", "software_version"] "Connections by the client library that introduced itself.";
    REFUSED = Counter "barnabas_refused_total" ["reason"] "Requests and connections refused before or instead of an answer.";

    // Logs.
    LOG_SIZE = Gauge "kafka_log_log_size" ["topic", "partition"] "Bytes of a partition's segments.";
    LOG_SEGMENTS = Gauge "kafka_log_log_numlogsegments" ["topic", "partition"] "Segments of a partition.";
    LOG_START_OFFSET = Gauge "kafka_log_log_logstartoffset" ["topic", "partition"] "First offset that can be read.";
    LOG_END_OFFSET = Gauge "kafka_log_log_logendoffset" ["topic", "partition"] "Offset that the next record will get.";
    OFFLINE_LOG_DIRS = Gauge "kafka_log_logmanager_offlinelogdirectorycount" [] "Log directories taken out of service after an error.";
    LOG_DIR_OFFLINE = Gauge "kafka_log_logmanager_logdirectoryoffline" ["logDirectory"] "1 when the log directory is out of service.";
    LOG_DIR_FREE = Gauge "barnabas_log_dir_free_bytes" ["dir"] "Bytes free on the file system of a log directory.";
    LOG_DIR_TOTAL = Gauge "barnabas_log_dir_capacity_bytes" ["dir"] "Size of the file system of a log directory.";
    FLUSH_TIME = Summary "kafka_log_logflushstats_logflushrateandtimems" [] "Milliseconds that a sync to disk took.";
    FLUSH_SECONDS = Histogram "barnabas_flush_seconds" [] "Seconds that a sync to disk took.";
    FLUSH_FAILURES = Counter "barnabas_flush_failures_total" [] "Syncs that failed; each takes its log directory out of service.";
    FLUSHED_APPENDS = Counter "barnabas_flushed_appends_total" [] "Appends that syncs made durable; divided by the syncs: how many share one.";
    SEGMENTS_DELETED = Counter "barnabas_segments_deleted_total" [] "Segments removed by retention or DeleteRecords.";
    SCRUBBED_BYTES = Counter "barnabas_scrubbed_bytes_total" [] "Bytes of logs that were read and compared with their checksums.";
    DAMAGED_BATCHES = Counter "barnabas_damaged_batches_total" [] "Batches on disk that were found not to be what was written.";
    DAMAGED_COPIES = Gauge "barnabas_damaged_copies" [] "Partitions whose copy here is damaged and has not been rebuilt.";

    // Partitions as kafka_exporter shows them.
    TOPIC_PARTITIONS = Gauge "kafka_topic_partitions" ["topic"] "Partitions of a topic.";
    PARTITION_CURRENT_OFFSET = Gauge "kafka_topic_partition_current_offset" ["topic", "partition"] "High watermark of a partition.";
    PARTITION_OLDEST_OFFSET = Gauge "kafka_topic_partition_oldest_offset" ["topic", "partition"] "First offset that can be read.";
    PARTITION_LEADER = Gauge "kafka_topic_partition_leader" ["topic", "partition"] "Broker that leads a partition, -1 when none does.";
    PARTITION_LEADER_IS_PREFERRED = Gauge "kafka_topic_partition_leader_is_preferred" ["topic", "partition"] "1 when the first replica leads.";
    PARTITION_REPLICAS = Gauge "kafka_topic_partition_replicas" ["topic", "partition"] "Replicas of a partition.";
    PARTITION_IN_SYNC = Gauge "kafka_topic_partition_in_sync_replica" ["topic", "partition"] "Replicas in the in-sync set.";
    PARTITION_UNDER_REPLICATED = Gauge "kafka_topic_partition_under_replicated_partition" ["topic", "partition"] "1 when a replica is not in sync.";
    PARTITION_COUNT = Gauge "kafka_server_replicamanager_partitioncount" [] "Partitions with a replica here.";
    LEADER_COUNT = Gauge "kafka_server_replicamanager_leadercount" [] "Partitions led here.";
    UNDER_REPLICATED = Gauge "kafka_server_replicamanager_underreplicatedpartitions" [] "Partitions led here with a replica that is not in sync.";
    UNDER_MIN_ISR = Gauge "kafka_server_replicamanager_underminisrpartitioncount" [] "Partitions led here with fewer in-sync replicas than min.insync.replicas.";
    AT_MIN_ISR = Gauge "kafka_server_replicamanager_atminisrpartitioncount" [] "Partitions led here with just as many in-sync replicas as min.insync.replicas asks for.";
    ISR_SHRINKS = Counter "kafka_server_replicamanager_isrshrinks_total" [] "Times that a partition led here lost in-sync replicas because they were behind.";
    ISR_EXPANDS = Counter "kafka_server_replicamanager_isrexpands_total" [] "Times that a partition led here gained in-sync replicas.";
    FAILED_ISR_UPDATES = Counter "kafka_server_replicamanager_failedisrupdates_total" [] "Changes of in-sync sets that the controller refused.";
    OFFLINE_REPLICAS = Gauge "kafka_server_replicamanager_offlinereplicacount" [] "Replicas here that are out of service.";
    FETCH_SESSIONS = Gauge "kafka_server_fetchsessioncache_numincrementalfetchsessions" [] "Incremental fetch sessions (KIP-227).";

    // Cluster and controller.
    BROKERS = Gauge "kafka_brokers" [] "Brokers in the cluster.";
    BROKER_INFO = Gauge "kafka_broker_info" ["id", "address"] "A broker and where it is reached; always 1.";
    ACTIVE_CONTROLLERS = Gauge "kafka_controller_kafkacontroller_activecontrollercount" [] "1 on the controller.";
    ACTIVE_BROKERS = Gauge "kafka_controller_kafkacontroller_activebrokercount" [] "Brokers that are registered and not fenced.";
    FENCED_BROKERS = Gauge "kafka_controller_kafkacontroller_fencedbrokercount" [] "Brokers that are registered and fenced.";
    GLOBAL_TOPICS = Gauge "kafka_controller_kafkacontroller_globaltopiccount" [] "Topics in the cluster.";
    GLOBAL_PARTITIONS = Gauge "kafka_controller_kafkacontroller_globalpartitioncount" [] "Partitions in the cluster.";
    OFFLINE_PARTITIONS = Gauge "kafka_controller_kafkacontroller_offlinepartitionscount" [] "Partitions without a leader.";
    NOT_PREFERRED_LEADERS = Gauge "kafka_controller_kafkacontroller_preferredreplicaimbalancecount" [] "Partitions that another than their first replica leads.";
    UNCLEAN_ELECTIONS = Counter "kafka_controller_controllerstats_uncleanleaderelections_total" [] "Leaders that this node as the controller elected although they were not in sync: records may be lost.";
    LEADER_ELECTIONS = Counter "barnabas_leader_elections_total" [] "Leaders that this node as the controller elected.";
    BROKERS_FENCED = Counter "barnabas_brokers_fenced_total" [] "Brokers that this node as the controller fenced because they were gone or silent.";
    METADATA_OFFSET = Gauge "kafka_server_broker_metadata_metrics_last_applied_record_offset" [] "Last metadata record that this broker has applied.";
    BROKER_STATE = Gauge "kafka_server_kafkaserver_brokerstate" [] "1 starting, 2 recovering logs, 3 running, 7 shutting down.";

    // Groups as kafka_exporter shows them.
    GROUP_OFFSET = Gauge "kafka_consumergroup_current_offset" ["consumergroup", "topic", "partition"] "Offset that a group has committed.";
    GROUP_OFFSET_SUM = Gauge "kafka_consumergroup_current_offset_sum" ["consumergroup", "topic"] "Sum of a group's committed offsets over a topic.";
    GROUP_LAG = Gauge "kafka_consumergroup_lag" ["consumergroup", "topic", "partition"] "Records between a group's committed offset and the high watermark.";
    GROUP_LAG_SUM = Gauge "kafka_consumergroup_lag_sum" ["consumergroup", "topic"] "Sum of a group's lag over a topic.";
    GROUP_MEMBERS = Gauge "kafka_consumergroup_members" ["consumergroup"] "Members of a group.";
    GROUPS = Gauge "kafka_coordinator_group_groupmetadatamanager_numgroups" [] "Groups that this broker coordinates.";
    GROUP_OFFSETS = Gauge "kafka_coordinator_group_groupmetadatamanager_numoffsets" [] "Committed offsets that this broker keeps.";
    GROUPS_BY_STATE = Gauge "barnabas_groups" ["state"] "Groups that this broker coordinates, by state.";

    // The process.
    PROCESS_CPU_SECONDS = Counter "process_cpu_seconds_total" [] "User and system CPU time.";
    PROCESS_RESIDENT_MEMORY = Gauge "process_resident_memory_bytes" [] "Resident memory, page cache of our files not included.";
    PROCESS_VIRTUAL_MEMORY = Gauge "process_virtual_memory_bytes" [] "Virtual memory.";
    PROCESS_OPEN_FDS = Gauge "process_open_fds" [] "Open file descriptors.";
    PROCESS_MAX_FDS = Gauge "process_max_fds" [] "Most file descriptors that the process may open.";
    PROCESS_THREADS = Gauge "process_threads" [] "Threads.";
    PROCESS_START_TIME_SECONDS = Gauge "process_start_time_seconds" [] "Start of the broker, seconds since 1970.";
    BUILD_INFO = Gauge "barnabas_build_info" ["version"] "The running version; always 1.";
    SERIES_DROPPED = Gauge "barnabas_series_dropped" [] "Lines left out of this page because a metric reached its bound.";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_say_what_they_are() {
        let mut seen = BTreeSet::new();
        for metric in ALL {
            assert!(seen.insert(metric.name), "{} twice", metric.name);
            assert_eq!(metric.kind == Kind::Counter, metric.name.ends_with("_total"), "{}", metric.name);
            assert!(metric.help.ends_with('.'), "{}", metric.name);
            assert!(
                metric.name.starts_with("kafka_")
                    || metric.name.starts_with("barnabas_")
                    || metric.name.starts_with("process_")
            );
        }
    }
}
