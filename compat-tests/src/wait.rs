//! Waiting for a fact instead of for a time: every wait of these tests goes through here and has a limit.

use std::thread::sleep;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(20);

/// Asks `fact` until it gives a value; panics with `what` after `limit`.
#[track_caller]
pub fn until<T>(what: &str, limit: Duration, mut fact: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(value) = fact() {
            return value;
        }
        assert!(Instant::now() < deadline, "after {limit:?} still no: {what}");
        sleep(PAUSE);
    }
}

/// True when `fact` holds at every look during `time`.
pub fn stays(time: Duration, mut fact: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + time;
    while Instant::now() < deadline {
        if !fact() {
            return false;
        }
        sleep(PAUSE);
    }
    true
}
