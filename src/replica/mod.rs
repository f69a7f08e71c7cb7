//! Floor 5: partitions. A partition is a log, what readers may see of it, and who waits for it; around them stand the group commit,
//! the housekeeper, and the table that follows the metadata image. One replica so far: this node leads whatever it holds.

mod ack;
mod append_rules;
mod checkpoints;
mod dir_health;
#[cfg(test)]
mod durability_tests;
mod error;
mod flusher;
pub mod journal;
mod maintenance;
mod partition;
mod partitions;
mod sync_wait;
mod tail;
mod waiter;

pub use ack::{AckTicket, AckWait};
pub use checkpoints::Checkpoints;
pub use dir_health::DirHealth;
pub use error::PartitionError;
pub use flusher::{FlushPolicy, Flusher};
pub use maintenance::{Maintenance, MaintenanceIntervals};
pub use partition::{Checkpointed, Partition, SyncMark};
pub use partitions::{ConfigSource, Partitions, TopicReplicas};
pub use sync_wait::SyncWait;
pub use waiter::{Waiter, Waiters};
