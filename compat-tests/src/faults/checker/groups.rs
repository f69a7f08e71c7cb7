//! Rules about groups: what was committed stays committed, and a partition has one owner in a generation.

use std::collections::BTreeMap;
use std::time::Duration;

use super::index::Index;
use super::{Findings, Kind};
use crate::faults::history::{Action, Outcome};

/// How long a commit without a known outcome may still arrive: longer than a client waits for any one request.
const LATE: Duration = Duration::from_secs(30);

struct Commit {
    offset: i64,
    invoked: Duration,
    /// After this it cannot change anything any more.
    over: Duration,
    acknowledged: Option<Duration>,
}

/// What is told must be the last commit that was acknowledged before the question, or one that was under way since then.
pub fn committed_went_back(index: &Index<'_>, findings: &mut Findings) {
    let commits = commits(index);
    let mut asked: BTreeMap<u64, Duration> = BTreeMap::new();
    for event in index.events {
        match event.action {
            Action::AskCommitted { .. } => {
                asked.insert(event.op, event.at);
            }
            Action::ToldCommitted { partition, offset } => {
                let Some(asked) = asked.get(&event.op) else { continue };
                let of = commits.get(&partition).map(Vec::as_slice).unwrap_or_default();
                let before = |one: &&Commit| one.acknowledged.is_some_and(|at| at < *asked);
                let Some(last) = of.iter().filter(before).max_by_key(|one| one.invoked) else { continue };
                let explained = of.iter().any(|one| one.offset == offset && one.over >= last.invoked);
                if offset < last.offset && !explained {
                    let text = format!(
                        "partition {partition}: {} was committed at {:?}, {offset} was told at {:?}",
                        last.offset, last.acknowledged, event.at
                    );
                    findings.add(Kind::CommittedOffsetWentBack, text);
                }
            }
            _ => {}
        }
    }
}

fn commits(index: &Index<'_>) -> BTreeMap<i32, Vec<Commit>> {
    let mut by_op: BTreeMap<(u64, i32), Commit> = BTreeMap::new();
    for event in index.events {
        match event.action {
            Action::Commit { partition, offset } => {
                let commit = Commit { offset, invoked: event.at, over: Duration::MAX, acknowledged: None };
                by_op.insert((event.op, partition), commit);
            }
            Action::Committed { partition, outcome, .. } => {
                let Some(commit) = by_op.get_mut(&(event.op, partition)) else { continue };
                match outcome {
                    Outcome::Ok => (commit.over, commit.acknowledged) = (event.at, Some(event.at)),
                    Outcome::Info => commit.over = event.at + LATE,
                    Outcome::Fail => commit.over = Duration::ZERO,
                }
            }
            _ => {}
        }
    }
    let mut by_partition: BTreeMap<i32, Vec<Commit>> = BTreeMap::new();
    for ((_, partition), commit) in by_op {
        by_partition.entry(partition).or_default().push(commit);
    }
    by_partition
}

pub fn double_ownership(index: &Index<'_>, findings: &mut Findings) {
    let mut owners: BTreeMap<(i32, i32), u32> = BTreeMap::new();
    for event in index.events {
        let Action::Assigned { generation, partitions } = &event.action else { continue };
        for partition in partitions.iter().filter(|_| *generation >= 0) {
            let owner = *owners.entry((*generation, *partition)).or_insert(event.process);
            if owner != event.process {
                let text =
                    format!("generation {generation} gave partition {partition} to {owner} and {}", event.process);
                findings.add(Kind::DoubleOwnership, text);
            }
        }
    }
}
