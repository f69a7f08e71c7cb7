//! Floor 1: the one seam to the machine. Clock, disk, randomness, network, tasks and the key-value store are reached through
//! here and nowhere else (`clippy.toml` bans the rest), so that a simulated twin can stand in for each.

pub mod clock;
pub mod disk;
pub mod entropy;
pub mod kv;
pub mod life;
pub mod net;
pub mod raft_runtime;
pub mod real;
pub mod sim;
pub mod task;

use std::sync::Arc;

pub use clock::Clock;
pub use disk::{Disk, DiskFile, OpenMode};
pub use entropy::Entropy;
pub use kv::{KeyValueStore, KvEdit, StoreOpener};
pub use net::Net;
pub use task::Workers;

/// What a component needs of the machine, in one cheap-to-clone bundle.
#[derive(Clone)]
pub struct Host {
    pub clock: Arc<dyn Clock>,
    pub disk: Arc<dyn Disk>,
    pub entropy: Arc<dyn Entropy>,
    pub net: Arc<dyn Net>,
    pub stores: StoreOpener,
    pub workers: Workers,
}

impl Host {
    /// The machine we run on.
    pub fn real() -> Host {
        Host {
            clock: Arc::new(real::RealClock::new()),
            disk: Arc::new(real::RealDisk::new()),
            entropy: Arc::new(real::RealEntropy),
            net: Arc::new(real::RealNet),
            stores: Arc::new(|path| Ok(Arc::new(real::SledStore::open(path)?) as Arc<_>)),
            workers: Workers::Threads,
        }
    }
}
