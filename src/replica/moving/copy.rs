//! Making a copy agree with its replica, as a follower does with its leader, and longer. The replica's lock is not held meanwhile: what is
//! read through a view while the replica is cut is found out by epochs afterwards.

use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::{MoveError, Moving};
use crate::base::ids::NO_OFFSET;
use crate::log::{FlushTargets, Log, LogError, LogView, OpenHow, ReadError, ReadSlice};
use crate::records::BatchHeader;
use crate::replica::error::PartitionError;
use crate::replica::follower::Repair;
use crate::replica::partition::Partition;
use crate::replica::partition_follow::{intact_batches, local};

/// So much of a copy is synced at a time: a device that is given more at once lets others wait for it.
const UNSYNCED_BYTES_MAX: usize = 8 << 20;

/// Steps back in search of the point where two histories part.
const STEPS_BACK_MAX: usize = 1_000;

/// What a step has done.
pub(super) struct Step {
    pub copied_bytes: usize,
    /// Nothing was copied: see [`Moving::is_cut`].
    pub is_cut: bool,
    /// Nothing is left to copy.
    pub caught_up: bool,
    /// To be synced, without locks.
    pub targets: Option<FlushTargets>,
}

impl Partition {
    /// Copies one piece.
    pub(super) fn copy_step(&self) -> Result<Step, MoveError> {
        // Before the locks: it may open the replica, which takes its time.
        let cuts = self.cuts.load(Ordering::SeqCst);
        let view = self.view().map_err(of_replica)?;
        let mut moving = self.moving.lock();
        let moving = moving.as_mut().ok_or(MoveError::Over)?;
        self.open_copy(moving)?;
        let log = moving.log.as_deref_mut().ok_or(MoveError::Over)?;
        if moving.compared != Some(cuts) {
            moving.is_cut |= agree(log, &view).map_err(MoveError::Copy)?;
            moving.compared = Some(cuts);
        }
        if moving.is_cut {
            return Ok(Step { copied_bytes: 0, is_cut: true, caught_up: false, targets: None });
        }
        let copied_bytes = copy_piece(log, &view, self.piece_bytes_max()).map_err(|error| match error {
            MoveError::Impossible(_) if self.cuts.load(Ordering::SeqCst) != cuts => MoveError::Changed,
            error => error,
        })?;
        moving.unsynced_bytes += copied_bytes;
        let caught_up = log.log_end_offset() >= view.log_end_offset;
        let is_due = moving.unsynced_bytes >= UNSYNCED_BYTES_MAX || (caught_up && moving.unsynced_bytes > 0);
        let targets = if is_due { Some(log.flush_targets().map_err(MoveError::Copy)?) } else { None };
        Ok(Step { copied_bytes, is_cut: false, caught_up, targets })
    }

    pub(super) fn piece_bytes_max(&self) -> usize {
        usize::try_from(self.chunk_bytes_max()).unwrap_or(usize::MAX)
    }

    fn open_copy(&self, moving: &mut Moving) -> Result<(), MoveError> {
        if moving.log.is_none() {
            let known = moving.checkpointed;
            let how = OpenHow {
                clean_shutdown: known.clean_shutdown,
                recovery_point: known.recovery_point,
                log_start_offset: known.log_start_offset,
            };
            let opened = Log::open(&self.env, moving.dir.clone(), self.identity.clone(), self.config(), how);
            moving.log = Some(Box::new(opened.map_err(MoveError::Copy)?.0));
        }
        let log = moving.log.as_deref_mut().ok_or(MoveError::Over)?;
        let config = self.config();
        if !std::sync::Arc::ptr_eq(log.config(), &config) {
            log.set_config(config);
        }
        Ok(())
    }

    /// The checkpoint files say no more of the copy than there is.
    pub(super) fn note_cut_saved(&self) {
        if let Some(moving) = &mut *self.moving.lock() {
            moving.is_cut = false;
        }
    }

    /// What [`Partition::copy_step`] handed out is on the device.
    pub(super) fn note_copy_synced(&self, targets: &FlushTargets) -> Result<(), MoveError> {
        let mut moving = self.moving.lock();
        let moving = moving.as_mut().ok_or(MoveError::Over)?;
        let log = moving.log.as_mut().ok_or(MoveError::Over)?;
        log.note_flushed(targets);
        log.checkpoint().map_err(MoveError::Copy)?;
        moving.unsynced_bytes = 0;
        Ok(())
    }
}

fn of_replica(error: PartitionError) -> MoveError {
    match error {
        PartitionError::NotLeader => MoveError::Over,
        PartitionError::Append(crate::log::AppendError::Storage(error)) => MoveError::Source(error),
        PartitionError::Append(error) => MoveError::Impossible(error.to_string()),
        PartitionError::NotEnoughReplicas | PartitionError::Offline(_) => MoveError::Offline,
    }
}

/// Appends the next piece of the view to the copy. Returns how many bytes that were.
pub(super) fn copy_piece(log: &mut Log, view: &LogView, bytes_max: usize) -> Result<usize, MoveError> {
    let copied = copy_records(log, view, bytes_max)?;
    let start = view.log_start_offset.min(log.log_end_offset());
    if log.log_start_offset() < start {
        log.delete_records_before(start).map_err(MoveError::Copy)?;
    }
    Ok(copied)
}

fn copy_records(log: &mut Log, view: &LogView, bytes_max: usize) -> Result<usize, MoveError> {
    if log.log_end_offset() < view.log_start_offset {
        // What lies between is gone from the replica, too.
        log.truncate_fully_and_start_at(view.log_start_offset).map_err(MoveError::Copy)?;
    }
    let from = log.log_end_offset();
    let slice = match view.read(from, bytes_max, view.log_end_offset, true) {
        Ok(Some(slice)) => slice,
        Ok(None) => return Ok(0),
        Err(ReadError::OffsetOutOfRange { .. }) => return Err(MoveError::Changed),
        Err(error @ ReadError::Missing(_)) => return Err(MoveError::Impossible(error.to_string())),
        Err(ReadError::Storage(error)) => return Err(MoveError::Source(error)),
    };
    let bytes = read(&slice)?;
    let (headers, damage) = intact_batches(&bytes, true);
    let Some(first) = headers.first() else {
        let why = damage.map_or_else(|| "it holds a batch that is not whole".to_owned(), |damage| damage.to_string());
        return Err(MoveError::Impossible(why));
    };
    if first.base_offset < from {
        if log.log_start_offset() < from {
            return Err(MoveError::Changed);
        }
        // The replica begins in the middle of a batch: the copy holds all of it and begins there, too.
        log.truncate_fully_and_start_at(first.base_offset).map_err(MoveError::Copy)?;
    }
    let whole = headers.iter().map(BatchHeader::size_bytes).sum::<usize>().min(bytes.len());
    log.append_as_follower(&headers, bytes.get(..whole).unwrap_or_default()).map_err(MoveError::of_append)?;
    Ok(whole)
}

fn read(slice: &ReadSlice) -> Result<Bytes, MoveError> {
    let mut bytes = vec![0; slice.len];
    match slice.file.read_exact_at(&mut bytes, slice.position) {
        Ok(()) => Ok(bytes.into()),
        // Cut since.
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Err(MoveError::Changed),
        Err(error) => Err(MoveError::Read(error)),
    }
}

/// Takes from the copy what the replica does not have, by their epochs (KIP-101). Whether there was something.
fn agree(log: &mut Log, view: &LogView) -> Result<bool, LogError> {
    let before = log.log_end_offset();
    for _ in 0..STEPS_BACK_MAX {
        let own = local(log);
        if own.is_unknowable() {
            break;
        }
        let position = own.position();
        if position.last_epoch < 0 {
            return Ok(false);
        }
        let (epoch, end) = view.epoch_end_offset(position.last_epoch);
        if epoch == position.last_epoch && end >= position.fetch_offset {
            return Ok(log.log_end_offset() < before);
        }
        if end == NO_OFFSET {
            break;
        }
        match own.on_divergence(epoch, end) {
            Repair::CutTo(offset) if offset < position.fetch_offset => log.truncate_to(offset)?,
            _ => break,
        }
    }
    log.truncate_fully_and_start_at(view.log_start_offset)?;
    Ok(true)
}
