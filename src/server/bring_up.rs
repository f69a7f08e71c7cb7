//! What a node does once there is a controller: it reads the metadata up to its own registration, takes its partitions over, and opens
//! its gate. Runs beside everything else, because taking partitions over waits for the disk, and the quorum must not wait for that.

use std::sync::Arc;

use tokio::sync::watch;
use uuid::Uuid;

use crate::admin::Readiness;
use crate::api::Broker;
use crate::host::task::{self, Worker};
use crate::metadata::Image;
use crate::replica::{
    FetcherOptions, Fetchers, IsrDriver, Maintenance, MaintenanceIntervals, Mover, Rebuilder, ScrubOptions, Scrubber,
};
use crate::server::copies::PeerCare;
use crate::server::directories::Directories;
use crate::server::follow::{follow_metadata, led};
use crate::server::incarnations;
use crate::server::lifecycle::Lifecycle;
use crate::server::node::{StartError, until_stopped};
use crate::server::others::{PeerFetch, PeerProposals};
use crate::telemetry::BrokerState;

/// How far a node has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    Starting,
    Serving,
    /// It cannot go on; the sentence says why.
    Failed(String),
}

pub struct BringUp {
    pub broker: Arc<Broker>,
    /// `None` on a node that is only a controller.
    pub lifecycle: Option<Arc<Lifecycle>>,
    /// This life of the node.
    pub incarnation: Uuid,
    pub directories: Directories,
    pub intervals: MaintenanceIntervals,
    pub fetcher_options: FetcherOptions,
    pub scrub_options: ScrubOptions,
    /// `inter.broker.listener.name`
    pub inter_broker_listener: String,
    pub readiness: Arc<Readiness>,
    pub progress: watch::Sender<Progress>,
    /// When the node began to start.
    pub started_nanos: u64,
}

/// What was started and must have ended before the logs are closed.
#[derive(Default)]
struct Running {
    maintenance: Option<Arc<Maintenance>>,
    workers: Vec<Worker>,
}

impl BringUp {
    /// Until the node stops.
    pub async fn run(self, stopping: watch::Receiver<bool>) {
        let mut stop = stopping.clone();
        let mut running = Running::default();
        let work = async {
            if let Err(error) = self.bring_up(&mut running, stopping).await {
                tracing::error!(%error, "this node cannot go on");
                self.progress.send_replace(Progress::Failed(error.to_string()));
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = work => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
        if let Some(maintenance) = running.maintenance {
            maintenance.stop();
        }
        for worker in running.workers {
            if !worker.ended().await {
                tracing::error!("a housekeeping thread panicked");
            }
        }
    }

    async fn bring_up(&self, running: &mut Running, stopping: watch::Receiver<bool>) -> Result<(), StartError> {
        match &self.lifecycle {
            Some(lifecycle) => {
                tokio::select! {
                    served = self.as_broker(lifecycle, running, stopping) => served,
                    () = self.tell_standing(lifecycle) => Ok(()),
                }
            }
            None => self.as_controller().await,
        }
    }

    async fn as_controller(&self) -> Result<(), StartError> {
        self.readiness.not_ready("there is no active controller yet");
        let mut leadership = self.broker.controller.quorum().leadership();
        let known = leadership.wait_for(|leadership| leadership.leader.is_some()).await;
        known.map_err(|_| "the quorum has ended")?;
        self.serve();
        let image = self.image_with(|image| !image.cluster_id.is_empty()).await?;
        self.join(&image)?;
        let mut images = self.broker.controller.quorum().watch();
        loop {
            let offset = images.borrow_and_update().offset;
            self.broker.partitions.note_applied(offset);
            images.changed().await.map_err(|_| "the quorum has ended")?;
        }
    }

    async fn as_broker(
        &self,
        lifecycle: &Arc<Lifecycle>,
        running: &mut Running,
        stopping: watch::Receiver<bool>,
    ) -> Result<(), StartError> {
        let broker = &self.broker;
        let id = broker.options.node_id;
        let mut standing = lifecycle.standing();
        let registered = standing.wait_for(|standing| standing.epoch.is_some()).await;
        let epoch = registered.map_err(|_| "the lifecycle has ended")?.epoch.unwrap_or(-1);
        let image = self.image_with(|image| image.broker(id).is_some_and(|one| one.epoch >= epoch)).await?;
        self.join(&image)?;
        let voters = broker.controller.quorum().describe().voters.len();
        if voters > 1 || image.brokers().count() > 1 {
            incarnations::registered(&broker.host, &self.directories, self.incarnation)?;
        }
        broker.telemetry.set_broker_state(BrokerState::Recovery);
        broker.partitions.apply(&image, true);
        broker.partitions.note_applied(image.offset);
        // The image is at least as new as this run's registration, so it knows every topic of the last one.
        broker.partitions.sweep_strays()?;
        for partition in led(&image, id).into_keys() {
            broker.groups.clone().load(partition).await;
        }
        let (maintenance, worker) = Maintenance::start(
            broker.host.workers,
            broker.partitions.clone(),
            broker.flusher.clone(),
            broker.host.clock.clone(),
            broker.telemetry.clone(),
            self.intervals,
        )?;
        running.maintenance = Some(maintenance);
        running.workers.push(worker);
        running.workers.extend(self.replicate(stopping.clone())?);
        broker.gate.open();
        lifecycle.may_serve();
        let unfenced = async {
            let mut standing = lifecycle.standing();
            if standing.wait_for(|standing| !standing.fenced).await.is_ok() {
                self.serve();
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = follow_metadata(broker.clone(), image, stopping) => {}
            () = unfenced => {}
        }
        Ok(())
    }

    /// Fetching from leaders, proposing in-sync sets, moving replicas between directories and looking after copies, beside each other: they
    /// wait for the disk.
    fn replicate(&self, stopping: watch::Receiver<bool>) -> Result<[Worker; 4], StartError> {
        let broker = &self.broker;
        let remote = Arc::new(PeerFetch {
            peers: broker.peers.clone(),
            quorum: broker.controller.quorum().clone(),
            listener: self.inter_broker_listener.clone(),
        });
        let (flusher, clock) = (broker.flusher.clone(), broker.host.clock.clone());
        let fetchers = Fetchers::new(&broker.partitions, flusher, clock.clone(), remote, self.fetcher_options);
        let stop = stopping.clone();
        let fetching = broker.host.workers.start("fetchers", move || until_stopped(fetchers.run(), stop))?;
        let proposals = Arc::new(PeerProposals { broker: Arc::downgrade(broker) });
        let stop = stopping.clone();
        let driver = IsrDriver::new(broker.partitions.clone(), clock, proposals);
        let proposing = broker.host.workers.start("isr", move || until_stopped(driver.run(), stop))?;
        let mover = Mover::new(broker.partitions.clone());
        let stop = stopping.clone();
        let moving = broker.host.workers.start("mover", move || until_stopped(mover.run(), stop))?;
        Ok([fetching, proposing, moving, self.care_for_copies(stopping)?])
    }

    /// Looking whether the logs still say what was written, and rebuilding those that do not.
    fn care_for_copies(&self, stopping: watch::Receiver<bool>) -> Result<Worker, StartError> {
        let broker = &self.broker;
        let (clock, telemetry) = (broker.host.clock.clone(), broker.telemetry.clone());
        let scrubber = Scrubber::new(broker.partitions.clone(), clock.clone(), telemetry.clone(), self.scrub_options);
        let care = Arc::new(PeerCare { broker: Arc::downgrade(broker), listener: self.inter_broker_listener.clone() });
        let (partitions, flusher) = (broker.partitions.clone(), broker.flusher.clone());
        let rebuilder = Rebuilder::new(partitions, flusher, clock, telemetry, care);
        let both = async move {
            tokio::join!(scrubber.run(), rebuilder.run());
        };
        Ok(broker.host.workers.start("scrub", move || until_stopped(both, stopping))?)
    }

    async fn image_with(&self, is_it: impl FnMut(&Arc<Image>) -> bool) -> Result<Arc<Image>, StartError> {
        let mut images = self.broker.controller.quorum().watch();
        let image = images.wait_for(is_it).await.map_err(|_| "the quorum has ended")?;
        Ok(image.clone())
    }

    /// Holds the directory's identity against the cluster's and writes it down where there was none.
    fn join(&self, image: &Image) -> Result<(), StartError> {
        for dir in self.directories.all() {
            let identity = dir.identity.agreeing_with(&image.cluster_id)?;
            if !identity.is_known {
                identity.keep(&self.broker.host, &dir.path, self.broker.options.node_id)?;
            }
        }
        self.broker.peers.myself().join(&image.cluster_id);
        Ok(())
    }

    fn serve(&self) {
        self.broker.telemetry.set_broker_state(BrokerState::Running);
        self.readiness.ready();
        self.progress.send_replace(Progress::Serving);
        let millis = self.broker.host.clock.monotonic_nanos().saturating_sub(self.started_nanos) / 1_000_000;
        tracing::info!(cluster_id = %self.broker.image().cluster_id, "ready in {millis} ms");
    }

    /// Keeps the reason why the node is not ready up to date.
    async fn tell_standing(&self, lifecycle: &Lifecycle) {
        let mut standing = lifecycle.standing();
        loop {
            let now = standing.borrow_and_update().clone();
            let is_serving = *self.progress.borrow() == Progress::Serving;
            if now.fenced {
                self.readiness.not_ready(now.waits_for);
            } else if is_serving {
                self.readiness.ready();
            }
            if standing.changed().await.is_err() {
                return task::sleep(std::time::Duration::MAX).await;
            }
        }
    }
}
