//! The simulated twin: in-memory disk, clock that is told the time, seeded randomness.
