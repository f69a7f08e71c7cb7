//! One node, from an empty directory to a clean stop. Everything that other nodes need for finding a controller is there when
//! [`Node::start`] returns; what needs a controller itself is brought up behind it ([`super::bring_up`]).

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

use crate::admin::{self, BrokerSource, ProcessSource, Readiness};
use crate::api::data::fetch_session::FetchSessions;
use crate::api::data::producer_ids::ProducerIds;
use crate::api::{Broker, Door, Gate};
use crate::base::NodeAddress;
use crate::config::BrokerSettings;
use crate::controller::Controller;
use crate::coordinator::group::GroupCoordinator;
use crate::host::Host;
use crate::host::task::{self, Worker};
use crate::log::{LogEnv, checkpoints};
use crate::peer::{Myself, PeerIdentity, Peers};
use crate::quorum::{self, Quorum, QuorumOptions};
use crate::replica::{Flusher, Partitions, Reserve};
use crate::server::bring_up::{BringUp, Progress};
use crate::server::directories::{Directories, Guards};
use crate::server::disks::Opened;
use crate::server::identity::Identity;
use crate::server::lifecycle::{Credentials, Lifecycle};
use crate::server::listener::Listener;
use crate::server::offsets_log::ReplicaOffsetsLog;
use crate::server::others::PeerProbe;
use crate::server::shard::{ConnectionLimits, Shards};
use crate::server::transport::PeerTransport;
use crate::server::tuning::DescriptorShares;
use crate::server::{assignments, disks, incarnations, knock, roles, wiring};
use crate::telemetry::logs::LogControl;
use crate::telemetry::{BrokerState, Telemetry};

pub type StartError = Box<dyn Error + Send + Sync>;

/// Never, as a pause.
const NEVER: Duration = Duration::from_secs(u32::MAX as u64);

/// A running node.
pub struct Node {
    broker: Arc<Broker>,
    readiness: Arc<Readiness>,
    stopping: watch::Sender<bool>,
    shards: Arc<Shards>,
    flushers: Vec<Worker>,
    metadata: Worker,
    progress: watch::Receiver<Progress>,
    lifecycle: Option<Arc<Lifecycle>>,
    tasks: tokio::task::JoinSet<()>,
    /// Of the run before this one, if that ended cleanly.
    previous_epoch: Option<i64>,
    /// Held while the node runs: nobody else may use them.
    _directories: Guards,
    /// Where each listener is bound, by name.
    pub addresses: Vec<(Arc<str>, SocketAddr)>,
    pub http_address: Option<SocketAddr>,
}

impl Node {
    /// Starts a node. It listens when this returns, and serves clients when [`Node::serving`] says so.
    pub async fn start(host: Host, settings: BrokerSettings, log_control: LogControl) -> Result<Node, StartError> {
        let started_nanos = host.clock.monotonic_nanos();
        let (directories, guards) = Directories::take(&host, &settings)?;
        let telemetry = Telemetry::new(host.clock.now_ms());
        let readiness = Arc::new(Readiness::new("starting"));
        let stopping = watch::Sender::new(false);
        let mut tasks = tokio::task::JoinSet::new();
        let reserve = Arc::new(Reserve::find(host.disk.clone(), &directories.metadata.path, quorum::DIRECTORY));
        task::spawn_into(&mut tasks, until_stopped(reserve.clone().keep(), stopping.subscribe()));
        let http_address = open_http(&host, &settings, &telemetry, &readiness, &stopping, &mut tasks).await?;
        let listeners = roles::bind_all(&host, &settings, &telemetry)?;

        let identity = &directories.metadata.identity;
        let endpoints = roles::endpoints(&host, &settings, &listeners)?;
        let quorum_address = roles::quorum_address(&host, &settings, &listeners, &endpoints)?;
        let incarnation = host.entropy.uuid();
        let peers = open_peers(&host, &settings, identity, incarnation, &quorum_address);
        let quorum = open_quorum(&host, &settings, &directories, &peers, &quorum_address).await?;
        let is_first_start = !identity.is_known;
        let directories = if quorum.image().cluster_id.is_empty() {
            directories
        } else {
            peers.myself().join(&quorum.image().cluster_id);
            directories.agreeing_with(&quorum.image().cluster_id)?
        };
        if let Some(known) = quorum.image().broker(settings.node_id) {
            directories.note_lost(&known.directories);
        }
        let metadata_failed = quorum.disk_failed();
        let controller = Controller::new(host.clone(), quorum, wiring::controller_options(&settings));

        let previous_epoch = directories.previous_epoch(&host);
        let remembered = incarnations::begin(&host, &directories, incarnation)?;
        let Opened { dirs, journals, was_clean } = disks::open(&host, &directories, settings.flush.policy)?;
        let partitions = Arc::new(Partitions::new(
            LogEnv::new(host.clone(), DescriptorShares::of_this_process().files_max),
            dirs.with_reserve(reserve),
            wiring::replica_options(&settings),
            wiring::config_source(&settings),
            telemetry.clone(),
        ));
        let (flusher, flushers) = Flusher::start_on(host.workers, journals, &host.clock, &telemetry)?;
        let policy = wiring::flush_policy(settings.flush.policy);
        let commit_timeout = Duration::from_millis(settings.groups.offsets_commit_timeout_ms);
        let offsets_log = Arc::new(ReplicaOffsetsLog::new(partitions.clone(), flusher.clone(), policy, commit_timeout));
        let groups = Arc::new(GroupCoordinator::new(host.clone(), offsets_log, wiring::group_config(&settings)));
        let brokers_listener = listeners.iter().find(|listener| listener.door == Door::Broker);
        let bound = brokers_listener.map(Listener::local_addr).transpose()?;
        let broker = Arc::new(Broker {
            host: host.clone(),
            options: wiring::broker_options(&settings),
            telemetry: telemetry.clone(),
            controller,
            partitions,
            flusher,
            groups: groups.clone(),
            fetch_sessions: FetchSessions::new(settings.fetch.sessions_max),
            producer_ids: ProducerIds::default(),
            log_control,
            peers,
            gate: Gate::default(),
            epoch: Arc::new(AtomicI64::new(-1)),
        });
        telemetry.add_source(Arc::new(ProcessSource::new(host.clone())));
        telemetry.add_source(Arc::new(BrokerSource::new(&broker, bound)));
        task::spawn_into(&mut tasks, until_stopped(groups.run_timers(), stopping.subscribe()));
        let listener = settings.inter_broker_listener.clone();
        broker.controller.look_with(Arc::new(PeerProbe { peers: broker.peers.clone(), listener: listener.clone() }));
        if settings.roles.controller {
            task::spawn_into(&mut tasks, until_stopped(broker.controller.clone().run(), stopping.subscribe()));
            task::spawn_into(&mut tasks, until_stopped(watch_losses(broker.clone()), stopping.subscribe()));
        }
        let doors = roles::doors_to_the_quorum(&settings);
        if !doors.is_empty() {
            let knocking = knock::find_quorum(broker.clone(), doors, roles::is_voter(&host, &settings));
            task::spawn_into(&mut tasks, until_stopped(knocking, stopping.subscribe()));
        }

        let limits = ConnectionLimits {
            request_bytes_max: settings.sockets.request_bytes_max,
            idle_max: settings.sockets.idle_ms_max.map_or(NEVER, Duration::from_millis),
        };
        let shards = Arc::new(Shards::start(wiring::shard_count(&settings), &broker, limits)?);
        let mut addresses = Vec::new();
        for listener in listeners {
            addresses.push((listener.name.clone(), listener.local_addr()?));
            task::spawn_into(&mut tasks, listener.run(broker.clone(), shards.clone(), stopping.subscribe()));
        }
        let lifecycle = settings.roles.broker.then(|| {
            let credentials = Credentials {
                incarnation,
                endpoints,
                rack: settings.rack.clone(),
                directories: directories.ids(),
                previous_epoch,
                remembered,
            };
            Lifecycle::new(broker.clone(), credentials, settings.lifecycle)
        });
        if let Some(lifecycle) = &lifecycle {
            task::spawn_into(&mut tasks, until_stopped(lifecycle.clone().run(), stopping.subscribe()));
            task::spawn_into(&mut tasks, until_stopped(assignments::tell(broker.clone()), stopping.subscribe()));
        }
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            node_id = settings.node_id,
            broker = settings.roles.broker,
            controller = settings.roles.controller,
            log_dirs = disks::shown(&directories),
            listeners = shown(&addresses),
            http = http_address.map(tracing::field::display),
            last_stop = match (is_first_start, was_clean) {
                (true, _) => "none: first start",
                (false, true) => "clean",
                (false, false) => "not clean",
            },
            "listening"
        );
        let served = broker.partitions.clone();
        readiness.depends_on(Box::new(move || {
            served.failure().map(|reason| format!("the log directories are offline until restart: {reason}"))
        }));
        let (progress, seen) = watch::channel(Progress::Starting);
        let watched = disks::watch(
            broker.partitions.clone(),
            directories.metadata.path.clone(),
            metadata_failed,
            progress.clone(),
        );
        tasks.spawn(until_stopped(watched, stopping.subscribe()));
        let bring_up = BringUp {
            broker: broker.clone(),
            lifecycle: lifecycle.clone(),
            incarnation,
            directories,
            intervals: wiring::maintenance_intervals(&settings),
            fetcher_options: wiring::fetcher_options(&settings),
            scrub_options: wiring::scrub_options(&settings),
            inter_broker_listener: listener,
            readiness: readiness.clone(),
            progress,
            started_nanos,
        };
        let stop = stopping.subscribe();
        let metadata = host.workers.start("metadata", move || bring_up.run(stop))?;
        Ok(Node {
            broker,
            readiness,
            stopping,
            shards,
            flushers,
            metadata,
            progress: seen,
            lifecycle,
            tasks,
            previous_epoch,
            _directories: guards,
            addresses,
            http_address,
        })
    }

    /// What handlers see, for tests and simulations that look into a node.
    pub fn broker(&self) -> &Arc<Broker> {
        &self.broker
    }

    /// Waits until the node serves.
    ///
    /// # Errors
    /// When it cannot come to serve at all.
    pub async fn serving(&self) -> Result<(), StartError> {
        let mut progress = self.progress.clone();
        let seen = progress.wait_for(|progress| *progress != Progress::Starting).await;
        match seen.as_deref() {
            Ok(Progress::Failed(why)) => Err(why.clone().into()),
            Ok(_) => Ok(()),
            Err(_) => Err("the node ended while it was starting".into()),
        }
    }

    /// Resolves when the node cannot go on.
    pub async fn failed(&self) -> StartError {
        let mut progress = self.progress.clone();
        match progress.wait_for(|progress| matches!(progress, Progress::Failed(_))).await.as_deref() {
            Ok(Progress::Failed(why)) => why.clone().into(),
            _ => std::future::pending().await,
        }
    }

    /// Hands over what it leads, stops accepting, finishes what is in flight, writes what a quick start needs.
    pub async fn stop(mut self) -> Result<(), StartError> {
        self.readiness.not_ready("stopping");
        self.broker.telemetry.set_broker_state(BrokerState::ShuttingDown);
        if let Some(lifecycle) = &self.lifecycle {
            lifecycle.be_relieved().await;
        }
        if self.broker.is_active_controller() {
            self.broker.controller.quorum().hand_over().await;
        }
        self.stopping.send_replace(true);
        self.shards.stop().await;
        while self.tasks.join_next().await.is_some() {}
        let was_brought_up = *self.progress.borrow() == Progress::Serving || self.broker.gate.is_open();
        let metadata_ended = self.metadata.ended().await;
        self.broker.flusher.stop();
        let mut all_ended = metadata_ended;
        for flusher in self.flushers {
            all_ended &= flusher.ended().await;
        }
        if !all_ended {
            tracing::error!("a housekeeping thread panicked");
        }
        let (partitions, previous) = (self.broker.partitions.clone(), self.previous_epoch);
        let epoch = self.broker.broker_epoch();
        let closed = task::blocking(move || match (was_brought_up, previous) {
            (true, _) => partitions.close(epoch),
            // Nothing was touched: what the last run left is as good as before.
            (false, Some(previous)) => {
                let mut dirs = partitions.dirs().iter();
                dirs.try_for_each(|dir| checkpoints::mark_clean_shutdown(partitions.disk(), &dir.path, previous))
            }
            (false, None) => Ok(()),
        })
        .await;
        self.broker.controller.quorum().close().await?;
        closed?;
        Ok(())
    }
}

/// `PLAINTEXT://127.0.0.1:9092, ...`
fn shown(addresses: &[(Arc<str>, SocketAddr)]) -> String {
    addresses.iter().map(|(name, address)| format!("{name}://{address}")).collect::<Vec<_>>().join(", ")
}

async fn open_http(
    host: &Host,
    settings: &BrokerSettings,
    telemetry: &Arc<Telemetry>,
    readiness: &Arc<Readiness>,
    stopping: &watch::Sender<bool>,
    tasks: &mut tokio::task::JoinSet<()>,
) -> Result<Option<SocketAddr>, StartError> {
    let Some((name, port)) = &settings.http_listener else { return Ok(None) };
    let listener = admin::bind(roles::resolve(host, "http.listener", name, *port)?).await?;
    let address = listener.local_addr()?;
    let mut stopping = stopping.subscribe();
    let stop = async move {
        let _ = stopping.wait_for(|stop| *stop).await;
    };
    task::spawn_into(tasks, admin::serve(listener, telemetry.clone(), readiness.clone(), stop));
    Ok(Some(address))
}

fn open_peers(
    host: &Host,
    settings: &BrokerSettings,
    identity: &Identity,
    incarnation: uuid::Uuid,
    quorum_address: &NodeAddress,
) -> Peers {
    // An id that was only made up binds nobody: the active controller gives a new cluster its own.
    let is_told = identity.is_known || settings.cluster_id.is_some();
    let cluster_id = if is_told { identity.cluster_id.clone() } else { String::new() };
    let me = PeerIdentity { node_id: settings.node_id, incarnation };
    Peers::new(host.clone(), Arc::new(Myself::new(me, cluster_id, Some(quorum_address.clone()))))
}

async fn open_quorum(
    host: &Host,
    settings: &BrokerSettings,
    directories: &Directories,
    peers: &Peers,
    own: &NodeAddress,
) -> Result<Quorum, StartError> {
    let identity = &directories.metadata.identity;
    let request_timeout = Duration::from_millis(settings.quorum.request_timeout_ms);
    let options = QuorumOptions {
        node_id: settings.node_id,
        directory_id: identity.directory_id,
        must_exist: identity.is_known,
        store: host.stores.clone(),
        voters: roles::first_voters(host, settings, own),
        my_address: own.clone(),
        transport: Arc::new(PeerTransport::new(peers.clone(), request_timeout)),
        timing: wiring::quorum_timing(settings),
    };
    Ok(Quorum::open(host, &directories.metadata.path, options).await?)
}

/// Has the active controller look at every node whose connection broke.
async fn watch_losses(broker: Arc<Broker>) {
    let mut losses = broker.peers.lost();
    loop {
        match losses.recv().await {
            Ok(node) => broker.controller.note_connection_lost(node),
            // Too many at once: who was among them is not known any more.
            Err(RecvError::Lagged(_)) => {
                broker.image().live_brokers().for_each(|one| broker.controller.note_connection_lost(one.id));
            }
            Err(RecvError::Closed) => return,
        }
    }
}

pub async fn until_stopped(work: impl Future<Output = ()>, mut stopping: watch::Receiver<bool>) {
    tokio::select! {
        () = work => {}
        _ = stopping.wait_for(|stop| *stop) => {}
    }
}
