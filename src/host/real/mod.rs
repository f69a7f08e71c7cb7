//! The real twin: this machine.

mod clock;
mod disk;
mod entropy;
pub mod net;
mod sled_store;

pub use clock::RealClock;
pub use disk::RealDisk;
pub use entropy::RealEntropy;
pub use net::RealNet;
pub use sled_store::SledStore;
