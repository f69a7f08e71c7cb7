//! The quorum as the rest of the broker sees it: propose, look, watch.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::committer::{Committer, PROPOSALS_QUEUED_MAX, Proposal, Published};
use super::error::QuorumError;
use super::load::{self, Loaded};
use super::metalog::MetadataLog;
use super::state::QuorumState;
use super::store::StoreOpener;
use super::store_writer::StoreWriter;
use crate::base::{BrokerId, LeaderEpoch, Offset, TimestampMs};
use crate::host::{Host, task};
use crate::metadata::{Image, MetadataRecord};

/// Who this node is and how its metadata is kept.
pub struct QuorumOptions {
    pub node_id: BrokerId,
    /// The id of the log directory that holds the metadata.
    pub directory_id: Uuid,
    /// This node had metadata before (its `meta.properties` says so): an empty directory then refuses to start.
    pub must_exist: bool,
    pub store: StoreOpener,
}

/// A handle; cheap to clone. The quorum ends when [`Quorum::close`] is called, or when the last handle is dropped.
#[derive(Clone)]
pub struct Quorum {
    shared: Arc<Shared>,
}

struct Shared {
    host: Host,
    node_id: BrokerId,
    directory_id: Uuid,
    epoch: LeaderEpoch,
    log: Arc<Mutex<MetadataLog>>,
    published: Arc<Published>,
    /// Taken away by `close`.
    proposals: Mutex<Option<mpsc::Sender<Proposal>>>,
    running: Mutex<Option<Running>>,
}

struct Running {
    committer: JoinHandle<()>,
    store_writer: JoinHandle<()>,
    stop_store_writer: oneshot::Sender<()>,
}

/// What DescribeQuorum tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumDescription {
    pub leader_id: BrokerId,
    pub leader_epoch: LeaderEpoch,
    /// Offsets below are agreed.
    pub high_watermark: Offset,
    pub voters: Vec<VoterDescription>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VoterDescription {
    pub id: BrokerId,
    pub directory_id: Uuid,
    pub log_end_offset: Offset,
    pub last_fetch_ms: TimestampMs,
    pub last_caught_up_ms: TimestampMs,
}

impl Quorum {
    /// Reads the metadata under `log_dir` and begins to lead. Blocks for the disk; must be called on a runtime.
    ///
    /// # Errors
    /// When acknowledged records are missing or damaged, or the disk refuses. The sentence says what to do.
    pub fn open(host: &Host, log_dir: &Path, options: QuorumOptions) -> Result<Quorum, QuorumError> {
        let dir = log_dir.join(load::DIRECTORY);
        let Loaded { log, mut image, last_epoch } = load::load(host, &dir, options.must_exist, &options.store)?;
        let epoch = last_epoch.saturating_add(1);
        // In an empty log nothing is known that a state file could add, and a first start is to be quick.
        if log.next_offset > 0 {
            let state = QuorumState { leader_id: options.node_id, leader_epoch: epoch, end_offset: log.next_offset };
            state
                .save(host.disk.as_ref(), &dir)
                .map_err(|error| QuorumError::storage("quorum-state cannot be written", &error))?;
        }
        image.controller_id = options.node_id;
        Ok(Quorum::start(host, dir, options, log, image, epoch))
    }

    fn start(
        host: &Host,
        dir: PathBuf,
        options: QuorumOptions,
        log: MetadataLog,
        image: Image,
        epoch: LeaderEpoch,
    ) -> Quorum {
        let image = Arc::new(image);
        let (watch, images) = watch::channel(image.clone());
        let bytes = AtomicU64::new(log.bytes());
        let published = Arc::new(Published { image: ArcSwap::new(image), watch, bytes });
        let log = Arc::new(Mutex::new(log));
        let (proposals, queue) = mpsc::channel(PROPOSALS_QUEUED_MAX);
        let committer =
            Committer { host: host.clone(), log: log.clone(), epoch, published: published.clone(), proposals: queue };
        let (stop_store_writer, stop) = oneshot::channel();
        let store_writer =
            StoreWriter { host: host.clone(), dir, opener: options.store, images, published: published.clone() };
        let running = Running {
            committer: tokio::spawn(committer.run()),
            store_writer: tokio::spawn(store_writer.run(stop)),
            stop_store_writer,
        };
        Quorum {
            shared: Arc::new(Shared {
                host: host.clone(),
                node_id: options.node_id,
                directory_id: options.directory_id,
                epoch,
                log,
                published,
                proposals: Mutex::new(Some(proposals)),
                running: Mutex::new(Some(running)),
            }),
        }
    }

    /// Makes the records durable, applies them, publishes the image, and only then answers with the offset of the last one.
    /// All of them come or none. Dropping the future does not take the proposal back.
    pub async fn propose(&self, records: Vec<MetadataRecord>) -> Result<i64, QuorumError> {
        if records.is_empty() {
            return Ok(self.image().offset);
        }
        let (done, answer) = oneshot::channel();
        let Some(proposals) = self.shared.proposals.lock().clone() else { return Err(QuorumError::Closed) };
        proposals.send(Proposal { records, done }).await.map_err(|_| QuorumError::Closed)?;
        drop(proposals);
        answer.await.map_err(|_| QuorumError::Closed)?
    }

    /// The newest image.
    pub fn image(&self) -> Arc<Image> {
        self.shared.published.image.load_full()
    }

    /// Tells of each new image; quick successions may be told as one.
    pub fn watch(&self) -> watch::Receiver<Arc<Image>> {
        self.shared.published.watch.subscribe()
    }

    pub fn node_id(&self) -> BrokerId {
        self.shared.node_id
    }

    /// Who the active controller is.
    pub fn leadership(&self) -> watch::Receiver<super::Leadership> {
        let leader = Some(self.shared.node_id);
        watch::channel(super::Leadership { leader, leader_address: None, term: 1, is_me: true }).1
    }

    /// A message of another node's quorum.
    pub async fn handle_rpc(&self, _: bytes::Bytes) -> Result<bytes::Bytes, QuorumError> {
        Err(QuorumError::Closed)
    }

    pub fn describe(&self) -> QuorumDescription {
        let end = self.image().offset + 1;
        let now = self.shared.host.clock.now_ms();
        QuorumDescription {
            leader_id: self.shared.node_id,
            leader_epoch: self.shared.epoch,
            high_watermark: end,
            voters: vec![VoterDescription {
                id: self.shared.node_id,
                directory_id: self.shared.directory_id,
                log_end_offset: end,
                last_fetch_ms: now,
                last_caught_up_ms: now,
            }],
        }
    }

    /// Finishes what has been proposed, and leaves the disk as a clean stop does. Later proposals are answered with `Closed`.
    pub async fn close(&self) -> Result<(), QuorumError> {
        drop(self.shared.proposals.lock().take());
        let Some(running) = self.shared.running.lock().take() else { return Ok(()) };
        let _ = running.committer.await;
        drop(running.stop_store_writer);
        let _ = running.store_writer.await;
        let shared = self.shared.clone();
        task::blocking(move || {
            let log = shared.log.lock();
            let state =
                QuorumState { leader_id: shared.node_id, leader_epoch: shared.epoch, end_offset: log.next_offset };
            state.save(log.disk.as_ref(), &log.dir)
        })
        .await
        .map_err(|error| QuorumError::storage("quorum-state cannot be written", &error))
    }
}
