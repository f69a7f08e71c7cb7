//! The settings that the server is built from: plain fields, units in their names, bounds already checked.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use super::ConfigError;
use super::listeners::{self, AdvertisedListener, Listener};
use super::quorum::{self, ControllerSettings, LifecycleSettings, QuorumSettings, Roles};
use super::reader::Reader;
use crate::base::NodeAddress;
use crate::base::address::loopback;
use crate::metadata::config::value::{host_and_port, split_list};
use crate::telemetry::logs;

/// What one node is started with.
#[derive(Clone, Debug, PartialEq)]
pub struct BrokerSettings {
    pub node_id: i32,
    pub roles: Roles,
    pub rack: Option<String>,
    /// For a new cluster only; `None` makes one up.
    pub cluster_id: Option<String>,
    pub listeners: Vec<Listener>,
    /// Empty: each client is told the address it reached us by.
    pub advertised_listeners: Vec<AdvertisedListener>,
    pub inter_broker_listener: String,
    pub controller_listener_names: Vec<String>,
    /// Exactly one in this version.
    pub log_dirs: Vec<PathBuf>,
    /// `None`: the first of `log_dirs`.
    pub metadata_log_dir: Option<PathBuf>,
    /// `None`: no HTTP server.
    pub http_listener: Option<(String, u16)>,
    pub flush: FlushSettings,
    pub sockets: SocketSettings,
    pub topics: TopicSettings,
    pub log: LogSettings,
    pub fetch: FetchSettings,
    pub groups: GroupSettings,
    pub internal_topics: InternalTopicsSettings,
    pub producers: ProducerSettings,
    pub replication: ReplicationSettings,
    pub quorum: QuorumSettings,
    pub lifecycle: LifecycleSettings,
    pub controller: ControllerSettings,
    /// A filter such as `info,barnabas::coordinator=debug`.
    pub log_level: String,
    pub log_format: LogFormatSetting,
    /// Everything that was set, by Kafka's name, as it was written: what topics and groups inherit, and DescribeConfigs shows.
    pub properties: Arc<BTreeMap<String, String>>,
}

impl BrokerSettings {
    /// One node that is broker and controller and the only voter, and has not been told of others. `machine` is what the machine calls
    /// itself.
    pub fn is_alone(&self, machine: &str) -> bool {
        self.roles.broker && self.roles.controller && self.quorum.voters.len() <= 1 && !self.was_told_of_others(machine)
    }

    /// Whether `controller.quorum.bootstrap.servers` names anybody but this node.
    pub fn was_told_of_others(&self, machine: &str) -> bool {
        self.quorum.bootstrap_servers.iter().any(|server| !self.is_own(server, machine))
    }

    /// Whether an address is surely the one by which other nodes reach this one's part of the quorum: its port, and a host that is
    /// this machine. Names are not looked up, since one may stand for several nodes; whoever is not sure is somebody else.
    fn is_own(&self, address: &NodeAddress, machine: &str) -> bool {
        let has_door = self.listeners.iter().any(|listener| listener.is_controller);
        let advertised_as = |name: &str| self.advertised_listeners.iter().find(|advertised| advertised.name == name);
        let between_brokers = advertised_as(&self.inter_broker_listener);
        self.listeners.iter().any(|listener| {
            let is_quorums =
                if has_door { listener.is_controller } else { listener.name == self.inter_broker_listener };
            let advertised = advertised_as(&listener.name);
            let ports = [Some(listener.port), advertised.map(|advertised| advertised.port)];
            let told = [advertised, between_brokers].into_iter().flatten().map(|advertised| advertised.host.as_str());
            let bound = listener.host.as_deref();
            is_quorums
                && ports.contains(&Some(address.port))
                && (told.chain(bound).chain([machine]).any(|own| own.eq_ignore_ascii_case(&address.host))
                    || is_own_loopback(&address.host, bound))
        })
    }
}

/// Whether a host is a loopback address of this machine. Nodes that are bound to different ones are different nodes.
fn is_own_loopback(host: &str, bound: Option<&str>) -> bool {
    let named = loopback(host);
    named.is_some() && bound.and_then(loopback).is_none_or(|bound| Some(bound) == named)
}

/// When an acknowledged record is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushPolicy {
    /// `acks=all` is answered after a sync.
    Sync,
    /// Every `interval_ms`.
    Interval,
    /// When the system pleases.
    Os,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushSettings {
    pub policy: FlushPolicy,
    pub interval_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormatSetting {
    Text,
    Json,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketSettings {
    /// `None`: the system's choice.
    pub send_buffer_bytes: Option<usize>,
    /// `None`: the system's choice.
    pub receive_buffer_bytes: Option<usize>,
    pub request_bytes_max: usize,
    pub listen_backlog: u32,
    pub connections_max: usize,
    pub connections_per_ip_max: usize,
    pub connections_per_ip_max_overrides: BTreeMap<IpAddr, usize>,
    pub connections_per_second_max: u32,
    /// `None`: idle connections stay.
    pub idle_ms_max: Option<u64>,
    pub queued_requests_max: usize,
    /// `None`: no limit.
    pub queued_request_bytes_max: Option<u64>,
    pub network_threads: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSettings {
    pub partitions_default: i32,
    pub replication_factor_default: i16,
    pub auto_create: bool,
    pub delete_enable: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LogSettings {
    pub retention_check_interval_ms: u64,
    pub recovery_checkpoint_interval_ms: u64,
    pub start_offset_checkpoint_interval_ms: u64,
    pub recovery_threads_per_dir: usize,
    pub cleaner_enable: bool,
    pub cleaner_threads: usize,
    pub cleaner_backoff_ms: u64,
    pub cleaner_dedupe_buffer_bytes: u64,
    /// f64::MAX: no limit.
    pub cleaner_bytes_per_second_max: f64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchSettings {
    pub bytes_max: i32,
    pub sessions_max: usize,
    /// Partitions of one DescribeTopicPartitions answer.
    pub request_partitions_max: i32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSettings {
    pub initial_rebalance_delay_ms: u64,
    pub session_timeout_ms_min: i32,
    pub session_timeout_ms_max: i32,
    pub size_max: usize,
    pub offset_metadata_max: usize,
    pub offsets_retention_ms: i64,
    pub offsets_retention_check_interval_ms: u64,
    pub offsets_commit_timeout_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InternalTopicsSettings {
    pub consumer_offsets: InternalTopicSettings,
    pub transaction_state: InternalTopicSettings,
    pub share_group_state: InternalTopicSettings,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InternalTopicSettings {
    pub partitions: i32,
    /// As many as there are brokers when there are fewer.
    pub replication_factor: i16,
    pub segment_bytes: i32,
    /// `None`: that of all topics.
    pub in_sync_min: Option<i32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerSettings {
    pub id_expiration_ms: i64,
    pub id_expiration_check_interval_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicationSettings {
    pub lag_time_ms_max: u64,
    pub high_watermark_checkpoint_interval_ms: u64,
    pub fetch_wait_ms_max: u64,
    pub fetch_bytes_min: i32,
    pub fetch_partition_bytes_max: i32,
    pub fetch_response_bytes_max: i32,
    pub fetch_backoff_ms: u64,
    /// Consumers are sent to a replica on their rack.
    pub selects_by_rack: bool,
}

/// Makes the settings of properties whose names and types are good already, and says which names that took.
pub(super) fn build(
    properties: Arc<BTreeMap<String, String>>,
) -> Result<(BrokerSettings, BTreeSet<&'static str>), ConfigError> {
    let reader = Reader::new(&properties);
    let settings = read(&reader, properties.clone());
    let (used, problems) = reader.finish();
    if problems.is_empty() { Ok((settings, used)) } else { Err(ConfigError { problems }) }
}

fn read(reader: &Reader<'_>, properties: Arc<BTreeMap<String, String>>) -> BrokerSettings {
    let listeners = listeners::read(reader);
    let (node_id, roles, quorum) = (node_id(reader), quorum::roles(reader), quorum::quorum(reader));
    quorum::check(reader, node_id, roles, &quorum, &listeners);
    BrokerSettings {
        node_id,
        roles,
        rack: reader.optional_text("broker.rack"),
        cluster_id: reader.optional_text("cluster.id").filter(|id| !id.is_empty()),
        listeners: listeners.listeners,
        advertised_listeners: listeners.advertised,
        inter_broker_listener: listeners.inter_broker,
        controller_listener_names: listeners.controllers,
        log_dirs: log_dirs(reader),
        metadata_log_dir: reader.optional_text("metadata.log.dir").map(absolute),
        http_listener: http_listener(reader),
        flush: flush(reader),
        sockets: sockets(reader),
        topics: topics(reader),
        log: log(reader),
        fetch: FetchSettings {
            bytes_max: reader.number("fetch.max.bytes"),
            sessions_max: reader.number("max.incremental.fetch.session.cache.slots"),
            request_partitions_max: reader.number("max.request.partition.size.limit"),
        },
        groups: groups(reader),
        internal_topics: internal_topics(reader),
        producers: ProducerSettings {
            id_expiration_ms: reader.number("producer.id.expiration.ms"),
            id_expiration_check_interval_ms: reader.number("producer.id.expiration.check.interval.ms"),
        },
        replication: replication(reader),
        quorum,
        lifecycle: quorum::lifecycle(reader),
        controller: quorum::controller(reader),
        log_level: log_level(reader),
        log_format: match reader.text("log.format").as_str() {
            "json" => LogFormatSetting::Json,
            _ => LogFormatSetting::Text,
        },
        properties,
    }
}

fn node_id(reader: &Reader<'_>) -> i32 {
    let (node, broker): (i32, Option<i32>) = (reader.number("node.id"), reader.limit("broker.id"));
    match broker {
        Some(broker) if !reader.is_set("node.id") => broker,
        Some(broker) if broker != node => {
            reader.problem(format!(
                "node.id is {node} and broker.id is {broker}: set node.id alone, or both to the same"
            ));
            node
        }
        _ => node,
    }
}

fn log_dirs(reader: &Reader<'_>) -> Vec<PathBuf> {
    let (dirs, dir) = (reader.list("log.dirs"), reader.list("log.dir"));
    let chosen = if dirs.is_empty() { dir } else { dirs };
    let dirs: Vec<PathBuf> = chosen.into_iter().map(absolute).collect();
    for (at, dir) in dirs.iter().enumerate() {
        if dirs.iter().take(at).any(|other| dir.starts_with(other) || other.starts_with(dir)) {
            reader.problem(format!("log.dirs: {} is named twice, or lies in another one of them", dir.display()));
        }
    }
    dirs
}

/// As DescribeLogDirs shows it and AlterReplicaLogDirs names it.
fn absolute(path: String) -> PathBuf {
    std::path::absolute(&path).unwrap_or_else(|_| path.into())
}

fn log_level(reader: &Reader<'_>) -> String {
    let filter = reader.text("log.level");
    if let Err(error) = logs::check(&filter) {
        reader.problem(format!("log.level: {error}"));
    }
    filter
}

fn http_listener(reader: &Reader<'_>) -> Option<(String, u16)> {
    let text = reader.text("http.listener");
    if text.is_empty() {
        return None;
    }
    let parsed = host_and_port(&text).map(|(host, port)| (host.to_owned(), port));
    if parsed.is_none() {
        reader.problem(format!("http.listener: {text}: expected host:port, or nothing to switch it off"));
    }
    parsed
}

fn flush(reader: &Reader<'_>) -> FlushSettings {
    let policy = match reader.text("flush.policy").as_str() {
        "interval" => FlushPolicy::Interval,
        "os" => FlushPolicy::Os,
        _ => FlushPolicy::Sync,
    };
    FlushSettings { policy, interval_ms: reader.number("flush.interval.ms") }
}

fn sockets(reader: &Reader<'_>) -> SocketSettings {
    SocketSettings {
        send_buffer_bytes: reader.limit("socket.send.buffer.bytes"),
        receive_buffer_bytes: reader.limit("socket.receive.buffer.bytes"),
        request_bytes_max: reader.number("socket.request.max.bytes"),
        listen_backlog: reader.number("socket.listen.backlog.size"),
        connections_max: reader.number("max.connections"),
        connections_per_ip_max: reader.number("max.connections.per.ip"),
        connections_per_ip_max_overrides: per_ip_overrides(reader),
        connections_per_second_max: reader.number("max.connection.creation.rate"),
        idle_ms_max: reader.limit("connections.max.idle.ms"),
        queued_requests_max: reader.number("queued.max.requests"),
        queued_request_bytes_max: reader.limit("queued.max.request.bytes"),
        network_threads: reader.number("num.network.threads"),
    }
}

fn per_ip_overrides(reader: &Reader<'_>) -> BTreeMap<IpAddr, usize> {
    let mut overrides = BTreeMap::new();
    for entry in split_list(&reader.text("max.connections.per.ip.overrides")) {
        match entry.rsplit_once(':').and_then(|(ip, count)| Some((ip.parse().ok()?, count.parse().ok()?))) {
            Some((ip, count)) => drop(overrides.insert(ip, count)),
            None => reader.problem(format!("max.connections.per.ip.overrides: {entry}: expected address:count")),
        }
    }
    overrides
}

fn topics(reader: &Reader<'_>) -> TopicSettings {
    TopicSettings {
        partitions_default: reader.number("num.partitions"),
        replication_factor_default: reader.number("default.replication.factor"),
        auto_create: reader.flag("auto.create.topics.enable"),
        delete_enable: reader.flag("delete.topic.enable"),
    }
}

fn log(reader: &Reader<'_>) -> LogSettings {
    LogSettings {
        retention_check_interval_ms: reader.number("log.retention.check.interval.ms"),
        recovery_checkpoint_interval_ms: reader.number("log.flush.offset.checkpoint.interval.ms"),
        start_offset_checkpoint_interval_ms: reader.number("log.flush.start.offset.checkpoint.interval.ms"),
        recovery_threads_per_dir: reader.number("num.recovery.threads.per.data.dir"),
        cleaner_enable: reader.flag("log.cleaner.enable"),
        cleaner_threads: reader.number("log.cleaner.threads"),
        cleaner_backoff_ms: reader.number("log.cleaner.backoff.ms"),
        cleaner_dedupe_buffer_bytes: reader.number("log.cleaner.dedupe.buffer.size"),
        cleaner_bytes_per_second_max: reader.double("log.cleaner.io.max.bytes.per.second"),
    }
}

fn replication(reader: &Reader<'_>) -> ReplicationSettings {
    ReplicationSettings {
        lag_time_ms_max: reader.number("replica.lag.time.max.ms"),
        high_watermark_checkpoint_interval_ms: reader.number("replica.high.watermark.checkpoint.interval.ms"),
        fetch_wait_ms_max: reader.number("replica.fetch.wait.max.ms"),
        fetch_bytes_min: reader.number("replica.fetch.min.bytes"),
        fetch_partition_bytes_max: reader.number("replica.fetch.max.bytes"),
        fetch_response_bytes_max: reader.number("replica.fetch.response.max.bytes"),
        fetch_backoff_ms: reader.number("replica.fetch.backoff.ms"),
        selects_by_rack: selects_by_rack(reader),
    }
}

/// Kafka's two selectors, by the class names that its files have. Whoever wrote one of their own must know that it is not asked here.
fn selects_by_rack(reader: &Reader<'_>) -> bool {
    let class = reader.text("replica.selector.class");
    match class.trim().strip_prefix("org.apache.kafka.common.replica.").unwrap_or(&class).trim() {
        "" | "LeaderSelector" => false,
        "RackAwareReplicaSelector" => true,
        _ => {
            reader.problem(format!(
                "replica.selector.class: {class}: there are org.apache.kafka.common.replica.LeaderSelector and \
                 org.apache.kafka.common.replica.RackAwareReplicaSelector"
            ));
            false
        }
    }
}

fn internal_topics(reader: &Reader<'_>) -> InternalTopicsSettings {
    InternalTopicsSettings {
        consumer_offsets: InternalTopicSettings {
            partitions: reader.number("offsets.topic.num.partitions"),
            replication_factor: reader.number("offsets.topic.replication.factor"),
            segment_bytes: reader.number("offsets.topic.segment.bytes"),
            in_sync_min: None,
        },
        transaction_state: InternalTopicSettings {
            partitions: reader.number("transaction.state.log.num.partitions"),
            replication_factor: reader.number("transaction.state.log.replication.factor"),
            segment_bytes: reader.number("transaction.state.log.segment.bytes"),
            in_sync_min: reader.limit("transaction.state.log.min.isr"),
        },
        share_group_state: InternalTopicSettings {
            partitions: reader.number("share.coordinator.state.topic.num.partitions"),
            replication_factor: reader.number("share.coordinator.state.topic.replication.factor"),
            segment_bytes: reader.number("share.coordinator.state.topic.segment.bytes"),
            in_sync_min: reader.limit("share.coordinator.state.topic.min.isr"),
        },
    }
}

fn groups(reader: &Reader<'_>) -> GroupSettings {
    let minutes: i64 = reader.number("offsets.retention.minutes");
    let settings = GroupSettings {
        initial_rebalance_delay_ms: reader.number("group.initial.rebalance.delay.ms"),
        session_timeout_ms_min: reader.number("group.min.session.timeout.ms"),
        session_timeout_ms_max: reader.number("group.max.session.timeout.ms"),
        size_max: reader.number("group.max.size"),
        offset_metadata_max: reader.number("offset.metadata.max.bytes"),
        offsets_retention_ms: minutes.saturating_mul(60_000),
        offsets_retention_check_interval_ms: reader.number("offsets.retention.check.interval.ms"),
        offsets_commit_timeout_ms: reader.number("offsets.commit.timeout.ms"),
    };
    if settings.session_timeout_ms_min > settings.session_timeout_ms_max {
        reader.problem("group.min.session.timeout.ms must not be greater than group.max.session.timeout.ms");
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> BrokerSettings {
        let properties = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        build(Arc::new(properties)).expect("good settings").0
    }

    #[test]
    fn whoever_names_only_itself_is_alone() {
        let alone = |listeners: &str, servers: &str| {
            settings(&[("listeners", listeners), ("controller.quorum.bootstrap.servers", servers)]).is_alone("box")
        };
        let everywhere = "PLAINTEXT://:9092,CONTROLLER://:9093";
        for own in ["", "localhost:9093", "127.0.0.1:9093", "[::1]:9093", "BOX:9093", "127.0.0.1:9093,box:9093"] {
            assert!(alone(everywhere, own), "{own}");
        }
        for others in ["other:9093", "localhost:9094", "box:9092", "10.0.0.1:9093", "localhost:9093,other:9093"] {
            assert!(!alone(everywhere, others), "{others}");
        }
        let named = "PLAINTEXT://two:9092,CONTROLLER://two:9093";
        assert!(alone(named, "two:9093") && !alone(named, "one:9093"));
        assert!(alone("PLAINTEXT://two:9092", "two:9092") && !alone("PLAINTEXT://two:9092", "one:9092"));
        let second = "PLAINTEXT://127.0.0.2:9092,CONTROLLER://127.0.0.2:9093";
        assert!(
            alone(second, "127.0.0.2:9093") && !alone(second, "127.0.0.1:9093") && !alone(second, "localhost:9093")
        );
    }

    #[test]
    fn what_the_active_controller_goes_by_is_read_like_everything_else() {
        let usual = settings(&[]);
        let ControllerSettings { balances_leaders, balance_interval_ms, unclean_interval_ms } = usual.controller;
        assert!(balances_leaders);
        assert_eq!((balance_interval_ms, unclean_interval_ms), (300_000, 300_000));
        assert!(!usual.replication.selects_by_rack);
        let pairs = [
            ("auto.leader.rebalance.enable", "false"),
            ("leader.imbalance.check.interval.seconds", "5"),
            ("unclean.leader.election.interval.ms", "1000"),
            ("replica.selector.class", "org.apache.kafka.common.replica.RackAwareReplicaSelector"),
        ];
        let set = settings(&pairs);
        let own =
            ControllerSettings { balances_leaders: false, balance_interval_ms: 5_000, unclean_interval_ms: 1_000 };
        assert_eq!((set.controller, set.replication.selects_by_rack), (own, true));
        let effective = crate::config::effective_names();
        assert!(pairs.iter().all(|(name, _)| effective.contains(name)));
    }

    #[test]
    fn a_selector_of_ones_own_is_refused() {
        let properties = BTreeMap::from([("replica.selector.class".to_owned(), "com.example.Mine".to_owned())]);
        let error = build(Arc::new(properties)).expect_err("nobody would ask it");
        assert!(error.to_string().contains("com.example.Mine: there are"), "{error}");
    }

    #[test]
    fn an_advertised_name_is_an_own_one() {
        let alone = |servers: &str| {
            let advertised = "PLAINTEXT://b.example:9092,CONTROLLER://c.example:19093";
            settings(&[
                ("listeners", "PLAINTEXT://:9092,CONTROLLER://:9093"),
                ("advertised.listeners", advertised),
                ("controller.quorum.bootstrap.servers", servers),
            ])
            .is_alone("box")
        };
        assert!(alone("b.example:9093") && alone("c.example:19093"));
        assert!(!alone("a.example:9093") && !alone("b.example:9092"));
    }
}
