//! The simulated twin: a machine in memory whose disk loses what was not synced, tears writes, fills up and fails; whose clock
//! moves when told; whose randomness has a seed.

mod clock;
mod disk;
mod disk_node;
mod entropy;
mod kv;

use std::sync::Arc;

pub use clock::SimClock;
pub use disk::SimDisk;
pub use disk_node::Crash;
pub use entropy::SimEntropy;
pub use kv::{SimKv, SimKvStore};

use super::Host;

/// A machine of one's own. The parts stay at hand for steering.
#[derive(Clone)]
pub struct SimHost {
    pub clock: Arc<SimClock>,
    pub disk: Arc<SimDisk>,
    pub entropy: Arc<SimEntropy>,
}

impl SimHost {
    /// Everything that looks random in it follows from `seed`.
    pub fn new(seed: u64) -> SimHost {
        SimHost {
            clock: Arc::new(SimClock::new(1_700_000_000_000)),
            disk: Arc::new(SimDisk::new(seed)),
            entropy: Arc::new(SimEntropy::new(seed)),
        }
    }

    pub fn host(&self) -> Host {
        Host { clock: self.clock.clone(), disk: self.disk.clone(), entropy: self.entropy.clone() }
    }
}
