//! One partition on this node: its log behind the one lock, the view that readers use without it, and whoever waits for it.
//!
//! The log opens on first use, so ten thousand idle partitions cost neither descriptors nor start time. A failed disk takes the
//! partition offline; it never takes the process down.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use parking_lot::{Mutex, MutexGuard};

use crate::base::ids::NO_LEADER_EPOCH;
use crate::base::{LeaderEpoch, MonotonicMs, Offset};
use crate::log::{AppendError, Appended, Log, LogEnv, LogError, LogIdentity, LogView, NewBatch, OpenHow};
use crate::metadata::config::LogConfig;
use crate::replica::ack::AckTicket;
use crate::replica::dir_health::DirHealth;
use crate::replica::error::PartitionError;
use crate::replica::waiter::Waiters;

/// What opening the log needs to know of the last shutdown, read once from the checkpoint files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checkpointed {
    pub clean_shutdown: bool,
    pub recovery_point: Offset,
    pub log_start_offset: Option<Offset>,
}

enum Slot {
    Unopened(Checkpointed),
    Open(Box<Log>),
    /// Nothing can be read or written any more; says why.
    Offline(Arc<str>),
}

/// Everything before a byte of a segment, and below the offset that belongs there, is durable: in the file or in the flush journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncMark {
    pub segment_base: Offset,
    pub position: u64,
    pub up_to: Offset,
}

/// A produce request's claim on this partition.
struct PendingAck {
    /// The claim is released when everything below this offset is durable.
    below: Offset,
    ticket: Arc<AckTicket>,
}

pub struct Partition {
    pub identity: LogIdentity,
    pub dir: PathBuf,
    env: LogEnv,
    health: Arc<DirHealth>,
    config: ArcSwap<LogConfig>,
    /// -1 while another node leads.
    leader_epoch: AtomicI32,
    slot: Mutex<Slot>,
    view: OnceLock<Arc<ArcSwap<LogView>>>,
    pub waiters: Waiters,
    pending_acks: Mutex<VecDeque<PendingAck>>,
    /// Whether the flusher has this partition on its list.
    pub(super) flush_queued: AtomicBool,
    /// Whether something was appended since the last sync began.
    dirty: AtomicBool,
    /// Whether the flush journal holds something that this partition's own files have not been synced for.
    pub(super) journaled: AtomicBool,
    durable_below: AtomicI64,
    /// Used by the flusher alone.
    sync_mark: Mutex<Option<SyncMark>>,
    /// When the housekeeper first saw it dirty; 0 while it is not.
    dirty_since_ms: AtomicU64,
}

impl Partition {
    pub fn new(
        env: LogEnv,
        health: Arc<DirHealth>,
        dir: PathBuf,
        identity: LogIdentity,
        config: Arc<LogConfig>,
        checkpointed: Checkpointed,
    ) -> Partition {
        Partition {
            identity,
            dir,
            env,
            health,
            config: ArcSwap::new(config),
            leader_epoch: AtomicI32::new(NO_LEADER_EPOCH),
            slot: Mutex::new(Slot::Unopened(checkpointed)),
            view: OnceLock::new(),
            waiters: Waiters::default(),
            pending_acks: Mutex::new(VecDeque::new()),
            flush_queued: AtomicBool::new(false),
            dirty: AtomicBool::new(false),
            journaled: AtomicBool::new(false),
            durable_below: AtomicI64::new(0),
            sync_mark: Mutex::new(None),
            dirty_since_ms: AtomicU64::new(0),
        }
    }

    pub fn config(&self) -> Arc<LogConfig> {
        self.config.load_full()
    }

    pub fn set_config(&self, config: Arc<LogConfig>) {
        if let Slot::Open(log) = &mut *self.slot.lock() {
            log.set_config(config.clone());
        }
        self.config.store(config);
    }

    pub fn leader_epoch(&self) -> LeaderEpoch {
        self.leader_epoch.load(Ordering::Acquire)
    }

    pub fn is_leader(&self) -> bool {
        self.leader_epoch() != NO_LEADER_EPOCH
    }

    /// Begins (or goes on with) leading in `epoch`. A log that is not open yet hears of it when it opens.
    pub fn lead(&self, epoch: LeaderEpoch) {
        self.leader_epoch.store(epoch, Ordering::Release);
        self.with_open_log(|log| log.assign_epoch(epoch));
    }

    /// Appends one validated batch of a client. The only place where this partition's records come from while it leads.
    pub fn append(&self, batch: &NewBatch<'_>) -> Result<Appended, PartitionError> {
        let mut slot = self.slot.lock();
        let epoch = self.leader_epoch();
        if epoch == NO_LEADER_EPOCH {
            return Err(PartitionError::NotLeader);
        }
        let log = self.opened(&mut slot)?;
        let appended = log.append(std::slice::from_ref(batch), epoch);
        drop(slot);
        if let Err(AppendError::Storage(error)) = &appended {
            self.note_storage(error);
        }
        let appended = appended?;
        self.dirty.store(true, Ordering::Release);
        self.waiters.wake_all();
        Ok(appended)
    }

    /// Trouble with a file ends the trust in its disk, unless the disk is only full.
    pub fn note_storage(&self, error: &LogError) {
        if error.is_disk_full() {
            tracing::warn!(partition = %self.identity.topic_partition, %error, "the disk is full; writes are refused until there is room");
        } else {
            self.health.fail(&error.to_string());
        }
    }

    /// The newest published view. Opens the log at first use.
    pub fn view(&self) -> Result<Arc<LogView>, PartitionError> {
        if let Some(view) = self.view.get() {
            return Ok(view.load_full());
        }
        let mut slot = self.slot.lock();
        self.opened(&mut slot)?;
        drop(slot);
        self.view.get().map(|view| view.load_full()).ok_or(PartitionError::NotLeader)
    }

    /// The newest published view of a log that is open or was; takes no lock and opens nothing.
    pub fn view_if_open(&self) -> Option<Arc<LogView>> {
        self.view.get().map(|view| view.load_full())
    }

    /// Records at or above this offset must not be shown to anybody. One replica: everything appended is committed.
    pub fn high_watermark(view: &LogView) -> Offset {
        view.log_end_offset
    }

    /// Runs `work` on the open log under the partition's lock. For everything that is not on the hot path.
    pub fn with_log<T>(&self, work: impl FnOnce(&mut Log) -> T) -> Result<T, PartitionError> {
        let mut slot = self.slot.lock();
        Ok(work(self.opened(&mut slot)?))
    }

    /// Like [`Partition::with_log`], but leaves an unopened log alone and answers `None`.
    pub fn with_open_log<T>(&self, work: impl FnOnce(&mut Log) -> T) -> Option<T> {
        match &mut *self.slot.lock() {
            Slot::Open(log) => Some(work(log)),
            Slot::Unopened(_) | Slot::Offline(_) => None,
        }
    }

    fn opened<'a>(&self, slot: &'a mut MutexGuard<'_, Slot>) -> Result<&'a mut Log, PartitionError> {
        if let Some(reason) = self.health.failure() {
            return Err(PartitionError::Offline(reason.clone()));
        }
        if let Slot::Unopened(checkpointed) = **slot {
            **slot = self.open(checkpointed);
        }
        match &mut **slot {
            Slot::Open(log) => Ok(log),
            Slot::Offline(reason) => Err(PartitionError::Offline(reason.clone())),
            Slot::Unopened(_) => Err(PartitionError::NotLeader),
        }
    }

    fn open(&self, checkpointed: Checkpointed) -> Slot {
        let how = OpenHow {
            clean_shutdown: checkpointed.clean_shutdown,
            recovery_point: checkpointed.recovery_point,
            log_start_offset: checkpointed.log_start_offset,
        };
        match Log::open(&self.env, self.dir.clone(), self.identity.clone(), self.config(), how) {
            Ok((mut log, recovery)) => {
                if recovery.truncated_bytes > 0 {
                    tracing::warn!(
                        partition = %self.identity.topic_partition,
                        truncated_bytes = recovery.truncated_bytes,
                        log_end_offset = log.log_end_offset(),
                        "cut an incomplete tail off the log"
                    );
                }
                if self.is_leader() {
                    log.assign_epoch(self.leader_epoch());
                }
                self.durable_below.fetch_max(log.flushed_offset(), Ordering::AcqRel);
                let _ = self.view.set(log.published());
                Slot::Open(Box::new(log))
            }
            Err(error) => {
                tracing::error!(partition = %self.identity.topic_partition, %error, "the log cannot be opened; the partition is offline");
                Slot::Offline(error.to_string().into())
            }
        }
    }

    pub fn is_dirty(&self) -> bool {
        self.dirty.load(Ordering::Acquire)
    }

    /// How long the housekeeper has known that something here is not synced.
    pub(super) fn dirty_for_ms(&self, now: MonotonicMs) -> u64 {
        match self.dirty_since_ms.compare_exchange(0, now.max(1), Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => 0,
            Err(since) => now.saturating_sub(since),
        }
    }

    /// A sync begins: what is appended from now on is dirty again.
    pub(super) fn begin_flush(&self) {
        self.flush_queued.store(false, Ordering::Release);
        self.dirty.store(false, Ordering::Release);
        self.dirty_since_ms.store(0, Ordering::Relaxed);
    }

    pub(super) fn sync_mark(&self) -> Option<SyncMark> {
        *self.sync_mark.lock()
    }

    pub(super) fn set_sync_mark(&self, mark: SyncMark) {
        *self.sync_mark.lock() = Some(mark);
        self.durable_below.fetch_max(mark.up_to, Ordering::AcqRel);
    }

    /// Whether everything below `offset` is on the device.
    pub fn is_durable(&self, offset: Offset) -> bool {
        self.durable_below.load(Ordering::Acquire) >= offset
    }

    /// Whether `flush.messages` asks for a sync: of the records below `end`, as many as it says are not on the device.
    pub fn flush_is_due(&self, end: Offset) -> bool {
        let flush_messages = self.config.load().flush_messages;
        flush_messages < i64::MAX && end.saturating_sub(self.durable_below.load(Ordering::Acquire)) >= flush_messages
    }

    /// Lets the device begin with what the next sync will ask for.
    pub(super) fn start_writeback(&self) {
        // A hint: what goes wrong here goes wrong again in the sync, which reports it.
        if let Some(Ok(writeback)) = self.with_open_log(|log| log.writeback()) {
            writeback.start();
        }
    }

    pub(super) fn disk_has_failed(&self) -> bool {
        self.health.failure().is_some()
    }

    /// The newest view of a log that is open and not offline.
    pub(super) fn open_view(&self) -> Option<Arc<LogView>> {
        if self.disk_has_failed() || !self.is_open() {
            return None;
        }
        self.view.get().map(|view| view.load_full())
    }

    /// A sync or journal write failed: nothing on this disk is acknowledged any more.
    pub(super) fn fail_disk(&self, reason: &str) {
        self.health.fail(reason);
        self.fail_acks();
    }

    /// Whether it has been used before: new partitions get their directory with their first record.
    pub fn exists_on_disk(&self) -> bool {
        self.env.host.disk.exists(&self.dir)
    }

    /// Registers a claim that is released when everything below `below` is durable.
    pub fn claim_durable(&self, below: Offset, ticket: &Arc<AckTicket>) {
        ticket.claim();
        self.pending_acks.lock().push_back(PendingAck { below, ticket: ticket.clone() });
    }

    /// Everything below `below` is durable: releases who waited for that.
    pub(super) fn release_acks(&self, below: Offset) {
        let mut pending = self.pending_acks.lock();
        while pending.front().is_some_and(|ack| ack.below <= below) {
            if let Some(ack) = pending.pop_front() {
                ack.ticket.release(true);
            }
        }
    }

    /// The disk failed, or the partition goes away: who waits will not get what it waits for.
    pub fn fail_acks(&self) {
        for ack in self.pending_acks.lock().drain(..) {
            ack.ticket.release(false);
        }
        self.waiters.wake_all();
    }

    /// Takes the partition out of service for good.
    pub fn take_offline(&self, reason: &str) -> Option<Log> {
        let before = std::mem::replace(&mut *self.slot.lock(), Slot::Offline(reason.into()));
        self.fail_acks();
        match before {
            Slot::Open(log) => Some(*log),
            Slot::Unopened(_) | Slot::Offline(_) => None,
        }
    }

    pub fn is_open(&self) -> bool {
        matches!(*self.slot.lock(), Slot::Open(_))
    }

    /// What the checkpoint files should say of this partition now.
    pub fn checkpoint(&self) -> Option<Checkpointed> {
        match &*self.slot.lock() {
            Slot::Open(log) => Some(Checkpointed {
                clean_shutdown: false,
                recovery_point: log.recovery_point(),
                log_start_offset: Some(log.log_start_offset()),
            }),
            Slot::Unopened(checkpointed) => Some(*checkpointed),
            Slot::Offline(_) => None,
        }
    }
}
