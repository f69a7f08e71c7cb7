//! The real twin: this machine.

mod clock;
mod disk;
mod entropy;
mod memory;
pub mod net;
mod sled_store;

pub use clock::RealClock;
pub use disk::RealDisk;
pub use entropy::RealEntropy;
pub use memory::refuse_huge_pages;
pub use net::RealNet;
pub use sled_store::SledStore;
