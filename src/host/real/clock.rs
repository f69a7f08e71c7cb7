//! The real clocks: the system's wall clock and its monotonic one.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::base::TimestampMs;
use crate::host::Clock;

/// The system's clocks.
pub struct RealClock {
    started: Instant,
}

impl RealClock {
    #[expect(clippy::disallowed_methods, clippy::new_without_default, reason = "this is the seam")]
    pub fn new() -> RealClock {
        RealClock { started: Instant::now() }
    }
}

impl Clock for RealClock {
    #[expect(clippy::disallowed_methods, reason = "this is the seam")]
    fn now_ms(&self) -> TimestampMs {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => TimestampMs::try_from(since.as_millis()).unwrap_or(TimestampMs::MAX),
            Err(_) => 0,
        }
    }

    fn monotonic_nanos(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}
