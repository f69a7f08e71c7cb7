//! The metadata log: segments of record batches, each batch synced before anybody is told. Appends go to the last segment; a
//! snapshot begins a new one, and segments that two snapshots cover go away.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::QuorumError;
use super::snapshot::SnapshotId;
use crate::base::Offset;
use crate::host::disk::{Disk, DiskFile, OpenMode};

/// Snapshots kept: the newest, and one to fall back on.
const SNAPSHOTS_KEPT: usize = 2;

pub(super) fn segment_path(dir: &Path, base: Offset) -> PathBuf {
    dir.join(format!("{base:020}.log"))
}

/// The base offset in a segment's file name.
pub(super) fn parse_segment_name(name: &str) -> Option<Offset> {
    let digits = name.strip_suffix(".log")?;
    if digits.len() == 20 { digits.parse().ok() } else { None }
}

pub(super) struct MetadataLog {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) dir: PathBuf,
    /// Base offsets of all segments, the active one last.
    pub(super) segments: Vec<Offset>,
    pub(super) snapshots: Vec<SnapshotId>,
    pub(super) active: Arc<dyn DiskFile>,
    /// Where the next batch goes in the active segment.
    pub(super) position: u64,
    pub(super) next_offset: Offset,
    pub(super) bytes_since_snapshot: u64,
    pub(super) snapshot_bytes: u64,
    /// Set by the first failed sync: what the disk holds is unknown from then on, so nothing is written any more.
    pub(super) failed: Option<String>,
}

impl MetadataLog {
    /// Writes one batch of `count` records and syncs it.
    pub(super) fn append(&mut self, batch: &[u8], count: i64) -> Result<(), QuorumError> {
        if let Some(reason) = &self.failed {
            return Err(QuorumError::Storage(reason.clone()));
        }
        if let Err(error) = self.active.write_all_at(batch, self.position) {
            return Err(self.undo_write(&error));
        }
        if let Err(error) = self.active.sync_data() {
            return Err(self.fail("the sync of the metadata log failed", &error));
        }
        self.position += batch.len() as u64;
        self.bytes_since_snapshot += batch.len() as u64;
        self.next_offset += count;
        Ok(())
    }

    /// What a start would have to read.
    pub(super) fn bytes(&self) -> u64 {
        self.snapshot_bytes + self.bytes_since_snapshot
    }

    /// Takes back a write that did not get through, a full disk for one. When that fails too, the log's end is unknown.
    fn undo_write(&mut self, error: &io::Error) -> QuorumError {
        match self.active.set_len(self.position) {
            Ok(()) => QuorumError::storage("the metadata log cannot be written", error),
            Err(_) => self.fail("the metadata log cannot be written or cut back", error),
        }
    }

    fn fail(&mut self, doing: &str, error: &io::Error) -> QuorumError {
        let reason = format!("{doing}: {error}; restart the broker when the disk is well again");
        self.failed = Some(reason.clone());
        QuorumError::Storage(reason)
    }

    /// Begins a new segment at the next offset, unless the active one is empty.
    pub(super) fn roll(&mut self) -> io::Result<()> {
        if self.segments.last() == Some(&self.next_offset) {
            return Ok(());
        }
        let file = self.disk.open(&segment_path(&self.dir, self.next_offset), OpenMode::Truncate)?;
        self.disk.sync_dir(&self.dir)?;
        self.active = file;
        self.position = 0;
        self.segments.push(self.next_offset);
        Ok(())
    }

    /// Counts from a new snapshot on, and removes what is no longer needed for falling back on the one before it.
    pub(super) fn note_snapshot(&mut self, id: SnapshotId, bytes: u64) -> io::Result<()> {
        self.snapshots.push(id);
        self.snapshots.sort();
        self.snapshot_bytes = bytes;
        while self.snapshots.len() > SNAPSHOTS_KEPT {
            let oldest = self.snapshots.remove(0);
            self.disk.remove_file(&oldest.path(&self.dir))?;
        }
        let Some(oldest) = self.snapshots.first().filter(|_| self.snapshots.len() == SNAPSHOTS_KEPT) else {
            return Ok(());
        };
        // A segment may go when the one behind it begins at or before the oldest snapshot's end.
        while self.segments.get(1).is_some_and(|second| *second <= oldest.end_offset) {
            let base = self.segments.remove(0);
            self.disk.remove_file(&segment_path(&self.dir, base))?;
        }
        self.disk.sync_dir(&self.dir)
    }
}
