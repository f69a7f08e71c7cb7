//! Durability. What to sync is collected under the partition's lock and synced without it, so that many partitions share one wait.
//! Checkpoints and closing bring the side files up to date.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::{Context, LogError, SYNC};
use super::names::{self, LEADER_EPOCHS, LOG, PARTITION_METADATA, SNAPSHOT};
use super::partition_log::Log;
use super::producer_snapshot;
use crate::base::Offset;
use crate::host::disk::{was_not_opened, write_file_atomically};
use crate::host::{Disk, DiskFile, OpenMode};

/// What has to reach the device so that everything below [`FlushTargets::up_to`] is durable.
pub struct FlushTargets {
    disk: Arc<dyn Disk>,
    files: Vec<FileTarget>,
    dirs: Vec<PathBuf>,
    /// The cut that becomes durable with this, as in the log.
    cut: Option<Offset>,
    up_to: Offset,
    /// The log's `appended_bytes` then.
    appended_bytes: u64,
}

/// Parts of files that a later sync will want on the device.
pub struct Writeback(Vec<FileTarget>);

impl Writeback {
    /// Lets the system begin to write, without waiting.
    pub fn start(&self) {
        start_writeback(&self.0);
    }
}

fn start_writeback(files: &[FileTarget]) {
    for target in files {
        // A hint. What it could not do, the sync does or reports.
        let _ = target.file.start_writeback(target.position, target.len);
    }
}

struct FileTarget {
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    position: u64,
    len: u64,
}

impl FlushTargets {
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.dirs.is_empty()
    }

    /// The log's end when the targets were collected.
    pub fn up_to(&self) -> Offset {
        self.up_to
    }

    /// Lets the system begin to write, without waiting: called for all logs before the first `sync`.
    pub fn start_writeback(&self) {
        start_writeback(&self.files);
    }

    /// Returns when all is on the device. An error means that unsynced content may be lost for good: the log directory goes
    /// offline, and nobody calls this again (A9). Unless it [is passing](LogError::is_passing): then [`Log::note_not_flushed`] lets
    /// the next targets have everything again.
    pub fn sync(&self) -> Result<(), LogError> {
        for target in &self.files {
            target.file.sync_data().context(SYNC, &target.path)?;
        }
        self.dirs.iter().try_for_each(|dir| {
            self.disk.sync_dir(dir).map_err(|source| {
                let action = if was_not_opened(&source) { "open" } else { SYNC };
                LogError::Storage { action, path: dir.clone(), source }
            })
        })
    }
}

impl Log {
    /// Collects what has to be synced, quickly. The caller syncs without the partition's lock and then calls
    /// [`Log::note_flushed`].
    pub fn flush_targets(&mut self) -> Result<FlushTargets, LogError> {
        let mut files = Vec::new();
        let mut dirs = Vec::new();
        if self.log_end_offset > self.flushed || self.cut_unsynced.is_some() {
            files = self.unflushed_files()?;
            if self.metadata_unsynced {
                let path = self.path(PARTITION_METADATA);
                let file = self.env.host.disk.open(&path, OpenMode::ReadWrite).context("open", &path)?;
                files.push(FileTarget { path, file, position: 0, len: 0 });
            }
            dirs = self.unsynced_dirs();
        }
        Ok(FlushTargets {
            disk: Arc::clone(&self.env.host.disk),
            files,
            dirs,
            cut: self.cut_unsynced.take(),
            up_to: self.log_end_offset,
            appended_bytes: self.appended_bytes,
        })
    }

    /// What can be on its way to the device before the sync comes. Changes nothing about what that sync has to do.
    pub fn writeback(&mut self) -> Result<Writeback, LogError> {
        Ok(Writeback(if self.log_end_offset > self.flushed { self.unflushed_files()? } else { Vec::new() }))
    }

    fn unflushed_files(&mut self) -> Result<Vec<FileTarget>, LogError> {
        let (mark_base, mark) =
            std::mem::replace(&mut self.writeback_mark, (self.active.base_offset(), self.end_position));
        let mut files = Vec::new();
        for segment in self.unflushed_segments() {
            let position = if segment.base_offset() == mark_base { mark } else { 0 };
            let (path, file, bytes) = (segment.path(LOG), segment.file()?, segment.bytes());
            files.push(FileTarget { path, file, position, len: bytes.saturating_sub(position) });
        }
        Ok(files)
    }

    /// Segments with content behind the flushed offset, and what a cut has left: its last segment may not be the log's last any more.
    fn unflushed_segments(&self) -> impl Iterator<Item = &Arc<super::segment::Segment>> {
        let from = self.cut_unsynced.map_or(self.flushed, |cut| cut.min(self.flushed));
        let above = self.segments.partition_point(|segment| segment.base_offset() <= from);
        self.segments.iter().skip(above.saturating_sub(1))
    }

    /// The segment with this base was cut, or is the last one that stayed. Of several, the first one counts.
    pub(super) fn note_cut_unsynced(&mut self, segment_base: Option<Offset>) {
        self.cut_unsynced = self.cut_unsynced.into_iter().chain(segment_base).min();
    }

    /// Directories whose names are not durable yet. Handed out once: should their sync fail, the log goes offline anyway.
    fn unsynced_dirs(&mut self) -> Vec<PathBuf> {
        let mut dirs = Vec::new();
        if std::mem::take(&mut self.names_unsynced) {
            dirs.push(self.home.dir().to_path_buf());
        }
        if std::mem::take(&mut self.dir_unsynced) {
            dirs.extend(self.home.dir().parent().map(Path::to_path_buf));
        }
        self.metadata_unsynced = false;
        dirs
    }

    /// The targets have been synced.
    pub fn note_flushed(&mut self, targets: &FlushTargets) {
        self.flushed = self.flushed.max(targets.up_to.min(self.log_end_offset));
        self.flushed_bytes = self.flushed_bytes.max(targets.appended_bytes);
    }

    /// The targets could not be opened for their sync.
    pub fn note_not_flushed(&mut self, targets: &FlushTargets) {
        self.note_cut_unsynced(targets.cut);
        for dir in &targets.dirs {
            let own = **dir == *self.home.dir();
            self.names_unsynced |= own;
            self.dir_unsynced |= !own;
        }
    }

    /// Syncs everything, waiting for the device.
    pub fn flush(&mut self) -> Result<(), LogError> {
        let targets = self.flush_targets()?;
        targets.sync()?;
        self.note_flushed(&targets);
        Ok(())
    }

    /// Brings the side files up to what is flushed and moves the recovery point there, so that a crash costs no more than what
    /// came after. Waits for the device only when epochs have changed. Returns the recovery point.
    pub fn checkpoint(&mut self) -> Result<Offset, LogError> {
        self.finish_cut()?;
        if self.recovery_point != self.flushed || self.must_save_epochs() {
            self.save_epochs()?;
            self.active.write_indexes()?;
            self.take_snapshot()?;
            self.recovery_point = self.flushed;
        }
        self.checkpointed_bytes = self.flushed_bytes;
        Ok(self.recovery_point)
    }

    /// Leaves the directory as after a clean shutdown: indexes, snapshot and epochs written, everything synced.
    pub fn close(mut self) -> Result<(), LogError> {
        self.close_files()
    }

    fn close_files(&mut self) -> Result<(), LogError> {
        self.finish_cut()?;
        if self.tail_is_dirty {
            self.active.cut_to_size().context("truncate", &self.active.path(LOG))?;
            self.tail_is_dirty = false;
        }
        self.active.finish_indexes()?;
        self.active.give_back_reserved();
        self.take_snapshot()?;
        self.save_epochs()?;
        self.flush()?;
        self.recovery_point = self.flushed;
        Ok(())
    }

    pub(super) fn save_epochs(&mut self) -> Result<(), LogError> {
        if self.must_save_epochs() {
            let path = self.path(LEADER_EPOCHS);
            let text = self.epochs.to_text();
            write_file_atomically(&*self.env.host.disk, &path, text.as_bytes()).context("write", &path)?;
            self.epochs_unsaved = false;
            self.epoch_assigned = false;
        }
        Ok(())
    }

    /// Writes the producers' state as of the log's end. Not synced: a torn snapshot is noticed and the one before it used.
    pub(super) fn take_snapshot(&mut self) -> Result<(), LogError> {
        if self.snapshots.last() == Some(&self.log_end_offset) {
            return Ok(());
        }
        let path = self.path(&names::offset_file(self.log_end_offset, SNAPSHOT));
        let aside = super::segment::suffixed(&path, names::ASIDE);
        let disk = &*self.env.host.disk;
        let file = disk.open(&aside, OpenMode::Truncate).context("create", &aside)?;
        file.write_all_at(&producer_snapshot::encode(&self.producers), 0).context("write", &aside)?;
        disk.rename(&aside, &path).context("rename", &aside)?;
        self.snapshots.push(self.log_end_offset);
        self.drop_old_snapshots()
    }

    /// Removes snapshots that are neither at a segment's begin, nor the newest two, nor the newest one that would count after a crash.
    fn drop_old_snapshots(&mut self) -> Result<(), LogError> {
        let newest_two = self.snapshots.iter().rev().take(2);
        let counting = self.snapshots.iter().rev().find(|snapshot| **snapshot <= self.recovery_point);
        let kept: Vec<Offset> = newest_two.chain(counting).copied().collect();
        let stale: Vec<Offset> = self.snapshots.extract_if(.., |snapshot| !kept.contains(snapshot)).collect();
        for stale in stale {
            if !self.segments.iter().any(|segment| segment.base_offset() == stale) {
                let path = self.path(&names::offset_file(stale, SNAPSHOT));
                super::shorten::remove_if_there(&*self.env.host.disk, &path)?;
            }
        }
        Ok(())
    }
}
