//! The copy becomes the replica. The steps, and what a start finds after a crash behind each of them:
//!
//! 1. The copy holds everything and is synced; the metadata says its directory: both are there, the move goes on.
//! 2. Its directory has the replica's name, durably: two of the name, and the one counts that the metadata says.
//! 3. The old directory has a name of those that wait for removal: nothing is left to decide.
//!
//! The first two happen under the replica's lock, so that nothing is written in between; for as long as one sync of a little takes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::copy::copy_piece;
use super::{MoveError, Moving};
use crate::log::{Log, LogError};
use crate::replica::partition::{Partition, Slot};
use crate::replica::partitions::Partitions;
use crate::replica::strays::set_aside;

/// How many bytes may be missing for the lock to be taken; twice as many with each time that more were.
const MISSING_BYTES_MAX: u64 = 1 << 20;

/// The old directory stays for readers that are at it, ms.
const KEPT_MS: u64 = 60_000;

/// A replica that has moved.
struct Swapped {
    old: Box<Log>,
    from: usize,
    to: usize,
}

impl Partitions {
    /// Lets the copy take the replica's place, if it holds everything. `false`: not yet.
    pub(super) fn finish_move(&self, partition: &Arc<Partition>) -> Result<bool, MoveError> {
        let to = partition.moving.lock().as_ref().map(|moving| moving.to).ok_or(MoveError::Over)?;
        // Where it begins must be known there before it counts there.
        if !self.save_all_of(self.dirs().at(to)) {
            return Ok(false);
        }
        let Some(swapped) = partition.swap()? else { return Ok(false) };
        let (from, to) = (self.dirs().at(swapped.from), self.dirs().at(swapped.to));
        from.lost_replica();
        let mut old = swapped.old;
        let left = self.retired_path(partition, &old.dir());
        let kept_until = self.env().host.clock.monotonic_ms().saturating_add(KEPT_MS);
        match old.rename_dir(&left) {
            Ok(()) => self.doom(left, kept_until),
            // The next start finds two, and the metadata says which one counts.
            Err(error) => partition.note_storage(&error),
        }
        self.save_all_of(from);
        self.save_all_of(to);
        partition.wake_everybody();
        tracing::info!(
            partition = %partition.identity.topic_partition,
            from = %from.path.display(),
            to = %to.path.display(),
            log_end_offset = old.log_end_offset(),
            "the replica has moved to another log directory"
        );
        Ok(true)
    }
}

impl Partition {
    fn swap(&self) -> Result<Option<Swapped>, MoveError> {
        let mut moving_slot = self.moving.lock();
        let moving = moving_slot.as_mut().ok_or(MoveError::Over)?;
        let mut slot = self.slot.lock();
        let Slot::Open(replica) = &mut *slot else { return Err(MoveError::Over) };
        let is_agreed = moving.compared == Some(self.cuts.load(Ordering::SeqCst)) && !moving.is_cut;
        // Who is about to cut has emptied the journal of the directory that it is in now.
        if !is_agreed || self.unjournaled.load(Ordering::SeqCst) > 0 || self.is_far_behind(moving, replica) {
            return Ok(None);
        }
        let copy = moving.log.as_deref_mut().ok_or(MoveError::Over)?;
        let view = replica.view();
        while copy.log_end_offset() < view.log_end_offset {
            if copy_piece(copy, &view, self.piece_bytes_max())? == 0 {
                return Ok(None);
            }
        }
        copy_piece(copy, &view, 0)?;
        if (copy.log_start_offset(), copy.log_end_offset()) != (view.log_start_offset, view.log_end_offset) {
            return Ok(None);
        }
        copy.flush().map_err(MoveError::Copy)?;
        self.take_name(copy, moving.to).map_err(MoveError::Copy)?;
        copy.take_over_from(replica).map_err(MoveError::Copy)?;
        let Some(Moving { log: Some(copy), to, .. }) = moving_slot.take() else { return Err(MoveError::Over) };
        let end = copy.log_end_offset();
        let Slot::Open(old) = std::mem::replace(&mut *slot, Slot::Open(copy)) else { return Err(MoveError::Over) };
        let from = self.home.swap(to, Ordering::AcqRel);
        self.wanted.store(to, Ordering::Release);
        // What was known of the old files says nothing of the new ones, which are all on the device.
        self.note_cut(end);
        self.note_durable(end);
        self.journaled.store(0, Ordering::Relaxed);
        drop(slot);
        drop(moving_slot);
        self.settle_acks();
        Ok(Some(Swapped { old, from, to }))
    }

    /// Whether so much is missing that others would wait for it to be copied.
    fn is_far_behind(&self, moving: &mut Moving, replica: &Log) -> bool {
        let copied = moving.log.as_ref().map_or(0, |log| log.size_bytes());
        let may_miss = MISSING_BYTES_MAX.checked_shl(moving.late).unwrap_or(u64::MAX);
        let is_far = replica.size_bytes().saturating_sub(copied) > may_miss;
        moving.late = moving.late.saturating_add(u32::from(is_far)).min(16);
        is_far
    }

    fn take_name(&self, copy: &mut Log, to: usize) -> Result<(), LogError> {
        let dir = self.dirs.at(to).path.join(self.identity.topic_partition.dir_name());
        let disk = &self.env.host.disk;
        if disk.exists(&dir) {
            set_aside(&self.env.host, &dir).map_err(|source| LogError::Storage {
                action: "set aside",
                path: dir.clone(),
                source,
            })?;
        }
        copy.rename_dir(&dir)
    }
}
