//! SIGKILL of one node by its part, or of all.

use std::time::Duration;

use compat_tests::faults::bench::say;
use compat_tests::faults::report::Report;
use compat_tests::faults::{Bench, Fault, Kind, Profile};

use crate::{all_is_well, by_form, cycles, load, turn};

fn kill(name: &str, fault: impl Fn(i32) -> Fault, changes_each: usize) -> Report {
    let _turn = turn();
    let mut bench = Bench::start(load());
    let cycles = cycles(1);
    let away = by_form(Duration::from_millis(500), Duration::from_millis(1500));
    bench.run_for(all_is_well());
    for cycle in 0..cycles {
        bench.inflict(fault(i32::try_from(cycle % 3).expect("small")), away);
        bench.run_for(all_is_well());
    }
    let report = bench.finish();
    say(&format!("--- {name}, {cycles} cycles\n{report}"));
    report.assert_not_vacuous(100 * cycles, cycles, changes_each * cycles);
    report
}

/// Also measures how long writes stand still.
#[test]
fn kill9_leader() {
    let report = kill("kill9_leader", Fault::KillLeader, 1);
    assert!(!report.outages.is_empty(), "no outage was measured\n{report}");
}

/// The same with what librdkafka does when nobody sets anything.
#[test]
fn kill9_leader_under_a_client_with_defaults() {
    let _turn = turn();
    let clients = vec![
        ("reconnect.backoff.ms", "100"),
        ("reconnect.backoff.max.ms", "10000"),
        ("retry.backoff.ms", "100"),
        ("retry.backoff.max.ms", "1000"),
    ];
    let patience = Duration::from_secs(60);
    let mut bench = Bench::start(Profile { members: 1, clients, patience, ..load() });
    let cycles = cycles(1);
    let away = by_form(Duration::from_millis(1500), Duration::from_secs(6));
    bench.run_for(all_is_well());
    for cycle in 0..cycles {
        bench.inflict(Fault::KillLeader(i32::try_from(cycle % 3).expect("small")), away);
        bench.run_for(all_is_well());
    }
    let report = bench.finish();
    say(&format!("--- kill9_leader_under_a_client_with_defaults, {cycles} cycles\n{report}"));
    report.assert_not_vacuous(100 * cycles, cycles, cycles);
    assert!(!report.outages.is_empty(), "no outage was measured\n{report}");
}

#[test]
fn kill9_follower() {
    kill("kill9_follower", Fault::KillFollower, 0);
}

#[test]
fn kill9_all() {
    kill("kill9_all", |_| Fault::KillAll, 1);
}

#[test]
fn kill9_controller() {
    kill("kill9_controller", |_| Fault::KillController, 0);
}

#[test]
fn kill9_group_coord() {
    kill("kill9_group_coord", |_| Fault::KillCoordinator, 0);
}

/// The bench can find out: with acks=1 a leader that dies ahead of its followers loses what it acknowledged.
#[test]
fn acks_1_is_found_out() {
    let _turn = turn();
    let mut bench = Bench::start(Profile { acks: "1", ..load() });
    bench.run_for(all_is_well());
    bench.kill_ahead_of_followers(0, Duration::from_millis(1000));
    let (report, violations) = bench.verdict();
    say(&format!("--- acks_1_is_found_out: {} violations\n{report}", violations.len()));
    assert!(violations.iter().any(|one| one.kind == Kind::LostWrite), "{violations:?}");
}

/// The same with acks=all loses nothing.
#[test]
fn kill9_leader_ahead_of_followers() {
    let _turn = turn();
    let mut bench = Bench::start(load());
    bench.run_for(all_is_well());
    for partition in 0..i32::try_from(cycles(1)).expect("small") {
        bench.kill_ahead_of_followers(partition % 3, Duration::from_millis(1000));
        bench.run_for(all_is_well());
    }
    let report = bench.finish();
    say(&format!("--- kill9_leader_ahead_of_followers\n{report}"));
    report.assert_not_vacuous(100, 1, 1);
}
