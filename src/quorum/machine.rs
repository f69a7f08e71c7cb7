//! The state machine: entries that are agreed on change the image, one by one and alike on every node, and each new image is
//! published. What it holds on disk are snapshots and, behind the scenes, the store.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arc_swap::ArcSwap;
use openraft::storage::RaftStateMachine;
use openraft::{AnyError, EntryPayload, RaftSnapshotBuilder};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::metalog::MetadataLog;
use super::snapshot::{self, SnapshotData, SnapshotId};
use super::types::{
    Change, Entry, LogId, Outcome, Rejected, Snapshot, SnapshotMeta, StorageError, StorageIoError, StoredMembership,
    TypeConfig, next_index,
};
use crate::base::BrokerId;
use crate::base::rules::{Rule, holds};
use crate::host::{Host, task};
use crate::metadata::Image;

/// The image, and up to where in the log it is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Applied {
    pub(super) image: Arc<Image>,
    pub(super) log_id: Option<LogId>,
    pub(super) membership: StoredMembership,
}

/// Where each new image goes.
pub(super) struct Published {
    pub(super) image: ArcSwap<Image>,
    pub(super) watch: watch::Sender<Arc<Image>>,
    /// What a start would have to read without the store.
    pub(super) bytes: AtomicU64,
    applied: Mutex<Applied>,
}

impl Published {
    pub(super) fn new(applied: Applied, bytes: u64) -> Published {
        Published {
            image: ArcSwap::new(applied.image.clone()),
            watch: watch::Sender::new(applied.image.clone()),
            bytes: AtomicU64::new(bytes),
            applied: Mutex::new(applied),
        }
    }

    pub(super) fn applied(&self) -> Applied {
        self.applied.lock().clone()
    }

    /// Changes what is applied and publishes the image if it is another one.
    fn change<T>(&self, change: impl FnOnce(&mut Applied) -> T) -> T {
        let mut applied = self.applied.lock();
        let before = applied.image.clone();
        let result = change(&mut applied);
        if !Arc::ptr_eq(&before, &applied.image) {
            self.image.store(applied.image.clone());
            self.watch.send_replace(applied.image.clone());
        }
        result
    }

    pub(super) fn set_controller(&self, id: BrokerId) {
        self.change(|applied| {
            if applied.image.controller_id != id {
                Arc::make_mut(&mut applied.image).controller_id = id;
            }
        });
    }
}

pub(super) struct Machine {
    pub(super) host: Host,
    pub(super) log: Arc<MetadataLog>,
    pub(super) published: Arc<Published>,
    /// The newest handle's number: what an older one still had in its queue is not applied a second time.
    generation: Mutex<u64>,
    /// Held while a snapshot is written.
    pub(super) snapshot_under_way: tokio::sync::Mutex<()>,
}

impl Machine {
    pub(super) fn new(host: Host, log: Arc<MetadataLog>, published: Arc<Published>) -> Machine {
        Machine { host, log, published, generation: Mutex::new(0), snapshot_under_way: tokio::sync::Mutex::new(()) }
    }

    /// A handle for a new instance of the library; older handles do nothing any more.
    pub(super) fn handle(self: &Arc<Machine>) -> MachineHandle {
        let mut generation = self.generation.lock();
        *generation += 1;
        MachineHandle { machine: self.clone(), generation: *generation }
    }
}

/// What one instance of the library holds of the machine.
pub(crate) struct MachineHandle {
    machine: Arc<Machine>,
    generation: u64,
}

/// One proposal: all of its records or none.
fn apply_change(image: &mut Image, change: &Change) -> Result<i64, Rejected> {
    if change.expected_offset.is_some_and(|expected| expected != image.offset && holds(Rule::DecisionsAreFresh)) {
        return Err(Rejected::Stale { offset: image.offset });
    }
    let mut next = image.clone();
    for record in &change.records {
        next.apply(next.offset + 1, record).map_err(Rejected::DoesNotFit)?;
    }
    *image = next;
    Ok(image.offset)
}

fn apply_entry(applied: &mut Applied, image: &mut Image, entry: Entry) -> Outcome {
    if entry.log_id.index < next_index(applied.log_id) {
        return Outcome::default();
    }
    applied.log_id = Some(entry.log_id);
    match entry.payload {
        EntryPayload::Blank => Outcome::default(),
        EntryPayload::Normal(request) => {
            Outcome { results: request.changes.iter().map(|change| apply_change(image, change)).collect() }
        }
        EntryPayload::Membership(membership) => {
            applied.membership = StoredMembership::new(applied.log_id, membership);
            Outcome::default()
        }
    }
}

impl RaftStateMachine<TypeConfig> for MachineHandle {
    type SnapshotBuilder = SnapshotBuilder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), StorageError> {
        let applied = self.machine.published.applied();
        Ok((applied.log_id, applied.membership))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<Outcome>, StorageError>
    where
        I: IntoIterator<Item = Entry> + Send,
        I::IntoIter: Send,
    {
        let generation = self.machine.generation.lock();
        if *generation != self.generation {
            return Err(StorageIoError::write_state_machine(AnyError::error("the node was started again")).into());
        }
        Ok(self.machine.published.change(|applied| {
            let mut image = Image::clone(&applied.image);
            let outcomes = entries.into_iter().map(|entry| apply_entry(applied, &mut image, entry)).collect();
            if image.offset != applied.image.offset {
                applied.image = Arc::new(image);
            }
            outcomes
        }))
    }

    async fn get_snapshot_builder(&mut self) -> SnapshotBuilder {
        SnapshotBuilder { machine: self.machine.clone(), applied: self.machine.published.applied() }
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<SnapshotData>, StorageError> {
        Ok(Box::new(SnapshotData::Bytes(bytes::Bytes::new())))
    }

    async fn install_snapshot(&mut self, meta: &SnapshotMeta, data: Box<SnapshotData>) -> Result<(), StorageError> {
        let machine = self.machine.clone();
        let id = SnapshotId::of(meta.last_log_id);
        let _under_way = machine.snapshot_under_way.lock().await;
        let worker = self.machine.clone();
        let installed = task::blocking(move || {
            let content = data.content(worker.log.disk.as_ref()).map_err(|error| error.to_string())?;
            let received = snapshot::decode(&content)?;
            if SnapshotId::of(received.log_id) != id {
                return Err("it is another one than announced".to_owned());
            }
            let (upto, applied) = (next_index(received.log_id), next_index(worker.published.applied().log_id));
            if upto < applied {
                return Err(worker.log.contradicted(upto, applied).to_string());
            }
            snapshot::write(worker.log.disk.as_ref(), &worker.log.dir, id, &content)
                .and_then(|()| worker.log.note_snapshot(id, content.len() as u64, true))
                .map_err(|error| error.to_string())?;
            Ok(received)
        });
        let received = installed.await.map_err(|what| StorageIoError::write_snapshot(None, AnyError::error(what)))?;
        machine.published.change(|applied| {
            let controller_id = applied.image.controller_id;
            *applied = received;
            Arc::make_mut(&mut applied.image).controller_id = controller_id;
        });
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot>, StorageError> {
        let log = self.machine.log.clone();
        let newest = log.view.lock().snapshots.last().copied();
        let Some(id) = newest else { return Ok(None) };
        let path = id.path(&log.dir);
        let file = path.clone();
        let read = task::blocking(move || snapshot::read_membership(log.disk.as_ref(), &file)).await;
        let last_membership = read.map_err(|what| StorageIoError::read_snapshot(None, AnyError::error(what)))?;
        let meta = SnapshotMeta { last_log_id: id.log_id(), last_membership, snapshot_id: id.file_name() };
        Ok(Some(Snapshot { meta, snapshot: Box::new(SnapshotData::File(path)) }))
    }
}

fn meta(applied: &Applied) -> SnapshotMeta {
    SnapshotMeta {
        last_log_id: applied.log_id,
        last_membership: applied.membership.clone(),
        snapshot_id: SnapshotId::of(applied.log_id).file_name(),
    }
}

/// Writes what was applied at one moment, while proposals go on.
pub(crate) struct SnapshotBuilder {
    machine: Arc<Machine>,
    applied: Applied,
}

impl RaftSnapshotBuilder<TypeConfig> for SnapshotBuilder {
    async fn build_snapshot(&mut self) -> Result<Snapshot, StorageError> {
        let machine = self.machine.clone();
        let _under_way = machine.snapshot_under_way.lock().await;
        let (worker, applied) = (self.machine.clone(), self.applied.clone());
        let id = SnapshotId::of(applied.log_id);
        let written = task::blocking(move || {
            let log = &worker.log;
            log.roll()?;
            let content = snapshot::encode(&applied, worker.host.clock.now_ms());
            snapshot::write(log.disk.as_ref(), &log.dir, id, &content)?;
            log.note_snapshot(id, content.len() as u64, false)
        });
        let path = id.path(&machine.log.dir);
        if let Err(error) = written.await {
            tracing::warn!(%error, "a metadata snapshot cannot be written; the log goes on without it");
            machine.log.note_snapshot_failed();
            // An older one than the library has changes nothing there.
            return Ok(Snapshot { meta: SnapshotMeta::default(), snapshot: Box::new(SnapshotData::File(path)) });
        }
        Ok(Snapshot { meta: meta(&self.applied), snapshot: Box::new(SnapshotData::File(path)) })
    }
}
