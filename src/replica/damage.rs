//! A copy on this node that is not what was written, and what is known of it until it is rebuilt: a batch with a wrong checksum, or a log
//! that lost its end. What is done about it, and in which order, is in `rebuild`.
//!
//! While a batch is known to be damaged, a follower asks its leader for what belongs there and takes nothing that comes, so the leader
//! learns that this replica does not have it, and can never count on more. A log that is shorter than it was when it was closed does not
//! lead until the controller has been told: others may have what it lacks, and would cut it off.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::base::ids::NO_LEADER_EPOCH;
use crate::base::{LeaderEpoch, Offset, PartitionIndex, TopicId};
use crate::host::Disk;
use crate::log::{AppendError, Damage, DamageWalk, Log, LogError, LogView};
use crate::replica::error::PartitionError;
use crate::replica::follower::{LocalLog, Position};
use crate::replica::partition::Partition;
use crate::replica::partition_follow::{Files, FollowError};
use crate::replica::partition_lead::Leading;
use crate::replica::role::Role;

/// Answers that cannot be used, for the same offset, before the leader is asked to look at its own copy; and so many more before it is asked
/// again.
const BAD_ANSWERS_MAX: u32 = 2;
const BAD_ANSWERS_MORE: u32 = 10;

/// The first answer that cannot be used is told to the operator, and each so manieth of those that follow it: about one a minute.
const BAD_ANSWERS_TOLD: u32 = 60;

/// Bytes read in one go when a copy is looked over at once.
const LOOK_BYTES: u64 = 1 << 20;

pub(super) type Key = (TopicId, PartitionIndex);

/// Something that [`crate::replica::Rebuilder`] has to see to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Concern {
    /// A batch of our copy is damaged.
    Damaged(Key),
    /// Our log lost its end.
    Short(Key),
    /// The leader sends what cannot be used.
    LeaderSuspected(Key),
}

/// Concerns that nobody has looked at yet.
#[derive(Default)]
pub struct Concerns {
    waiting: Mutex<Vec<Concern>>,
    any: Notify,
}

impl Concerns {
    fn add(&self, concern: Concern) {
        let mut waiting = self.waiting.lock();
        if !waiting.contains(&concern) {
            waiting.push(concern);
        }
        self.any.notify_one();
    }

    pub(super) fn take(&self) -> Vec<Concern> {
        std::mem::take(&mut *self.waiting.lock())
    }

    pub(super) async fn filled(&self) {
        while self.waiting.lock().is_empty() {
            self.any.notified().await;
        }
    }
}

/// What is known of the damage of one copy.
#[derive(Default)]
pub(super) struct DamageMark {
    is_marked: AtomicBool,
    known: Mutex<Option<Known>>,
    /// The end of the log at which the leader's answers could not be used, and how many of them.
    bad_answers: Mutex<(Offset, u32)>,
    /// The last of them was of an earlier epoch than our last batch.
    went_back: AtomicBool,
    short: AtomicU8,
    /// The controller has given a short log's partition to others, with a state of this epoch: one that is older does not count here.
    given_away: AtomicI32,
}

struct Known {
    damage: Damage,
    /// The leader of this epoch has been asked for what belongs there: it knows that we do not have it.
    told: LeaderEpoch,
}

const WHOLE: u8 = 0;
const SHORT: u8 = 1;
const SHORT_AND_TOLD: u8 = 2;

impl DamageMark {
    pub(super) fn is_marked(&self) -> bool {
        self.is_marked.load(Ordering::Acquire)
    }

    /// `true` when this is news: nothing was known, or only what lies behind.
    fn mark(&self, damage: &Damage) -> bool {
        let mut known = self.known.lock();
        if known.as_ref().is_some_and(|known| known.damage.offset <= damage.offset) {
            return false;
        }
        *known = Some(Known { damage: damage.clone(), told: NO_LEADER_EPOCH });
        self.is_marked.store(true, Ordering::Release);
        true
    }

    fn forget(&self) {
        *self.known.lock() = None;
        self.is_marked.store(false, Ordering::Release);
    }

    /// Retention or DeleteRecords may have taken it.
    fn forget_below(&self, start: Offset) {
        let mut known = self.known.lock();
        if known.as_ref().is_some_and(|known| !known.damage.reaches_above(start)) {
            *known = None;
            self.is_marked.store(false, Ordering::Release);
        }
    }

    /// The damage, if it is inside the log still.
    fn inside(&self, log: &Log) -> Option<Damage> {
        if !self.is_marked() {
            return None;
        }
        let damage = self.known.lock().as_ref().map(|known| known.damage.clone());
        let (start, end) = (log.log_start_offset(), log.log_end_offset());
        let inside = damage.filter(|damage| damage.reaches_above(start) && damage.offset < end);
        if inside.is_none() {
            self.forget();
        }
        inside
    }

    /// Whether the partition must not be led from here now, although a state of it with that epoch says so.
    pub(super) fn holds_back(&self, partition_epoch: i32) -> bool {
        self.short.load(Ordering::Acquire) == SHORT || partition_epoch < self.given_away.load(Ordering::Acquire)
    }
}

/// What became of a suspicion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmed {
    No,
    /// Nothing was known of the copy before, or only damage behind this.
    New,
    Known,
}

/// What a leader finds in its own copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopySeen {
    /// From where it was asked to look, up to here everything is sound.
    pub sound_below: Offset,
    pub log_end: Offset,
    pub damaged_at: Option<Offset>,
}

impl Partition {
    pub(super) fn key(&self) -> Key {
        (self.identity.topic_id, self.identity.topic_partition.partition)
    }

    pub fn is_damaged(&self) -> bool {
        self.damage.is_marked()
    }

    /// The first damage that is known of this copy.
    pub fn damage(&self) -> Option<Damage> {
        self.damage.known.lock().as_ref().map(|known| known.damage.clone())
    }

    /// Whether the copy is damaged where its log has not left that behind.
    pub(super) fn is_damaged_still(&self) -> bool {
        if let Some(view) = self.view_if_open() {
            self.damage.forget_below(view.log_start_offset);
        }
        self.is_damaged()
    }

    /// What a walk over everything that should be on the device begins with: the log's cuts so far, its picture, and its end for the walk.
    pub(super) fn to_scrub(&self) -> Option<(u64, Arc<LogView>, Offset)> {
        self.with_open_log(|log| (self.cuts.load(Ordering::SeqCst), log.view(), log.recovery_point()))
    }

    pub(super) fn disk(&self) -> Arc<dyn Disk> {
        self.env.host.disk.clone()
    }

    /// Looks again, while nobody writes, at what a walk found that began when the log had been cut so often. If it is true, the copy is
    /// marked.
    pub fn confirm_damage(&self, cuts: u64, damage: &Damage) -> Result<Confirmed, LogError> {
        let confirmed: Option<Result<Confirmed, LogError>> = self.with_open_log(|log| {
            if self.cuts.load(Ordering::SeqCst) != cuts || !log.confirms(damage)? {
                return Ok(Confirmed::No);
            }
            // What was known may have been cut away.
            self.damage.inside(log);
            Ok(if self.damage.mark(damage) { Confirmed::New } else { Confirmed::Known })
        });
        let confirmed = confirmed.unwrap_or(Ok(Confirmed::No))?;
        if confirmed != Confirmed::No {
            self.common.concerns.add(Concern::Damaged(self.key()));
        }
        Ok(confirmed)
    }

    /// Something could not be done because of a batch that is none: finds the first in its segment that is not what was written and marks
    /// the copy. Blocks.
    pub(super) fn mark_damage(&self, in_the_way: LogError) -> Result<(), FollowError> {
        let cuts = self.cuts.load(Ordering::SeqCst);
        let view = self.view()?;
        let from = in_the_way.path().and_then(|path| view.base_of(path)).unwrap_or(view.log_start_offset);
        // What lies behind known damage goes with it.
        let up_to = self.damage().map_or(Offset::MAX, |known| known.offset).min(view.log_end_offset);
        let mut walk = DamageWalk::new(self.disk(), view, from, up_to);
        loop {
            let looked = walk.step(LOOK_BYTES).map_err(|error| self.storage(error))?;
            for damage in &looked.damage {
                if self.confirm_damage(cuts, damage).map_err(|error| self.storage(error))? != Confirmed::No {
                    tracing::error!(partition = %self.identity.topic_partition, %damage, "a batch on disk is not what was written; it is fetched again from the leader");
                    return Ok(());
                }
            }
            if self.is_retired() || self.cuts.load(Ordering::SeqCst) != cuts {
                return Err(FollowError::Damaged);
            }
            if looked.done {
                return if self.is_damaged() { Ok(()) } else { Err(self.storage(in_the_way)) };
            }
        }
    }

    /// A follower wants to know whether the copy of this leader of `epoch` is sound from an offset on. Reads about `bytes_max` bytes.
    /// Blocks.
    pub fn look_at_copy(&self, epoch: LeaderEpoch, from: Offset, bytes_max: u64) -> Result<CopySeen, PartitionError> {
        if self.leader_epoch() != epoch {
            return Err(PartitionError::NotLeader);
        }
        let view = self.view()?;
        let log_end = view.log_end_offset;
        let from = from.max(view.log_start_offset);
        if let Some(known) = self.damage().filter(|known| known.reaches_above(from) && known.offset < log_end) {
            return Ok(CopySeen { sound_below: known.offset.max(from), log_end, damaged_at: Some(known.offset) });
        }
        let cuts = self.cuts.load(Ordering::SeqCst);
        let mut walk = DamageWalk::new(self.disk(), view, from, log_end);
        let looked = walk.step(bytes_max).map_err(storage)?;
        let Some(damage) = looked.damage.first() else {
            let sound_below = if looked.done { log_end } else { walk.checked_below().max(from) };
            return Ok(CopySeen { sound_below, log_end, damaged_at: None });
        };
        match self.confirm_damage(cuts, damage).map_err(storage)? {
            Confirmed::No => Ok(CopySeen { sound_below: from, log_end, damaged_at: None }),
            Confirmed::New | Confirmed::Known => {
                tracing::error!(partition = %self.identity.topic_partition, %damage, "a follower could not use what this leader sent: its own copy is damaged");
                Ok(CopySeen { sound_below: damage.offset.max(from), log_end, damaged_at: Some(damage.offset) })
            }
        }
    }

    /// What to ask the leader for: what belongs where our copy is damaged, else what comes behind it.
    pub(super) fn position_in(&self, log: &Log) -> Position {
        let local = LocalLog { start: log.log_start_offset(), end: log.log_end_offset(), epochs: log.epochs() };
        match self.damage.inside(log) {
            Some(damage) => local.position_at(missing_from(&damage, log)),
            None => local.position(),
        }
    }

    /// A leader of `epoch` has answered a fetch that said how far this copy goes.
    pub(super) fn note_fetch_answered(&self, epoch: LeaderEpoch, fetch_offset: Offset) {
        let start = self.view_if_open().map_or(0, |view| view.log_start_offset);
        if let Some(known) = &mut *self.damage.known.lock()
            && fetch_offset <= known.damage.offset.max(start)
        {
            known.told = epoch;
        }
    }

    /// Whether the leader of `epoch` knows that we do not have what is damaged.
    pub(super) fn has_told(&self, epoch: LeaderEpoch) -> bool {
        self.damage.known.lock().as_ref().is_some_and(|known| known.told == epoch)
    }

    /// Whether nobody counts on this copy, as far as this node knows.
    pub(super) fn is_out_of_sync(&self, epoch: LeaderEpoch) -> bool {
        let me = self.common.options.node_id;
        let image = self.common.image.load();
        let (topic, index) = self.key();
        image
            .topic_by_id(topic)
            .and_then(|topic| topic.partition(index))
            .is_some_and(|state| state.leader_epoch == epoch && !state.isr.contains(&me) && !state.elr.contains(&me))
    }

    /// Whether the metadata here is as new as a state of the partition with that epoch.
    pub(super) fn knows_state(&self, partition_epoch: i32) -> bool {
        let (topic, index) = self.key();
        let image = self.common.image.load();
        let state = image.topic_by_id(topic).and_then(|topic| topic.partition(index));
        state.is_some_and(|state| state.partition_epoch >= partition_epoch)
    }

    /// Cuts the log where it is damaged, so that what belongs there is fetched again from the leader of `epoch`, who has it. Not while
    /// anybody may count on this copy. `None`: there is nothing to cut any more. The journal and the checkpoint files come first, as with
    /// every cut. Blocks.
    pub(super) fn cut_damage(&self, files: Files<'_>, epoch: LeaderEpoch) -> Result<Option<Damage>, FollowError> {
        let begun = self.as_follower(epoch, |log| {
            let damage = self.damage.inside(log)?;
            let end = missing_from(&damage, log);
            Some((self.begin_cut(end), end, damage))
        });
        let Some((_cutting, end, damage)) = begun? else { return Ok(None) };
        if !files.flusher.empty_journal(self.log_dir()) {
            return Err(FollowError::Journal);
        }
        if !files.partitions.save_cut(&self.identity.topic_partition, end) {
            return Err(FollowError::Checkpoints);
        }
        let cut = self.as_follower(epoch, |log| self.cut_damage_now(log, epoch, &damage))?;
        self.wake_everybody();
        match cut {
            Some(Ok(())) => Ok(Some(damage)),
            Some(Err(error)) => Err(self.storage(error)),
            None => Err(FollowError::RoleChanged),
        }
    }

    /// `None`: not under these circumstances.
    fn cut_damage_now(&self, log: &mut Log, epoch: LeaderEpoch, damage: &Damage) -> Option<Result<(), LogError>> {
        let is_known = self.damage.inside(log).as_ref() == Some(damage);
        if !is_known || !self.is_out_of_sync(epoch) || !self.has_told(epoch) {
            return None;
        }
        let cut = log.cut_damage(damage);
        // Also when it was interrupted: the log may end there all the same.
        let end = log.log_end_offset();
        self.note_cut(end);
        self.fail_synced_above(end);
        self.high_watermark.fetch_max(log.log_start_offset(), Ordering::SeqCst);
        if cut.is_ok() {
            self.damage.forget();
        }
        Some(cut)
    }

    /// What the leader sent for the end of our log could not be used. Once is the network; twice is its disk. Whether the operator should
    /// hear of it.
    pub(super) fn note_bad_answer(&self) -> bool {
        let end = self.view_if_open().map_or(0, |view| view.log_end_offset);
        let mut bad = self.damage.bad_answers.lock();
        let count = if bad.0 == end { bad.1.saturating_add(1) } else { 1 };
        *bad = (end, count);
        drop(bad);
        if count == BAD_ANSWERS_MAX || count.is_multiple_of(BAD_ANSWERS_MORE) {
            self.common.concerns.add(Concern::LeaderSuspected(self.key()));
        }
        count == 1 || count.is_multiple_of(BAD_ANSWERS_TOLD)
    }

    /// What the leader sent for the end of our log is of an earlier epoch than our last batch.
    pub(super) fn note_went_back(&self, went_back: bool) {
        self.damage.went_back.store(went_back, Ordering::Release);
    }

    /// The leader's copy is sound from our last batch on, but goes on with an earlier epoch than that claims, which is in no checksum's
    /// cover: then ours is not what was written. Whether that is so.
    pub(super) fn mark_last_batch(&self, epoch: LeaderEpoch) -> Result<bool, FollowError> {
        if !self.damage.went_back.swap(false, Ordering::AcqRel) {
            return Ok(false);
        }
        let marked = self.as_follower(epoch, |log| {
            let claimed = log.latest_epoch().unwrap_or(NO_LEADER_EPOCH);
            let damage = log.last_batch_as_damage(format!(
                "the batch claims leader epoch {claimed}, the leader goes on with an earlier one"
            ))?;
            Ok(damage.map(|damage| self.damage.mark(&damage)).is_some())
        })?;
        let marked = marked.map_err(|error| self.storage(error))?;
        if marked {
            self.common.concerns.add(Concern::Damaged(self.key()));
        }
        Ok(marked)
    }

    /// The log was opened and ends before what was on the device once. Called under the lock of `slot`, before anything is done as a
    /// leader.
    pub(super) fn note_short(&self) {
        let fresh = self.damage.short.compare_exchange(WHOLE, SHORT, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if !fresh || self.replica_count() <= 1 {
            self.damage.short.store(SHORT_AND_TOLD, Ordering::Release);
            return;
        }
        if let Role::Leader { epoch } = self.role() {
            self.role.store(Arc::new(Role::Idle { epoch }));
            self.leader_epoch.store(NO_LEADER_EPOCH, Ordering::SeqCst);
            *self.leading.lock() = Leading::No;
        }
        self.common.concerns.add(Concern::Short(self.key()));
    }

    /// The controller knows. It has given the partition to others with a state of this epoch, or there are none.
    pub(super) fn note_short_told(&self, given_away: Option<i32>) {
        self.damage.given_away.store(given_away.unwrap_or(0), Ordering::Release);
        let _ = self.damage.short.compare_exchange(SHORT, SHORT_AND_TOLD, Ordering::AcqRel, Ordering::Acquire);
    }

    pub(super) fn replica_count(&self) -> usize {
        let (topic, index) = self.key();
        let image = self.common.image.load();
        image.topic_by_id(topic).and_then(|topic| topic.partition(index)).map_or(0, |state| state.replicas.len())
    }
}

/// Where the log ends when it is cut at the damage: what the log lacks first.
fn missing_from(damage: &Damage, log: &Log) -> Offset {
    damage.offset.max(log.log_start_offset())
}

fn storage(error: LogError) -> PartitionError {
    PartitionError::Append(AppendError::Storage(error))
}
