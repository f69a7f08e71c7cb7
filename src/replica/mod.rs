//! Floor 5: partitions. A partition is a log, what readers may see of it, and who waits for it; around them stand the group commit, the
//! housekeeper, and the table that follows the metadata image.
//!
//! | file | what it is |
//! |---|---|
//! | `leader`, `follower` | the two sides of replication, pure |
//! | `partition` | a partition's state and hot path; `partition_lead`, `partition_follow`, `partition_acks` hold methods by purpose |
//! | `role` | what this node is for a partition |
//! | `partitions` | the table |
//! | `fetcher/`, `isr` | drivers: fetching from leaders, proposing in-sync sets |
//! | `log_dirs`, `stock`, `moving/` | the directories, where a replica lies, its way from one to another |
//! | `lanes`, `flusher`, `journal/`, `maintenance`, `reserve` | the disks |
//! | `scrub`, `damage`, `rebuild` | looking for copies that are not what was written, knowing of them, making them whole |

mod ack;
mod append_rules;
mod checkpoints;
mod damage;
#[cfg(test)]
mod deletion_tests;
mod dir_health;
#[cfg(test)]
mod durability_tests;
mod error;
mod fetcher;
mod flusher;
#[cfg(test)]
mod follow_tests;
pub mod follower;
mod isr;
pub mod journal;
mod lanes;
pub mod leader;
#[cfg(test)]
mod leader_tests;
mod log_dirs;
mod maintenance;
#[cfg(test)]
mod model;
mod moving;
mod partition;
mod partition_acks;
mod partition_follow;
mod partition_lead;
mod partition_sync;
mod partitions;
mod rebuild;
#[cfg(test)]
mod replication_tests;
mod reserve;
mod role;
mod scrub;
mod stock;
mod strays;
mod sync_wait;
mod tail;
mod throttle;
mod waiter;

pub use ack::{AckFailure, AckTicket, AckWait};
pub use checkpoints::Checkpoints;
pub use damage::{Confirmed, CopySeen};
pub use dir_health::DirHealth;
pub use error::PartitionError;
pub use fetcher::{FetchFailed, FetcherOptions, Fetchers, ReplicaFetch};
pub use flusher::FlushPolicy;
pub use isr::{IsrAnswers, IsrDriver, IsrProposal, IsrProposals, ProposeFailed};
pub use lanes::Flusher;
pub use leader::{FollowerFetch, NotCounted, Proposal, Rules};
pub use log_dirs::{FoundDir, LogDir, LogDirs};
pub use maintenance::{Maintenance, MaintenanceIntervals};
pub use moving::{FutureReplica, MoveRefused, Mover};
pub use partition::{Checkpointed, Partition};
pub use partition_follow::{FollowError, LeaderSays};
pub use partitions::{ConfigSource, Partitions, TopicReplicas};
pub use rebuild::{CareFailed, CopyCare, GiveUpAnswers, GivenUp, Rebuilder};
pub use reserve::Reserve;
pub use role::{ReplicaOptions, Role};
pub use scrub::{ScrubOptions, Scrubber};
pub use sync_wait::{SyncWait, Unanswered, sync_up_to};
pub use waiter::{Waiter, Waiters};
