//! One node, from an empty directory to a clean stop. The order matters: identity, metadata, partitions, coordinators, and only then
//! the doors; and the way back in reverse.

use std::error::Error;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::watch;

use crate::admin::{self, BrokerSource, ProcessSource, Readiness};
use crate::api::data::fetch_session::FetchSessions;
use crate::api::data::producer_ids::ProducerIds;
use crate::api::{AdvertisedListener, Broker, BrokerOptions};
use crate::base::NodeAddress;
use crate::base::limits::{OPEN_FILES_MAX, TAIL_BYTES_MAX};
use crate::config::{BrokerSettings, FlushPolicy as FlushPolicySetting};
use crate::controller::decide::TopicDefaults;
use crate::controller::decide::brokers::Registering;
use crate::controller::{Controller, ControllerOptions};
use crate::coordinator::group::{GroupConfig, GroupCoordinator};
use crate::host::Host;
use crate::host::real::SledStore;
use crate::host::task;
use crate::log::LogEnv;
use crate::metadata::config::{BrokerLayers, LogConfig};
use crate::metadata::{BrokerRegistration, ConfigResource, Endpoint, Image};
use crate::quorum::{NoTransport, Quorum, QuorumOptions, QuorumTiming};
use crate::replica::journal::{self, Journal};
use crate::replica::{Checkpoints, ConfigSource, FlushPolicy, Flusher, Maintenance, MaintenanceIntervals, Partitions};
use crate::server::identity::Identity;
use crate::server::listener::{ConnectionQuota, Listener, SocketOptions};
use crate::server::offsets_log::{ReplicaOffsetsLog, TOPIC as OFFSETS_TOPIC};
use crate::server::shard::{ConnectionLimits, Shards};
use crate::telemetry::logs::LogControl;
use crate::telemetry::{BrokerState, Telemetry};

type StartError = Box<dyn Error>;

/// Never, as a pause.
const NEVER: Duration = Duration::from_secs(u32::MAX as u64);

/// A running node.
pub struct Node {
    broker: Arc<Broker>,
    readiness: Arc<Readiness>,
    stopping: watch::Sender<bool>,
    shards: Arc<Shards>,
    maintenance: (Arc<Maintenance>, JoinHandle<()>),
    flusher_thread: JoinHandle<()>,
    tasks: tokio::task::JoinSet<()>,
    broker_epoch: i64,
    /// Held while the node runs: nobody else may use the directory.
    _directory: Box<dyn Send + Sync>,
    /// Where each listener is bound, by name.
    pub addresses: Vec<(Arc<str>, SocketAddr)>,
    pub http_address: Option<SocketAddr>,
}

impl Node {
    /// Starts a node; it serves when this returns.
    pub async fn start(host: Host, settings: BrokerSettings, log_control: LogControl) -> Result<Node, StartError> {
        let started = host.clock.monotonic_nanos();
        let log_dir = only_log_dir(&settings)?;
        let directory = take_directory(&host, &log_dir)?;
        let telemetry = Telemetry::new(host.clock.now_ms());
        let readiness = Arc::new(Readiness::new("starting"));
        let stopping = watch::Sender::new(false);
        let mut tasks = tokio::task::JoinSet::new();
        let http_address = open_http(&settings, &telemetry, &readiness, &stopping, &mut tasks).await?;
        let listeners = bind_all(&settings, &telemetry)?;

        let identity = Identity::find(&host, &log_dir, settings.node_id, settings.cluster_id.as_deref())?;
        let quorum = open_quorum(&host, &log_dir, &settings, &identity).await?;
        let controller = Controller::new(host.clone(), quorum.clone(), controller_options(&settings));
        let registration = registration(&host, &settings, &listeners, &identity)?;
        let broker_epoch =
            controller.register_broker(Registering { registration, cluster_id: identity.cluster_id.clone() }).await?;
        // What the metadata says counts: a node that crashed right after its first registration has an identity there already.
        let identity = identity.agreeing_with(&quorum.image().cluster_id)?;
        if !identity.is_known {
            identity.keep(&host, &log_dir, settings.node_id)?;
        }

        telemetry.set_broker_state(BrokerState::Recovery);
        let checkpoints = Checkpoints::take(&*host.disk, &log_dir)?;
        let clean = checkpoints.clean_shutdown;
        let journal = open_journal(&host, &log_dir, clean, settings.flush.policy)?;
        let partitions = Arc::new(Partitions::new(
            LogEnv::new(host.clone(), OPEN_FILES_MAX),
            log_dir.clone(),
            settings.node_id,
            config_source(&settings),
            telemetry.clone(),
            &checkpoints,
        ));
        let image = quorum.image();
        partitions.apply(&image, true);
        partitions.note_applied(image.offset);
        partitions.sweep_strays()?;
        let controller = controller.answering_when_applied(partitions.applied());
        let (flusher, flusher_thread) = Flusher::start(journal, host.clock.clone(), telemetry.clone())?;
        let policy = flush_policy(settings.flush.policy);
        let offsets_log = Arc::new(ReplicaOffsetsLog::new(partitions.clone(), flusher.clone(), policy));
        let groups = Arc::new(GroupCoordinator::new(host.clone(), offsets_log, group_config(&settings)));

        let broker = Arc::new(Broker {
            host: host.clone(),
            options: broker_options(&settings),
            telemetry: telemetry.clone(),
            controller,
            partitions: partitions.clone(),
            flusher: flusher.clone(),
            groups: groups.clone(),
            fetch_sessions: FetchSessions::new(settings.fetch.sessions_max),
            producer_ids: ProducerIds::default(),
            log_control,
        });
        telemetry.add_source(Arc::new(ProcessSource::new(host.clone())));
        telemetry.add_source(Arc::new(BrokerSource::new(&broker)));
        tasks.spawn(follow_metadata(broker.clone(), stopping.subscribe()));
        tasks.spawn(until_stopped(groups.clone().run_timers(), stopping.subscribe()));
        groups.clone().load_all().await;

        let maintenance = Maintenance::start(
            partitions,
            flusher,
            host.clock.clone(),
            telemetry.clone(),
            maintenance_intervals(&settings),
        )?;
        let limits = ConnectionLimits {
            request_bytes_max: settings.sockets.request_bytes_max,
            idle_max: settings.sockets.idle_ms_max.map_or(NEVER, Duration::from_millis),
        };
        let shards = Arc::new(Shards::start(shard_count(&settings), &broker, limits)?);
        let mut addresses = Vec::new();
        for listener in listeners {
            addresses.push((listener.name.clone(), listener.local_addr()?));
            tasks.spawn(listener.run(broker.clone(), shards.clone(), stopping.subscribe()));
        }
        telemetry.set_broker_state(BrokerState::Running);
        readiness.ready();
        let millis = host.clock.monotonic_nanos().saturating_sub(started) / 1_000_000;
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            node_id = settings.node_id,
            cluster_id = %broker.image().cluster_id,
            log_dir = %log_dir.display(),
            listeners = ?addresses,
            http = ?http_address,
            after_clean_shutdown = clean,
            "ready in {millis} ms"
        );
        Ok(Node {
            broker,
            readiness,
            stopping,
            shards,
            maintenance,
            flusher_thread,
            tasks,
            broker_epoch,
            _directory: directory,
            addresses,
            http_address,
        })
    }

    /// Stops accepting, finishes what is in flight, writes what a quick start needs.
    pub async fn stop(mut self) -> Result<(), StartError> {
        self.readiness.not_ready("stopping");
        self.broker.telemetry.set_broker_state(BrokerState::ShuttingDown);
        self.stopping.send_replace(true);
        let shards = self.shards.clone();
        task::blocking(move || shards.stop()).await;
        while self.tasks.join_next().await.is_some() {}
        let (maintenance, maintenance_thread) = self.maintenance;
        let (flusher, flusher_thread) = (self.broker.flusher.clone(), self.flusher_thread);
        let (partitions, broker_epoch) = (self.broker.partitions.clone(), self.broker_epoch);
        let closed = task::blocking(move || {
            maintenance.stop();
            let maintenance_ended = maintenance_thread.join();
            flusher.stop();
            let flusher_ended = flusher_thread.join();
            if maintenance_ended.is_err() || flusher_ended.is_err() {
                tracing::error!("a housekeeping thread panicked");
            }
            partitions.close(broker_epoch)
        })
        .await;
        self.broker.controller.quorum().close().await?;
        closed?;
        Ok(())
    }
}

fn only_log_dir(settings: &BrokerSettings) -> Result<PathBuf, StartError> {
    match settings.log_dirs.as_slice() {
        [dir] => Ok(dir.clone()),
        dirs => Err(format!("log.dirs names {} directories; this version keeps its data in one", dirs.len()).into()),
    }
}

fn take_directory(host: &Host, log_dir: &Path) -> Result<Box<dyn Send + Sync>, StartError> {
    let named = |action: &str, error: std::io::Error| format!("cannot {action} {}: {error}", log_dir.display());
    host.disk.create_dir_all(log_dir).map_err(|error| named("make", error))?;
    host.disk.lock_dir(log_dir).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => format!("{} is in use by another process", log_dir.display()).into(),
        _ => named("lock", error).into(),
    })
}

async fn open_http(
    settings: &BrokerSettings,
    telemetry: &Arc<Telemetry>,
    readiness: &Arc<Readiness>,
    stopping: &watch::Sender<bool>,
    tasks: &mut tokio::task::JoinSet<()>,
) -> Result<Option<SocketAddr>, StartError> {
    let Some((host, port)) = &settings.http_listener else { return Ok(None) };
    let listener = admin::bind(resolve(host, *port)?).await?;
    let address = listener.local_addr()?;
    let mut stopping = stopping.subscribe();
    let stop = async move {
        let _ = stopping.wait_for(|stop| *stop).await;
    };
    tasks.spawn(admin::serve(listener, telemetry.clone(), readiness.clone(), stop));
    Ok(Some(address))
}

fn resolve(host: &str, port: u16) -> Result<SocketAddr, StartError> {
    let mut addresses = (host, port).to_socket_addrs().map_err(|error| format!("cannot resolve {host}: {error}"))?;
    addresses.next().ok_or_else(|| format!("{host} has no address").into())
}

fn bind_all(settings: &BrokerSettings, telemetry: &Telemetry) -> Result<Vec<Listener>, StartError> {
    let sockets = &settings.sockets;
    let overrides = sockets.connections_per_ip_max_overrides.iter().map(|(ip, max)| (*ip, *max)).collect();
    let quota = Arc::new(ConnectionQuota::new(sockets.connections_max, sockets.connections_per_ip_max, overrides));
    let options = SocketOptions {
        backlog: i32::try_from(sockets.listen_backlog).unwrap_or(i32::MAX),
        send_buffer_bytes: sockets.send_buffer_bytes,
        receive_buffer_bytes: sockets.receive_buffer_bytes,
    };
    let mut bound = Vec::new();
    for listener in settings.listeners.iter().filter(|listener| !listener.is_controller) {
        let address = match &listener.host {
            Some(host) => resolve(host, listener.port)?,
            None => SocketAddr::from(([0u16; 8], listener.port)),
        };
        let metrics = telemetry.listener(&listener.name);
        let socket = Listener::bind(listener.name.as_str().into(), address, options, quota.clone(), metrics)
            .map_err(|error| format!("cannot listen on {}://{address}: {error}", listener.name))?;
        bound.push(socket);
    }
    Ok(bound)
}

async fn open_quorum(
    host: &Host,
    log_dir: &Path,
    settings: &BrokerSettings,
    identity: &Identity,
) -> Result<Quorum, StartError> {
    let options = QuorumOptions {
        node_id: settings.node_id,
        directory_id: identity.directory_id,
        must_exist: identity.is_known,
        store: Arc::new(|path: &Path| Ok(Arc::new(SledStore::open(path)?) as Arc<_>)),
        voters: Vec::new(),
        my_address: NodeAddress::default(),
        transport: Arc::new(NoTransport::default()),
        timing: QuorumTiming::default(),
    };
    let dir = settings.metadata_log_dir.as_deref().unwrap_or(log_dir);
    Ok(Quorum::open(host, dir, options).await?)
}

fn controller_options(settings: &BrokerSettings) -> ControllerOptions {
    ControllerOptions {
        node_id: settings.node_id,
        defaults: TopicDefaults {
            partitions: settings.topics.partitions_default,
            replication_factor: settings.topics.replication_factor_default,
        },
        static_properties: settings.properties.clone(),
    }
}

fn registration(
    host: &Host,
    settings: &BrokerSettings,
    listeners: &[Listener],
    identity: &Identity,
) -> Result<BrokerRegistration, StartError> {
    let mut endpoints = Vec::with_capacity(listeners.len());
    for listener in listeners {
        let advertised = settings.advertised_listeners.iter().find(|one| *one.name == *listener.name);
        let (host, port) = match advertised {
            Some(advertised) => (advertised.host.clone(), advertised.port),
            None => (String::new(), listener.local_addr()?.port()),
        };
        endpoints.push(Endpoint { listener: listener.name.to_string(), protocol: "PLAINTEXT".to_owned(), host, port });
    }
    Ok(BrokerRegistration {
        id: settings.node_id,
        incarnation: host.entropy.uuid(),
        epoch: 0,
        endpoints,
        rack: settings.rack.clone(),
        directories: vec![identity.directory_id],
        fenced: false,
    })
}

fn open_journal(
    host: &Host,
    log_dir: &Path,
    clean: bool,
    policy: FlushPolicySetting,
) -> Result<Option<Journal>, StartError> {
    if !clean {
        let recovery = journal::recover(&*host.disk, log_dir)?;
        if recovery.entries > 0 {
            tracing::info!(?recovery, "replayed the flush journal");
        }
    }
    match policy {
        FlushPolicySetting::Sync => Ok(Some(Journal::create(&*host.disk, log_dir)?)),
        FlushPolicySetting::Interval | FlushPolicySetting::Os => Ok(None),
    }
}

fn config_source(settings: &BrokerSettings) -> ConfigSource {
    let (node_id, properties) = (settings.node_id, settings.properties.clone());
    Box::new(move |image, topic| {
        let below = BrokerLayers::of(image, node_id, &*properties);
        let overrides = image.configs(&ConfigResource::topic(topic)).map(|overrides| &**overrides);
        LogConfig::effective(&overrides, &below)
    })
}

fn flush_policy(policy: FlushPolicySetting) -> FlushPolicy {
    match policy {
        FlushPolicySetting::Sync => FlushPolicy::Sync,
        FlushPolicySetting::Interval => FlushPolicy::Interval,
        FlushPolicySetting::Os => FlushPolicy::Os,
    }
}

fn group_config(settings: &BrokerSettings) -> GroupConfig {
    let groups = &settings.groups;
    GroupConfig {
        initial_rebalance_delay_ms: groups.initial_rebalance_delay_ms,
        session_timeout_ms_min: groups.session_timeout_ms_min,
        session_timeout_ms_max: groups.session_timeout_ms_max,
        size_max: groups.size_max,
        offset_metadata_max: groups.offset_metadata_max,
        offsets_retention_ms: groups.offsets_retention_ms,
        retention_check_interval_ms: groups.offsets_retention_check_interval_ms,
    }
}

fn broker_options(settings: &BrokerSettings) -> BrokerOptions {
    let advertised = settings.advertised_listeners.iter().map(|advertised| AdvertisedListener {
        listener: advertised.name.as_str().into(),
        endpoint: Some((advertised.host.as_str().into(), advertised.port)),
    });
    BrokerOptions {
        node_id: settings.node_id,
        rack: settings.rack.as_deref().map(Into::into),
        advertised: advertised.collect(),
        auto_create_topics: settings.topics.auto_create,
        delete_topic_enable: settings.topics.delete_enable,
        partitions_default: settings.topics.partitions_default,
        replication_factor_default: settings.topics.replication_factor_default,
        fetch_bytes_max: settings.fetch.bytes_max,
        fetch_sessions_max: settings.fetch.sessions_max,
        request_partitions_max: settings.fetch.request_partitions_max,
        offsets_topic_partitions: settings.offsets_topic.partitions,
        offsets_topic_replication_factor: settings.offsets_topic.replication_factor,
        offsets_topic_segment_bytes: settings.offsets_topic.segment_bytes,
        flush_policy: flush_policy(settings.flush.policy),
        static_properties: settings.properties.clone(),
    }
}

fn maintenance_intervals(settings: &BrokerSettings) -> MaintenanceIntervals {
    let flush_ms = match settings.flush.policy {
        // Whoever wants durability waits for it; what nobody waits for is synced so that a checkpoint can move on.
        FlushPolicySetting::Sync => settings.log.recovery_checkpoint_interval_ms,
        FlushPolicySetting::Interval => settings.flush.interval_ms,
        FlushPolicySetting::Os => u64::MAX,
    };
    MaintenanceIntervals {
        flush_ms,
        checkpoint_ms: settings.log.recovery_checkpoint_interval_ms,
        retention_ms: settings.log.retention_check_interval_ms,
        producer_check_ms: settings.producers.id_expiration_check_interval_ms,
        producer_expiration_ms: settings.producers.id_expiration_ms,
        tail_bytes_max: TAIL_BYTES_MAX,
    }
}

/// One thread per core, unless the operator says otherwise.
fn shard_count(settings: &BrokerSettings) -> usize {
    if settings.properties.contains_key("num.network.threads") {
        return settings.sockets.network_threads.max(1);
    }
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Carries every new image to the parts that act on it.
async fn follow_metadata(broker: Arc<Broker>, mut stopping: watch::Receiver<bool>) {
    let mut images = broker.controller.quorum().watch();
    let mut before = images.borrow_and_update().clone();
    loop {
        tokio::select! {
            _ = stopping.wait_for(|stop| *stop) => return,
            changed = images.changed() => if changed.is_err() { return },
        }
        let image = images.borrow_and_update().clone();
        let configs_changed = before.config_resources().ne(image.config_resources());
        broker.partitions.apply(&image, configs_changed);
        let gone: Vec<_> = before
            .topics()
            .filter(|topic| image.topic_id(&topic.name) != Some(topic.id))
            .map(|topic| (topic.name.clone(), topic.id))
            .collect();
        if !gone.is_empty() {
            broker.groups.topics_deleted(&gone);
        }
        let coordinated = |image: &Image| image.topic(OFFSETS_TOPIC).map_or(0, |topic| topic.partitions.len());
        if coordinated(&before) != coordinated(&image) {
            broker.groups.clone().load_all().await;
        }
        broker.partitions.note_applied(image.offset);
        before = image;
    }
}

async fn until_stopped(work: impl Future<Output = ()>, mut stopping: watch::Receiver<bool>) {
    tokio::select! {
        () = work => {}
        _ = stopping.wait_for(|stop| *stop) => {}
    }
}
