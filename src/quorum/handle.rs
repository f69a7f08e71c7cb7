//! The quorum as the rest of the broker sees it: propose, look, watch.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::addresses::Addresses;
use super::core::{Core, Leadership, QuorumTiming, start_raft};
use super::describe::QuorumDescription;
use super::error::QuorumError;
use super::hearing::Hearing;
use super::load::{self, Loaded, Loading};
use super::log_store::Storage;
use super::machine::{Machine, Published};
use super::network::Links;
use super::proposals::{self, PROPOSALS_QUEUED_MAX, Proposal};
use super::steward::Steward;
use super::store::StoreOpener;
use super::store_writer::StoreWriter;
use super::transport::RaftTransport;
use super::types::{Change, next_index};
use super::{bootstrap, elector, unreached, voteless};
use crate::base::{BrokerId, NodeAddress};
use crate::host::{Host, task};
use crate::metadata::{Image, MetadataRecord};

/// Who this node is, who the others are, and how metadata is kept.
#[derive(Clone)]
pub struct QuorumOptions {
    pub node_id: BrokerId,
    /// The id of the log directory that holds the metadata.
    pub directory_id: Uuid,
    /// This node had metadata before (its `meta.properties` says so): an empty directory then refuses to start.
    pub must_exist: bool,
    pub store: StoreOpener,
    /// `controller.quorum.voters`. Empty: this node alone. Without this node: it listens once the leader knows of it
    /// ([`Quorum::ensure_learner`]). Names the voters of a new quorum; later ones are in the log.
    pub voters: Vec<(BrokerId, NodeAddress)>,
    /// Where the others reach this node.
    pub my_address: NodeAddress,
    pub transport: Arc<dyn RaftTransport>,
    pub timing: QuorumTiming,
}

impl QuorumOptions {
    fn is_alone(&self) -> bool {
        self.voters.iter().all(|(id, _)| *id == self.node_id)
    }

    fn is_voter(&self) -> bool {
        self.is_alone() || self.voters.iter().any(|(id, _)| *id == self.node_id)
    }
}

/// A handle; cheap to clone. The quorum ends when [`Quorum::close`] is called, or, without tidying up, when the last handle is
/// dropped.
#[derive(Clone)]
pub struct Quorum {
    shared: Arc<Shared>,
}

struct Shared {
    core: Arc<Core>,
    directory_id: Uuid,
    /// Taken away by `close`.
    proposals: Mutex<Option<mpsc::Sender<Proposal>>>,
    running: Mutex<Option<Running>>,
}

struct Running {
    committer: JoinHandle<()>,
    store_writer: JoinHandle<()>,
    stop_store_writer: Option<oneshot::Sender<()>>,
    /// Those that end by being dropped.
    others: Vec<JoinHandle<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.committer.abort();
        self.store_writer.abort();
        self.others.iter().for_each(JoinHandle::abort);
    }
}

impl Quorum {
    /// Reads the metadata under `log_dir` and takes part in the quorum. A node that needs nobody else's consent leads when this
    /// returns; others find their leader afterwards.
    ///
    /// # Errors
    /// When acknowledged records are missing or damaged, or the disk refuses. The sentence says what to do.
    pub async fn open(host: &Host, log_dir: &Path, options: QuorumOptions) -> Result<Quorum, QuorumError> {
        let dir = log_dir.join(load::DIRECTORY);
        let is_alone = options.is_alone();
        let loading = Loading { host, dir: &dir, must_exist: options.must_exist, is_alone, store: &options.store };
        let Loaded { log, hard, applied, membership, is_new } = loading.load()?;
        // A first start that was cut short is a first start.
        let is_first_start = is_alone && log.last().is_none();
        let published = Arc::new(Published::new(applied, log.bytes()));
        let log = Arc::new(log);
        let storage = Arc::new(Storage::new(host.clone(), log.clone(), options.node_id, hard, &membership));
        if !is_new {
            let end = next_index(log.last());
            storage.promise(|hard| hard.log_end = end)?;
        }
        let machine = Arc::new(Machine::new(host.clone(), log, published.clone()));
        let links = Arc::new(Links {
            host: host.clone(),
            transport: options.transport.clone(),
            addresses: Addresses::new(
                (options.node_id, options.my_address.clone()),
                options.voters.iter().cloned().collect(),
            ),
            acked: Mutex::new(BTreeMap::new()),
            is_takeover: AtomicBool::new(false),
        });
        let raft = start_raft(options.node_id, &storage, &machine, &links).await?;
        let core = Arc::new(Core {
            host: host.clone(),
            node_id: options.node_id,
            timing: options.timing,
            storage,
            machine,
            published,
            links,
            raft: watch::Sender::new(raft),
            leadership: watch::Sender::new(Leadership::default()),
            hearing: Hearing::default(),
            suspicion: Notify::new(),
            unreached: Mutex::new(None),
            voteless: Mutex::new(None),
            takeover: Notify::new(),
            receiving: tokio::sync::Mutex::new(None),
            is_closing: AtomicBool::new(false),
            changing_members: tokio::sync::Mutex::new(()),
            last_error: Mutex::new(None),
            disk_failed: watch::Sender::new(false),
        });
        let quorum = Quorum::start(core, &dir, &options);
        quorum.begin(&options, is_first_start).await?;
        Ok(quorum)
    }

    fn start(core: Arc<Core>, dir: &Path, options: &QuorumOptions) -> Quorum {
        let (proposals, queue) = mpsc::channel(PROPOSALS_QUEUED_MAX);
        let (stop_store_writer, stop) = oneshot::channel();
        let store_writer = StoreWriter {
            host: core.host.clone(),
            dir: dir.to_owned(),
            opener: options.store.clone(),
            images: core.published.watch.subscribe(),
            published: core.published.clone(),
        };
        let mut others = vec![task::spawn(Steward::new(core.clone()).run()), task::spawn(elector::run(core.clone()))];
        others.push(task::spawn(unreached::run(core.clone())));
        others.push(task::spawn(voteless::run(core.clone())));
        if options.is_voter() && core.storage.is_joining() {
            others.push(task::spawn(bootstrap::run(core.clone(), options.voters.iter().cloned().collect())));
        }
        let running = Running {
            committer: task::spawn(proposals::run(core.clone(), queue)),
            store_writer: task::spawn(store_writer.run(stop)),
            stop_store_writer: Some(stop_store_writer),
            others,
        };
        Quorum {
            shared: Arc::new(Shared {
                core,
                directory_id: options.directory_id,
                proposals: Mutex::new(Some(proposals)),
                running: Mutex::new(Some(running)),
            }),
        }
    }

    /// Where this node's own vote decides, it leads at once.
    async fn begin(&self, options: &QuorumOptions, is_first_start: bool) -> Result<(), QuorumError> {
        let core = &self.shared.core;
        let raft = core.raft();
        if is_first_start {
            let members = BTreeMap::from([(options.node_id, options.my_address.clone())]);
            raft.initialize(members).await.map_err(|error| QuorumError::Storage(error.to_string()))?;
        } else if core.decides_alone().await {
            raft.trigger().elect().await.map_err(|error| QuorumError::Storage(error.to_string()))?;
        } else {
            return Ok(());
        }
        let (mut leadership, mut metrics) = (core.leadership.subscribe(), raft.metrics());
        tokio::select! {
            biased;
            _ = leadership.wait_for(|leadership| leadership.is_me) => Ok(()),
            failed = metrics.wait_for(|metrics| metrics.running_state.is_err()) => {
                let reason = match &failed {
                    Ok(metrics) => metrics.running_state.as_ref().err().map(ToString::to_string),
                    Err(_) => None,
                };
                Err(QuorumError::Storage(reason.unwrap_or_else(|| "the metadata quorum did not start".to_owned())))
            }
        }
    }

    /// Has the records agreed on, applied here and published, and only then answers with the image's offset behind the last one. All
    /// of them come or none. Dropping the future does not take the proposal back.
    pub async fn propose(&self, records: Vec<MetadataRecord>) -> Result<i64, QuorumError> {
        if records.is_empty() {
            return Ok(self.image().offset);
        }
        self.submit(Change { expected_offset: None, records }).await
    }

    /// The same for a decision that was made on an image: the records are refused with [`QuorumError::Stale`], on every node alike,
    /// unless the image's offset is `expected_offset` when their turn comes.
    pub async fn propose_at(&self, expected_offset: i64, records: Vec<MetadataRecord>) -> Result<i64, QuorumError> {
        if records.is_empty() {
            return self.confirm(expected_offset);
        }
        self.submit(Change { expected_offset: Some(expected_offset), records }).await
    }

    /// A decision to change nothing needs no entry, only a leader that still is one.
    fn confirm(&self, expected: i64) -> Result<i64, QuorumError> {
        self.shared.core.leadership.borrow().must_be_me()?;
        let found = self.image().offset;
        if found == expected { Ok(found) } else { Err(QuorumError::Stale { expected, found }) }
    }

    async fn submit(&self, change: Change) -> Result<i64, QuorumError> {
        let (done, answer) = oneshot::channel();
        let Some(proposals) = self.shared.proposals.lock().clone() else { return Err(QuorumError::Closed) };
        proposals.send(Proposal { change, done }).await.map_err(|_| QuorumError::Closed)?;
        drop(proposals);
        answer.await.map_err(|_| QuorumError::Closed)?
    }

    /// The newest image.
    pub fn image(&self) -> Arc<Image> {
        self.shared.core.published.image.load_full()
    }

    /// Tells of each new image; quick successions may be told as one.
    pub fn watch(&self) -> watch::Receiver<Arc<Image>> {
        self.shared.core.published.watch.subscribe()
    }

    pub fn node_id(&self) -> BrokerId {
        self.shared.core.node_id
    }

    /// Who leads, and whether it is this node.
    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.shared.core.leadership.subscribe()
    }

    pub fn describe(&self) -> QuorumDescription {
        self.shared.core.describe(self.shared.directory_id)
    }

    /// Answers a request that another node's quorum sent with [`RaftTransport::call`].
    pub fn handle_rpc(&self, request: Bytes) -> BoxFuture<'static, Result<Bytes, QuorumError>> {
        let core = self.shared.core.clone();
        Box::pin(core.handle_rpc(request))
    }

    /// On the leader: has a broker listen to the log from now on. Quick when it does already.
    pub async fn ensure_learner(&self, id: BrokerId, address: NodeAddress) -> Result<(), QuorumError> {
        self.shared.core.ensure_learner(id, address).await
    }

    #[cfg(test)]
    pub(super) fn unreached(&self) -> Option<(BrokerId, Option<NodeAddress>)> {
        self.shared.core.unreached.lock().clone()
    }

    #[cfg(test)]
    pub(super) fn voteless(&self) -> Option<voteless::Voteless> {
        self.shared.core.voteless.lock().clone()
    }

    /// Where the metadata says that a node is.
    pub fn known_address(&self, id: BrokerId) -> Option<NodeAddress> {
        self.shared.core.metrics().membership_config.membership().get_node(&id).cloned()
    }

    /// On the leader: a broker that is gone for good listens no more.
    pub async fn remove_learner(&self, id: BrokerId) -> Result<(), QuorumError> {
        self.shared.core.remove_learner(id).await
    }

    /// On the leader: makes a node a voter once it has everything; waits for that, up to a minute.
    pub async fn add_voter(&self, id: BrokerId, address: NodeAddress) -> Result<(), QuorumError> {
        self.shared.core.add_voter(id, address).await
    }

    /// On the leader: a voter listens from now on. A leader may remove itself; another one then leads.
    pub async fn remove_voter(&self, id: BrokerId) -> Result<(), QuorumError> {
        self.shared.core.remove_voter(id).await
    }

    /// Turns true when the disk with the metadata cannot be trusted any more: this node takes no part in the quorum from then on.
    pub fn disk_failed(&self) -> watch::Receiver<bool> {
        self.shared.core.disk_failed.subscribe()
    }

    /// On the leader: asks another voter to lead, and waits a moment until it does.
    pub async fn hand_over(&self) {
        self.shared.core.hand_over().await;
    }

    /// Finishes what has been proposed, hands over when this node leads, and leaves the disk as a clean stop does. Later proposals
    /// are answered with `Closed`.
    pub async fn close(&self) -> Result<(), QuorumError> {
        drop(self.shared.proposals.lock().take());
        let Some(mut running) = self.shared.running.lock().take() else { return Ok(()) };
        let core = &self.shared.core;
        let _ = (&mut running.committer).await;
        core.hand_over().await;
        core.is_closing.store(true, Ordering::Relaxed);
        let _ = core.raft().shutdown().await;
        drop(core.machine.snapshot_under_way.lock().await);
        drop(running.stop_store_writer.take());
        let _ = (&mut running.store_writer).await;
        drop(running);
        if core.storage.log.has_failed() {
            return Ok(());
        }
        let storage = core.storage.clone();
        task::blocking(move || {
            let end = next_index(storage.log.last());
            storage.promise(|hard| hard.log_end = end)
        })
        .await
    }
}
