//! One partition of `__consumer_offsets`: its machine, those who wait for its replies, and the way a decision becomes durable.
//! Everything here happens under the shard's lock and never waits.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::Shared;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::batch;
use super::log::{AppendRefused, CommitWait, OffsetsLog};
use crate::base::{ErrorCode, MonotonicMs, PartitionIndex};
use crate::coordinator::group::admin::Deletions;
use crate::coordinator::group::config::GroupConfig;
use crate::coordinator::group::machine::{Arm, Machine};
use crate::coordinator::group::record::Record;
use crate::coordinator::group::words::{CommitOffsets, Decision, Effects, Note, Now, Reply, ReplyTo};

/// Deletions in one batch; more go in several.
const DELETIONS_PER_BATCH: usize = 2_000;

/// A reply, and what must be committed before it may be given.
pub struct Delivered {
    pub reply: Reply,
    pub commit: Option<Shared<CommitWait>>,
}

pub struct Shard {
    pub partition: PartitionIndex,
    state: Mutex<State>,
}

enum State {
    /// Not ours.
    Absent,
    /// Being read; the number tells this load from later ones.
    Loading(u64),
    Active(Active),
}

/// A loaded shard.
pub struct Active {
    pub machine: Machine,
    load: u64,
    waiting: HashMap<ReplyTo, oneshot::Sender<Delivered>>,
    next_reply: u64,
    /// Whether the log said already that a batch was too large: clients can cause that as often as they like.
    told_too_large: bool,
    /// What is to be done once the lock is released.
    after: After,
}

/// What follows from work on a shard and is done without its lock.
#[derive(Default)]
pub struct After {
    /// Ticks to ask for.
    pub alarms: Vec<Alarm>,
    /// The load whose machine may know more than the log does.
    pub distrusted: Option<u64>,
}

/// A tick that is wanted.
pub struct Alarm {
    pub group: Arc<str>,
    pub at_ms: MonotonicMs,
    pub instead_of_ms: Option<MonotonicMs>,
}

/// What carrying out a decision needs besides the shard.
pub struct Surroundings<'a> {
    pub log: &'a dyn OffsetsLog,
    pub partition: PartitionIndex,
    pub config: &'a GroupConfig,
    pub now: Now,
}

impl Shard {
    pub fn new(partition: PartitionIndex) -> Shard {
        Shard { partition, state: Mutex::new(State::Absent) }
    }

    /// Does `work` on the loaded machine. COORDINATOR_LOAD_IN_PROGRESS while it loads, NOT_COORDINATOR where it is not.
    pub fn with<T>(&self, work: impl FnOnce(&mut Active) -> T) -> Result<(T, After), ErrorCode> {
        match &mut *self.state.lock() {
            State::Active(active) => {
                let output = work(active);
                Ok((output, std::mem::take(&mut active.after)))
            }
            State::Loading(_) => Err(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS),
            State::Absent => Err(ErrorCode::NOT_COORDINATOR),
        }
    }

    pub fn begin_load(&self, load: u64) {
        *self.state.lock() = State::Loading(load);
    }

    /// False when the partition moved on while it was read; then the machine is dropped.
    pub fn finish_load(&self, load: u64, machine: Machine, around: &Surroundings<'_>) -> Option<After> {
        let mut state = self.state.lock();
        if !matches!(&*state, State::Loading(current) if *current == load) {
            return None;
        }
        let mut active = Active {
            machine,
            load,
            waiting: HashMap::new(),
            next_reply: 0,
            told_too_large: false,
            after: After::default(),
        };
        for (group, effects) in active.machine.note_loaded(around.now, around.config) {
            active.carry_on(&group, effects, None, around);
        }
        let after = std::mem::take(&mut active.after);
        *state = State::Active(active);
        Some(after)
    }

    pub fn abandon_load(&self, load: u64) {
        let mut state = self.state.lock();
        if matches!(&*state, State::Loading(current) if *current == load) {
            *state = State::Absent;
        }
    }

    /// Gives the partition up. Whoever waits is told NOT_COORDINATOR.
    pub fn unload(&self) {
        drop_machine(std::mem::replace(&mut *self.state.lock(), State::Absent));
    }

    /// Drops the machine of `load`, for it to be read again as load number `next`. Whoever waits is told NOT_COORDINATOR. False when
    /// that machine is gone already.
    pub fn begin_reload(&self, load: u64, next: u64) -> bool {
        let mut state = self.state.lock();
        let is_that_one = matches!(&*state, State::Active(active) if active.load == load);
        if is_that_one {
            drop_machine(std::mem::replace(&mut *state, State::Loading(next)));
        }
        is_that_one
    }
}

fn drop_machine(state: State) {
    if let State::Active(mut active) = state {
        let effects = active.machine.note_unloaded();
        active.deliver(effects.replies, None);
    }
}

impl Active {
    pub fn load(&self) -> u64 {
        self.load
    }

    /// A place where a reply can be waited for.
    pub fn expect_reply(&mut self) -> (ReplyTo, oneshot::Receiver<Delivered>) {
        let (sender, receiver) = oneshot::channel();
        let reply_to = ReplyTo(self.next_reply);
        self.next_reply += 1;
        self.waiting.insert(reply_to, sender);
        (reply_to, receiver)
    }

    /// Whoever stopped waiting misses its reply, which is no harm: the group's state does not depend on it.
    fn deliver(&mut self, replies: Vec<(ReplyTo, Reply)>, commit: Option<&Shared<CommitWait>>) {
        for (reply_to, reply) in replies {
            if let Some(sender) = self.waiting.remove(&reply_to) {
                let _ = sender.send(Delivered { reply, commit: commit.cloned() });
            }
        }
    }

    /// Appends, replays, notes, delivers; and decides again as long as that has consequences.
    pub fn carry_out(&mut self, group: &Arc<str>, decision: Decision, around: &Surroundings<'_>) {
        let Decision { record, reply_after_commit, then, replies } = decision;
        let mut commit = None;
        if let Some(metadata) = record {
            let record = Record::Group { group, value: Some(metadata) };
            match self.write([record], around) {
                Ok(wait) => commit = Some(wait.shared()),
                Err(refused) => return self.refuse(group, then, replies, refused, around),
            }
        }
        let earlier = || around.log.committed(around.partition).map(FutureExt::shared);
        let commit = if reply_after_commit { commit.or_else(earlier) } else { None };
        self.deliver(replies, commit.as_ref());
        if let Some(note) = then {
            let effects = self.machine.note(group, note, around.now, around.config);
            self.carry_on(group, effects, commit.as_ref(), around);
        }
    }

    /// Each turn ends a join phase or leaves the group waiting, so this does not go on for ever.
    fn carry_on(
        &mut self,
        group: &Arc<str>,
        effects: Effects,
        commit: Option<&Shared<CommitWait>>,
        around: &Surroundings<'_>,
    ) {
        self.deliver(effects.replies, commit);
        if let Some(at_ms) = effects.wake_at_ms
            && let Arm::Anew { instead_of_ms } = self.machine.arm(group, at_ms)
        {
            self.after.alarms.push(Alarm { group: group.clone(), at_ms, instead_of_ms });
        }
        if effects.complete_join {
            let decision = self.machine.decide_complete_join(group, around.now);
            self.carry_out(group, decision, around);
        }
    }

    /// Nothing was appended, so nothing has happened: whoever asked may ask again. A join phase that could not be ended is ended a
    /// little later.
    fn refuse(
        &mut self,
        group: &Arc<str>,
        then: Option<Note>,
        replies: Vec<(ReplyTo, Reply)>,
        refused: AppendRefused,
        around: &Surroundings<'_>,
    ) {
        let code = refused.code_for_groups();
        let asked = then.and_then(|note| note.refused(code));
        let nobody_asked = asked.is_none() && replies.is_empty();
        self.deliver(replies.into_iter().map(|(to, reply)| (to, reply.refused(code))).collect(), None);
        self.deliver(asked.into_iter().collect(), None);
        if nobody_asked {
            let effects = self.machine.note_completion_refused(group, around.now);
            self.carry_on(group, effects, None, around);
        }
    }

    pub fn tick(&mut self, group: &Arc<str>, around: &Surroundings<'_>) {
        let effects = self.machine.note_tick(group, around.now);
        self.carry_on(group, effects, None, around);
    }

    /// Appends one batch and replays it: what the log has, the machine has.
    fn write<'r, const N: usize>(
        &mut self,
        records: [Record<'r>; N],
        around: &Surroundings<'_>,
    ) -> Result<CommitWait, AppendRefused> {
        let wait = self.append(batch::build(&records, around.now.timestamp_ms), around)?;
        for record in records {
            self.machine.replay(record);
        }
        Ok(wait)
    }

    /// What a batch that the disk refused would have done has not happened. But the disk may have lost earlier ones too, which nobody
    /// waited for or whose fate is not known yet: then the machine is not to be believed either.
    fn append(&mut self, batch: Bytes, around: &Surroundings<'_>) -> Result<CommitWait, AppendRefused> {
        let bytes = batch.len();
        let appended = around.log.append(around.partition, batch);
        match &appended {
            Err(AppendRefused::Storage) => self.after.distrusted = Some(self.load),
            Err(refused @ AppendRefused::TooLarge) if !self.told_too_large => {
                tracing::error!(partition = around.partition, bytes, %refused, "group records are refused; said once a load");
                self.told_too_large = true;
            }
            _ => {}
        }
        appended
    }

    /// OffsetCommit. The codes are those of the offsets, in their order; nothing to wait for when none was accepted.
    pub fn commit_offsets(
        &mut self,
        commit: &CommitOffsets<'_>,
        around: &Surroundings<'_>,
    ) -> Result<(Vec<ErrorCode>, Option<CommitWait>), ErrorCode> {
        let decided = self.machine.decide_commit(commit, around.now, around.config)?;
        let code = |decided: &Result<Record<'_>, ErrorCode>| decided.as_ref().err().copied().unwrap_or(ErrorCode::NONE);
        let codes: Vec<ErrorCode> = decided.iter().map(code).collect();
        let mut wait = None;
        if codes.iter().any(|code| code.is_none()) {
            let batch = batch::build(decided.iter().flatten(), around.now.timestamp_ms);
            wait = Some(self.append(batch, around).map_err(AppendRefused::code_for_offsets)?);
            for record in decided.into_iter().flatten() {
                self.machine.replay(record);
            }
        }
        self.machine.note_commit(commit, around.now);
        Ok((codes, wait))
    }

    /// Deletes offsets and groups, in as many batches as it takes. The wait is for the last, and with it for all.
    pub fn delete(
        &mut self,
        deletions: &Deletions,
        around: &Surroundings<'_>,
    ) -> Result<Option<CommitWait>, AppendRefused> {
        let records: Vec<Record<'_>> = deletions.records().collect();
        let mut wait = None;
        for chunk in records.chunks(DELETIONS_PER_BATCH) {
            wait = Some(self.append(batch::build(chunk, around.now.timestamp_ms), around)?);
            for record in chunk {
                self.machine.replay(record.clone());
            }
        }
        Ok(wait)
    }
}

impl AppendRefused {
    pub fn code_for_groups(self) -> ErrorCode {
        match self {
            AppendRefused::NotEnoughReplicas => ErrorCode::COORDINATOR_NOT_AVAILABLE,
            AppendRefused::NotLeader | AppendRefused::DiskFull | AppendRefused::Storage => ErrorCode::NOT_COORDINATOR,
            AppendRefused::TooLarge => ErrorCode::UNKNOWN_SERVER_ERROR,
        }
    }

    pub fn code_for_offsets(self) -> ErrorCode {
        match self {
            AppendRefused::TooLarge => ErrorCode::INVALID_COMMIT_OFFSET_SIZE,
            other => other.code_for_groups(),
        }
    }
}
