//! What is done about copies on this node that are damaged: they leave the in-sync set, and are fetched again from where the damage is.
//! One task sees to all of them; while there are none it sleeps.
//!
//! Nothing is cut before it is certain that nobody counts on it and that somebody else has it, so the steps come in this order:
//! 1. The leader hears in a fetch that this replica goes no further than the damage. From then on it cannot count on more, nor propose this
//!    replica for the in-sync set again before it has caught up.
//! 2. The controller takes the replica out of the in-sync set and of those that are eligible. It makes a new state of the partition even
//!    when the replica is in neither: a proposal of the leader that is older than step 1 is refused then.
//! 3. The metadata says so here.
//! 4. The leader reads its own copy from there on and finds it sound. If it does not, the leader's copy is damaged, too, and nothing is
//!    cut: ours may be the only good one of what the leader has lost.
//! 5. The log is cut at the damage, and fetching goes on from there.
//!
//! A leader with a damaged copy does step 2 alone: the controller elects another in-sync replica, and what was the leader follows. When
//! there is none, it goes on leading, and says so.
//!
//! A log that lost its end needs no cut, but step 2: until then it does not lead (see `damage`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::damage::{Concern, CopySeen, Key};
use crate::base::{BrokerId, ErrorCode, LeaderEpoch, MonotonicMs, Offset, PartitionIndex, TopicId};
use crate::host::{Clock, task};
use crate::replica::lanes::Flusher;
use crate::replica::partition::Partition;
use crate::replica::partition_follow::{Files, FollowError};
use crate::replica::partitions::Partitions;
use crate::replica::role::{Common, Role};
use crate::telemetry::Telemetry;

/// Between two looks at what goes on, while something goes on.
const TICK_MS: MonotonicMs = 50;

/// Before something that was refused, or not answered, is tried again.
const RETRY_MS: MonotonicMs = 5_000;

/// Between two times that a leader is asked to look at its own copy because it sends what cannot be used.
const SUSPECT_AGAIN_MS: MonotonicMs = 5_000;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CareFailed(pub String);

/// A copy of this node that nobody must count on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenUp {
    pub topic_id: TopicId,
    pub partition: PartitionIndex,
    /// It lacks records that others may have: then it must not lead even when those cannot yet.
    pub short: bool,
}

/// For each copy the partition's new epoch, or why not: `ELIGIBLE_LEADERS_NOT_AVAILABLE` when there is no other.
pub type GiveUpAnswers = Result<Vec<Result<i32, ErrorCode>>, CareFailed>;

/// The way to those who have to know.
pub trait CopyCare: Send + Sync {
    /// Has the active controller take copies of this node out of their in-sync sets, and the leaderships with them.
    fn give_up(&self, copies: Vec<GivenUp>) -> BoxFuture<'static, GiveUpAnswers>;

    /// Has the leader of `epoch` look at some of its own copy, from an offset on.
    fn look(
        &self,
        leader: BrokerId,
        copy: Key,
        epoch: LeaderEpoch,
        from: Offset,
    ) -> BoxFuture<'static, Result<CopySeen, CareFailed>>;
}

/// How far the rebuilding of one copy has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The leader of the epoch must hear of it.
    Tell,
    /// The controller must.
    GiveUp,
    /// The metadata must say so: with this partition epoch or a later one.
    Await(i32),
    /// The leader must have looked at its copy up to our end.
    Ask {
        sound_below: Offset,
    },
    Cut,
}

struct Case {
    partition: Arc<Partition>,
    /// Of the role that the step belongs to.
    epoch: LeaderEpoch,
    step: Step,
    /// Not before then.
    due: MonotonicMs,
    short: bool,
    told_operator: bool,
}

pub struct Rebuilder {
    partitions: Arc<Partitions>,
    common: Arc<Common>,
    flusher: Arc<Flusher>,
    clock: Arc<dyn Clock>,
    telemetry: Arc<Telemetry>,
    care: Arc<dyn CopyCare>,
    cases: BTreeMap<Key, Case>,
    suspected: BTreeMap<Key, MonotonicMs>,
    /// Before something that was refused is tried again.
    pub(super) retry_ms: MonotonicMs,
}

impl Rebuilder {
    pub fn new(
        partitions: Arc<Partitions>,
        flusher: Arc<Flusher>,
        clock: Arc<dyn Clock>,
        telemetry: Arc<Telemetry>,
        care: Arc<dyn CopyCare>,
    ) -> Rebuilder {
        let common = partitions.common().clone();
        let (cases, suspected) = (BTreeMap::new(), BTreeMap::new());
        Rebuilder { partitions, common, flusher, clock, telemetry, care, cases, suspected, retry_ms: RETRY_MS }
    }

    /// Never ends.
    pub async fn run(mut self) {
        loop {
            if self.cases.is_empty() {
                self.common.concerns.filled().await;
            } else {
                let _ = task::timeout(Duration::from_millis(TICK_MS), self.common.concerns.filled()).await;
            }
            self.round().await;
        }
    }

    /// Takes in what is new and goes on with everything as far as that is possible now.
    async fn round(&mut self) {
        let now = self.clock.monotonic_ms();
        for concern in self.common.concerns.take() {
            match concern {
                Concern::Damaged(key) => self.open_case(key, false),
                Concern::Short(key) => self.open_case(key, true),
                Concern::LeaderSuspected(key) => self.suspect(key, now).await,
            }
        }
        self.close_cases();
        let keys: Vec<Key> = self.cases.keys().copied().collect();
        let giving_up = keys.into_iter().filter(|key| self.wants_to_give_up(*key, now)).collect::<Vec<_>>();
        if !giving_up.is_empty() {
            self.give_up(giving_up, now).await;
        }
        self.ask_and_cut(now).await;
        self.close_cases();
    }

    fn find(&self, (topic, index): Key) -> Option<Arc<Partition>> {
        self.partitions.topic_by_id(topic)?.partition(index).cloned()
    }

    fn open_case(&mut self, key: Key, short: bool) {
        let Some(partition) = self.find(key) else { return };
        let case = self.cases.entry(key).or_insert(Case {
            partition,
            epoch: -1,
            step: Step::Tell,
            due: 0,
            short: false,
            told_operator: false,
        });
        case.short |= short;
    }

    /// Those that are over: rebuilt, told, or not ours any more.
    fn close_cases(&mut self) {
        self.cases.retain(|_, case| (case.short || case.partition.is_damaged_still()) && !case.partition.is_retired());
        self.telemetry.disk.damaged_copies(self.cases.len() as u64);
    }

    /// Whether the controller has to be told of the case now.
    fn wants_to_give_up(&mut self, key: Key, now: MonotonicMs) -> bool {
        let Some(case) = self.cases.get_mut(&key) else { return false };
        let has_others = case.partition.replica_count() > 1;
        if case.due > now || !has_others {
            return false;
        }
        if case.short {
            return true;
        }
        match case.partition.role() {
            Role::Leader { .. } => true,
            Role::Idle { .. } => false,
            Role::Follower { epoch, .. } => {
                if case.epoch != epoch {
                    (case.epoch, case.step) = (epoch, Step::Tell);
                    // The next fetch says how far the copy goes.
                    self.common.following.add(&case.partition);
                }
                if case.step == Step::Tell && case.partition.has_told(epoch) {
                    case.step = Step::GiveUp;
                }
                case.step == Step::GiveUp
            }
        }
    }

    async fn give_up(&mut self, keys: Vec<Key>, now: MonotonicMs) {
        let copies = keys.iter().filter_map(|key| {
            let (topic_id, partition) = *key;
            self.cases.get(key).map(|case| GivenUp { topic_id, partition, short: case.short })
        });
        let answers = self.care.give_up(copies.collect()).await;
        let answers = match answers {
            Ok(answers) => answers,
            Err(error) => {
                tracing::debug!(%error, "the controller has not heard of damaged copies; trying again");
                self.put_off(&keys, now + TICK_MS * 4);
                return;
            }
        };
        for (key, answer) in keys.iter().zip(answers) {
            self.note_given_up(*key, answer, now);
        }
    }

    fn put_off(&mut self, keys: &[Key], due: MonotonicMs) {
        for key in keys {
            if let Some(case) = self.cases.get_mut(key) {
                case.due = due;
            }
        }
    }

    fn note_given_up(&mut self, key: Key, answer: Result<i32, ErrorCode>, now: MonotonicMs) {
        let Some(case) = self.cases.get_mut(&key) else { return };
        let name = &case.partition.identity.topic_partition;
        let is_short = std::mem::take(&mut case.short);
        match answer {
            Ok(partition_epoch) => {
                if is_short {
                    tracing::warn!(
                        partition = %name,
                        "nobody counts on the short copy of this broker any more; if no other one can take over (kafka-topics.sh --describe shows \
                         no leader), bring the others back, or go on with what one of them has: kafka-leader-election.sh --election-type \
                         unclean"
                    );
                } else {
                    tracing::info!(partition = %name, "nobody counts on the damaged copy of this broker any more");
                }
                if case.step == Step::GiveUp {
                    case.step = Step::Await(partition_epoch);
                } else {
                    // What was led is followed once the metadata says so.
                    case.due = now + TICK_MS * 4;
                }
            }
            Err(ErrorCode::ELIGIBLE_LEADERS_NOT_AVAILABLE) => {
                case.due = now + self.retry_ms;
                if !std::mem::replace(&mut case.told_operator, true) {
                    tracing::error!(
                        partition = %name,
                        "there is no other replica in sync that could take over from the damaged copy of this broker: it stays, nothing is cut, \
                         and what is damaged cannot be read. Bring another replica back"
                    );
                }
            }
            Err(error) => {
                case.short = is_short;
                case.due = now + self.retry_ms;
                tracing::warn!(partition = %name, %error, "the controller does not take a damaged copy out of the in-sync set; trying again");
                return;
            }
        }
        if is_short {
            case.partition.note_short_told(answer.ok());
            self.partitions.apply_again(&case.partition);
        }
    }

    async fn ask_and_cut(&mut self, now: MonotonicMs) {
        let keys: Vec<Key> = self.cases.keys().copied().collect();
        for key in keys {
            let Some(case) = self.cases.get_mut(&key) else { continue };
            let Role::Follower { leader, epoch } = case.partition.role() else { continue };
            if case.epoch != epoch || case.due > now {
                continue;
            }
            if let Step::Await(partition_epoch) = case.step
                && case.partition.is_out_of_sync(epoch)
                && case.partition.knows_state(partition_epoch)
                && let Some(damage) = case.partition.damage()
            {
                case.step = Step::Ask { sound_below: damage.offset };
            }
            match case.step {
                Step::Ask { sound_below } => {
                    let answer = self.care.look(leader, key, epoch, sound_below).await;
                    self.note_looked(key, sound_below, answer, now);
                }
                Step::Cut => self.cut(key, epoch, now).await,
                Step::Tell | Step::GiveUp | Step::Await(_) => {}
            }
        }
    }

    fn note_looked(&mut self, key: Key, from: Offset, answer: Result<CopySeen, CareFailed>, now: MonotonicMs) {
        let Some(case) = self.cases.get_mut(&key) else { return };
        let name = &case.partition.identity.topic_partition;
        match answer {
            Ok(seen) if seen.damaged_at.is_some() => {
                case.due = now + self.retry_ms;
                if !std::mem::replace(&mut case.told_operator, true) {
                    tracing::error!(
                        partition = %name,
                        damaged_at = seen.damaged_at,
                        "the leader's copy is damaged, too: ours is not cut until a sound one leads"
                    );
                }
            }
            Ok(seen) => {
                let end = case.partition.view_if_open().map_or(0, |view| view.log_end_offset);
                let sound = seen.sound_below >= end.min(seen.log_end);
                case.step = if sound { Step::Cut } else { Step::Ask { sound_below: seen.sound_below.max(from) } };
            }
            Err(error) => {
                case.due = now + self.retry_ms / 10;
                tracing::debug!(partition = %name, %error, "the leader has not looked at its copy; asking again");
            }
        }
    }

    async fn cut(&mut self, key: Key, epoch: LeaderEpoch, now: MonotonicMs) {
        let Some(case) = self.cases.get_mut(&key) else { return };
        let (partition, partitions, flusher) = (case.partition.clone(), self.partitions.clone(), self.flusher.clone());
        let cut = task::blocking(move || {
            let files = Files { flusher: &flusher, partitions: &partitions };
            partition.cut_damage(files, epoch)
        })
        .await;
        let name = &case.partition.identity.topic_partition;
        match cut {
            Ok(Some(damage)) => {
                tracing::warn!(partition = %name, %damage, "cut the damaged copy there; the rest is fetched again from the leader");
            }
            Ok(None) => {}
            Err(error) => {
                // The leader is another one, or the journal is busy: from the beginning.
                if !matches!(error, FollowError::RoleChanged) {
                    tracing::warn!(partition = %name, %error, "a damaged copy cannot be cut now; trying again");
                }
                (case.epoch, case.due) = (-1, now + TICK_MS);
                return;
            }
        }
        self.common.following.add(&case.partition);
    }

    /// Has the leader look at what it sends.
    async fn suspect(&mut self, key: Key, now: MonotonicMs) {
        self.suspected.retain(|_, again| *again > now);
        let Some(partition) = self.find(key).filter(|_| !self.suspected.contains_key(&key)) else { return };
        let Role::Follower { leader, epoch } = partition.role() else { return };
        self.suspected.insert(key, now + SUSPECT_AGAIN_MS);
        // With the last batch that was taken: were its epoch damaged, the sound one behind it would not fit.
        let from = partition.view_if_open().map_or(0, |view| view.log_end_offset.saturating_sub(1)).max(0);
        let name = &partition.identity.topic_partition;
        match self.care.look(leader, key, epoch, from).await {
            Ok(CopySeen { damaged_at: Some(damaged_at), .. }) => {
                tracing::warn!(partition = %name, leader, damaged_at, "the leader's copy is damaged");
            }
            Ok(_) => doubt_last_batch(partition.clone(), leader, epoch, from).await,
            Err(error) => tracing::debug!(partition = %name, leader, %error, "the leader has not looked at its copy"),
        }
    }
}

/// The leader finds its copy sound from our last batch on: then that one may be what is wrong.
async fn doubt_last_batch(partition: Arc<Partition>, leader: BrokerId, epoch: LeaderEpoch, from: Offset) {
    let held = partition.clone();
    let name = &partition.identity.topic_partition;
    match task::blocking(move || held.mark_last_batch(epoch)).await {
        Ok(true) => {
            tracing::error!(partition = %name, leader, from, "our last batch claims a later epoch than what the leader has behind it, and the leader's copy is sound: it is fetched again");
        }
        Ok(false) => {
            tracing::warn!(partition = %name, leader, from, "what the leader sends cannot be used, and it finds its copy sound");
        }
        Err(error) => tracing::debug!(partition = %name, %error, "the copy cannot be looked at now"),
    }
}
