//! Drives the real `barnabas` binary with real Kafka clients and with raw sockets. Nothing here shares code with the broker: the wire
//! helpers are written a second time on purpose, so that one mistake cannot hide in both.

pub mod batch;
pub mod binary;
pub mod broker;
pub mod clients;
pub mod cluster;
pub mod faults;
pub mod members;
pub mod ports;
pub mod wait;
pub mod wire;

pub use broker::Broker;
pub use cluster::Cluster;
pub use wait::until;
