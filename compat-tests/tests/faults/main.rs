//! Faults on three real nodes under load, each scenario by its name. `BARNABAS_FAULTS=N` sets the number of cycles and
//! `BARNABAS_FAULT_SEED` what `random_faults` does; with neither, a run is short. The scenarios are ignored by default:
//! `cargo test -p compat-tests --test faults -- --include-ignored --nocapture`.

mod cutting;
mod killing;
mod random;
mod stopping;
mod topics;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Cycles of a scenario.
fn cycles(default: usize) -> usize {
    std::env::var("BARNABAS_FAULTS").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

/// One scenario at a time, or they would be faults of one another.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}
