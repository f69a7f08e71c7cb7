//! One partition on this node: its log behind the one lock, the view that readers use without it, and whoever waits for it. Leading is
//! in `partition_lead`, following in `partition_follow`, acknowledging in `partition_acks`, syncing in `partition_sync`.
//!
//! Two locks, taken in this order: the log's, and the leader machine's. The role changes under the first, so that what an append
//! found holds until it is done; a follower's fetch takes only the second. While nobody has to be waited for (`alone`, as with one
//! replica), an append moves the high watermark itself; that flag changes under both.
//!
//! The log opens on first use, so ten thousand idle partitions cost neither descriptors nor start time. A failed disk takes the
//! partition offline; it never takes the process down.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use parking_lot::{Mutex, MutexGuard};

use crate::base::ids::NO_LEADER_EPOCH;
use crate::base::rules::{Rule, holds};
use crate::base::{LeaderEpoch, Offset};
use crate::log::{AppendError, Appended, Log, LogEnv, LogError, LogIdentity, LogView, NewBatch, OpenHow};
use crate::metadata::config::LogConfig;
use crate::replica::damage::DamageMark;
use crate::replica::error::PartitionError;
use crate::replica::log_dirs::{LogDir, LogDirs};
use crate::replica::moving::Moving;
use crate::replica::partition_acks::PendingAcks;
use crate::replica::partition_lead::Leading;
use crate::replica::partition_sync::SyncMark;
use crate::replica::role::{Common, Role};
use crate::replica::strays::set_aside;
use crate::replica::waiter::Waiters;

/// What opening the log needs to know of the last shutdown, read once from the checkpoint files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checkpointed {
    pub clean_shutdown: bool,
    pub recovery_point: Offset,
    pub log_start_offset: Option<Offset>,
    pub high_watermark: Offset,
}

impl Checkpointed {
    /// Whether it says nothing that a new log would not say.
    pub(super) fn is_nothing(&self) -> bool {
        self.recovery_point == 0 && self.log_start_offset.is_none_or(|start| start == 0) && self.high_watermark == 0
    }
}

pub(super) enum Slot {
    Unopened(Checkpointed),
    Open(Box<Log>),
    /// Nothing can be read or written any more; says why.
    Offline(Arc<str>, Checkpointed),
    /// It lies, or may lie, in a directory that is not there; says in which. Nothing is made in its place.
    Missing(Arc<str>),
    /// Deleted or moved away, or closed because the node stops. Whatever happens to its files from now on says nothing about the disk.
    Retired,
}

pub struct Partition {
    pub identity: LogIdentity,
    pub(super) env: LogEnv,
    pub(super) common: Arc<Common>,
    pub(super) dirs: Arc<LogDirs>,
    /// The place of its directory among `dirs`. Changes under the lock of `slot`.
    pub(super) home: AtomicUsize,
    /// The place of the directory that the controller is told of: of `home`, until a move is nearly done.
    pub(super) wanted: AtomicUsize,
    /// On its way to another directory. Locked before `slot`, if both are.
    pub(super) moving: Mutex<Option<Moving>>,
    pub(super) config: ArcSwap<LogConfig>,
    /// Changes under the lock of `slot`.
    pub(super) role: ArcSwap<Role>,
    /// -1 while another node leads.
    pub(super) leader_epoch: AtomicI32,
    pub(super) slot: Mutex<Slot>,
    view: OnceLock<Arc<ArcSwap<LogView>>>,
    pub(super) leading: Mutex<Leading>,
    /// Nobody has to be waited for: what is appended is committed.
    pub(super) alone: AtomicBool,
    /// As many replicas are in sync as `min.insync.replicas` asks for.
    pub(super) enough_in_sync: AtomicBool,
    pub(super) high_watermark: AtomicI64,
    /// Who waits for the high watermark or the log's start to move.
    pub waiters: Waiters,
    /// Who waits for the log's end to move, or any of the others: followers.
    pub follower_waiters: Waiters,
    pub(super) pending: PendingAcks,
    /// Whether the flusher has this partition on its list.
    pub(super) flush_queued: AtomicBool,
    /// Whether something was appended since the last sync began.
    pub(super) dirty: AtomicBool,
    /// Which directory's flush journal holds something that this partition's own files have not been synced for: its place and one; 0 for none.
    pub(super) journaled: AtomicUsize,
    /// How many are about to cut the log: until they are done, the flush journal must not be used.
    pub(super) unjournaled: AtomicUsize,
    /// Where they will cut it: what the checkpoint files may say at most. Changes under the lock of `slot`.
    pub(super) cutting_to: AtomicI64,
    /// Where the log begins, as its directory's checkpoint file says.
    pub(super) start_kept: AtomicI64,
    /// How often the log was cut. Changes under the lock of `slot`.
    pub(super) cuts: AtomicU64,
    pub(super) damage: DamageMark,
    pub(super) durable_below: AtomicI64,
    /// Used by the flusher, and when the log is cut.
    pub(super) sync_mark: Mutex<Option<SyncMark>>,
    /// The last try to open the log failed for want of something, and was told of.
    open_failed: AtomicBool,
    /// The slot says so too; for readers, who do not look there.
    retired: AtomicBool,
    /// Retired, or in a directory that has failed: nothing is read any more.
    unreadable: AtomicBool,
    /// When the housekeeper first saw it dirty; 0 while it is not.
    pub(super) dirty_since_ms: AtomicU64,
}

impl Partition {
    pub(super) fn new(
        env: LogEnv,
        common: Arc<Common>,
        (dirs, home): (Arc<LogDirs>, usize),
        identity: LogIdentity,
        config: Arc<LogConfig>,
        slot: Slot,
    ) -> Partition {
        let start_kept = match &slot {
            Slot::Unopened(checkpointed) => checkpointed.log_start_offset.unwrap_or(0),
            Slot::Open(_) | Slot::Offline(..) | Slot::Missing(_) | Slot::Retired => 0,
        };
        Partition {
            identity,
            env,
            common,
            dirs,
            home: AtomicUsize::new(home),
            wanted: AtomicUsize::new(home),
            moving: Mutex::new(None),
            config: ArcSwap::new(config),
            role: ArcSwap::from_pointee(Role::Idle { epoch: NO_LEADER_EPOCH }),
            leader_epoch: AtomicI32::new(NO_LEADER_EPOCH),
            slot: Mutex::new(slot),
            view: OnceLock::new(),
            leading: Mutex::new(Leading::No),
            alone: AtomicBool::new(false),
            enough_in_sync: AtomicBool::new(true),
            high_watermark: AtomicI64::new(0),
            waiters: Waiters::default(),
            follower_waiters: Waiters::default(),
            pending: PendingAcks::default(),
            flush_queued: AtomicBool::new(false),
            dirty: AtomicBool::new(false),
            journaled: AtomicUsize::new(0),
            unjournaled: AtomicUsize::new(0),
            cutting_to: AtomicI64::new(Offset::MAX),
            start_kept: AtomicI64::new(start_kept),
            cuts: AtomicU64::new(0),
            damage: DamageMark::default(),
            durable_below: AtomicI64::new(0),
            sync_mark: Mutex::new(None),
            open_failed: AtomicBool::new(false),
            retired: AtomicBool::new(false),
            unreadable: AtomicBool::new(false),
            dirty_since_ms: AtomicU64::new(0),
        }
    }

    /// The log directory that it lies in.
    #[inline]
    pub fn log_dir(&self) -> &Arc<LogDir> {
        self.dirs.at(self.home.load(Ordering::Acquire))
    }

    /// Its own directory.
    pub fn dir(&self) -> PathBuf {
        self.log_dir().path.join(self.identity.topic_partition.dir_name())
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

    pub fn role(&self) -> Role {
        **self.role.load()
    }

    /// The epoch in which this node leads; -1 while it does not.
    pub fn leader_epoch(&self) -> LeaderEpoch {
        self.leader_epoch.load(Ordering::Acquire)
    }

    pub fn is_leader(&self) -> bool {
        self.leader_epoch() != NO_LEADER_EPOCH
    }

    /// Appends one validated batch of a client. `acks_all` refuses it while too few replicas are in sync.
    pub fn append(&self, batch: &NewBatch<'_>, acks_all: bool) -> Result<Appended, PartitionError> {
        self.check_room()?;
        let mut slot = self.slot.lock();
        let epoch = self.leader_epoch();
        if epoch == NO_LEADER_EPOCH {
            return Err(PartitionError::NotLeader);
        }
        if acks_all {
            self.check_acks_possible()?;
        }
        let log = self.opened(&mut slot)?;
        let appended = log.append(std::slice::from_ref(batch), epoch);
        let end = log.log_end_offset();
        let alone = self.alone.load(Ordering::Relaxed);
        if alone {
            self.high_watermark.fetch_max(end, Ordering::SeqCst);
        }
        drop(slot);
        if let Err(AppendError::Storage(error)) = &appended {
            self.note_storage(error);
        }
        let appended = appended?;
        let health = &self.log_dir().health;
        if health.is_full() {
            health.note_room(self.env.host.clock.monotonic_ms());
        }
        self.dirty.store(true, Ordering::Release);
        if alone {
            self.waiters.wake_all();
        }
        self.follower_waiters.wake_all();
        Ok(appended)
    }

    fn check_acks_possible(&self) -> Result<(), PartitionError> {
        if !self.enough_in_sync.load(Ordering::Acquire) && holds(Rule::MinInSync) {
            return Err(PartitionError::NotEnoughReplicas);
        }
        if self.common.is_fenced() {
            return Err(PartitionError::NotLeader);
        }
        Ok(())
    }

    pub(super) fn mark_dirty(&self) {
        self.dirty.store(true, Ordering::Release);
    }

    /// Trouble with a file ends the trust in its disk, unless the machine only lacks room, descriptors or memory.
    pub fn note_storage(&self, error: &LogError) {
        let dir = error.path().and_then(|path| self.dirs.holding(path)).unwrap_or(self.log_dir());
        if error.is_disk_full() {
            dir.health.note_full(error, self.env.host.clock.monotonic_ms());
        } else if error.is_passing() {
            tracing::warn!(partition = %self.identity.topic_partition, %error, "the machine lacks something; trying again later");
        } else if !self.is_retired() {
            dir.health.fail(&error.to_string());
        }
    }

    /// The newest published view. Opens the log at first use.
    pub fn view(&self) -> Result<Arc<LogView>, PartitionError> {
        if let Some(view) = self.view.get() {
            return if self.unreadable.load(Ordering::Relaxed) {
                Err(self.failure().map_or(PartitionError::NotLeader, PartitionError::Offline))
            } else {
                Ok(view.load_full())
            };
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

    /// Records at or above this offset must not be shown to consumers. May be above the end of an older view.
    pub fn high_watermark(&self) -> Offset {
        self.high_watermark.load(Ordering::SeqCst)
    }

    /// Up to where consumers may read in this view of the log.
    pub fn readable_below(&self, view: &LogView) -> Offset {
        self.high_watermark().min(view.log_end_offset)
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
            Slot::Unopened(_) | Slot::Offline(..) | Slot::Missing(_) | Slot::Retired => None,
        }
    }

    pub(super) fn opened<'a>(&self, slot: &'a mut MutexGuard<'_, Slot>) -> Result<&'a mut Log, PartitionError> {
        if let Some(reason) = self.log_dir().health.failure() {
            return Err(PartitionError::Offline(reason.clone()));
        }
        if let Slot::Unopened(checkpointed) = **slot {
            let led = self.is_leader();
            match self.open(checkpointed) {
                Ok(log) => **slot = Slot::Open(log),
                // Perhaps next time; or its directory could not be set aside.
                Err(error) if error.is_passing() || matches!(error, LogError::InconsistentTopicId { .. }) => {
                    return Err(AppendError::Storage(error).into());
                }
                Err(error) => {
                    if matches!(error, LogError::Storage { .. }) {
                        self.note_storage(&error);
                    }
                    **slot = Slot::Offline(error.to_string().into(), checkpointed);
                }
            }
            if led && !self.is_leader() {
                return Err(PartitionError::NotLeader);
            }
        }
        match &mut **slot {
            Slot::Open(log) => Ok(log),
            Slot::Offline(reason, _) | Slot::Missing(reason) => Err(PartitionError::Offline(reason.clone())),
            Slot::Unopened(_) | Slot::Retired => Err(PartitionError::NotLeader),
        }
    }

    fn open(&self, checkpointed: Checkpointed) -> Result<Box<Log>, LogError> {
        let open = |checkpointed: Checkpointed| {
            let how = OpenHow {
                clean_shutdown: checkpointed.clean_shutdown,
                recovery_point: checkpointed.recovery_point,
                log_start_offset: checkpointed.log_start_offset,
            };
            Log::open(&self.env, self.dir(), self.identity.clone(), self.config(), how)
        };
        let mut opened = open(checkpointed);
        if matches!(opened, Err(LogError::InconsistentTopicId { .. })) {
            // Left by a deleted topic of the name, whose directory could not be renamed then (B9).
            match set_aside(&self.env.host, &self.dir()) {
                Ok(_) => opened = open(Checkpointed::default()),
                Err(_) if self.open_failed.load(Ordering::Relaxed) => {}
                Err(error) => {
                    tracing::error!(dir = %self.dir().display(), %error, "cannot set another topic's directory aside");
                }
            }
        }
        match opened {
            Ok((mut log, recovery)) => {
                if recovery.truncated_bytes > 0 {
                    tracing::warn!(
                        partition = %self.identity.topic_partition,
                        truncated_bytes = recovery.truncated_bytes,
                        log_end_offset = log.log_end_offset(),
                        "cut an incomplete tail off the log"
                    );
                }
                // After an unclean stop the controller has taken the copy out of all sets, at this node's registration.
                if checkpointed.clean_shutdown && log.log_end_offset() < checkpointed.recovery_point {
                    tracing::error!(
                        partition = %self.identity.topic_partition,
                        log_end_offset = log.log_end_offset(),
                        log_end_offset_then = checkpointed.recovery_point,
                        "the log is shorter than it was when it was closed: its end was damaged or lost"
                    );
                    self.note_short();
                }
                self.durable_below.fetch_max(log.flushed_offset(), Ordering::AcqRel);
                let (start, end) = (log.log_start_offset(), log.log_end_offset());
                self.high_watermark.store(checkpointed.high_watermark.clamp(start, end), Ordering::SeqCst);
                self.begin_leading(&mut log);
                let _ = self.view.set(log.published());
                self.open_failed.store(false, Ordering::Relaxed);
                Ok(Box::new(log))
            }
            Err(error) => {
                if !error.is_passing() && !matches!(error, LogError::InconsistentTopicId { .. }) {
                    tracing::error!(partition = %self.identity.topic_partition, %error, "the log cannot be opened; the partition is offline");
                } else if !self.open_failed.swap(true, Ordering::Relaxed) {
                    tracing::warn!(partition = %self.identity.topic_partition, %error, "the log cannot be opened now; trying again when it is asked for");
                }
                Err(error)
            }
        }
    }

    pub(super) fn disk_has_failed(&self) -> bool {
        self.log_dir().health.failure().is_some()
    }

    /// Why its log directory is offline, if it is.
    pub fn failure(&self) -> Option<Arc<str>> {
        self.log_dir().health.failure().cloned()
    }

    /// Its directory has failed: nothing is read from it any more, and nobody waits for it.
    pub(super) fn go_offline(&self) {
        self.unreadable.store(true, Ordering::Release);
        self.fail_all_acks();
    }

    /// Whether it lies in a directory that is not there.
    pub fn is_missing(&self) -> bool {
        matches!(*self.slot.lock(), Slot::Missing(_))
    }

    /// The newest view of a log that is open and not offline.
    pub(super) fn open_view(&self) -> Option<Arc<LogView>> {
        if self.disk_has_failed() || !self.is_open() {
            return None;
        }
        self.view.get().map(|view| view.load_full())
    }

    /// A sync or journal write failed: nothing on this disk is acknowledged any more.
    ///
    /// Not when the partition was retired meanwhile: its directory is renamed without asking who still works in it.
    pub(super) fn fail_disk(&self, file: Option<&Path>, reason: &str) {
        if !self.is_retired() {
            let dir = file.and_then(|file| self.dirs.holding(file)).unwrap_or(self.log_dir());
            dir.health.fail(reason);
        }
        self.fail_all_acks();
    }

    /// Whether an error is about files that the replica has left for another directory. One of the device is told to that directory.
    pub(super) fn has_left(&self, error: &LogError) -> bool {
        let Some(dir) = error.path().and_then(|path| self.dirs.holding(path)) else { return false };
        let has_left = dir.index != self.log_dir().index;
        if has_left && !error.is_not_found() {
            dir.health.fail(&error.to_string());
        }
        has_left
    }

    /// Whether it has been used before: new partitions get their directory with their first record.
    pub fn exists_on_disk(&self) -> bool {
        self.env.host.disk.exists(&self.dir())
    }

    /// Takes the partition out of service for good: it was deleted, its replica moved away, or the node stops.
    pub fn retire(&self) -> Option<Log> {
        let mut slot = self.slot.lock();
        let before = std::mem::replace(&mut *slot, Slot::Retired);
        self.retired.store(true, Ordering::Release);
        self.unreadable.store(true, Ordering::Release);
        drop(slot);
        self.fail_all_acks();
        match before {
            Slot::Open(log) => Some(*log),
            Slot::Unopened(_) | Slot::Offline(..) | Slot::Missing(_) | Slot::Retired => None,
        }
    }

    pub(super) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    pub fn is_open(&self) -> bool {
        matches!(*self.slot.lock(), Slot::Open(_))
    }

    /// Whether its log was never looked at since an unclean shutdown: a clean one must not be claimed for it.
    pub(super) fn is_unchecked(&self) -> bool {
        match &*self.slot.lock() {
            Slot::Unopened(checkpointed) => !checkpointed.clean_shutdown && self.exists_on_disk(),
            Slot::Offline(..) => true,
            Slot::Open(_) | Slot::Missing(_) | Slot::Retired => false,
        }
    }

    /// What the checkpoint files should say of this partition now.
    /// With the place of the directory whose files they are.
    pub fn checkpoint(&self) -> Option<(usize, Checkpointed)> {
        let slot = self.slot.lock();
        let home = self.home.load(Ordering::Acquire);
        let most = self.cutting_to.load(Ordering::Relaxed);
        let at = match &*slot {
            Slot::Open(log) => Some(Checkpointed {
                clean_shutdown: false,
                recovery_point: log.recovery_point().min(most),
                log_start_offset: Some(log.log_start_offset().min(most)),
                high_watermark: self.high_watermark().min(most),
            }),
            Slot::Unopened(checkpointed) | Slot::Offline(_, checkpointed) => Some(*checkpointed),
            Slot::Missing(_) | Slot::Retired => None,
        };
        at.map(|at| (home, at))
    }
}
