//! The one worker that moves replicas. It goes round, a piece of each at a time, no faster than
//! `replica.alter.log.dirs.io.max.bytes.per.second` allows, and syncs what it has copied in small portions, so that who produces to the
//! same disk hardly waits for it. This file is one of the floor's drivers: it blocks, so it has a thread.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::MoveError;
use super::copy::Step;
use crate::base::MonotonicMs;
use crate::host::task;
use crate::log::LogError;
use crate::replica::partition::Partition;
use crate::replica::partitions::Partitions;

/// Until the next look at replicas that wait for something.
const PAUSE: Duration = Duration::from_millis(20);

/// Until the next try after one that failed, ms.
const RETRY_MS: u64 = 1_000;

/// Moves replicas for as long as it runs.
pub struct Mover {
    partitions: Arc<Partitions>,
    at_work: Vec<AtWork>,
}

/// A replica that moves.
struct AtWork {
    partition: Arc<Partition>,
    not_before: MonotonicMs,
}

/// What came of a look at a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Copied,
    Waits,
    Failed,
    Over,
}

impl Mover {
    pub fn new(partitions: Arc<Partitions>) -> Mover {
        Mover { partitions, at_work: Vec::new() }
    }

    /// Never ends. Dropping the future ends it between two pieces.
    pub async fn run(mut self) {
        let partitions = self.partitions.clone();
        let orders = &partitions.common().moving;
        loop {
            for partition in orders.take() {
                self.at_work.retain(|known| !Arc::ptr_eq(&known.partition, &partition));
                self.at_work.push(AtWork { partition, not_before: 0 });
            }
            if self.at_work.is_empty() {
                orders.filled().await;
            } else if self.round() {
                // Who stops us is heard.
                task::sleep(Duration::ZERO).await;
            } else {
                let _ = task::timeout(PAUSE, orders.filled()).await;
            }
        }
    }

    /// A piece of each. `false` when all of them wait.
    fn round(&mut self) -> bool {
        let partitions = &self.partitions;
        let mut is_busy = false;
        self.at_work.retain_mut(|one| {
            let now = partitions.env().host.clock.monotonic_ms();
            if one.not_before > now {
                return true;
            }
            match partitions.advance(&one.partition) {
                Outcome::Copied => is_busy = true,
                Outcome::Waits => {}
                Outcome::Failed => one.not_before = now.saturating_add(RETRY_MS),
                Outcome::Over => return false,
            }
            true
        });
        is_busy
    }
}

impl Partitions {
    /// Takes a move one step further.
    pub(super) fn advance(&self, partition: &Arc<Partition>) -> Outcome {
        let Some(future) = partition.future() else { return Outcome::Over };
        let to = self.dirs().at(future.dir);
        if to.health.failure().is_some() {
            self.abandon_move(partition);
            return Outcome::Over;
        }
        let throttle = &self.common().moving_throttle;
        if !throttle.has_room(self.env().host.clock.monotonic_ms()) {
            return Outcome::Waits;
        }
        match self.step(partition) {
            Ok(outcome) => outcome,
            Err(error) => self.after(partition, error),
        }
    }

    fn step(&self, partition: &Arc<Partition>) -> Result<Outcome, MoveError> {
        let Step { copied_bytes, is_cut, caught_up, targets } = partition.copy_step()?;
        if is_cut {
            let Some(future) = partition.future() else { return Ok(Outcome::Over) };
            if !self.save_all_of(self.dirs().at(future.dir)) {
                return Ok(Outcome::Failed);
            }
            partition.note_cut_saved();
        }
        if copied_bytes > 0 {
            self.common().moving_throttle.took(copied_bytes, self.env().host.clock.monotonic_ms());
        }
        if let Some(targets) = targets {
            targets.sync().map_err(MoveError::Copy)?;
            partition.note_copy_synced(&targets)?;
        }
        if !caught_up {
            return Ok(Outcome::Copied);
        }
        let Some(future) = partition.future() else { return Ok(Outcome::Over) };
        if partition.wanted.swap(future.dir, Ordering::AcqRel) != future.dir {
            self.tell_place(partition);
        }
        // The controller must know first: it decides by the directory who may lead.
        if self.assigned(partition) != Some(self.dirs().at(future.dir).id) {
            return Ok(Outcome::Waits);
        }
        Ok(if self.finish_move(partition)? { Outcome::Over } else { Outcome::Waits })
    }

    fn after(&self, partition: &Arc<Partition>, error: MoveError) -> Outcome {
        let name = &partition.identity.topic_partition;
        match error {
            MoveError::Over => Outcome::Over,
            MoveError::Changed => Outcome::Copied,
            // The copy stays: the next start may find the replica again.
            MoveError::Offline => Outcome::Over,
            MoveError::Read(source) => {
                let error = LogError::Storage { action: "read", path: partition.dir(), source };
                self.after_storage(partition, &error)
            }
            MoveError::Source(error) => self.after_storage(partition, &error),
            MoveError::Copy(error) => self.after_storage(partition, &error),
            MoveError::Impossible(reason) => {
                tracing::error!(partition = %name, reason, "cannot move the replica to another log directory; it stays where it is");
                self.end_move(partition);
                Outcome::Over
            }
        }
    }

    fn after_storage(&self, partition: &Arc<Partition>, error: &LogError) -> Outcome {
        let name = &partition.identity.topic_partition;
        let is_copys = |path: &Path| partition.future_dir().is_some_and(|dir| path.starts_with(dir));
        if error.is_not_found() && !error.path().is_some_and(is_copys) {
            // Cancelled in the middle, and its directory renamed.
            return Outcome::Copied;
        }
        match error {
            LogError::Storage { .. } => {
                partition.note_storage(error);
                Outcome::Failed
            }
            error => {
                tracing::error!(partition = %name, %error, "cannot move the replica to another log directory; it stays where it is");
                self.end_move(partition);
                Outcome::Over
            }
        }
    }
}
