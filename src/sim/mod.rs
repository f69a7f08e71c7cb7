//! Floor 10, tests only: three real nodes in one thread over simulated clock, network and disks, clients that speak the real protocol to
//! them, faults, and checkers that hold what clients and nodes saw against the promises.
//!
//! A run follows from one number, its seed: faults, delays, what clients do and what a power cut leaves of a disk are all drawn from it,
//! and the same seed gives the same run to the last byte on the network. `docs/simulation.md` says how to look into one.
//!
//! | module | what |
//! |---|---|
//! | `cluster` | machines and the processes on them: start, stop, crash, restart |
//! | `faults` | what goes wrong, and when |
//! | `scripts/` | histories that are told step by step |
//! | `client/` | producers, readers, a group's consumer, an administrator |
//! | `history` | what clients saw, held against what must hold as it comes in |
//! | `check/` | what nodes look like from inside: leaders, high watermarks, metadata, logs |
//! | `run` | one run from its seed to its verdict |
//! | `child` | a run in a process of its own |
//! | `tests` | batches of seeds, each in a process of its own; the same seed twice; protections switched off |

mod check;
mod child;
mod client;
mod cluster;
mod dice;
mod faults;
mod history;
mod process;
mod run;
mod scripts;
#[cfg(test)]
mod tests;
