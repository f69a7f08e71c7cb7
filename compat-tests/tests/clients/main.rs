//! The rdkafka suite: what a user of librdkafka does all day, against the real binary.

mod admin;
mod consuming;
mod groups;
mod log_dirs;
mod metrics;
mod producing;
mod restarts;
