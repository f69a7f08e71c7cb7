//! Floor 5: agreement on metadata records. [`Quorum`] has a record on the disks of a majority before anybody sees its effect, and
//! publishes each new image; one node is a quorum of one, with the same code. The agreement itself is the Raft library's; what is
//! kept, when to campaign, and what other nodes may ask of this one is decided here.
//!
//! On disk, in `<log dir>/__cluster_metadata-0/`: the log (segments of record batches, the truth), snapshots (`*.checkpoint`, the
//! image as records), `quorum-state` (what this node promised to others, and an end that the log must reach), and `image/`, a
//! key-value store with the image in it. The store may vanish or be damaged at any time: it is rebuilt from the others.

mod addresses;
mod bootstrap;
mod codec;
mod core;
mod describe;
mod door;
mod elector;
mod error;
mod handle;
mod hard_state;
mod hearing;
mod load;
mod log_store;
mod machine;
mod membership;
#[cfg(test)]
mod memory;
mod metalog;
mod network;
mod proposals;
mod rpc;
mod scan;
mod snapshot;
mod steward;
mod store;
mod store_writer;
mod transport;
mod types;
mod unreached;
mod voteless;

pub use self::core::{Leadership, QuorumTiming};
pub use describe::{QuorumDescription, VoterDescription};
pub use error::QuorumError;
pub use handle::{Quorum, QuorumOptions};
pub use load::DIRECTORY;
#[cfg(test)]
pub use memory::MemoryNetwork;
pub use store::StoreOpener;
#[cfg(test)]
pub use transport::NoTransport;
pub use transport::{RaftTransport, TransportError};

#[cfg(test)]
mod tests;
