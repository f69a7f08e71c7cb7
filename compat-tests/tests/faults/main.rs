//! Faults on three real nodes under load, each scenario by its name. `cargo test` runs the short form of each: as few cycles and as short a
//! time away as show something. `BARNABAS_FAULTS=N` runs the long form with N cycles, one scenario at a time; `random_faults` with ten
//! times as many, which `BARNABAS_FAULT_SEED` decides. `BARNABAS_FAULT_DIR` is where the history of a run that failed is kept,
//! and `BARNABAS_FAULT_DEBUG` what the clients tell it of themselves. Times are printed, not judged.
//!
//! What needs root (networks and disks of their own) says SKIPPED where it cannot have them.

mod cutting;
mod disks;
mod killing;
mod random;
mod stopping;
mod topics;

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use compat_tests::faults::Profile;

/// Short scenarios at the same time, whatever `--test-threads` says: three nodes each are enough for a small machine.
const SHORT_AT_ONCE: usize = 2;

fn asked() -> Option<usize> {
    std::env::var("BARNABAS_FAULTS").ok().and_then(|n| n.parse().ok())
}

/// Cycles of a scenario; this many in its short form.
fn cycles(short: usize) -> usize {
    asked().unwrap_or(short)
}

/// One of two values, by the form of the run.
fn by_form<T>(short: T, long: T) -> T {
    if asked().is_some() { long } else { short }
}

/// Before the first fault, and after the last.
fn all_is_well() -> Duration {
    by_form(Duration::from_millis(400), Duration::from_secs(1))
}

/// The usual load; less of it in the short form, which other tests may run beside.
fn load() -> Profile {
    let usual = Profile::default();
    Profile { pause: by_form(Duration::from_millis(10), usual.pause), ..usual }
}

/// The same on nodes that miss one another sooner in the short form.
fn impatient_nodes() -> Profile {
    let quick = vec![("broker.session.timeout.ms", "2000"), ("replica.lag.time.max.ms", "2000")];
    Profile { cluster: by_form(quick, Vec::new()), ..load() }
}

/// Scenarios that run now.
static RUNNING: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

/// A scenario's turn, until dropped.
struct Turn;

/// Waits until a scenario may run, so that they are not faults of one another.
fn turn() -> Turn {
    let most = by_form(SHORT_AT_ONCE, 1);
    let running = RUNNING.0.lock().unwrap_or_else(PoisonError::into_inner);
    let mut running = RUNNING.1.wait_while(running, |running| *running >= most).unwrap_or_else(PoisonError::into_inner);
    *running += 1;
    Turn
}

impl Drop for Turn {
    fn drop(&mut self) {
        *RUNNING.0.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        RUNNING.1.notify_one();
    }
}
