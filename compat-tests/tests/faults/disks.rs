//! Power cuts, disks that fail or are full, bits that turn over. Disks of their own need root; what cannot be had is SKIPPED in so many
//! words.

use std::time::Duration;

use compat_tests::faults::bench::say;
use compat_tests::faults::damage::Flip;
use compat_tests::faults::{Bench, Profile};

use crate::{all_is_well, by_form, cycles, impatient_nodes, load, turn};

const DISK_MIB: u64 = 256;

/// Runs cycles on nodes with disks of their own. What is done to the leader of a partition moves the leadership.
fn on_disks(name: &str, changes_each: usize, fault: impl Fn(&mut Bench, i32)) {
    let _turn = turn();
    match Bench::start_on_disks(DISK_MIB, impatient_nodes()) {
        Ok(bench) => run(name, bench, changes_each, fault),
        Err(why) => say(&format!("SKIPPED: {name} needs disks of its own: {why}")),
    }
}

fn run(name: &str, mut bench: Bench, changes_each: usize, fault: impl Fn(&mut Bench, i32)) {
    let cycles = cycles(1);
    bench.run_for(all_is_well());
    for cycle in 0..cycles {
        let leader = bench.leader(i32::try_from(cycle % 3).expect("small"));
        fault(&mut bench, leader);
        bench.run_for(all_is_well());
    }
    let report = bench.finish();
    say(&format!("--- {name}, {cycles} cycles\n{report}"));
    report.assert_not_vacuous(100 * cycles, cycles, changes_each * cycles);
}

fn away() -> Duration {
    by_form(Duration::from_millis(500), Duration::from_secs(3))
}

#[test]
fn powercut_leader() {
    on_disks("powercut_leader", 1, |bench, leader| bench.cut_power(&[leader], away()));
}

/// No machine has what was not synced.
#[test]
fn powercut_all() {
    on_disks("powercut_all", 1, |bench, _| bench.cut_power(&[1, 2, 3], away()));
}

/// The disk refuses everything while the node goes on.
#[test]
fn disk_error_leader() {
    on_disks("disk_error_leader", 1, |bench, leader| bench.fail_disk(leader));
}

/// Syncs alone fail: what was written since may be gone, whatever the next sync says.
#[test]
fn fsync_eio_leader() {
    let _turn = turn();
    run("fsync_eio_leader", Bench::start(impatient_nodes()), 0, |bench, leader| {
        if let Err(why) = bench.fail_syncs(leader) {
            say(&format!("SKIPPED: fsync_eio_leader: {why}"));
        }
    });
}

#[test]
fn enospc_leader() {
    let time = by_form(Duration::from_secs(1), Duration::from_secs(10));
    on_disks("enospc_leader", 0, |bench, leader| bench.fill_disk(leader, time));
}

/// Without the flush journal, which would write over the wrong bit at the next start.
fn without_journal() -> Bench {
    Bench::start(Profile { cluster: vec![("flush.policy", "os")], ..load() })
}

/// A copy with a wrong bit is found out when its node comes back, and made again from what the others have.
#[test]
fn bitflip_log() {
    let _turn = turn();
    run("bitflip_log", without_journal(), 1, |bench, leader| {
        bench.turn_bit_over(leader, 0, Flip::Middle);
        let follower = bench.cluster.ids().find(|id| *id != bench.leader(0)).expect("another node");
        bench.turn_bit_over(follower, 0, Flip::Early);
    });
}
