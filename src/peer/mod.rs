//! Floor 4: this node as a client of other nodes. [`Peers`] keeps one connection for each other node and purpose, over which requests
//! follow one another without waiting; whoever asks gets an answer or an error within the time it gave.
//!
//! The first request of every connection says who is calling ([`Hello`]); its answer says who was reached. There is no retry here: who
//! asks knows whether asking twice does harm. A node that cannot be reached is tried again by the next request, after a short pause.

mod error;
mod hello;
mod line;
mod pool;

pub use error::PeerError;
pub use hello::{Hello, HelloAnswer, LeaderHint, PeerIdentity};
pub use pool::{Myself, Peers, Purpose};

#[cfg(test)]
mod tests;
