//! The clock seam. Waiting is in [`super::task`].

use crate::base::{MonotonicMs, TimestampMs};

pub trait Clock: Send + Sync {
    /// Wall-clock time. For record timestamps and retention only.
    fn now_ms(&self) -> TimestampMs;

    /// Time that never goes back. For sessions, timeouts and latencies.
    fn monotonic_ms(&self) -> MonotonicMs {
        self.monotonic_nanos() / 1_000_000
    }

    fn monotonic_nanos(&self) -> u64;
}
