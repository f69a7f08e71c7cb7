//! The broker as handlers see it: the parts that own state, and the options they were started with.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::api::context::RequestContext;
use crate::api::data::fetch_session::FetchSessions;
use crate::api::data::producer_ids::ProducerIds;
use crate::api::gate::Gate;
use crate::base::BrokerId;
use crate::controller::Controller;
use crate::coordinator::group::GroupCoordinator;
use crate::host::Host;
use crate::metadata::Image;
use crate::peer::Peers;
use crate::replica::{FlushPolicy, Flusher, Partitions};
use crate::telemetry::Telemetry;
use crate::telemetry::logs::LogControl;

/// Where clients are told to connect, per listener (`advertised.listeners`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdvertisedListener {
    pub listener: Arc<str>,
    /// `None`: each client is told the address it reached us by.
    pub endpoint: Option<(Arc<str>, u16)>,
}

/// Settings that handlers use, already typed and validated by `config`.
#[derive(Clone, Debug)]
pub struct BrokerOptions {
    pub node_id: BrokerId,
    pub rack: Option<Arc<str>>,
    pub advertised: Vec<AdvertisedListener>,
    /// The listener by which controllers are reached, where they have one of their own.
    pub controller_listener: Option<Arc<str>>,
    pub auto_create_topics: bool,
    pub delete_topic_enable: bool,
    /// `num.partitions`
    pub partitions_default: i32,
    /// `default.replication.factor`
    pub replication_factor_default: i16,
    /// `fetch.max.bytes`
    pub fetch_bytes_max: i32,
    /// `max.incremental.fetch.session.cache.slots`
    pub fetch_sessions_max: usize,
    /// `max.request.partition.size.limit`
    pub request_partitions_max: i32,
    /// `replica.selector.class` is the rack-aware one.
    pub selects_by_rack: bool,
    pub flush_policy: FlushPolicy,
    /// Every property that the configuration file, environment or command line set, by Kafka's name: the
    /// `STATIC_BROKER_CONFIG` source of DescribeConfigs.
    pub static_properties: Arc<BTreeMap<String, String>>,
}

impl BrokerOptions {
    /// The host and port that the client behind `context` should connect to for this node.
    pub fn endpoint_for(&self, context: &RequestContext) -> (Arc<str>, u16) {
        let advertised = self.advertised.iter().find(|one| one.listener == context.connection.listener);
        match advertised.and_then(|one| one.endpoint.clone()) {
            Some(endpoint) => endpoint,
            None => (context.connection.local.ip().to_string().into(), context.connection.local.port()),
        }
    }
}

/// One running broker. Handlers take `&Arc<Broker>`.
pub struct Broker {
    pub host: Host,
    pub options: BrokerOptions,
    pub telemetry: Arc<Telemetry>,
    pub controller: Controller,
    pub partitions: Arc<Partitions>,
    pub flusher: Arc<Flusher>,
    pub groups: Arc<GroupCoordinator>,
    pub fetch_sessions: FetchSessions,
    pub producer_ids: ProducerIds,
    /// Other nodes.
    pub peers: Peers,
    /// Closed until this node knows what it leads.
    pub gate: Gate,
    /// The epoch of this broker's registration, -1 before it has one.
    pub epoch: Arc<AtomicI64>,
    pub log_control: LogControl,
}

impl Broker {
    /// The newest picture of the cluster.
    pub fn image(&self) -> Arc<Image> {
        self.controller.quorum().image()
    }

    /// The epoch of this broker's registration, -1 before it has one.
    pub fn broker_epoch(&self) -> i64 {
        self.epoch.load(Ordering::Acquire)
    }
}
