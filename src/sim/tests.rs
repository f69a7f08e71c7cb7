//! Batches of seeds. `BARNABAS_SEED=17` runs that one alone and shows what happened; `BARNABAS_SEEDS=2000` runs so many, from
//! `BARNABAS_FROM` on; `BARNABAS_LOG=info` shows what the nodes log, too.

#![expect(clippy::print_stdout, reason = "what was found is told to whoever runs the tests")]

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::child::{self, run_apart};
use super::history::{History, Place, Value};
use super::run::{Report, Setup};
use super::scripts::{CHARGES, Script};
use crate::base::rules::Rule;

/// Seeds of a usual test run.
const SEEDS: u64 = 16;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// Runs seeds on every core.
fn run_all(setups: &[Setup]) -> Vec<(Setup, Report)> {
    let next = AtomicU64::new(0);
    let reports = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(setup) = setups.get(next.fetch_add(1, Ordering::SeqCst) as usize) {
                    let report = run_apart(*setup, false);
                    reports.lock().unwrap().push((*setup, report));
                }
            });
        }
    });
    let mut reports = reports.into_inner().unwrap();
    reports.sort_by_key(|(setup, _)| setup.seed);
    reports
}

fn totals(reports: &[(Setup, Report)]) -> BTreeMap<String, u64> {
    let mut totals = BTreeMap::new();
    for (name, count) in reports.iter().flat_map(|(_, report)| &report.counts) {
        *totals.entry(name.clone()).or_default() += count;
    }
    totals
}

#[test]
fn no_seed_breaks_a_promise() {
    // Where a run is worked off, in a process of its own: then it ends there.
    child::work_off();
    let without = std::env::var("BARNABAS_WITHOUT").ok().map(|name| child::rule(&name).expect("a rule's name"));
    let script = std::env::var("BARNABAS_SCRIPT").ok().map(|name| child::script(&name).expect("a script's name"));
    if let Some(seed) = number("BARNABAS_SEED") {
        let report = run_apart(Setup { seed, script, without }, true);
        println!("{report:#?}");
        assert!(report.violations.is_empty());
        return;
    }
    let (from, count) = (number("BARNABAS_FROM").unwrap_or(1), number("BARNABAS_SEEDS").unwrap_or(SEEDS));
    let setups: Vec<Setup> = (from..from + count).map(|seed| Setup { seed, script, without }).collect();
    let reports = run_all(&setups);
    let broken: Vec<_> = reports.iter().filter(|(_, report)| !report.violations.is_empty()).collect();
    for (setup, report) in &broken {
        println!("seed {}:", setup.seed);
        report.violations.iter().take(3).for_each(|violation| println!("  {violation}"));
    }
    let totals = totals(&reports);
    println!("{count} seeds from {from}: {} broken; {totals:?}", broken.len());
    assert!(broken.is_empty(), "BARNABAS_SEED=<seed> runs one of them again");
    assert_enough(&totals, count);
}

/// A batch in which little happened shows nothing.
fn assert_enough(totals: &BTreeMap<String, u64>, seeds: u64) {
    let least =
        [("acked records", 100), ("crashes", 2), ("elections", 6), ("cuts", 1), ("commits", 20), ("read records", 100)];
    for (what, per_seed) in least {
        let count = totals.get(what).copied().unwrap_or(0);
        assert!(count >= per_seed * seeds, "too few {what}: {count} in {seeds} seeds");
    }
}

/// A protection that is switched off is to be missed within so many seeds.
const HIDES_MAX: u64 = 64;

/// Those that have been seen to be missed, each within twenty seeds. The others of `rules::ALL` hid behind what was tried with them: a
/// dozen seeds.
const MISSED: &[Rule] = &[
    Rule::AckWaitsForHighWatermark,
    Rule::CommitWaitsForInSync,
    Rule::SyncsBeforeFetch,
    Rule::ChecksDuplicates,
    Rule::VoteIsSynced,
    Rule::MetadataIsSynced,
    Rule::GroupWaitsForHighWatermark,
];

/// The first seed, from 1 on, that a run without the rule breaks.
fn first_broken(rule: Rule) -> Option<(u64, String)> {
    const CHUNK: u64 = 2;
    for from in (1..HIDES_MAX).step_by(CHUNK as usize) {
        let setups: Vec<Setup> =
            (from..from + CHUNK).map(|seed| Setup { seed, script: None, without: Some(rule) }).collect();
        let broken = run_all(&setups).into_iter().find(|(_, report)| !report.violations.is_empty());
        if let Some((setup, report)) = broken {
            return Some((setup.seed, report.violations[0].clone()));
        }
    }
    None
}

#[test]
fn protections_that_are_switched_off_are_missed() {
    let mut hidden = Vec::new();
    for rule in MISSED {
        match first_broken(*rule) {
            Some((seed, violation)) => println!("without {rule:?}, seed {seed}: {violation}"),
            None => hidden.push(rule),
        }
    }
    assert!(hidden.is_empty(), "nobody misses {hidden:?}");
}

/// Some steps of a script leave room for chance: without its protection it breaks a promise in one of so many runs, and mostly in the first.
const TELLINGS_MAX: u64 = 6;

fn told(script: Script, seed: u64, without: Option<Rule>) -> Report {
    run_apart(Setup { seed, script: Some(script), without }, false)
}

/// What a script is guilty of with its protection, or that it is guilty of nothing without.
fn tell(script: Script) -> Result<String, String> {
    let first = number("BARNABAS_FROM").unwrap_or(1);
    let with = told(script, first, None);
    if !with.violations.is_empty() {
        return Err(format!("{script:?}, with everything in force: {:#?}", with.violations));
    }
    let rule = script.rule();
    for seed in first..first + TELLINGS_MAX {
        let violations = told(script, seed, Some(rule)).violations;
        let is_charge = |violation: &&String| CHARGES.iter().any(|charge| violation.contains(charge));
        if let Some(charge) = violations.iter().find(is_charge) {
            return Ok(format!("without {rule:?}, {script:?}, seed {seed}: {charge}"));
        }
    }
    Err(format!("{script:?}: nobody misses {rule:?}"))
}

#[test]
fn each_script_breaks_a_promise_without_its_protection_and_none_with_it() {
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        // One after another in each half: as many at a time as the smallest machine has cores.
        let halves = Script::ALL.chunks(Script::ALL.len().div_ceil(2));
        let threads: Vec<_> =
            halves.map(|half| scope.spawn(|| half.iter().map(|script| tell(*script)).collect::<Vec<_>>())).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    outcomes.iter().flatten().for_each(|told| println!("{told}"));
    let wrong: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_same_seed_twice_is_the_same_run() {
    let [one, again, another] = [1, 1, 2].map(|seed| run_apart(Setup { seed, script: None, without: None }, false));
    assert_eq!(one.trace, again.trace);
    assert_eq!((&one.counts, one.simulated), (&again.counts, again.simulated));
    assert_ne!(one.trace, another.trace);
}

#[test]
fn what_was_read_before_its_leader_synced_it_may_go_with_the_power_and_what_was_acknowledged_may_not() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let history = History::new(true);
        let place = Place { topic: "t".to_owned(), partition: 0 };
        let value = |number| Value { producer: 0, number };
        let other = Value { producer: 1, number: 0 };
        for number in 0..4 {
            history.read(&place, i64::from(number), value(number), "was read");
        }
        history.acked(&place, Some(0), &[value(0)]);
        history.acked(&place, Some(2), &[value(2)]);
        assert!(history.is_bound(&place, 4));
        history.unsynced(&place, 1);
        assert!(!history.is_bound(&place, 4) && history.is_bound(&place, 1));
        history.hold_against(&place, &vec![(0, value(0)), (1, other), (2, value(2))], |_| true, "one");
        assert_eq!(history.violations(), Vec::<String>::new());
        history.hold_against(&place, &vec![(0, value(0)), (1, other)], |_| true, "two");
        assert!(!history.violations().is_empty(), "what a producer was told of is missing");
    });
}
