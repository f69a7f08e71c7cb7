//! The leader's side of one partition's replication, as a pure machine: how far each follower is, who is in sync, and up to where
//! everything is committed. Time, the log's end and what the cluster thinks of a broker arrive as arguments.
//!
//! The rules, and where they come from:
//! - The high watermark is the lowest end of everybody in the *maximal* in-sync set: those the controller knows to be in it, and
//!   those who may be in it because a proposal is under way (KIP-497). It also waits for followers that are about to join, or a
//!   follower under constant load would always be one batch short of joining.
//! - It stands still while fewer replicas are in sync than `min.insync.replicas` (KIP-966), and never goes back in an epoch.
//! - A follower joins when it has everything up to the high watermark *and* up to where this leader's epoch began: below that it
//!   may not have found out yet where its history leaves ours (KIP-279). And its log must begin no earlier than ours: what was deleted
//!   while it was away would be back once it leads.
//! - A follower is what its newest incarnation says: a fetch or a place in the set of an older broker epoch counts nothing (KIP-903).
//!
//! A follower's fetch offset is what it has, and under `flush.policy = sync` what it has *durably*: it syncs before it fetches again.

use std::cmp::Ordering;

use crate::base::ids::NO_OFFSET;
use crate::base::rules::{Rule, holds};
use crate::base::{BrokerId, LeaderEpoch, MonotonicMs, Offset};

/// Which protections hold. All of them, but for tests that show what each is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The high watermark waits for the whole maximal in-sync set.
    pub commit_waits_for_in_sync: bool,
    /// ... also for those of a proposal whose outcome is unknown.
    pub commit_waits_for_proposed: bool,
    /// ... and stands still below `min.insync.replicas`.
    pub commit_needs_min_in_sync: bool,
    /// Joining needs everything up to the high watermark.
    pub join_needs_high_watermark: bool,
    /// Joining needs everything up to the start of the leader's epoch.
    pub join_needs_epoch_start: bool,
    /// What an older incarnation of a broker had counts nothing.
    pub checks_broker_epoch: bool,
    /// A follower and its leader agree on the leader's epoch before a fetch counts.
    pub checks_leader_epoch: bool,
    /// A log is cut where epochs say so, and not at the high watermark.
    pub cuts_by_epoch: bool,
    /// With `flush.policy = sync`, a follower's next fetch says only what is on its device.
    pub syncs_before_fetch: bool,
    /// ... and `acks=all` waits for the leader's own device, too.
    pub syncs_before_ack: bool,
    /// What does not have the checksum it claims is not written.
    pub checks_crc: bool,
}

impl Rules {
    pub const ALL: Rules = Rules {
        commit_waits_for_in_sync: true,
        commit_waits_for_proposed: true,
        commit_needs_min_in_sync: true,
        join_needs_high_watermark: true,
        join_needs_epoch_start: true,
        checks_broker_epoch: true,
        checks_leader_epoch: true,
        cuts_by_epoch: true,
        syncs_before_fetch: true,
        syncs_before_ack: true,
        checks_crc: true,
    };

    /// All of them, less what a simulation has switched off.
    pub fn in_force() -> Rules {
        Rules {
            commit_waits_for_in_sync: holds(Rule::CommitWaitsForInSync),
            commit_needs_min_in_sync: holds(Rule::MinInSync),
            join_needs_high_watermark: holds(Rule::JoinNeedsHighWatermark),
            join_needs_epoch_start: holds(Rule::JoinNeedsHighWatermark),
            checks_leader_epoch: holds(Rule::ChecksLeaderEpoch),
            cuts_by_epoch: holds(Rule::CutsByEpoch),
            syncs_before_fetch: holds(Rule::SyncsBeforeFetch),
            syncs_before_ack: holds(Rule::SyncsBeforeAck),
            ..Rules::ALL
        }
    }
}

/// What the metadata says of a partition that this broker leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    pub leader_epoch: LeaderEpoch,
    pub partition_epoch: i32,
    pub replicas: Vec<BrokerId>,
    pub isr: Vec<BrokerId>,
    /// `min.insync.replicas`, at most the number of replicas.
    pub min_isr: usize,
    /// Its leader was elected uncleanly and has not said yet that it goes on with what it has.
    pub recovering: bool,
}

/// What a follower's fetch tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowerFetch {
    pub broker: BrokerId,
    pub broker_epoch: i64,
    pub fetch_offset: Offset,
    pub log_start_offset: Offset,
}

/// Why a fetch does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotCounted {
    #[error("the broker has no replica of the partition")]
    NoReplica,
    #[error("a newer incarnation of the broker has fetched already")]
    StaleBrokerEpoch,
}

/// A change of the in-sync set on its way to the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    pub leader_epoch: LeaderEpoch,
    pub partition_epoch: i32,
    /// With the broker epoch each of them was last seen with; -1 for one that this leader knows from the metadata alone.
    pub isr: Vec<(BrokerId, i64)>,
}

/// What a proposal is for. It never does both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsrChange {
    Shrinks,
    Expands,
    /// It ends a recovery.
    Stays,
}

impl IsrChange {
    pub fn between(before: usize, after: usize) -> IsrChange {
        match after.cmp(&before) {
            Ordering::Less => IsrChange::Shrinks,
            Ordering::Greater => IsrChange::Expands,
            Ordering::Equal => IsrChange::Stays,
        }
    }
}

/// Nobody has said yet.
const UNKNOWN_EPOCH: i64 = -1;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Follower {
    id: BrokerId,
    broker_epoch: i64,
    /// `None` until it fetches from this leader.
    log_end: Option<Offset>,
    log_start: Option<Offset>,
    /// When it last had everything there was.
    caught_up_ms: Option<MonotonicMs>,
    /// When it last fetched, and where this log ended then.
    last_fetch: Option<(MonotonicMs, Offset)>,
}

impl Follower {
    fn new(id: BrokerId) -> Follower {
        Follower {
            id,
            broker_epoch: UNKNOWN_EPOCH,
            log_end: None,
            log_start: None,
            caught_up_ms: None,
            last_fetch: None,
        }
    }

    /// Whether it has everything, or had at most `lag_ms_max` ago.
    fn is_caught_up(&self, log_end: Offset, now: MonotonicMs, lag_ms_max: u64) -> bool {
        self.log_end == Some(log_end) || self.caught_up_ms.is_some_and(|at| now.saturating_sub(at) <= lag_ms_max)
    }
}

/// The log and the clock at the moment of a decision.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub log_start: Offset,
    pub log_end: Offset,
    /// At most `log_end`.
    pub high_watermark: Offset,
    pub now: MonotonicMs,
    /// `replica.lag.time.max.ms`
    pub lag_ms_max: u64,
}

/// The broker epoch under which a broker may be in sync; `None` while it is fenced, shutting down or unknown.
pub type Eligible<'a> = &'a dyn Fn(BrokerId) -> Option<i64>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    rules: Rules,
    me: BrokerId,
    assignment: Assignment,
    /// Where the log ended when this epoch began.
    epoch_start: Offset,
    followers: Vec<Follower>,
    /// The set that was proposed and has been neither confirmed nor refused.
    proposed: Option<Vec<BrokerId>>,
}

impl Leader {
    /// Begins to lead in a new epoch, with the log as it is.
    pub fn begin(me: BrokerId, assignment: Assignment, at: Moment, rules: Rules) -> Leader {
        let followers = assignment.replicas.iter().filter(|id| **id != me).map(|id| {
            let in_sync = assignment.isr.contains(id);
            Follower { caught_up_ms: in_sync.then_some(at.now), ..Follower::new(*id) }
        });
        let followers = followers.collect();
        Leader { rules, me, epoch_start: at.log_end, followers, proposed: None, assignment }
    }

    /// Goes on leading in the same epoch, under a newer or the same state of the partition.
    pub fn renew(&mut self, assignment: Assignment, now: MonotonicMs) {
        if assignment.partition_epoch > self.assignment.partition_epoch {
            self.proposed = None;
        }
        let known = std::mem::take(&mut self.followers);
        for id in assignment.replicas.iter().filter(|id| **id != self.me) {
            let mut follower = known.iter().find(|follower| follower.id == *id).cloned();
            let follower = follower.get_or_insert_with(|| Follower::new(*id));
            let (was, is) = (self.assignment.isr.contains(id), assignment.isr.contains(id));
            if was && !is {
                // Out: it has to prove itself with a fetch before anybody waits for it again.
                follower.caught_up_ms = None;
            } else if is && !was {
                follower.caught_up_ms.get_or_insert(now);
            }
            self.followers.push(follower.clone());
        }
        self.assignment = assignment;
    }

    pub fn assignment(&self) -> &Assignment {
        &self.assignment
    }

    pub fn epoch_start(&self) -> Offset {
        self.epoch_start
    }

    pub fn has_enough_in_sync(&self) -> bool {
        self.assignment.isr.len() >= self.assignment.min_isr
    }

    pub fn is_proposing(&self) -> bool {
        self.proposed.is_some()
    }

    /// Whether `id` is in sync for sure or perhaps.
    fn may_be_in_sync(&self, id: BrokerId) -> bool {
        self.assignment.isr.contains(&id)
            || (self.rules.commit_waits_for_proposed && self.proposed.as_ref().is_some_and(|isr| isr.contains(&id)))
    }

    /// Takes a follower's fetch into account. Its leader epoch has been checked; the log ends at `at.log_end`.
    pub fn note_fetch(&mut self, fetch: FollowerFetch, at: Moment) -> Result<(), NotCounted> {
        let rules = self.rules;
        let follower = self.followers.iter_mut().find(|follower| follower.id == fetch.broker);
        let follower = follower.ok_or(NotCounted::NoReplica)?;
        if rules.checks_broker_epoch && fetch.broker_epoch < follower.broker_epoch {
            return Err(NotCounted::StaleBrokerEpoch);
        }
        if fetch.fetch_offset >= at.log_end {
            follower.caught_up_ms = Some(at.now);
        } else if let Some((fetched_ms, end_then)) = follower.last_fetch
            && fetch.fetch_offset >= end_then
        {
            follower.caught_up_ms = Some(follower.caught_up_ms.map_or(fetched_ms, |at| at.max(fetched_ms)));
        }
        follower.broker_epoch = fetch.broker_epoch;
        follower.log_end = Some(fetch.fetch_offset);
        follower.log_start = Some(fetch.log_start_offset);
        follower.last_fetch = Some((at.now, at.log_end));
        Ok(())
    }

    /// How far the high watermark may go now; `None` when it stays where it is.
    pub fn advance(&self, at: Moment, eligible: Eligible<'_>) -> Option<Offset> {
        if self.rules.commit_needs_min_in_sync && !self.has_enough_in_sync() {
            return None;
        }
        let waited_for = self.followers.iter().filter(|follower| self.is_waited_for(follower, at, eligible));
        // Who has not fetched from this leader yet may have nothing.
        let lowest = waited_for.map(|follower| follower.log_end.unwrap_or(0)).fold(at.log_end, Offset::min);
        (lowest > at.high_watermark).then_some(lowest)
    }

    fn is_waited_for(&self, follower: &Follower, at: Moment, eligible: Eligible<'_>) -> bool {
        if !self.rules.commit_waits_for_in_sync {
            return false;
        }
        self.may_be_in_sync(follower.id)
            || (follower.is_caught_up(at.log_end, at.now, at.lag_ms_max) && self.is_eligible(follower, eligible))
    }

    fn is_eligible(&self, follower: &Follower, eligible: Eligible<'_>) -> bool {
        eligible(follower.id).is_some_and(|epoch| !self.rules.checks_broker_epoch || epoch == follower.broker_epoch)
    }

    /// Whether nobody has to be waited for: what is appended is committed.
    pub fn is_alone(&self, at: Moment, eligible: Eligible<'_>) -> bool {
        self.has_enough_in_sync() && !self.followers.iter().any(|follower| self.is_waited_for(follower, at, eligible))
    }

    /// Proposes to take in every follower that may join. `None` when there is none, or while a proposal is under way.
    pub fn propose_growth(&mut self, at: Moment, eligible: Eligible<'_>) -> Option<Proposal> {
        if self.proposed.is_some() {
            return None;
        }
        let joining = self.followers.iter().filter(|follower| self.may_join(follower, at, eligible));
        let joining: Vec<BrokerId> = joining.map(|follower| follower.id).collect();
        if joining.is_empty() {
            return None;
        }
        let isr = self.assignment.isr.iter().copied().chain(joining);
        let isr = isr.collect();
        Some(self.propose(isr))
    }

    fn may_join(&self, follower: &Follower, at: Moment, eligible: Eligible<'_>) -> bool {
        !self.assignment.isr.contains(&follower.id)
            && self.is_eligible(follower, eligible)
            && follower.log_end.is_some_and(|end| {
                (!self.rules.join_needs_high_watermark || end >= at.high_watermark)
                    && (!self.rules.join_needs_epoch_start || end >= self.epoch_start)
            })
            && follower.log_start.is_some_and(|start| start >= at.log_start)
    }

    /// Whether [`Leader::propose_growth`] would propose something. Cheap: asked at every fetch of a follower.
    pub fn can_grow(&self, at: Moment, eligible: Eligible<'_>) -> bool {
        self.proposed.is_none()
            && self.assignment.isr.len() <= self.followers.len()
            && self.followers.iter().any(|follower| self.may_join(follower, at, eligible))
    }

    /// Proposes to leave out every follower that has been behind for too long.
    pub fn propose_shrink(&mut self, at: Moment) -> Option<Proposal> {
        if self.proposed.is_some() {
            return None;
        }
        let is_behind = |id: &BrokerId| {
            self.followers
                .iter()
                .any(|follower| follower.id == *id && !follower.is_caught_up(at.log_end, at.now, at.lag_ms_max))
        };
        let staying: Vec<BrokerId> = self.assignment.isr.iter().copied().filter(|id| !is_behind(id)).collect();
        if staying.len() == self.assignment.isr.len() {
            return None;
        }
        Some(self.propose(staying))
    }

    /// Proposes the set as it is, which ends a recovery: what this log holds is what there is. Every other proposal ends it, too.
    pub fn propose_recovered(&mut self) -> Option<Proposal> {
        if self.proposed.is_some() || !self.assignment.recovering {
            return None;
        }
        Some(self.propose(self.assignment.isr.clone()))
    }

    fn propose(&mut self, isr: Vec<BrokerId>) -> Proposal {
        let epoch_of = |id: &BrokerId| {
            let follower = self.followers.iter().find(|follower| follower.id == *id);
            (*id, follower.map_or(UNKNOWN_EPOCH, |follower| follower.broker_epoch))
        };
        let proposal = Proposal {
            leader_epoch: self.assignment.leader_epoch,
            partition_epoch: self.assignment.partition_epoch,
            isr: isr.iter().map(epoch_of).collect(),
        };
        self.proposed = Some(isr);
        proposal
    }

    /// The controller has refused a proposal and will never carry it out.
    pub fn note_refused(&mut self, partition_epoch: i32) {
        if partition_epoch == self.assignment.partition_epoch {
            self.proposed = None;
        }
    }

    /// In-sync followers with everything from `offset` on, each with its end (KIP-392).
    pub fn readable_followers(&self, offset: Offset) -> impl Iterator<Item = (BrokerId, Offset)> {
        self.followers.iter().filter_map(move |follower| {
            let (start, end) = (follower.log_start?, follower.log_end?);
            let in_sync = self.assignment.isr.contains(&follower.id);
            (in_sync && start <= offset && offset <= end).then_some((follower.id, end))
        })
    }

    /// The lowest log start of all replicas that are alive or in sync, -1 while one of them was not heard of (the low watermark of
    /// DeleteRecords).
    pub fn lowest_start(&self, own: Offset, eligible: Eligible<'_>) -> Offset {
        let may_lead =
            |follower: &&Follower| eligible(follower.id).is_some() || self.assignment.isr.contains(&follower.id);
        self.followers
            .iter()
            .filter(may_lead)
            .map(|follower| follower.log_start.unwrap_or(NO_OFFSET))
            .fold(own, Offset::min)
    }
}
