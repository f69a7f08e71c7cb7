//! Networks that lose packets in silence between some of the nodes. Skipped, with a line that says so, where there are no namespaces.

use std::time::Duration;

use compat_tests::faults::bench::say;
use compat_tests::faults::net::{CLIENTS, both_ways};
use compat_tests::faults::report::Report;
use compat_tests::faults::{Bench, Net, Profile};

use crate::{all_is_well, by_form, cycles, impatient_nodes, turn};

/// By default librdkafka waits a minute for an answer that never comes, whatever the brokers do meanwhile.
const IMPATIENT: (&str, &str) = ("socket.timeout.ms", "3000");

/// Nodes under load on a network of their own; none, and a line that says so, where there can be no such network.
fn bench(name: &str) -> Option<Bench> {
    let net = Net::new(3).map_err(|why| say(&format!("SKIPPED: {name} needs network namespaces: {why}"))).ok()?;
    let bench = Bench::start_in(net, Profile { clients: vec![IMPATIENT], ..impatient_nodes() });
    bench.run_for(all_is_well());
    Some(bench)
}

/// Runs cycles of a cut that is made from the leader of a partition and the two other nodes, the active controller last when it is one
/// of them. It may be one that must move the leadership.
fn cut(name: &str, moves: bool, pairs: impl Fn(i32, [i32; 2]) -> Vec<(i32, i32)>) -> Option<Report> {
    let _turn = turn();
    let mut bench = bench(name)?;
    let cycles = cycles(1);
    // Longer than a session.
    let time = by_form(Duration::from_millis(2500), Duration::from_secs(8));
    for cycle in 0..cycles {
        let leader = bench.leader(i32::try_from(cycle % 3).expect("small"));
        let controller = bench.controller();
        let mut others: Vec<i32> = bench.cluster.ids().filter(|id| *id != leader).collect();
        others.sort_by_key(|id| *id == controller);
        bench.cut(name, leader, &pairs(leader, [others[0], others[1]]), (time, moves));
        bench.run_for(all_is_well());
    }
    let report = bench.finish();
    say(&format!("--- {name}, {cycles} cycles\n{report}"));
    report.assert_not_vacuous(100 * cycles, cycles, 0);
    Some(report)
}

#[track_caller]
fn assert_outages(report: Option<Report>) {
    let Some(report) = report else { return };
    assert!(!report.outages.is_empty() && report.leader_changes > 0, "no outage was measured\n{report}");
}

/// Nobody hears of the leader any more, clients neither: writes go on elsewhere.
#[test]
fn isolate_leader_from_all() {
    assert_outages(cut("Isolate leader from all", true, |leader, [a, b]| both_ways(leader, &[a, b, CLIENTS])));
}

/// What librdkafka does when nobody sets anything: a producer that was there waits for its answers for a minute, one that comes after the
/// loss is served as soon as others lead.
#[test]
fn isolate_leader_and_a_newcomer_with_defaults() {
    let _turn = turn();
    let name = "isolate_leader_and_a_newcomer_with_defaults";
    let net = match Net::new(3) {
        Ok(net) => net,
        Err(why) => return say(&format!("SKIPPED: {name} needs network namespaces: {why}")),
    };
    let mut bench = Bench::start_in(net, Profile { clients: Vec::new(), ..impatient_nodes() });
    let cycles = cycles(1);
    for cycle in 0..cycles {
        bench.run_for(all_is_well());
        let number = u32::try_from(cycle).expect("small");
        let leader = bench.leader(i32::try_from(cycle % 3).expect("small"));
        let others: Vec<i32> = bench.cluster.ids().filter(|id| *id != leader).collect();
        let pairs = both_ways(leader, &[others[0], others[1], CLIENTS]);
        bench.cut_while("Isolate leader", leader, &pairs, |bench| bench.newcomer(100 + number));
    }
    let report = bench.finish();
    say(&format!("--- {name}, {cycles} cycles\n{report}"));
    report.assert_not_vacuous(100 * cycles, cycles, cycles);
    assert!(!report.outages.is_empty(), "no outage was measured\n{report}");
}

/// Clients still reach the old leader, which must not acknowledge what it cannot replicate.
#[test]
fn isolate_leader_from_nodes() {
    assert_outages(cut("Isolate leader from nodes", true, |leader, [a, b]| both_ways(leader, &[a, b])));
}

/// The leader and the controller hear of one another, the remaining follower does not.
#[test]
fn isolate_leader_from_followers() {
    cut("cut leader from a follower", false, |leader, [follower, _]| both_ways(leader, &[follower]));
}

#[test]
fn isolate_leader_from_controller() {
    cut("cut leader from controller", false, |leader, [_, controller]| both_ways(leader, &[controller]));
}

#[test]
fn oneway_leader_to_follower() {
    cut("one way leader to followers", false, |leader, [a, b]| vec![(leader, a), (leader, b)]);
}

#[test]
fn oneway_follower_to_leader() {
    cut("one way followers to leader", false, |leader, [a, b]| vec![(a, leader), (b, leader)]);
}

/// The two others do not hear of one another; both hear of the leader.
#[test]
fn bridge() {
    cut("bridge", false, |_, [a, b]| both_ways(a, &[b]));
}

/// Each pair in turn loses the other for a moment, over and over.
#[test]
fn ring_flap() {
    let _turn = turn();
    let Some(mut bench) = bench("ring_flap") else { return };
    let ring = [both_ways(1, &[2]), both_ways(2, &[3]), both_ways(3, &[1])];
    bench.flap(
        "ring_flap",
        &ring,
        by_form(Duration::from_millis(800), Duration::from_millis(1500)),
        by_form(1, 3 * cycles(1)),
    );
    let report = bench.finish();
    say(&format!("--- ring_flap\n{report}"));
    report.assert_not_vacuous(100, 3, 0);
}
