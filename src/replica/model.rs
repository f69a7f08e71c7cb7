//! Three replicas, a controller and whatever can happen between them, walked through step by step with the real machines: no
//! acknowledged record is ever missing from the log of a leader, and below both high watermarks two logs are the same. With any one
//! protection switched off the same walks find a violation, which shows that the walks go where it matters.
//!
//! Nodes learn of the controller's decisions late, one by one; crashes lose what was not synced; a stale leader goes on until it learns
//! better.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::base::{BrokerId, LeaderEpoch, Offset};
use crate::log::EpochTable;
use crate::replica::follower::{LocalLog, Repair};
use crate::replica::leader::{Assignment, FollowerFetch, Leader, Moment, Proposal, Rules};

const NODES: usize = 3;
const RECORDS_MAX: u32 = 3;
const EPOCHS_MAX: LeaderEpoch = 3;
const CRASHES_MAX: u32 = 2;

/// Protections that are not the leader's.
#[derive(Clone, Copy, Debug)]
struct Protections {
    leader: Rules,
    cuts_by_epoch: bool,
    checks_leader_epoch: bool,
    syncs_before_fetch: bool,
    /// The controller puts out who restarted without a clean stop.
    unclean_restart_leaves: bool,
    controller_checks_broker_epoch: bool,
    controller_checks_partition_epoch: bool,
}

const ALL: Protections = Protections {
    leader: Rules::ALL,
    cuts_by_epoch: true,
    checks_leader_epoch: true,
    syncs_before_fetch: true,
    unclean_restart_leaves: true,
    controller_checks_broker_epoch: true,
    controller_checks_partition_epoch: true,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Record {
    epoch: LeaderEpoch,
    id: u32,
}

/// What a node believes about the partition.
#[derive(Clone, Debug)]
struct Belief {
    leader: usize,
    leader_epoch: LeaderEpoch,
    partition_epoch: i32,
}

#[derive(Clone, Debug)]
struct Node {
    log: Vec<Record>,
    epochs: EpochTable,
    durable: usize,
    high_watermark: Offset,
    broker_epoch: i64,
    belief: Belief,
    machine: Option<Leader>,
    proposal: Option<Proposal>,
}

#[derive(Clone, Debug)]
struct World {
    nodes: Vec<Node>,
    leader: usize,
    leader_epoch: LeaderEpoch,
    partition_epoch: i32,
    isr: Vec<BrokerId>,
    written: u32,
    crashes: u32,
    acked: BTreeSet<(Offset, u32)>,
    /// The first proposal that was decided on, and whose it was.
    stray: Option<(usize, Proposal)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Write(usize),
    Fetch {
        follower: usize,
        all: bool,
    },
    /// The leader hears of the fetch, and the answer is lost.
    LostFetch(usize),
    Learn(usize),
    ProposeGrowth(usize),
    ProposeShrink(usize),
    /// The controller decides on what a leader proposed.
    Decide(usize),
    /// A proposal that was decided on arrives once more.
    Stray,
    Elect(usize),
    Crash(usize),
}

fn id(node: usize) -> BrokerId {
    node as BrokerId
}

impl World {
    fn new(protections: &Protections) -> World {
        let belief = Belief { leader: 0, leader_epoch: 0, partition_epoch: 0 };
        let node = |_| Node {
            log: Vec::new(),
            epochs: EpochTable::default(),
            durable: 0,
            high_watermark: 0,
            broker_epoch: 1,
            belief: belief.clone(),
            machine: None,
            proposal: None,
        };
        let mut world = World {
            nodes: (0..NODES).map(node).collect(),
            leader: 0,
            leader_epoch: 0,
            partition_epoch: 0,
            isr: vec![0, 1, 2],
            written: 0,
            crashes: 0,
            acked: BTreeSet::new(),
            stray: None,
        };
        world.begin_leading(0, protections);
        world
    }

    fn assignment(&self) -> Assignment {
        Assignment {
            leader_epoch: self.leader_epoch,
            partition_epoch: self.partition_epoch,
            replicas: (0..NODES).map(id).collect(),
            isr: self.isr.clone(),
            min_isr: 1,
            recovering: false,
        }
    }

    fn begin_leading(&mut self, at: usize, protections: &Protections) {
        let assignment = self.assignment();
        let moment = Moment { now: 0, ..self.moment(at) };
        let node = &mut self.nodes[at];
        node.epochs.advance(assignment.leader_epoch, node.log.len() as Offset);
        node.machine = Some(Leader::begin(id(at), assignment, moment, protections.leader));
        node.proposal = None;
    }

    /// Everybody's last fetch was a moment ago; only who has everything counts as caught up.
    fn moment(&self, at: usize) -> Moment {
        let node = &self.nodes[at];
        Moment {
            log_start: 0,
            log_end: node.log.len() as Offset,
            high_watermark: node.high_watermark,
            now: 10,
            lag_ms_max: 5,
        }
    }

    fn steps(&self, protections: &Protections) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.stray.is_some() {
            steps.push(Step::Stray);
        }
        for node in 0..NODES {
            let leads = self.nodes[node].machine.is_some();
            if leads && self.written < RECORDS_MAX {
                steps.push(Step::Write(node));
            }
            if !leads && self.nodes[node].belief.leader != node && self.nodes[node].belief.leader < NODES {
                steps.push(Step::Fetch { follower: node, all: true });
                steps.push(Step::Fetch { follower: node, all: false });
                steps.push(Step::LostFetch(node));
            }
            if self.nodes[node].belief.partition_epoch < self.partition_epoch {
                steps.push(Step::Learn(node));
            }
            if leads && self.nodes[node].proposal.is_none() {
                steps.push(Step::ProposeGrowth(node));
                steps.push(Step::ProposeShrink(node));
            }
            if self.nodes[node].proposal.is_some() {
                steps.push(Step::Decide(node));
            }
            if node != self.leader && self.isr.contains(&id(node)) && self.leader_epoch < EPOCHS_MAX {
                steps.push(Step::Elect(node));
            }
            // Without syncs the last in-sync replica is the only copy, and losing it loses data by design.
            let is_last = self.isr == [id(node)];
            if self.crashes < CRASHES_MAX
                && self.leader_epoch < EPOCHS_MAX
                && (!is_last || protections.syncs_before_fetch)
            {
                steps.push(Step::Crash(node));
            }
        }
        steps
    }

    fn take(&mut self, step: Step, protections: &Protections) {
        match step {
            Step::Write(at) => self.write(at, protections),
            Step::Fetch { follower, all } => self.fetch(follower, Some(all), protections),
            Step::LostFetch(follower) => self.fetch(follower, None, protections),
            Step::Learn(at) => self.learn(at, protections),
            Step::ProposeGrowth(at) => {
                let moment = self.moment(at);
                let epochs: Vec<i64> = self.nodes.iter().map(|node| node.broker_epoch).collect();
                let eligible = |id: BrokerId| epochs.get(id as usize).copied();
                let node = &mut self.nodes[at];
                node.proposal = node.machine.as_mut().and_then(|machine| machine.propose_growth(moment, &eligible));
            }
            Step::ProposeShrink(at) => {
                let moment = self.moment(at);
                let node = &mut self.nodes[at];
                node.proposal = node.machine.as_mut().and_then(|machine| machine.propose_shrink(moment));
            }
            Step::Decide(at) => {
                if let Some(proposal) = self.nodes[at].proposal.take() {
                    self.stray.get_or_insert((at, proposal.clone()));
                    self.decide(at, &proposal, protections);
                }
            }
            Step::Stray => {
                if let Some((at, proposal)) = self.stray.take() {
                    self.decide(at, &proposal, protections);
                }
            }
            Step::Elect(at) => self.elect(at),
            Step::Crash(at) => self.crash(at, protections),
        }
        self.advance(protections);
    }

    fn write(&mut self, at: usize, protections: &Protections) {
        self.written += 1;
        let id = self.written;
        let node = &mut self.nodes[at];
        let epoch = node.belief.leader_epoch;
        node.log.push(Record { epoch, id });
        if protections.syncs_before_fetch {
            node.durable = node.log.len();
        }
    }

    /// `answered`: with all there is, with one record, or not at all.
    fn fetch(&mut self, follower: usize, answered: Option<bool>, protections: &Protections) {
        let belief = self.nodes[follower].belief.clone();
        let leader = belief.leader;
        let same_epoch = self.nodes[leader].belief.leader_epoch == belief.leader_epoch;
        if self.nodes[leader].machine.is_none() || (protections.checks_leader_epoch && !same_epoch) {
            return;
        }
        let position = self.local(follower).position();
        if protections.cuts_by_epoch && position.last_epoch >= 0 {
            let end = self.nodes[leader].log.len() as Offset;
            let (epoch, end_offset) = self.nodes[leader].epochs.end_offset(position.last_epoch, end);
            if epoch < position.last_epoch || end_offset < position.fetch_offset {
                let repair = self.local(follower).on_divergence(epoch, end_offset);
                let (Repair::CutTo(to) | Repair::DropFrom(to) | Repair::RestartAt(to) | Repair::BeginInside(to)) =
                    repair;
                return self.cut(follower, to);
            }
        }
        if position.fetch_offset > self.nodes[leader].log.len() as Offset {
            return self.cut(follower, self.nodes[leader].log.len() as Offset);
        }
        let moment = Moment { now: 0, ..self.moment(leader) };
        let fetch = FollowerFetch {
            broker: id(follower),
            broker_epoch: self.nodes[follower].broker_epoch,
            fetch_offset: position.fetch_offset,
            log_start_offset: 0,
        };
        if let Some(machine) = &mut self.nodes[leader].machine {
            let _ = machine.note_fetch(fetch, moment);
        }
        self.advance(protections);
        let Some(all) = answered else { return };
        let from = position.fetch_offset as usize;
        let to = if all { self.nodes[leader].log.len() } else { (from + 1).min(self.nodes[leader].log.len()) };
        let records: Vec<Record> = self.nodes[leader].log[from..to].to_vec();
        let committed = self.nodes[leader].high_watermark;
        let node = &mut self.nodes[follower];
        for record in records {
            node.epochs.advance(record.epoch, node.log.len() as Offset);
            node.log.push(record);
        }
        if protections.syncs_before_fetch {
            node.durable = node.log.len();
        }
        node.high_watermark = node.high_watermark.max(committed.min(node.log.len() as Offset));
    }

    fn local(&self, node: usize) -> LocalLog<'_> {
        let node = &self.nodes[node];
        LocalLog { start: 0, end: node.log.len() as Offset, epochs: &node.epochs }
    }

    fn cut(&mut self, node: usize, to: Offset) {
        let node = &mut self.nodes[node];
        node.log.truncate(to as usize);
        node.epochs.truncate_from_end(to.min(node.log.len() as Offset));
        node.durable = node.durable.min(node.log.len());
        node.high_watermark = node.high_watermark.min(to);
    }

    fn learn(&mut self, at: usize, protections: &Protections) {
        let is_new_epoch = self.nodes[at].belief.leader_epoch < self.leader_epoch;
        self.nodes[at].belief =
            Belief { leader: self.leader, leader_epoch: self.leader_epoch, partition_epoch: self.partition_epoch };
        if self.leader != at {
            (self.nodes[at].machine, self.nodes[at].proposal) = (None, None);
            if is_new_epoch && !protections.cuts_by_epoch {
                // What Kafka did before KIP-101.
                self.cut(at, self.nodes[at].high_watermark);
            }
        } else if is_new_epoch || self.nodes[at].machine.is_none() {
            self.begin_leading(at, protections);
        } else {
            let assignment = self.assignment();
            if let Some(machine) = &mut self.nodes[at].machine {
                machine.renew(assignment, 0);
            }
            self.nodes[at].proposal = None;
        }
    }

    fn decide(&mut self, at: usize, proposal: &Proposal, protections: &Protections) {
        let is_current = proposal.leader_epoch == self.leader_epoch
            && (!protections.controller_checks_partition_epoch || proposal.partition_epoch == self.partition_epoch);
        if !is_current || self.leader != at {
            return;
        }
        let joins = |broker: BrokerId| !self.isr.contains(&broker);
        let is_stale =
            |(broker, epoch): &(BrokerId, i64)| joins(*broker) && self.nodes[*broker as usize].broker_epoch != *epoch;
        if protections.controller_checks_broker_epoch && proposal.isr.iter().any(is_stale) {
            if let Some(machine) = &mut self.nodes[at].machine {
                machine.note_refused(proposal.partition_epoch);
            }
            return;
        }
        self.isr = proposal.isr.iter().map(|(broker, _)| *broker).collect();
        self.partition_epoch += 1;
    }

    fn elect(&mut self, at: usize) {
        self.leader = at;
        self.leader_epoch += 1;
        self.partition_epoch += 1;
    }

    /// The node dies and is back at once, as another life of it. Nobody but the controller has noticed.
    fn crash(&mut self, at: usize, protections: &Protections) {
        self.crashes += 1;
        let durable = self.nodes[at].durable as Offset;
        self.cut(at, durable);
        let node = &mut self.nodes[at];
        node.broker_epoch += 1;
        (node.machine, node.proposal) = (None, None);
        // It knows nothing before it has learned.
        node.belief.partition_epoch = -1;
        node.belief.leader = NODES;
        let others: Vec<BrokerId> = self.isr.iter().copied().filter(|other| *other != id(at)).collect();
        if self.leader == at {
            self.leader_epoch += 1;
            self.leader = others.first().map_or(at, |other| *other as usize);
        }
        if protections.unclean_restart_leaves && !others.is_empty() {
            self.isr = others;
        }
        self.partition_epoch += 1;
    }

    /// Every leader moves its high watermark as far as it may, and acknowledges.
    fn advance(&mut self, protections: &Protections) {
        let epochs: Vec<i64> = self.nodes.iter().map(|node| node.broker_epoch).collect();
        let eligible = |id: BrokerId| epochs.get(id as usize).copied();
        for at in 0..NODES {
            let moment = self.moment(at);
            let node = &mut self.nodes[at];
            let Some(machine) = &node.machine else { continue };
            if let Some(high_watermark) = machine.advance(moment, &eligible) {
                node.high_watermark = high_watermark;
            }
            let safe = if protections.syncs_before_fetch {
                node.high_watermark.min(node.durable as Offset)
            } else {
                node.high_watermark
            };
            for (offset, record) in node.log.iter().enumerate().take(safe as usize) {
                if record.epoch == node.belief.leader_epoch {
                    self.acked.insert((offset as Offset, record.id));
                }
            }
        }
    }

    fn violation(&self) -> Option<String> {
        let newest = &self.nodes[self.leader];
        let leads_newest = newest.machine.is_some() && newest.belief.leader_epoch == self.leader_epoch;
        let missing =
            |(offset, id): &(Offset, u32)| newest.log.get(*offset as usize).is_none_or(|record| record.id != *id);
        if leads_newest && self.acked.iter().any(missing) {
            return Some("an acknowledged record is not in the leader's log".to_owned());
        }
        for (a, first) in self.nodes.iter().enumerate() {
            for second in self.nodes.iter().skip(a + 1) {
                let common = first.high_watermark.min(second.high_watermark) as usize;
                if first.log.get(..common) != second.log.get(..common) {
                    return Some(format!("two logs differ below {common}"));
                }
            }
        }
        None
    }

    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        format!("{self:?}").hash(&mut hasher);
        hasher.finish()
    }
}

/// Looks at every world that few steps lead to, from where `prefix` leads. What was found, and how many worlds were seen.
fn search(protections: &Protections, prefix: &[Step], depth_max: usize, worlds_max: usize) -> (Option<String>, usize) {
    let mut start = World::new(protections);
    for step in prefix {
        assert!(start.steps(protections).contains(step), "{step:?} cannot be taken");
        start.take(*step, protections);
        assert_eq!(start.violation(), None, "already after {step:?}");
    }
    let mut seen = HashSet::new();
    let mut queue = VecDeque::from([(start, Vec::<Step>::new())]);
    while let Some((world, path)) = queue.pop_front() {
        if path.len() >= depth_max || seen.len() >= worlds_max {
            continue;
        }
        for step in world.steps(protections) {
            let mut next = world.clone();
            next.take(step, protections);
            if let Some(violation) = next.violation() {
                return (Some(format!("{violation} after {path:?} and {step:?}: {next:?}")), seen.len());
            }
            if seen.insert(next.fingerprint()) {
                let mut path = path.clone();
                path.push(step);
                queue.push_back((next, path));
            }
        }
    }
    (None, seen.len())
}

/// Walks at random, deep. The seed makes the walk.
fn walk(protections: &Protections, seed: u64, steps: usize) -> Option<String> {
    let mut world = World::new(protections);
    let mut path = Vec::new();
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for _ in 0..steps {
        let choices = world.steps(protections);
        if choices.is_empty() {
            break;
        }
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let step = choices[(random % choices.len() as u64) as usize];
        world.take(step, protections);
        path.push(step);
        if let Some(violation) = world.violation() {
            return Some(format!("{violation} with seed {seed} after {path:?}: {world:?}"));
        }
    }
    None
}

fn walks(protections: &Protections, seeds: std::ops::Range<u64>) -> Option<String> {
    seeds.into_iter().find_map(|seed| walk(protections, seed, 60))
}

#[test]
fn nothing_acknowledged_is_lost_within_few_steps() {
    let (violation, worlds) = search(&ALL, &[], 8, 8_000);
    assert_eq!(violation, None);
    assert!(worlds > 5_000, "only {worlds} worlds were seen");
}

#[test]
fn nothing_acknowledged_is_lost_on_long_walks() {
    assert_eq!(walks(&ALL, 0..4_000), None);
    let unsynced = Protections { syncs_before_fetch: false, ..ALL };
    assert_eq!(
        walks(&unsynced, 0..4_000),
        None,
        "who crashed leaves the set, so that a sync is not the only protection"
    );
}

fn assert_caught(what: &str, protections: Protections) {
    let found = walks(&protections, 0..100_000);
    assert!(found.is_some(), "{what} was switched off and nothing happened");
}

#[test]
fn acknowledging_before_the_high_watermark_is_caught() {
    assert_caught(
        "the wait for replicas",
        Protections { leader: Rules { commit_waits_for_in_sync: false, ..Rules::ALL }, ..ALL },
    );
}

#[test]
fn not_waiting_for_proposed_members_is_caught() {
    assert_caught(
        "the wait for proposed members",
        Protections { leader: Rules { commit_waits_for_proposed: false, ..Rules::ALL }, ..ALL },
    );
}

#[test]
fn joining_below_the_high_watermark_is_caught() {
    assert_caught(
        "the check of the high watermark",
        Protections { leader: Rules { join_needs_high_watermark: false, ..Rules::ALL }, ..ALL },
    );
}

/// Too far away for a walk at random: the first steps are given, and all that may follow is looked at.
fn assert_caught_after(prefix: &[Step], protections: Protections) {
    assert_eq!(search(&ALL, prefix, 5, 4_000).0, None);
    let found = search(&protections, prefix, 5, 20_000).0;
    assert!(found.is_some(), "a protection was switched off and nothing happened");
}

fn fetch_all(follower: usize) -> Step {
    Step::Fetch { follower, all: true }
}

/// Node 2 is out of the set and has nothing; what 0 and 1 have is acknowledged, but 1, the new leader, does not know that yet.
#[test]
fn joining_below_the_start_of_the_epoch_is_caught() {
    let prefix = [
        Step::Write(0),
        fetch_all(1),
        fetch_all(1),
        Step::ProposeShrink(0),
        Step::Decide(0),
        Step::Learn(0),
        Step::Write(0),
        fetch_all(1),
        Step::LostFetch(1),
        Step::Elect(1),
        Step::Learn(1),
        Step::Learn(2),
        Step::Fetch { follower: 2, all: false },
        Step::LostFetch(2),
        Step::ProposeGrowth(1),
    ];
    let leader = Rules { join_needs_epoch_start: false, ..Rules::ALL };
    assert_caught_after(&prefix, Protections { leader, ..ALL });
}

#[test]
fn cutting_at_the_high_watermark_is_caught() {
    assert_caught("cutting by epoch", Protections { cuts_by_epoch: false, ..ALL });
}

#[test]
fn fetches_of_other_epochs_are_caught() {
    assert_caught("the check of the leader epoch", Protections { checks_leader_epoch: false, ..ALL });
}

#[test]
fn staying_in_sync_over_an_unclean_restart_without_syncs_is_caught() {
    assert_caught(
        "both protections against lost writes",
        Protections { syncs_before_fetch: false, unclean_restart_leaves: false, ..ALL },
    );
}

#[test]
fn joining_with_the_broker_epoch_of_an_earlier_life_is_caught() {
    let leader = Rules { checks_broker_epoch: false, ..Rules::ALL };
    assert_caught(
        "the check of broker epochs",
        Protections { leader, controller_checks_broker_epoch: false, syncs_before_fetch: false, ..ALL },
    );
}

/// Node 1 is put out after node 2, and then the first of the two proposals arrives once more: it has 1 in it.
#[test]
fn proposals_against_an_older_state_are_caught() {
    let prefix = [
        fetch_all(1),
        Step::Write(0),
        fetch_all(1),
        fetch_all(1),
        Step::ProposeShrink(0),
        Step::Decide(0),
        Step::Learn(0),
        Step::Write(0),
        Step::ProposeShrink(0),
        Step::Decide(0),
        Step::Learn(0),
    ];
    assert_caught_after(&prefix, Protections { controller_checks_partition_epoch: false, ..ALL });
}
