//! Barnabas: a message broker that speaks the Kafka wire protocol. `docs/ARCHITECTURE.md` is the map; the modules below are its
//! floors, lowest first, and each imports only from floors beneath it (`tests/architecture.rs`).

pub mod base;

pub mod host;
pub mod records;
pub mod telemetry;

pub mod metadata;
pub mod wire;

pub mod log;
pub mod security;

pub mod peer;

pub mod quorum;
pub mod replica;

pub mod controller;
pub mod coordinator;

pub mod api;

pub mod admin;
pub mod config;

pub mod server;

pub mod cli;

#[cfg(test)]
mod sim;
