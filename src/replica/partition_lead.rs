//! Leading a partition: taking the role up and giving it up, followers' fetches, the in-sync set's proposals.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::base::ids::NO_LEADER_EPOCH;
use crate::base::{BrokerId, LeaderEpoch, Offset};
use crate::log::Log;
use crate::metadata::PartitionState;
use crate::replica::ack::AckFailure;
use crate::replica::error::PartitionError;
use crate::replica::leader::{Assignment, FollowerFetch, IsrChange, Leader, Moment, NotCounted, Proposal};
use crate::replica::partition::{Partition, Slot};
use crate::replica::role::Role;
use crate::replica::throttle;

/// The leader's machine.
pub(super) enum Leading {
    No,
    /// The log has not been opened yet: where the epoch begins is not known.
    Unopened(Assignment),
    Yes(Box<Leader>),
}

impl Leading {
    pub(super) fn leader(&self) -> Option<&Leader> {
        match self {
            Leading::Yes(leader) => Some(leader),
            Leading::No | Leading::Unopened(_) => None,
        }
    }

    fn leader_mut(&mut self) -> Option<&mut Leader> {
        match self {
            Leading::Yes(leader) => Some(leader),
            Leading::No | Leading::Unopened(_) => None,
        }
    }
}

impl Partition {
    /// Takes over what the metadata says of this partition.
    pub(super) fn apply(self: &Arc<Self>, state: &PartitionState) {
        let me = self.common.options.node_id;
        if state.leader == me && self.damage.holds_back(state.partition_epoch) {
            self.step_down(Role::Idle { epoch: state.leader_epoch });
        } else if state.leader == me {
            self.lead(self.assignment(state));
        } else if state.has_leader() {
            self.step_down(Role::Follower { leader: state.leader, epoch: state.leader_epoch });
        } else {
            self.step_down(Role::Idle { epoch: state.leader_epoch });
        }
    }

    fn assignment(&self, state: &PartitionState) -> Assignment {
        let asked = usize::try_from(self.config.load().min_insync_replicas).unwrap_or(1);
        Assignment {
            leader_epoch: state.leader_epoch,
            partition_epoch: state.partition_epoch,
            replicas: state.replicas.clone(),
            isr: state.isr.clone(),
            min_isr: asked.min(state.replicas.len()),
            recovering: state.recovering,
        }
    }

    /// Begins to lead, or goes on with it.
    fn lead(&self, assignment: Assignment) {
        let mut slot = self.slot.lock();
        let epoch = assignment.leader_epoch;
        let enough = assignment.isr.len() >= assignment.min_isr;
        if self.leader_epoch() != epoch {
            self.alone.store(false, Ordering::Relaxed);
            *self.leading.lock() = Leading::Unopened(assignment);
            self.role.store(Arc::new(Role::Leader { epoch }));
            self.leader_epoch.store(epoch, Ordering::SeqCst);
            // What was written in an earlier epoch of ours is not promised any more.
            self.fail_acks(AckFailure::NotLeader);
        } else {
            let now = self.env.host.clock.monotonic_ms();
            match &mut *self.leading.lock() {
                Leading::Yes(leader) => leader.renew(assignment, now),
                other => *other = Leading::Unopened(assignment),
            }
        }
        self.enough_in_sync.store(enough, Ordering::Release);
        if let Slot::Open(log) = &mut *slot {
            self.begin_leading(log);
            self.follow_up(log);
        }
        drop(slot);
        if !enough {
            self.fail_acks(AckFailure::NotEnoughReplicas);
        }
        self.note_moved();
    }

    /// The log is open: the epoch begins at its end, if it has not begun yet. Called under the lock of `slot`.
    pub(super) fn begin_leading(&self, log: &mut Log) {
        let mut leading = self.leading.lock();
        if let Leading::Unopened(assignment) = &mut *leading {
            let (leader_epoch, latest) = (assignment.leader_epoch, log.latest_epoch());
            if let Some(claimed) = latest.filter(|latest| *latest > leader_epoch) {
                let partition = &self.identity.topic_partition;
                tracing::warn!(%partition, leader_epoch, claimed, "this copy is damaged: it claims records of a later epoch than its own");
            }
            log.assign_epoch(leader_epoch);
            let at = self.moment(log.log_start_offset(), log.log_end_offset());
            let options = &self.common.options;
            let leader = Leader::begin(options.node_id, assignment.clone(), at, options.rules);
            *leading = Leading::Yes(Box::new(leader));
            drop(leading);
            self.follow_up(log);
        }
    }

    /// Somebody else leads, or nobody.
    fn step_down(self: &Arc<Self>, role: Role) {
        let slot = self.slot.lock();
        if self.role() == role {
            return;
        }
        let led = self.is_leader();
        self.role.store(Arc::new(role));
        self.leader_epoch.store(NO_LEADER_EPOCH, Ordering::SeqCst);
        self.alone.store(false, Ordering::Relaxed);
        *self.leading.lock() = Leading::No;
        drop(slot);
        if led {
            self.fail_acks(AckFailure::NotLeader);
        }
        self.wake_everybody();
        if matches!(role, Role::Follower { .. }) {
            self.common.following.add(self);
        }
    }

    /// The replica is about to go away.
    pub(super) fn stop_replicating(self: &Arc<Self>) {
        self.step_down(Role::Idle { epoch: self.role().epoch() });
    }

    fn moment(&self, log_start: Offset, log_end: Offset) -> Moment {
        Moment {
            log_start,
            log_end,
            high_watermark: self.high_watermark(),
            now: self.env.host.clock.monotonic_ms(),
            lag_ms_max: self.common.options.lag_ms_max,
        }
    }

    /// Draws the consequences of a change of the leader's machine. Called under the lock of `slot`; `true` when the high watermark
    /// moved, and [`Partition::note_moved`] is to be called without locks.
    fn follow_up(&self, log: &Log) -> bool {
        let leading = self.leading.lock();
        let Some(leader) = leading.leader() else { return false };
        let at = self.moment(log.log_start_offset(), log.log_end_offset());
        let eligible = |broker| self.common.eligible_epoch(broker);
        let moved = leader.advance(at, &eligible);
        if let Some(high_watermark) = moved {
            self.high_watermark.fetch_max(high_watermark, Ordering::SeqCst);
        }
        self.alone.store(leader.is_alone(at, &eligible), Ordering::Relaxed);
        moved.is_some()
    }

    fn note_moved(&self) {
        self.settle_acks();
        self.wake_everybody();
    }

    /// Takes a follower's fetch into account, which may move the high watermark and may let the follower join the in-sync set. Its
    /// leader epoch and its place in the log have been checked.
    pub fn note_fetch(self: &Arc<Self>, fetch: FollowerFetch, epoch: LeaderEpoch) -> Result<(), NotCounted> {
        let (log_start, log_end) =
            self.view_if_open().map_or((0, 0), |view| (view.log_start_offset, view.log_end_offset));
        let eligible = |broker| self.common.eligible_epoch(broker);
        let mut leading = self.leading.lock();
        let Some(leader) = leading.leader_mut().filter(|leader| leader.assignment().leader_epoch == epoch) else {
            return Ok(());
        };
        let at = self.moment(log_start, log_end);
        leader.note_fetch(fetch, at)?;
        let moved = leader.advance(at, &eligible);
        if let Some(high_watermark) = moved {
            self.high_watermark.fetch_max(high_watermark, Ordering::SeqCst);
        }
        let high_watermark = moved.unwrap_or(at.high_watermark);
        let grows = leader.can_grow(Moment { high_watermark, ..at }, &eligible);
        let stays_alone = leader.is_alone(at, &eligible);
        drop(leading);
        if moved.is_some() {
            self.note_moved();
        }
        if self.alone.load(Ordering::Relaxed) != stays_alone {
            self.reconsider();
        }
        if grows {
            self.common.growing.add(self);
        }
        Ok(())
    }

    /// Looks again whether somebody has to be waited for, and moves the high watermark as far as that allows.
    pub fn reconsider(&self) {
        let slot = self.slot.lock();
        let Slot::Open(log) = &*slot else { return };
        let moved = self.follow_up(log);
        drop(slot);
        if moved {
            self.note_moved();
        }
    }

    /// What the in-sync set should become, if it should change and no change is under way: the late leave first, then the caught up
    /// join. After an unclean election it is proposed as it is.
    pub fn propose_isr(&self) -> Option<(Proposal, IsrChange)> {
        let slot = self.slot.lock();
        let Slot::Open(log) = &*slot else { return None };
        let eligible = |broker| self.common.eligible_epoch(broker);
        let mut leading = self.leading.lock();
        let leader = leading.leader_mut()?;
        let at = self.moment(log.log_start_offset(), log.log_end_offset());
        let proposal = leader.propose_shrink(at).or_else(|| leader.propose_growth(at, &eligible));
        let proposal = proposal.or_else(|| leader.propose_recovered());
        let proposal = proposal?;
        // Under both locks: no append moves the high watermark past those who are about to join.
        self.alone.store(leader.is_alone(at, &eligible), Ordering::Relaxed);
        let change = IsrChange::between(leader.assignment().isr.len(), proposal.isr.len());
        Some((proposal, change))
    }

    /// The proposal that still waits for an answer, as [`Partition::propose_isr`] gave it out, is void: the controller refused it.
    pub fn note_isr_refused(&self, proposal: &Proposal) {
        if let Some(leader) = self.leading.lock().leader_mut()
            && leader.assignment().leader_epoch == proposal.leader_epoch
        {
            leader.note_refused(proposal.partition_epoch);
        }
        self.reconsider();
    }

    /// Whether a proposal is still without an answer from the metadata.
    pub fn is_isr_pending(&self, proposal: &Proposal) -> bool {
        self.leading.lock().leader().is_some_and(|leader| {
            let assignment = leader.assignment();
            leader.is_proposing()
                && assignment.leader_epoch == proposal.leader_epoch
                && assignment.partition_epoch == proposal.partition_epoch
        })
    }

    /// Where this node's leadership began; `None` while it does not lead.
    pub fn epoch_start(&self) -> Option<Offset> {
        self.leading.lock().leader().map(Leader::epoch_start)
    }

    /// Whether the high watermark of an earlier leader is known to be reached: until then the newest offset is not known.
    pub fn knows_high_watermark(&self) -> bool {
        self.alone.load(Ordering::Relaxed)
            || self.epoch_start().is_some_and(|epoch_start| epoch_start <= self.high_watermark())
    }

    /// In-sync followers that have everything from `offset` on, each with its end.
    pub fn readable_followers(&self, offset: Offset) -> Vec<(BrokerId, Offset)> {
        self.leading.lock().leader().map(|leader| leader.readable_followers(offset).collect()).unwrap_or_default()
    }

    /// The lowest log start of all replicas that are alive or in sync; `None` when this node does not lead in `epoch`.
    pub fn low_watermark(&self, epoch: LeaderEpoch) -> Option<Offset> {
        let own = self.view_if_open().map_or(0, |view| view.log_start_offset);
        let eligible = |broker| self.common.eligible_epoch(broker);
        let leading = self.leading.lock();
        let leader = leading.leader().filter(|leader| leader.assignment().leader_epoch == epoch)?;
        Some(leader.lowest_start(own, &eligible))
    }

    /// Runs `work` on the log while this node leads in `epoch`.
    pub fn as_leader<T>(&self, epoch: LeaderEpoch, work: impl FnOnce(&mut Log) -> T) -> Result<T, PartitionError> {
        let mut slot = self.slot.lock();
        let log = self.opened(&mut slot)?;
        if self.leader_epoch() != epoch {
            return Err(PartitionError::NotLeader);
        }
        Ok(work(log))
    }

    /// Whether a follower must wait because of a replication quota: it is not in sync, and too much has been sent lately.
    pub fn is_held_back(&self, follower: BrokerId) -> bool {
        if !self.counts_for_leader_quota(follower) {
            return false;
        }
        !self.common.leader_throttle.has_room(self.env.host.clock.monotonic_ms())
    }

    /// So much was sent to a follower.
    pub fn note_sent(&self, follower: BrokerId, bytes: usize) {
        if bytes > 0 && self.counts_for_leader_quota(follower) {
            self.common.leader_throttle.took(bytes, self.env.host.clock.monotonic_ms());
        }
    }

    fn counts_for_leader_quota(&self, follower: BrokerId) -> bool {
        let partition = self.identity.topic_partition.partition;
        let me = self.common.options.node_id;
        throttle::names(&self.config.load().leader_throttled_replicas, partition, me)
            && !self.leading.lock().leader().is_some_and(|leader| leader.assignment().isr.contains(&follower))
    }

    /// Whether what this node fetches of the partition counts for its quota as a follower.
    pub(super) fn counts_for_follower_quota(&self) -> bool {
        let name = &self.identity.topic_partition;
        let me = self.common.options.node_id;
        throttle::names(&self.config.load().follower_throttled_replicas, name.partition, me)
            && !self
                .common
                .image
                .load()
                .partition(&name.topic, name.partition)
                .is_some_and(|state| state.isr.contains(&me))
    }

    /// Stops acknowledging until the controller hears of this node again.
    pub(super) fn note_fenced(&self) {
        if self.is_leader() {
            self.fail_acks(AckFailure::NotLeader);
        }
    }
}
