//! One partition of `__consumer_offsets`: its machine, those who wait for its replies, and the way a decision becomes durable.
//! Everything here happens under the shard's lock and never waits.

use std::collections::HashMap;
use std::sync::Arc;

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
    /// Ticks to ask for once the lock is released.
    alarms: Vec<Alarm>,
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
    pub fn with<T>(&self, work: impl FnOnce(&mut Active) -> T) -> Result<(T, Vec<Alarm>), ErrorCode> {
        match &mut *self.state.lock() {
            State::Active(active) => {
                let output = work(active);
                Ok((output, std::mem::take(&mut active.alarms)))
            }
            State::Loading(_) => Err(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS),
            State::Absent => Err(ErrorCode::NOT_COORDINATOR),
        }
    }

    pub fn begin_load(&self, load: u64) {
        *self.state.lock() = State::Loading(load);
    }

    /// False when the partition moved on while it was read; then the machine is dropped.
    pub fn finish_load(&self, load: u64, machine: Machine, around: &Surroundings<'_>) -> Option<Vec<Alarm>> {
        let mut state = self.state.lock();
        if !matches!(&*state, State::Loading(current) if *current == load) {
            return None;
        }
        let mut active = Active { machine, load, waiting: HashMap::new(), next_reply: 0, alarms: Vec::new() };
        for (group, effects) in active.machine.note_loaded(around.now, around.config) {
            active.carry_on(&group, effects, None, around);
        }
        let alarms = std::mem::take(&mut active.alarms);
        *state = State::Active(active);
        Some(alarms)
    }

    pub fn abandon_load(&self, load: u64) {
        let mut state = self.state.lock();
        if matches!(&*state, State::Loading(current) if *current == load) {
            *state = State::Absent;
        }
    }

    /// Gives the partition up. With a load number, only if it is still that one. Whoever waits is told NOT_COORDINATOR.
    pub fn unload(&self, only_load: Option<u64>) {
        let mut state = self.state.lock();
        let is_that_one = |load| matches!(&*state, State::Active(active) if active.load == load);
        if only_load.is_some_and(|load| !is_that_one(load)) {
            return;
        }
        if let State::Active(mut active) = std::mem::replace(&mut *state, State::Absent) {
            let effects = active.machine.note_unloaded();
            active.deliver(effects.replies, None);
        }
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
        let commit = if reply_after_commit { commit } else { None };
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
            self.alarms.push(Alarm { group: group.clone(), at_ms, instead_of_ms });
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
        let wait = around.log.append(around.partition, batch::build(&records, around.now.timestamp_ms))?;
        for record in records {
            self.machine.replay(record);
        }
        Ok(wait)
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
            wait = Some(around.log.append(around.partition, batch).map_err(AppendRefused::code_for_offsets)?);
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
            wait = Some(around.log.append(around.partition, batch::build(chunk, around.now.timestamp_ms))?);
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
            AppendRefused::NotLeader | AppendRefused::Storage => ErrorCode::NOT_COORDINATOR,
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
