//! What the coordinator needs of `__consumer_offsets`. Whoever keeps partitions implements it.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use thiserror::Error;

use crate::base::{Offset, PartitionIndex};

/// Resolves when what was appended may be spoken of: it is below the high watermark and, where `flush.policy` asks for it, on disk.
/// Also resolves, with an error, when that takes too long (`offsets.commit.timeout.ms`).
pub type CommitWait = Pin<Box<dyn Future<Output = Result<(), CommitFailed>> + Send>>;

/// Why nothing was appended.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum AppendRefused {
    #[error("this broker does not lead the partition")]
    NotLeader,
    #[error("too few replicas are in sync")]
    NotEnoughReplicas,
    #[error("the batch is larger than the topic allows")]
    TooLarge,
    /// Nothing can be written for now; what was written stands.
    #[error("the disk is full")]
    DiskFull,
    /// The disk failed: it may have lost more than this batch.
    #[error("the log directory is out of service")]
    Storage,
}

/// Why what was appended is not known to be committed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum CommitFailed {
    #[error("the leadership was lost")]
    NotLeader,
    #[error("the replicas took too long")]
    TimedOut,
    /// The log may lack it.
    #[error("the log directory failed")]
    Storage,
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct ReadFailed(pub String);

pub trait OffsetsLog: Send + Sync {
    /// How many partitions `__consumer_offsets` has; 0 while the topic does not exist.
    fn partitions(&self) -> i32;

    /// Appends one batch (base offset 0, to be stamped) as the leader. Does not wait for the disk; called under a lock.
    fn append(&self, partition: PartitionIndex, batch: Bytes) -> Result<CommitWait, AppendRefused>;

    /// The next whole batches from `offset` on, `None` at the end. An error where the disk is not trusted any more. May block.
    fn read_from(&self, partition: PartitionIndex, offset: Offset) -> Result<Option<Bytes>, ReadFailed>;

    fn log_end(&self, partition: PartitionIndex) -> Offset;

    /// `None` when everything appended so far is committed, else what to wait for until it is. A reader of offsets waits for it, so
    /// that nobody is shown an offset that a crash takes back.
    fn committed(&self, _partition: PartitionIndex) -> Option<CommitWait> {
        None
    }

    /// Whether this broker is fenced, or has not heard of a controller for a session. Then another one may know more by now.
    fn may_have_successors(&self) -> bool {
        false
    }
}
