//! All kinds of faults in an order that a seed decides.

use compat_tests::faults::bench::say;
use compat_tests::faults::{Bench, Plan, Profile};

use crate::{alone, cycles};

#[test]
#[ignore = "minutes"]
fn random_faults() {
    let _alone = alone();
    let seed = std::env::var("BARNABAS_FAULT_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let cycles = cycles(5);
    say(&format!("--- random_faults, seed {seed}, {cycles} cycles"));
    let profile = Profile::default();
    let mut plan = Plan::new(seed, profile.partitions);
    let mut bench = Bench::start(profile);
    for cycle in 0..cycles {
        bench.run_for(plan.quiet());
        let (fault, away) = plan.draw();
        say(&format!("{cycle}: {fault:?}, away {away:?}"));
        bench.inflict(fault, away);
    }
    let report = bench.finish();
    say(&report.to_string());
    report.assert_not_vacuous(100 * cycles, cycles, cycles / 2);
}
