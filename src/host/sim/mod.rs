//! The simulated twin: a machine in memory whose disk loses what was not synced, tears writes, fills up and fails; whose clock
//! moves when told; whose randomness has a seed.

mod clock;
#[cfg(test)]
pub mod determinism;
mod disk;
mod disk_node;
mod entropy;
mod kv;
pub mod net;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

pub use clock::{RuntimeClock, SimClock};
pub use disk::SimDisk;
pub use disk_node::Crash;
pub use entropy::SimEntropy;
pub use kv::{SimKv, SimKvStore};
pub use net::SimNet;

use super::net::Net;
use super::{Clock, Host, task};

/// A machine of one's own. The parts stay at hand for steering.
#[derive(Clone)]
pub struct SimHost {
    pub clock: Arc<SimClock>,
    pub disk: Arc<SimDisk>,
    pub entropy: Arc<SimEntropy>,
    pub stores: Arc<SimKv>,
    net: Arc<dyn Net>,
    place: Arc<(SimNet, String, IpAddr)>,
}

impl SimHost {
    /// Everything that looks random in it follows from `seed`. It is alone on its network.
    pub fn new(seed: u64) -> SimHost {
        SimHost::on(&SimNet::new(seed), "alone", IpAddr::V4(Ipv4Addr::LOCALHOST), seed)
    }

    /// A machine on a network.
    pub fn on(net: &SimNet, name: &str, ip: IpAddr, seed: u64) -> SimHost {
        SimHost {
            clock: Arc::new(SimClock::new(1_700_000_000_000)),
            disk: Arc::new(SimDisk::new(seed)),
            entropy: Arc::new(SimEntropy::new(seed)),
            stores: Arc::default(),
            net: net.machine(name, ip),
            place: Arc::new((net.clone(), name.to_owned(), ip)),
        }
    }

    /// The machine as a new process finds it: the same disk and stores, and a disk and a network that know nothing
    /// of the old one.
    pub fn restarted(&self) -> SimHost {
        let (net, name, ip) = &*self.place;
        SimHost { net: net.machine(name, *ip), disk: Arc::new(self.disk.mounted()), ..self.clone() }
    }

    /// The machine under a clock that stands still until it is moved.
    pub fn host(&self) -> Host {
        self.host_with(self.clock.clone())
    }

    /// The machine under another clock, for example the runtime's.
    pub fn host_with(&self, clock: Arc<dyn Clock>) -> Host {
        let stores = self.stores.clone();
        Host {
            clock,
            disk: self.disk.clone(),
            entropy: self.entropy.clone(),
            net: self.net.clone(),
            stores: Arc::new(move |path| Ok(stores.open(path)? as Arc<_>)),
            workers: task::Workers::Tasks,
        }
    }
}
