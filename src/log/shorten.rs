//! Everything that makes a log shorter: retention, DeleteRecords, truncation. Files are first renamed, so that they no longer
//! count, and removed later, so that readers who hold them finish.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::{Context, LogError};
use super::names::{self, SNAPSHOT};
use super::partition_log::{Log, reserved_bytes_of};
use super::producers::Producers;
use super::retention::{Reason, RetentionLimits, SegmentSummary, choose};
use super::segment::Segment;
use crate::base::{Offset, TimestampMs};
use crate::host::Disk;

/// Files that wait for their removal.
pub(super) struct Removal {
    due: TimestampMs,
    paths: Vec<PathBuf>,
}

/// A segment that retention has taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletedSegment {
    pub base_offset: Offset,
    pub bytes: u64,
    pub reason: Reason,
}

impl Log {
    /// Removes what the topic's retention lets go, below `high_watermark`. The log's start moves up with it. Also removes files
    /// whose delay is over.
    pub fn retain(&mut self, now: TimestampMs, high_watermark: Offset) -> Result<Vec<DeletedSegment>, LogError> {
        self.remove_due(now)?;
        let deletes = self.config.cleanup.delete;
        let limits = RetentionLimits {
            now,
            retention_ms: self.config.retention_ms.filter(|_| deletes),
            retention_bytes: self.config.retention_bytes.filter(|_| deletes),
            log_start_offset: self.log_start_offset,
            high_watermark,
        };
        let summaries = self.summaries()?;
        let reasons = choose(&summaries, &limits);
        if reasons.is_empty() {
            return Ok(Vec::new());
        }
        if reasons.len() == self.segments.len() {
            self.roll(now)?;
        }
        self.drop_first(reasons.len(), now)?;
        let start = self.segments.first().map_or(self.log_end_offset, |first| first.base_offset());
        self.raise_start(start);
        let deleted = summaries.iter().zip(reasons);
        Ok(deleted
            .map(|(segment, reason)| DeletedSegment { base_offset: segment.base_offset, bytes: segment.bytes, reason })
            .collect())
    }

    fn summaries(&self) -> Result<Vec<SegmentSummary>, LogError> {
        let ends = self.segments.iter().skip(1).map(|next| next.base_offset()).chain([self.log_end_offset]);
        let summary = |(segment, end_offset): (&Arc<Segment>, Offset)| {
            let max = segment.max_timestamp()?.timestamp;
            let newest_ms = if max >= 0 { max } else { self.active_since };
            Ok(SegmentSummary { base_offset: segment.base_offset(), end_offset, bytes: segment.bytes(), newest_ms })
        };
        self.segments.iter().zip(ends).map(summary).collect()
    }

    fn drop_first(&mut self, count: usize, now: TimestampMs) -> Result<(), LogError> {
        let due = now.saturating_add(self.config.file_delete_delay_ms);
        for _ in 0..count {
            let Some(first) = self.segments.first().cloned() else { return Ok(()) };
            let paths = first.mark_deleted()?;
            self.segments = self.segments.iter().skip(1).cloned().collect();
            self.removals.push(Removal { due, paths });
        }
        Ok(())
    }

    fn raise_start(&mut self, start: Offset) {
        if start > self.log_start_offset {
            self.log_start_offset = start;
        }
        if Arc::make_mut(&mut self.epochs).truncate_from_start(self.log_start_offset) {
            self.epochs_unsaved = true;
        }
        self.flushed = self.flushed.max(self.log_start_offset);
        self.publish();
    }

    /// Removes renamed files whose delay is over. Returns when the next ones are due.
    pub fn remove_due(&mut self, now: TimestampMs) -> Result<Option<TimestampMs>, LogError> {
        let (due, later) = std::mem::take(&mut self.removals).into_iter().partition(|removal| removal.due <= now);
        self.removals = later;
        let due: Vec<Removal> = due;
        for path in due.iter().flat_map(|removal| &removal.paths) {
            remove_if_there(&*self.env.host.disk, path)?;
        }
        Ok(self.removals.iter().map(|removal| removal.due).min())
    }

    /// Moves the log's start to `offset` (DeleteRecords, KIP-107); segments below it go with the next [`Log::retain`]. Returns the
    /// log's start, which never moves back.
    pub fn delete_records_before(&mut self, offset: Offset) -> Result<Offset, LogError> {
        if offset > self.log_end_offset {
            return Err(self.out_of_range(offset));
        }
        if offset > self.log_start_offset {
            self.raise_start(offset);
        }
        Ok(self.log_start_offset)
    }

    fn out_of_range(&self, offset: Offset) -> LogError {
        LogError::OffsetOutOfRange { offset, start: self.log_start_offset, end: self.log_end_offset }
    }

    /// Takes everything from `offset` on away; the next append gets `offset`, or the base offset of the batch that holds it.
    /// When the log ends before, only an epoch that was begun here and never got a record is forgotten: another leader may know nothing
    /// of it.
    pub fn truncate_to(&mut self, offset: Offset) -> Result<(), LogError> {
        if offset >= self.log_end_offset {
            if Arc::make_mut(&mut self.epochs).truncate_from_end(self.log_end_offset) {
                self.epochs_unsaved = true;
                self.publish();
            }
            return Ok(());
        }
        if self.segments.first().is_none_or(|first| offset <= first.base_offset()) {
            return self.truncate_fully_and_start_at(offset);
        }
        self.drop_last_from(offset)?;
        let bytes = self.active.bytes();
        let place = self.active.locate(offset, bytes)?;
        let (end, position) = place.map_or((offset, bytes), |place| (offset.min(place.base_offset), place.position));
        self.active.truncate(end, position)?;
        self.tail_is_dirty = false;
        self.active_first_timestamp = self.active.first_timestamp()?;
        self.shrink_to(end, position)?;
        self.reload_producers()
    }

    /// Takes everything from byte `position` of a segment on away, where the batch at `offset` begins or should. Asks no index, and does not
    /// look at what it cuts.
    pub(super) fn truncate_at(&mut self, segment_base: Offset, position: u64, offset: Offset) -> Result<(), LogError> {
        if self.segments.iter().all(|segment| segment.base_offset() != segment_base) {
            return Ok(());
        }
        if position == 0 && self.segments.first().is_some_and(|first| first.base_offset() == segment_base) {
            return self.truncate_fully_and_start_at(offset);
        }
        self.drop_last_from(segment_base.saturating_add(1))?;
        self.active.truncate(offset, position)?;
        self.tail_is_dirty = false;
        self.active_first_timestamp = self.active.first_timestamp()?;
        self.shrink_to(offset, position)?;
        self.reload_producers()
    }

    /// Removes the segments that begin at or behind `offset`.
    fn drop_last_from(&mut self, offset: Offset) -> Result<(), LogError> {
        let keep = self.segments.partition_point(|segment| segment.base_offset() < offset).max(1);
        let dropped: Vec<Arc<Segment>> = self.segments.iter().skip(keep).cloned().collect();
        for segment in dropped.iter().rev() {
            self.remove_segment(segment)?;
        }
        let kept: Vec<Arc<Segment>> = self.segments.iter().take(keep).cloned().collect();
        self.set_segments(kept);
        Ok(())
    }

    fn remove_segment(&mut self, segment: &Segment) -> Result<(), LogError> {
        for path in segment.mark_deleted()? {
            remove_if_there(&*self.env.host.disk, &path)?;
        }
        Ok(())
    }

    fn shrink_to(&mut self, end: Offset, position: u64) -> Result<(), LogError> {
        self.log_end_offset = end;
        self.end_position = position;
        self.flushed = self.flushed.min(end);
        self.recovery_point = self.recovery_point.min(end);
        self.epochs_unsaved |= Arc::make_mut(&mut self.epochs).truncate_from_end(end);
        self.drop_snapshots_behind(end)?;
        self.publish();
        Ok(())
    }

    fn drop_snapshots_behind(&mut self, end: Offset) -> Result<(), LogError> {
        for snapshot in super::reload::snapshot_offsets(&*self.env.host.disk, &self.home.dir)? {
            if snapshot > end {
                let path = self.path(&names::offset_file(snapshot, SNAPSHOT));
                remove_if_there(&*self.env.host.disk, &path)?;
            }
        }
        self.snapshot_offset = self.snapshot_offset.filter(|&at| at <= end);
        self.previous_snapshot = self.previous_snapshot.filter(|&at| at <= end);
        Ok(())
    }

    /// Takes everything away and goes on at `offset`, as a follower does whose leader's log begins behind this one's end.
    pub fn truncate_fully_and_start_at(&mut self, offset: Offset) -> Result<(), LogError> {
        let segments: Vec<Arc<Segment>> = self.segments.iter().cloned().collect();
        for segment in segments.iter().rev() {
            self.remove_segment(segment)?;
        }
        let fresh = Arc::new(Segment::create(&self.home, offset, reserved_bytes_of(&self.config))?);
        self.set_segments(vec![fresh]);
        self.names_unsynced = true;
        self.tail_is_dirty = false;
        self.active_since = self.now();
        self.active_first_timestamp = None;
        self.log_start_offset = offset;
        self.producers = Producers::default();
        self.epochs = Arc::default();
        self.epochs_unsaved = true;
        self.shrink_to(offset, 0)?;
        self.flushed = offset;
        self.recovery_point = self.recovery_point.min(offset);
        self.drop_snapshots_behind(Offset::MIN)
    }
}

pub(super) fn remove_if_there(disk: &dyn Disk, path: &Path) -> Result<(), LogError> {
    match disk.remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).context("remove", path),
        _ => Ok(()),
    }
}

/// The name that the directory of a deleted topic's partition gets, so that the name is free at once while its files wait for their
/// removal: `<topic>-<partition>.<unique>-delete`, the topic cut where the file system needs it.
pub fn retired_dir_name(dir_name: &str, unique: &str) -> String {
    with_suffix(dir_name, &format!(".{unique}-delete"))
}

/// The name that a directory gets which no topic owns, as Apache Kafka calls it: `<topic>-<partition>.<unique>-stray`.
pub fn stray_dir_name(dir_name: &str, unique: &str) -> String {
    with_suffix(dir_name, &format!(".{unique}-stray"))
}

fn with_suffix(dir_name: &str, suffix: &str) -> String {
    const NAME_BYTES_MAX: usize = 255;
    let keep = dir_name.len().min(NAME_BYTES_MAX.saturating_sub(suffix.len()));
    let kept = dir_name.get(..keep).unwrap_or_default();
    format!("{kept}{suffix}")
}

/// Whether a directory of a log directory waits for its removal.
pub fn is_retired_dir_name(name: &str) -> bool {
    name.ends_with("-delete")
}
