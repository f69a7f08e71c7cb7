//! Consumer groups and their offsets, living in `__consumer_offsets`. `machine` is what one partition of it knows, built from
//! `classic` (groups) and `offsets`; `record` is its byte format; `driver` connects it to the log, the clock and those who wait.

mod admin;
pub mod classic;
pub mod config;
pub mod driver;
mod fetch;
pub mod machine;
pub mod offsets;
pub mod record;
pub mod words;

pub use admin::Deletions;
pub use config::GroupConfig;
pub use driver::GroupCoordinator;
pub use driver::log::{AppendRefused, CommitFailed, CommitWait, OffsetsLog, ReadFailed};
pub use machine::Machine;

#[cfg(test)]
mod tests;
