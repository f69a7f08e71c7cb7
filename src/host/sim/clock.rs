//! The simulated clock.

//! A clock that stands still until a test moves it.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use tokio::time::Instant;

use crate::base::TimestampMs;
use crate::host::Clock;

/// A clock that stands still until it is moved.
pub struct SimClock {
    now_ms: AtomicI64,
    monotonic_nanos: AtomicU64,
}

impl SimClock {
    pub fn new(now_ms: TimestampMs) -> SimClock {
        SimClock { now_ms: AtomicI64::new(now_ms), monotonic_nanos: AtomicU64::new(0) }
    }

    /// Lets time pass.
    pub fn advance_ms(&self, ms: u64) {
        self.now_ms.fetch_add(i64::try_from(ms).unwrap_or(i64::MAX), Ordering::SeqCst);
        self.monotonic_nanos.fetch_add(ms.saturating_mul(1_000_000), Ordering::SeqCst);
    }

    /// Makes the wall clock jump, in either direction; the monotonic one does not notice.
    pub fn set_now_ms(&self, now_ms: TimestampMs) {
        self.now_ms.store(now_ms, Ordering::SeqCst);
    }
}

impl Clock for SimClock {
    fn now_ms(&self) -> TimestampMs {
        self.now_ms.load(Ordering::SeqCst)
    }

    fn monotonic_nanos(&self) -> u64 {
        self.monotonic_nanos.load(Ordering::SeqCst)
    }
}

/// The runtime's clock, which jumps ahead when a paused runtime has nothing to do: time for whole simulated nodes.
pub struct RuntimeClock {
    began: Instant,
    began_ms: TimestampMs,
}

impl RuntimeClock {
    /// The wall clock shows `now_ms` now; must be called inside a runtime.
    pub fn new(now_ms: TimestampMs) -> RuntimeClock {
        RuntimeClock { began: tokio::time::Instant::now(), began_ms: now_ms }
    }
}

impl Clock for RuntimeClock {
    fn now_ms(&self) -> TimestampMs {
        let since = i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX);
        self.began_ms.saturating_add(since)
    }

    fn monotonic_nanos(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}
