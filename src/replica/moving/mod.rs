//! A replica on its way to another log directory of this node (KIP-113, KIP-858). It is copied into a directory of its own beside the other
//! replicas there, while it is written and read where it is. When the copy has caught up, the controller is told of the new place; when
//! that is in the metadata, the copy takes the replica's place between two writes.
//!
//! | file | what it is |
//! |---|---|
//! | `orders` | what AlterReplicaLogDirs asks for: begin, redirect, cancel |
//! | `copy` | making the copy agree with the replica, and longer |
//! | `swap` | the copy becomes the replica; safe at every point of a crash |
//! | `worker` | the one thread that does it, for all replicas in turn |
//!
//! After a crash [`super::stock`] finds the copy beside the replica and the move goes on.

mod copy;
mod orders;
mod swap;
#[cfg(test)]
mod tests;
mod worker;

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use uuid::Uuid;

use crate::base::Offset;
use crate::log::{AppendError, Log, LogError};
use crate::metadata::PartitionState;
use crate::replica::partition::{Checkpointed, Partition};

pub use orders::MoveRefused;
pub use worker::Mover;

/// What the metadata says of a replica that is in no directory.
const LOST: Uuid = Uuid::from_u128(1);

/// A copy in the making.
pub(super) struct Moving {
    /// The place of the directory it goes to.
    to: usize,
    /// The copy's own directory.
    dir: PathBuf,
    /// What was remembered of the copy.
    checkpointed: Checkpointed,
    /// `None` until the worker opens it.
    log: Option<Box<Log>>,
    /// How often the replica had been cut when the copy was last held against it.
    compared: Option<u64>,
    /// It was cut, and the checkpoint files may say more of it than there is: nothing is written to it before they are put right.
    is_cut: bool,
    unsynced_bytes: usize,
    /// How often it could not be swapped because too much had come meanwhile.
    late: u32,
}

/// A copy as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FutureReplica {
    /// The place of its directory among the node's.
    pub dir: usize,
    pub size_bytes: u64,
    pub log_end_offset: Offset,
}

/// Why a move does not go on.
#[derive(Debug, thiserror::Error)]
enum MoveError {
    /// Deleted, or its move was cancelled.
    #[error("the replica is not moving any more")]
    Over,
    /// The replica changed under the hands of the copy: the next look is another one.
    #[error("the replica changed meanwhile")]
    Changed,
    #[error("the replica cannot be read: {0}")]
    Source(LogError),
    #[error("the replica cannot be read: {0}")]
    Read(std::io::Error),
    #[error("the replica is offline")]
    Offline,
    #[error("the copy cannot be written: {0}")]
    Copy(LogError),
    #[error("the replica cannot be copied: {0}")]
    Impossible(String),
}

impl MoveError {
    fn of_append(error: AppendError) -> MoveError {
        match error {
            AppendError::Storage(error) => MoveError::Copy(error),
            error => MoveError::Impossible(error.to_string()),
        }
    }
}

impl Moving {
    fn new(to: usize, dir: PathBuf, checkpointed: Checkpointed, log: Option<Box<Log>>) -> Moving {
        Moving { to, dir, checkpointed, log, compared: None, is_cut: false, unsynced_bytes: 0, late: 0 }
    }
}

impl Partition {
    /// The copy that is being made of it in another directory.
    pub fn future(&self) -> Option<FutureReplica> {
        let moving = self.moving.lock();
        let moving = moving.as_ref()?;
        let log = moving.log.as_ref();
        Some(FutureReplica {
            dir: moving.to,
            size_bytes: log.map_or(0, |log| log.size_bytes()),
            log_end_offset: log.map_or(0, |log| log.log_end_offset()),
        })
    }

    pub(super) fn future_dir(&self) -> Option<PathBuf> {
        self.moving.lock().as_ref().map(|moving| moving.dir.clone())
    }

    /// What the checkpoint files of the directory it goes to should say of the copy.
    pub(super) fn future_checkpoint(&self) -> Option<(usize, Checkpointed)> {
        let moving = self.moving.lock();
        let moving = moving.as_ref()?;
        let at = match &moving.log {
            Some(log) => Checkpointed {
                clean_shutdown: false,
                recovery_point: log.recovery_point(),
                log_start_offset: Some(log.log_start_offset()),
                high_watermark: self.high_watermark().min(log.log_end_offset()),
            },
            None => moving.checkpointed,
        };
        Some((moving.to, at))
    }

    /// The node stops: the copy's log, to be closed.
    pub(super) fn take_future_log(&self) -> Option<(usize, Log)> {
        let moving = self.moving.lock().take()?;
        moving.log.map(|log| (moving.to, *log))
    }

    /// The directory that the controller is to be told of by this state of the partition, when it believes the replica elsewhere.
    pub fn claim(&self, state: &PartitionState) -> Option<Uuid> {
        let assigned = state.directory_of(self.common.options.node_id);
        let claimed = self.place_to_tell(assigned)?;
        (!self.is_last_and_lost(state, assigned)).then_some(claimed)
    }

    /// The directory with the copy that others count on is not here, and what is here is empty: as long as nobody else leads, the
    /// controller must not take the one for the other.
    fn is_last_and_lost(&self, state: &PartitionState, assigned: Option<Uuid>) -> bool {
        let me = self.common.options.node_id;
        let is_elsewhere = assigned.is_some_and(|assigned| !assigned.is_nil() && self.dirs.by_id(assigned).is_none());
        let has_another = state.has_leader() && state.leader != me;
        let counts = state.isr.contains(&me) || state.elr.contains(&me);
        is_elsewhere && !has_another && counts && state.replicas.len() > 1 && self.has_nothing()
    }

    fn has_nothing(&self) -> bool {
        match self.view_if_open() {
            Some(view) => view.log_end_offset == 0,
            None => !self.exists_on_disk(),
        }
    }

    fn place_to_tell(&self, assigned: Option<Uuid>) -> Option<Uuid> {
        let claimed = if self.is_missing() {
            // A directory that is not there is known to the controller as that.
            let is_here = assigned.is_none_or(|assigned| assigned.is_nil() || self.dirs.by_id(assigned).is_some());
            if is_here { LOST } else { return None }
        } else {
            self.dirs.at(self.wanted.load(Ordering::Acquire)).id
        };
        (assigned != Some(claimed) && !claimed.is_nil()).then_some(claimed)
    }
}
