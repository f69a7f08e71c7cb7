//! Networks that lose packets in silence between some of the nodes. Skipped, with a line that says so, where there are no namespaces.

use std::time::Duration;

use compat_tests::faults::bench::say;
use compat_tests::faults::net::{CLIENTS, both_ways};
use compat_tests::faults::report::{Report, quantile};
use compat_tests::faults::{Bench, Net, Profile};

use crate::{alone, cycles};

/// Longer than a session.
const TIME: Duration = Duration::from_secs(10);

/// By default librdkafka waits a minute for an answer that never comes, whatever the brokers do meanwhile.
const IMPATIENT: (&str, &str) = ("socket.timeout.ms", "3000");

/// Nodes under load on a network of their own; none, and a line that says so, where there can be no such network.
fn bench(name: &str) -> Option<Bench> {
    let net = Net::new(3).map_err(|why| say(&format!("SKIPPED: {name} needs network namespaces: {why}"))).ok()?;
    let bench = Bench::start_in(net, Profile { clients: vec![IMPATIENT], ..Profile::default() });
    bench.run_for(Duration::from_secs(1));
    Some(bench)
}

/// Runs cycles of a cut that is made from the leader of a partition and the two other nodes, the active controller last when it is one
/// of them.
fn cut(name: &str, time: Duration, pairs: impl Fn(i32, [i32; 2]) -> Vec<(i32, i32)>) -> Option<Report> {
    let _alone = alone();
    let mut bench = bench(name)?;
    let cycles = cycles(2);
    for cycle in 0..cycles {
        let leader = bench.leader(i32::try_from(cycle % 3).expect("small"));
        let controller = bench.controller();
        let mut others: Vec<i32> = bench.cluster.ids().filter(|id| *id != leader).collect();
        others.sort_by_key(|id| *id == controller);
        bench.cut(name, leader, &pairs(leader, [others[0], others[1]]), time);
        bench.run_for(Duration::from_secs(1));
    }
    let report = bench.finish();
    say(&format!("--- {name}, {cycles} cycles\n{report}"));
    report.assert_not_vacuous(100 * cycles, cycles, 0);
    Some(report)
}

#[track_caller]
fn assert_outages(report: Option<Report>) {
    let Some(report) = report else { return };
    assert!(!report.outages.is_empty(), "no outage was measured\n{report}");
    assert!(quantile(&report.outages, 1.0) < Duration::from_secs(8), "{report}");
}

/// Nobody hears of the leader any more, clients neither: writes go on elsewhere within eight seconds.
#[test]
#[ignore = "a minute"]
fn isolate_leader_from_all() {
    assert_outages(cut("Isolate leader from all", TIME, |leader, [a, b]| both_ways(leader, &[a, b, CLIENTS])));
}

/// Clients still reach the old leader, which must not acknowledge what it cannot replicate.
#[test]
#[ignore = "a minute"]
fn isolate_leader_from_nodes() {
    assert_outages(cut("Isolate leader from nodes", TIME, |leader, [a, b]| both_ways(leader, &[a, b])));
}

/// The leader and the controller hear of one another, the remaining follower does not.
#[test]
#[ignore = "a minute"]
fn isolate_leader_from_followers() {
    cut("cut leader from a follower", TIME, |leader, [follower, _]| both_ways(leader, &[follower]));
}

#[test]
#[ignore = "a minute"]
fn isolate_leader_from_controller() {
    cut("cut leader from controller", TIME, |leader, [_, controller]| both_ways(leader, &[controller]));
}

#[test]
#[ignore = "a minute"]
fn oneway_leader_to_follower() {
    cut("one way leader to followers", TIME, |leader, [a, b]| vec![(leader, a), (leader, b)]);
}

#[test]
#[ignore = "a minute"]
fn oneway_follower_to_leader() {
    cut("one way followers to leader", TIME, |leader, [a, b]| vec![(a, leader), (b, leader)]);
}

/// The two others do not hear of one another; both hear of the leader.
#[test]
#[ignore = "a minute"]
fn bridge() {
    cut("bridge", TIME, |_, [a, b]| both_ways(a, &[b]));
}

/// Each pair in turn loses the other for a moment, over and over.
#[test]
#[ignore = "a minute"]
fn ring_flap() {
    let _alone = alone();
    let Some(mut bench) = bench("ring_flap") else { return };
    let ring = [both_ways(1, &[2]), both_ways(2, &[3]), both_ways(3, &[1])];
    bench.flap("ring_flap", &ring, Duration::from_millis(1500), 3 * cycles(1));
    let report = bench.finish();
    say(&format!("--- ring_flap\n{report}"));
    report.assert_not_vacuous(100, 9, 0);
}
