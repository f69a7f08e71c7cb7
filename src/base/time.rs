//! Time as numbers. Pure code never asks what time it is: it is told.

/// Wall-clock milliseconds since 1970, as in record timestamps. May jump in either direction.
pub type TimestampMs = i64;

/// Milliseconds since an arbitrary start that never go back. Sessions, timeouts and deadlines use these only (G1).
pub type MonotonicMs = u64;
