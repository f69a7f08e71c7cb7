//! Floor 9: the composition root and the connections.
mod connection;
mod input;
mod listener;
mod output;
mod refusal;
mod shard;
