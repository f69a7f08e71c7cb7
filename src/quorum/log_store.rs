//! The library's view of what this node keeps: the log, and what it promised. Nothing is reported as kept before it is on the disk,
//! with one exception: while there is no other node, the beginning of a term is told to nobody, so that it may wait for the sync of
//! the first change behind it.

use std::fmt::Debug;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use openraft::raft::AppendEntriesRequest;
use openraft::storage::{LogFlushed, RaftLogStorage};
use openraft::{AnyError, EntryPayload, LogState, RaftLogReader};
use parking_lot::Mutex;

use super::error::QuorumError;
use super::hard_state::HardState;
use super::metalog::MetadataLog;
use super::types::{Entry, LogId, Membership, StorageError, StorageIoError, TypeConfig, Vote, next_index};
use crate::base::BrokerId;
use crate::base::rules::{Rule, holds};
use crate::host::{Host, task};

/// Bytes of entries sent to another node at once, unless a single entry is larger.
const READ_BYTES_MAX: usize = 1024 * 1024;

/// What a node has promised, and whether the disk knows it.
struct Promises {
    hard: HardState,
    is_saved: bool,
    /// No other node has any part in the log.
    is_alone: bool,
}

pub(super) struct Storage {
    pub(super) host: Host,
    pub(super) log: Arc<MetadataLog>,
    node_id: BrokerId,
    promises: Mutex<Promises>,
}

fn is_only(node_id: BrokerId, membership: &Membership) -> bool {
    membership.nodes().map(|(id, _)| *id).eq([node_id])
}

impl Storage {
    pub(super) fn new(
        host: Host,
        log: Arc<MetadataLog>,
        node_id: BrokerId,
        hard: HardState,
        membership: &Membership,
    ) -> Storage {
        let promises = Promises { hard, is_saved: true, is_alone: is_only(node_id, membership) };
        Storage { host, log, node_id, promises: Mutex::new(promises) }
    }

    pub(super) fn is_joining(&self) -> bool {
        self.promises.lock().hard.joining
    }

    pub(super) fn term(&self) -> u64 {
        self.promises.lock().hard.term
    }

    /// Changes what is promised; answers when the disk has it. Blocks.
    pub(super) fn promise(&self, change: impl FnOnce(&mut HardState)) -> Result<(), QuorumError> {
        let mut promises = self.promises.lock();
        change(&mut promises.hard);
        self.save(&mut promises)
    }

    fn save(&self, promises: &mut Promises) -> Result<(), QuorumError> {
        promises.is_saved = false;
        if !holds(Rule::VoteIsSynced) {
            return Ok(());
        }
        promises
            .hard
            .save(self.log.disk.as_ref(), &self.log.dir)
            .map_err(|error| QuorumError::storage("quorum-state cannot be written", &error))?;
        promises.is_saved = true;
        Ok(())
    }

    fn keep_vote(&self, vote: &Vote) -> Result<(), QuorumError> {
        let mut promises = self.promises.lock();
        if !promises.hard.set_vote(vote) {
            return if promises.is_saved || promises.is_alone { Ok(()) } else { self.save(&mut promises) };
        }
        if promises.is_alone && vote.leader_id.voted_for == Some(self.node_id) {
            promises.is_saved = false;
            return Ok(());
        }
        self.save(&mut promises)
    }

    fn append(&self, entries: Vec<Entry>) -> Result<(), QuorumError> {
        let mut tells_nobody = true;
        let mut newest = None;
        for entry in &entries {
            match &entry.payload {
                EntryPayload::Membership(membership) => newest = Some(is_only(self.node_id, membership)),
                EntryPayload::Normal(_) => tells_nobody = false,
                EntryPayload::Blank => {}
            }
        }
        let will_be_alone = self.prepare(newest)?;
        self.log.append(
            entries,
            !(tells_nobody && will_be_alone) && holds(Rule::MetadataIsSynced),
            self.host.clock.now_ms(),
        )?;
        self.promises.lock().is_alone = will_be_alone;
        Ok(())
    }

    /// What could wait while this node was alone cannot when it no longer is.
    fn prepare(&self, newest: Option<bool>) -> Result<bool, QuorumError> {
        let mut promises = self.promises.lock();
        let will_be_alone = newest.unwrap_or(promises.is_alone);
        if !will_be_alone {
            promises.is_alone = false;
            if !promises.is_saved {
                self.save(&mut promises)?;
            }
        }
        Ok(will_be_alone)
    }

    /// Whether a leader's entries are others than those that were agreed on.
    pub(super) fn contradiction(&self, request: &AppendEntriesRequest<TypeConfig>) -> Option<QuorumError> {
        if request.vote.leader_id.term < self.term() {
            return None;
        }
        let (index, agreed) = {
            let view = self.log.view.lock();
            let differs =
                |id: &LogId| id.index < view.agreed && view.log_id_at(id.index).is_some_and(|mine| mine != *id);
            let theirs = request.prev_log_id.into_iter().chain(request.entries.iter().map(|entry| entry.log_id));
            (theirs.filter(differs).map(|id| id.index).min()?, view.agreed)
        };
        Some(self.log.contradicted(index, agreed))
    }

    fn truncate(&self, index: u64) -> Result<(), QuorumError> {
        let agreed = self.log.view.lock().agreed;
        if index < agreed {
            return Err(self.log.contradicted(index, agreed));
        }
        let mut promises = self.promises.lock();
        promises.is_alone = false;
        if promises.hard.log_end > index {
            promises.hard.log_end = index;
            self.save(&mut promises)?;
        }
        drop(promises);
        self.log.truncate(index)
    }
}

/// What one instance of the library holds of the storage.
#[derive(Clone)]
pub(crate) struct LogStore(pub(super) Arc<Storage>);

fn bounds(range: &impl RangeBounds<u64>) -> (u64, u64) {
    let from = match range.start_bound() {
        Bound::Included(from) => *from,
        Bound::Excluded(from) => from.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let to = match range.end_bound() {
        Bound::Included(to) => to.saturating_add(1),
        Bound::Excluded(to) => *to,
        Bound::Unbounded => u64::MAX,
    };
    (from, to)
}

fn reading(error: QuorumError) -> StorageError {
    StorageIoError::read_logs(AnyError::new(&error)).into()
}

impl RaftLogReader<TypeConfig> for LogStore {
    async fn try_get_log_entries<R: RangeBounds<u64> + Clone + Debug + Send>(
        &mut self,
        range: R,
    ) -> Result<Vec<Entry>, StorageError> {
        let (from, to) = bounds(&range);
        self.0.log.read(from, to, usize::MAX).await.map_err(reading)
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> Result<Vec<Entry>, StorageError> {
        self.0.log.read(start, end, READ_BYTES_MAX).await.map_err(reading)
    }
}

impl RaftLogStorage<TypeConfig> for LogStore {
    type LogReader = LogStore;

    async fn get_log_state(&mut self) -> Result<LogState<TypeConfig>, StorageError> {
        let view = self.0.log.view.lock();
        Ok(LogState { last_purged_log_id: view.purged, last_log_id: view.last() })
    }

    async fn get_log_reader(&mut self) -> LogStore {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), StorageError> {
        let (storage, vote) = (self.0.clone(), *vote);
        let kept = task::blocking(move || storage.keep_vote(&vote)).await;
        kept.map_err(|error| StorageIoError::write_vote(AnyError::new(&error)).into())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, StorageError> {
        Ok(self.0.promises.lock().hard.vote())
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), StorageError> {
        let mut view = self.0.log.view.lock();
        view.agreed = view.agreed.max(next_index(committed));
        Ok(())
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, StorageError> {
        let view = self.0.log.view.lock();
        Ok(view.agreed.checked_sub(1).and_then(|index| view.log_id_at(index)))
    }

    async fn append<I>(&mut self, entries: I, callback: LogFlushed<TypeConfig>) -> Result<(), StorageError>
    where
        I: IntoIterator<Item = Entry> + Send,
        I::IntoIter: Send,
    {
        let (storage, entries) = (self.0.clone(), entries.into_iter().collect());
        let written = task::blocking(move || storage.append(entries)).await;
        callback.log_io_completed(written.map_err(std::io::Error::other));
        Ok(())
    }

    async fn truncate(&mut self, since: LogId) -> Result<(), StorageError> {
        let storage = self.0.clone();
        let cut = task::blocking(move || storage.truncate(since.index)).await;
        cut.map_err(|error| StorageIoError::write_logs(AnyError::new(&error)).into())
    }

    async fn purge(&mut self, upto: LogId) -> Result<(), StorageError> {
        let storage = self.0.clone();
        let purged = task::blocking(move || storage.log.purge(upto)).await;
        purged.map_err(|error| StorageIoError::write_logs(AnyError::new(&error)).into())
    }
}
