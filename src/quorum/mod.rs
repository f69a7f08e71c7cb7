//! Floor 5: agreement on metadata records. [`Quorum`] keeps a record on disk before anybody sees its effect, and publishes each new
//! image; today there is one local voter, a later quorum of several stands behind the same interface.
//!
//! On disk, in `<log dir>/__cluster_metadata-0/`: the log (segments of record batches, the truth), snapshots (`*.checkpoint`, the
//! image as records), `quorum-state` (epoch and an end that the log must reach), and `image/`, a key-value store with the image in
//! it. The store may vanish or be damaged at any time: it is rebuilt from the others.

mod codec;
mod committer;
mod error;
mod handle;
mod leadership;
mod load;
mod metalog;
mod scan;
mod snapshot;
mod state;
mod store;
mod store_writer;

pub use error::QuorumError;
pub use handle::{Quorum, QuorumDescription, QuorumOptions, VoterDescription};
pub use leadership::{Leadership, RaftTransport, TransportError};
pub use load::DIRECTORY;
pub use store::StoreOpener;

#[cfg(test)]
mod tests;
