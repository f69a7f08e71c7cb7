//! Nodes that stand still for a while, and nodes that are restarted as an operator does it.

use std::time::Duration;

use compat_tests::faults::bench::say;
use compat_tests::faults::{Bench, Fault, Profile};

use crate::{alone, cycles};

fn pause(name: &str, time: Duration) {
    let _alone = alone();
    let mut bench = Bench::start(Profile::default());
    bench.run_for(Duration::from_secs(1));
    let cycles = cycles(1);
    for cycle in 0..cycles {
        bench.inflict(Fault::PauseLeader(i32::try_from(cycle % 3).expect("small"), time), Duration::ZERO);
        bench.run_for(Duration::from_millis(500));
    }
    let report = bench.finish();
    say(&format!("--- {name}, {cycles} cycles\n{report}"));
    report.assert_not_vacuous(100 * cycles, cycles, cycles);
}

/// Longer than the session: others lead when it wakes up, and it still holds requests of before.
#[test]
#[ignore = "half a minute"]
fn pause_then_heal_zombie_write() {
    pause("pause_then_heal_zombie_write", Duration::from_secs(8));
}

#[test]
#[ignore = "a minute"]
fn pause_leader_30s() {
    pause("pause_leader_30s", Duration::from_secs(30));
}

/// No error reaches the application.
#[test]
#[ignore = "half a minute; an idempotent record was stored twice in one run of eight: see the open issue"]
fn rolling_restart() {
    let _alone = alone();
    let mut bench = Bench::start(Profile { patience: Duration::from_secs(60), ..Profile::default() });
    bench.run_for(Duration::from_secs(1));
    let cycles = cycles(1);
    for _ in 0..cycles {
        bench.inflict(Fault::RollingRestart, Duration::ZERO);
        bench.run_for(Duration::from_millis(500));
    }
    let report = bench.finish();
    say(&format!("--- rolling_restart, {cycles} cycles\n{report}"));
    assert_eq!((report.failed, report.unknown), (0, 0), "errors reached the application\n{report}");
    report.assert_not_vacuous(300 * cycles, 3 * cycles, cycles);
}
