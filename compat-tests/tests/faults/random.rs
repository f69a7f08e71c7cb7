//! All kinds of faults in an order that a seed decides.

use compat_tests::faults::bench::say;
use compat_tests::faults::{Bench, Plan};

use crate::{by_form, cycles, load, turn};

#[test]
fn random_faults() {
    let _turn = turn();
    let seed = std::env::var("BARNABAS_FAULT_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let cycles = by_form(3, 10 * cycles(1));
    say(&format!("--- random_faults, seed {seed}, {cycles} cycles"));
    let profile = load();
    let mut plan = Plan::new(seed, profile.partitions);
    let mut bench = Bench::start(profile);
    for cycle in 0..cycles {
        bench.run_for(plan.quiet());
        let (fault, away) = plan.draw();
        say(&format!("{cycle}: {fault:?}, away {away:?}"));
        bench.inflict(fault, away);
    }
    let report = bench.finish();
    say(&format!("--- random_faults, seed {seed}, {cycles} cycles\n{report}"));
    report.assert_not_vacuous(100 * cycles, cycles, cycles / 2);
}
