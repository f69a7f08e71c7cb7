//! Facts about the machine, told with a bench that does what the driver does, but with a clock that is set by hand and a log that
//! is a vector.

mod bench;
mod commit_table;
mod deletion;
mod join;
mod rebalance;
mod sessions;
mod static_members;
mod walk;
