//! Random walks: members join, sync, beat, leave, restart, fall silent; appends fail; coordinators fail over. After every step the
//! group's invariants hold.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;

use super::bench::*;
use crate::base::ErrorCode;
use crate::coordinator::group::classic::{ClassicGroup, Phase};
use crate::coordinator::group::record::GroupMetadata;
use crate::coordinator::group::words::*;

#[derive(Clone, Debug)]
enum Step {
    JoinNew { required: bool, preference: usize },
    JoinStatic { instance: usize, skip_known: bool },
    JoinAgain { who: usize, preference: usize },
    Sync { who: usize },
    LeaderSync,
    Heartbeat { who: usize },
    Leave { who: usize },
    Commit { who: usize, offset: i64 },
    SimpleCommit { offset: i64 },
    Pass { ms: u64 },
    Tick,
    RefuseAppends(bool),
    FailOver,
}

const PREFERENCES: &[&[&str]] = &[&["range"], &["sticky", "range"], &["range", "sticky"]];

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (any::<bool>(), 0..PREFERENCES.len()).prop_map(|(required, preference)| Step::JoinNew { required, preference }),
        3 => (0..3usize, any::<bool>()).prop_map(|(instance, skip_known)| Step::JoinStatic { instance, skip_known }),
        6 => (0..8usize, 0..PREFERENCES.len()).prop_map(|(who, preference)| Step::JoinAgain { who, preference }),
        4 => (0..8usize).prop_map(|who| Step::Sync { who }),
        6 => Just(Step::LeaderSync),
        3 => (0..8usize).prop_map(|who| Step::Heartbeat { who }),
        3 => (0..8usize).prop_map(|who| Step::Leave { who }),
        2 => (0..8usize, 0..1000i64).prop_map(|(who, offset)| Step::Commit { who, offset }),
        1 => (0..1000i64).prop_map(|offset| Step::SimpleCommit { offset }),
        5 => (0..12_000u64).prop_map(|ms| Step::Pass { ms }),
        1 => Just(Step::Tick),
        1 => any::<bool>().prop_map(Step::RefuseAppends),
        1 => Just(Step::FailOver),
    ]
}

struct Walk {
    bench: Bench,
    ids: Vec<Arc<str>>,
    waiting: BTreeSet<ReplyTo>,
    generation: i32,
    last_commit: Option<i64>,
}

impl Walk {
    fn who(&self, index: usize) -> Arc<str> {
        let count = self.ids.len().max(1);
        self.ids.get(self.ids.len().saturating_sub(1 + index % count)).cloned().unwrap_or_else(|| "nobody".into())
    }

    fn fresh(&mut self) -> Arc<str> {
        let id: Arc<str> = format!("m{}", self.ids.len()).into();
        self.ids.push(id.clone());
        id
    }

    fn instance_of(&self, id: &str) -> Option<Arc<str>> {
        self.group()?.members().find(|(member_id, _)| ***member_id == *id)?.1.instance_id.clone()
    }

    fn group(&self) -> Option<&ClassicGroup> {
        self.bench.machine.group(GROUP).map(|group| group.classic())
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::JoinNew { required, preference } => {
                let id = self.fresh();
                let protocols = protocols(PREFERENCES[preference]);
                let join = Join { member_id_required: required, protocols, ..newcomer(&id) };
                let reply_to = self.bench.join(join);
                self.waiting.insert(reply_to);
            }
            Step::JoinStatic { instance, skip_known } => {
                let id = self.fresh();
                let join = static_newcomer(&id, &format!("i{instance}"));
                let reply_to = self.bench.join(Join { skip_assignment_known: skip_known, ..join });
                self.waiting.insert(reply_to);
            }
            Step::JoinAgain { who, preference } => {
                let id = self.who(who);
                let instance_id = self.instance_of(&id);
                let protocols = protocols(PREFERENCES[preference]);
                let reply_to = self.bench.join(Join { instance_id, protocols, ..member(&id) });
                self.waiting.insert(reply_to);
            }
            Step::Sync { who } => self.sync(&self.who(who), &[]),
            Step::LeaderSync => self.leader_syncs(),
            Step::Heartbeat { who } => {
                let (id, generation) = (self.who(who), self.generation);
                self.bench.heartbeat(&id, generation);
            }
            Step::Leave { who } => {
                self.bench.leave(&[(&self.who(who), None)]);
            }
            Step::Commit { who, offset } => {
                let (id, generation) = (self.who(who), self.generation);
                if self.bench.commit(GROUP, generation, &id, offset) == ErrorCode::NONE {
                    self.last_commit = Some(offset);
                }
            }
            Step::SimpleCommit { offset } => {
                if self.bench.commit(GROUP, -1, "", offset) == ErrorCode::NONE {
                    self.last_commit = Some(offset);
                }
            }
            Step::Pass { ms } => self.bench.pass(ms),
            Step::Tick => self.bench.tick(&GROUP.into()),
            Step::RefuseAppends(refuse) => self.bench.refuse_appends = refuse,
            Step::FailOver => {
                self.bench.fail_over();
                self.waiting.clear();
                self.generation = self.group().map_or(0, ClassicGroup::generation);
            }
        }
    }

    fn sync(&mut self, id: &str, assignments: &[(&str, &str)]) {
        let reply_to = self.bench.sync(sync(id, self.generation, assignments));
        self.waiting.insert(reply_to);
    }

    fn leader_syncs(&mut self) {
        let Some(group) = self.group() else { return };
        let Some(leader) = group.leader().cloned() else { return };
        let members: Vec<Arc<str>> = group.members().map(|(id, _)| id.clone()).collect();
        let assignments: Vec<(&str, &str)> = members.iter().map(|id| (&**id, &**id)).collect();
        self.sync(&leader, &assignments);
    }

    fn check(&mut self) {
        // Every reply belongs to somebody who waits (the bench sees to it that none comes twice), and nobody waits who is forgotten.
        for reply_to in self.bench.take_replies().into_keys() {
            assert!(self.waiting.remove(&reply_to), "{reply_to:?} was not waited for");
        }
        let Some(group) = self.group() else {
            assert!(self.waiting.is_empty());
            return;
        };
        let parked: BTreeSet<ReplyTo> =
            group.members().flat_map(|(_, member)| member.join_waits.into_iter().chain(member.sync_waits)).collect();
        assert_eq!(parked, self.waiting, "who waits and who is kept waiting");
        check_group(group);
        assert!(group.generation() >= self.generation, "the generation went back");
        assert_eq!(self.bench.committed(GROUP), self.last_commit);
        if matches!(group.phase(), Phase::Stable | Phase::Empty) {
            assert_eq!(told(group), told_by_log(&self.bench), "what was replayed and what lives");
        }
        self.generation = group.generation();
    }
}

fn check_group(group: &ClassicGroup) {
    let ids: BTreeSet<&Arc<str>> = group.members().map(|(id, _)| id).collect();
    match group.leader() {
        Some(leader) => assert!(ids.contains(leader), "the leader {leader} is no member"),
        None => assert!(ids.is_empty(), "members without a leader"),
    }
    let instances: Vec<&Arc<str>> = group.members().filter_map(|(_, member)| member.instance_id.as_ref()).collect();
    assert_eq!(instances.iter().collect::<BTreeSet<_>>().len(), instances.len(), "one instance id, two members");
    for (id, member) in group.members() {
        match group.phase() {
            Phase::Empty => panic!("{id} is a member of an empty group"),
            Phase::PreparingRebalance => assert!(member.sync_waits.is_none(), "{id} waits for an assignment"),
            Phase::CompletingRebalance => assert!(member.join_waits.is_none(), "{id} waits for a generation"),
            Phase::Stable => assert!(member.join_waits.is_none() && member.sync_waits.is_none(), "{id} waits"),
        }
    }
}

/// A settled group's durable half. What a member knows besides the chosen protocol, and when exactly, is not part of it.
fn told(group: &ClassicGroup) -> GroupMetadata {
    group.metadata(0)
}

fn told_by_log(bench: &Bench) -> GroupMetadata {
    bench.reloaded().group(GROUP).map(|group| told(group.classic())).unwrap_or_else(|| told(&ClassicGroup::default()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]
    #[test]
    fn invariants_hold_on_every_walk(delay_ms in prop_oneof![Just(0u64), Just(3_000)], steps in prop::collection::vec(step(), 1..120)) {
        let mut walk = Walk {
            bench: Bench::new(), ids: Vec::new(), waiting: BTreeSet::new(), generation: 0, last_commit: None,
        };
        walk.bench.config.initial_rebalance_delay_ms = delay_ms;
        for step in steps {
            walk.take(step);
            walk.check();
        }
        // Whatever happened: with everybody silent the group is empty in bounded time, and everybody has an answer.
        walk.bench.refuse_appends = false;
        walk.bench.pass(700_000);
        walk.check();
        prop_assert!(walk.waiting.is_empty());
        if let Some(group) = walk.group() {
            prop_assert_eq!(group.phase(), Phase::Empty);
        }
    }
}
