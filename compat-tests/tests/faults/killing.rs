//! SIGKILL of one node by its part, or of all.

use std::time::Duration;

use compat_tests::faults::bench::say;
use compat_tests::faults::report::{Report, quantile};
use compat_tests::faults::{Bench, Fault, Kind, Profile};

use crate::{alone, cycles};

const AWAY: Duration = Duration::from_millis(1500);

fn kill(name: &str, default: usize, fault: impl Fn(i32) -> Fault, changes_each: usize) -> Report {
    let _alone = alone();
    let mut bench = Bench::start(Profile::default());
    let cycles = cycles(default);
    bench.run_for(Duration::from_secs(1));
    for cycle in 0..cycles {
        bench.inflict(fault(i32::try_from(cycle % 3).expect("small")), AWAY);
        bench.run_for(Duration::from_millis(500));
    }
    let report = bench.finish();
    say(&format!("--- {name}, {cycles} cycles\n{report}"));
    report.assert_not_vacuous(100 * cycles, cycles, changes_each * cycles);
    report
}

/// Also measures how long writes stand still: the median under two seconds, the worst under five.
#[test]
#[ignore = "half a minute, and wants a machine of its own"]
fn kill9_leader() {
    let report = kill("kill9_leader", 2, Fault::KillLeader, 1);
    assert!(!report.outages.is_empty(), "no outage was measured\n{report}");
    assert!(quantile(&report.outages, 0.5) < Duration::from_secs(2), "{report}");
    assert!(quantile(&report.outages, 1.0) < Duration::from_secs(5), "{report}");
}

/// The same with what librdkafka does when nobody sets anything.
#[test]
#[ignore = "a minute"]
fn kill9_leader_under_a_client_with_defaults() {
    let _alone = alone();
    let clients = vec![
        ("reconnect.backoff.ms", "100"),
        ("reconnect.backoff.max.ms", "10000"),
        ("retry.backoff.ms", "100"),
        ("retry.backoff.max.ms", "1000"),
    ];
    let patience = Duration::from_secs(60);
    let mut bench = Bench::start(Profile { members: 1, clients, patience, ..Profile::default() });
    let cycles = cycles(5);
    bench.run_for(Duration::from_secs(1));
    for cycle in 0..cycles {
        bench.inflict(Fault::KillLeader(i32::try_from(cycle % 3).expect("small")), Duration::from_secs(6));
        bench.run_for(Duration::from_secs(1));
    }
    let report = bench.finish();
    say(&format!("--- kill9_leader_under_a_client_with_defaults, {cycles} cycles\n{report}"));
    report.assert_not_vacuous(100 * cycles, cycles, cycles);
    assert!(quantile(&report.outages, 0.5) < Duration::from_secs(2), "{report}");
    assert!(quantile(&report.outages, 1.0) < Duration::from_secs(5), "{report}");
}

#[test]
#[ignore = "a minute"]
fn kill9_follower() {
    kill("kill9_follower", 3, Fault::KillFollower, 0);
}

#[test]
#[ignore = "a minute"]
fn kill9_all() {
    kill("kill9_all", 3, |_| Fault::KillAll, 1);
}

#[test]
#[ignore = "a minute"]
fn kill9_controller() {
    kill("kill9_controller", 3, |_| Fault::KillController, 0);
}

#[test]
#[ignore = "a minute"]
fn kill9_group_coord() {
    kill("kill9_group_coord", 3, |_| Fault::KillCoordinator, 0);
}

/// The bench can find out: with acks=1 a leader that dies ahead of its followers loses what it acknowledged.
#[test]
#[ignore = "half a minute"]
fn acks_1_is_found_out() {
    let _alone = alone();
    let mut bench = Bench::start(Profile { acks: "1", ..Profile::default() });
    bench.run_for(Duration::from_secs(1));
    bench.kill_ahead_of_followers(0, Duration::from_millis(1000));
    let (report, violations) = bench.verdict();
    say(&format!("--- acks_1_is_found_out: {} violations\n{report}", violations.len()));
    assert!(violations.iter().any(|one| one.kind == Kind::LostWrite), "{violations:?}");
}

/// The same with acks=all loses nothing.
#[test]
#[ignore = "half a minute"]
fn kill9_leader_ahead_of_followers() {
    let _alone = alone();
    let mut bench = Bench::start(Profile::default());
    bench.run_for(Duration::from_secs(1));
    for partition in 0..i32::try_from(cycles(1)).expect("small") {
        bench.kill_ahead_of_followers(partition % 3, Duration::from_millis(1000));
        bench.run_for(Duration::from_millis(500));
    }
    let report = bench.finish();
    say(&format!("--- kill9_leader_ahead_of_followers\n{report}"));
    report.assert_not_vacuous(100, 1, 1);
}
