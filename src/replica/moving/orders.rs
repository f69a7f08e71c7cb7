//! What AlterReplicaLogDirs asks for: a move begins, goes elsewhere, or is over because the replica is where it shall be.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use uuid::Uuid;

use super::Moving;
use crate::base::TopicPartition;
use crate::log::{Log, LogError, OpenHow, future_dir_name};
use crate::metadata::PartitionState;
use crate::replica::lanes::Flusher;
use crate::replica::log_dirs::LogDir;
use crate::replica::partition::{Checkpointed, Partition, Slot};
use crate::replica::partitions::Partitions;

/// Why a replica is not moved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoveRefused {
    #[error("the topic's name leaves no room for the name of a copy's directory")]
    NameTooLong,
    #[error("{0} is none of the node's log directories")]
    NoSuchDirectory(String),
    #[error("offline: {0}")]
    Offline(String),
    /// The directory is remembered for the day when it is made here.
    #[error("this node has no replica of the partition yet")]
    NotHere,
    #[error("there is no such partition")]
    Unknown,
}

impl Partitions {
    /// Moves a partition's replica to the log directory `to`. Returns when the move has begun. Blocks.
    pub fn move_replica(&self, flusher: &Flusher, name: &TopicPartition, to: &str) -> Result<(), MoveRefused> {
        let unique = self.env().host.entropy.uuid().simple().to_string();
        let future = future_dir_name(&name.dir_name(), &unique).ok_or(MoveRefused::NameTooLong)?;
        let to = self.destination(to)?;
        let _turn = self.ordering();
        let Some(partition) = self.partition(&name.topic, name.partition) else {
            let is_known = self.image().partition(&name.topic, name.partition).is_some();
            self.dirs().wish(name, to.index);
            return Err(if is_known { MoveRefused::NotHere } else { MoveRefused::Unknown });
        };
        if let Some(failure) = partition.failure() {
            return Err(MoveRefused::Offline(failure.to_string()));
        }
        if partition.is_missing() {
            return Err(MoveRefused::Offline("the replica is in none of the log directories that work".to_owned()));
        }
        match partition.future() {
            Some(future) if future.dir == to.index => return Ok(()),
            Some(_) => self.end_move(&partition),
            None => {}
        }
        if partition.log_dir().index == to.index || partition.is_put_elsewhere(&to) {
            self.tell_place(&partition);
            return Ok(());
        }
        if self.dirs().some_are_offline() {
            return Err(MoveRefused::Offline("a log directory is offline, in which there may be a copy".to_owned()));
        }
        self.begin_move(flusher, &partition, &to, to.path.join(future))
    }

    fn destination(&self, path: &str) -> Result<Arc<LogDir>, MoveRefused> {
        let path = Path::new(path);
        match self.dirs().by_path(path) {
            Some(dir) => match dir.health.failure() {
                None => Ok(dir.clone()),
                Some(failure) => Err(MoveRefused::Offline(failure.to_string())),
            },
            None if self.dirs().missing().iter().any(|missing| missing.as_os_str() == path.as_os_str()) => {
                Err(MoveRefused::Offline("it could not be used when the node started".to_owned()))
            }
            None => Err(MoveRefused::NoSuchDirectory(path.display().to_string())),
        }
    }

    fn begin_move(
        &self,
        flusher: &Flusher,
        partition: &Arc<Partition>,
        to: &Arc<LogDir>,
        dir: PathBuf,
    ) -> Result<(), MoveRefused> {
        // It may hold pieces of the replica from when that was here, and would write them into the copy after a crash.
        if !flusher.empty_journal(to) {
            return Err(MoveRefused::Offline("the flush journal cannot be emptied now".to_owned()));
        }
        let identity = partition.identity.clone();
        let opened = Log::open(self.env(), dir.clone(), identity, partition.config(), OpenHow::default());
        let (log, _) = opened.map_err(|error| refused(partition, &error))?;
        let moving = Moving::new(to.index, dir, Checkpointed::default(), Some(Box::new(log)));
        *partition.moving.lock() = Some(moving);
        to.gained_replica();
        if partition.is_retired() {
            self.end_move(partition);
            return Err(MoveRefused::NotHere);
        }
        tracing::info!(
            partition = %partition.identity.topic_partition,
            from = %partition.log_dir().path.display(),
            to = %to.path.display(),
            "moving the replica to another log directory"
        );
        partition.moving_begins();
        Ok(())
    }

    /// Goes on with a move that the last run began.
    pub(in crate::replica) fn resume_move(
        &self,
        partition: &Arc<Partition>,
        to: usize,
        dir: PathBuf,
        checkpointed: Checkpointed,
        assigned: Option<Uuid>,
    ) {
        if assigned == Some(self.dirs().at(to).id) {
            // The controller was told already.
            partition.wanted.store(to, Ordering::Release);
        }
        *partition.moving.lock() = Some(Moving::new(to, dir, checkpointed, None));
        self.dirs().at(to).gained_replica();
        partition.moving_begins();
    }

    /// Ends a move without its replica having moved. The copy goes.
    pub(in crate::replica) fn end_move(&self, partition: &Arc<Partition>) {
        let Some(moving) = partition.moving.lock().take() else { return };
        if let Some(log) = moving.log {
            log.retire();
        }
        self.rename_for_removal(partition, &moving.dir);
        self.leave(partition, moving.to);
    }

    /// The same where the copy's directory cannot be touched.
    pub(super) fn abandon_move(&self, partition: &Arc<Partition>) {
        let Some(moving) = partition.moving.lock().take() else { return };
        if let Some(log) = moving.log {
            log.retire();
        }
        self.leave(partition, moving.to);
    }

    fn leave(&self, partition: &Arc<Partition>, to: usize) {
        let to = self.dirs().at(to);
        to.lost_replica();
        to.take_checkpointed(&partition.identity.topic_partition);
        partition.wanted.store(partition.log_dir().index, Ordering::Release);
        self.tell_place(partition);
    }

    /// The controller is to hear where the replica is, if it believes something else.
    pub(in crate::replica) fn tell_place(&self, partition: &Arc<Partition>) {
        if self.claim_of(partition).is_some() {
            self.common().misplaced.add(partition);
        }
    }

    /// Where the metadata believes the replica.
    pub(in crate::replica) fn assigned(&self, partition: &Partition) -> Option<Uuid> {
        self.look_up(partition, |state| state.directory_of(self.common().options.node_id))
    }

    /// What the metadata says of it.
    fn look_up<T>(&self, partition: &Partition, says: impl FnOnce(&PartitionState) -> Option<T>) -> Option<T> {
        let name = &partition.identity.topic_partition;
        self.image().partition(&name.topic, name.partition).and_then(|state| says(state))
    }
}

impl Partition {
    fn moving_begins(self: &Arc<Self>) {
        self.common.moving.add(self);
    }

    /// A replica that nobody has used yet has no directory: it is there as soon as it is said to be.
    fn is_put_elsewhere(&self, to: &LogDir) -> bool {
        let slot = self.slot.lock();
        let is_unused = matches!(&*slot, Slot::Unopened(known) if known.is_nothing()) && !self.exists_on_disk();
        if is_unused {
            self.log_dir().lost_replica();
            self.home.store(to.index, Ordering::Release);
            self.wanted.store(to.index, Ordering::Release);
            to.gained_replica();
        }
        is_unused
    }
}

fn refused(partition: &Partition, error: &LogError) -> MoveRefused {
    partition.note_storage(error);
    MoveRefused::Offline(error.to_string())
}

impl Partitions {
    /// Waits until there are partitions that the metadata may believe elsewhere.
    pub async fn any_misplaced(&self) {
        self.common().misplaced.filled().await;
    }

    /// Those partitions: what to tell the controller of each is [`Partitions::claim_of`] it then.
    pub fn take_misplaced(&self) -> Vec<Arc<Partition>> {
        self.common().misplaced.take()
    }

    /// What the controller is to be told of the partition's place, if it believes another one.
    pub fn claim_of(&self, partition: &Partition) -> Option<Uuid> {
        if partition.is_retired() {
            return None;
        }
        self.look_up(partition, |state| partition.claim(state))
    }
}
