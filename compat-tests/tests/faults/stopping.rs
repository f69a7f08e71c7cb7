//! Nodes that stand still for a while, and nodes that are restarted as an operator does it.

use std::time::Duration;

use compat_tests::faults::bench::say;
use compat_tests::faults::{Bench, Fault, Profile};

use crate::{all_is_well, by_form, cycles, impatient_nodes, load, turn};

fn pause(name: &str, time: Duration) {
    let _turn = turn();
    let mut bench = Bench::start(impatient_nodes());
    bench.run_for(all_is_well());
    let cycles = cycles(1);
    for cycle in 0..cycles {
        bench.pause(bench.leader(i32::try_from(cycle % 3).expect("small")), time, true);
        bench.run_for(all_is_well());
    }
    let report = bench.finish();
    say(&format!("--- {name}, {cycles} cycles\n{report}"));
    report.assert_not_vacuous(100 * cycles, cycles, cycles);
}

/// Longer than the session: others lead when it wakes up, and it still holds requests of before.
#[test]
fn pause_then_heal_zombie_write() {
    pause("pause_then_heal_zombie_write", by_form(Duration::from_millis(2500), Duration::from_secs(8)));
}

/// Longer than any timeout of the nodes' among themselves; in the short form those are short.
#[test]
fn pause_leader_30s() {
    pause("pause_leader_30s", by_form(Duration::from_secs(4), Duration::from_secs(30)));
}

/// No error reaches the application.
#[test]
fn rolling_restart() {
    let _turn = turn();
    // Often enough that several batches of a partition are on their way when its leader goes.
    let pause = by_form(Duration::from_millis(4), Duration::from_millis(1));
    let mut bench = Bench::start(Profile { patience: Duration::from_secs(60), pause, ..load() });
    bench.run_for(all_is_well());
    let cycles = cycles(1);
    for _ in 0..cycles {
        bench.inflict(Fault::RollingRestart, Duration::ZERO);
        bench.run_for(all_is_well());
    }
    let report = bench.finish();
    say(&format!("--- rolling_restart, {cycles} cycles\n{report}"));
    assert_eq!((report.failed, report.unknown), (0, 0), "errors reached the application\n{report}");
    assert!(report.new_epochs.is_empty(), "the producer lost count, and may have sent something twice\n{report}");
    report.assert_not_vacuous(300 * cycles, 3 * cycles, cycles);
}
