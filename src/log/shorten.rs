//! Everything that makes a log shorter: retention, DeleteRecords, truncation. Files are first renamed, so that they no longer
//! count, and removed later, so that readers who hold them finish.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::{Context, LogError};
use super::names::{self, SNAPSHOT};
use super::partition_log::{Log, reserved_bytes_of};
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
        self.finish_cut()?;
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
    ///
    /// After an error the log ends where it did, or where it should: what is left to do on the disk then is done before anything is
    /// appended.
    pub fn truncate_to(&mut self, offset: Offset) -> Result<(), LogError> {
        self.finish_cut()?;
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
        let (keep, end, position) = self.place_of_cut(offset)?;
        if end < self.log_start_offset {
            // The log starts inside the batch that holds `offset`: nothing is left.
            return self.truncate_fully_and_start_at(end);
        }
        let mut kept = self.segments.to_vec();
        let dropped = kept.split_off(keep.min(kept.len()));
        self.set_segments(kept);
        self.shrink_to(end, position);
        self.unfinished_cut = Some(Cut { dropped, stays: Stays::UpTo(position) });
        self.finish_cut()
    }

    /// Takes everything from byte `position` of a segment on away, where the batch at `offset` begins or should. Asks no index, and does not
    /// look at what it cuts. After an error as with [`Log::truncate_to`].
    pub(super) fn truncate_at(&mut self, segment_base: Offset, position: u64, offset: Offset) -> Result<(), LogError> {
        self.finish_cut()?;
        let Some(at) = self.segments.iter().position(|segment| segment.base_offset() == segment_base) else {
            return Ok(());
        };
        if position == 0 && at == 0 {
            return self.truncate_fully_and_start_at(offset);
        }
        let mut kept = self.segments.to_vec();
        let dropped = kept.split_off(at + 1);
        self.set_segments(kept);
        self.shrink_to(offset, position);
        self.unfinished_cut = Some(Cut { dropped, stays: Stays::UpTo(position) });
        self.finish_cut()
    }

    /// Where the log would end after [`Log::truncate_to`].
    pub fn end_when_cut_at(&self, offset: Offset) -> Result<Offset, LogError> {
        if offset >= self.log_end_offset {
            return Ok(self.log_end_offset);
        }
        if self.segments.first().is_none_or(|first| offset <= first.base_offset()) {
            return Ok(offset);
        }
        self.place_of_cut(offset).map(|(_, end, _)| end)
    }

    /// How many segments a cut leaves, the log's end afterwards, and the bytes of the last one. For an offset behind the first one's base.
    /// The log ends where the last batch does that is left: were it to end in a gap behind that, what belongs there would never be
    /// fetched.
    fn place_of_cut(&self, offset: Offset) -> Result<(usize, Offset, u64), LogError> {
        let mut keep = self.segments.partition_point(|segment| segment.base_offset() < offset).max(1);
        loop {
            let Some(last) = self.segments.get(keep - 1) else { return Ok((keep, offset, 0)) };
            let bytes = if keep == self.segments.len() { self.end_position } else { last.bytes() };
            let place = last.locate(offset, bytes)?;
            let position = place.map_or(bytes, |place| place.position);
            if position > 0 {
                // Where nobody can tell, because of damage, no more is cut than was asked for.
                let told = place.map_or(offset, |place| place.base_offset.min(offset));
                let end = last.end_before(position)?.unwrap_or(told);
                return Ok((keep, end.min(told), position));
            }
            if keep == 1 {
                return Ok((keep, last.base_offset(), 0));
            }
            keep -= 1;
        }
    }

    /// Takes everything away and goes on at `offset`, as a follower does whose leader's log begins behind this one's end. After an error
    /// as with [`Log::truncate_to`].
    pub fn truncate_fully_and_start_at(&mut self, offset: Offset) -> Result<(), LogError> {
        self.finish_cut()?;
        let dropped = self.segments.to_vec();
        self.set_segments(vec![Arc::new(Segment::existing(&self.home, offset, 0, 0, 0))]);
        self.active_since = self.now();
        self.log_start_offset = offset;
        self.epochs = Arc::default();
        self.shrink_to(offset, 0);
        self.epochs_unsaved = true;
        self.flushed = offset;
        self.unfinished_cut = Some(Cut { dropped, stays: Stays::Nothing });
        self.finish_cut()
    }

    /// The log ends at `end` from now on, whatever is still to be done on the disk.
    fn shrink_to(&mut self, end: Offset, position: u64) {
        self.log_end_offset = end;
        self.end_position = position;
        self.flushed = self.flushed.min(end);
        self.recovery_point = self.recovery_point.min(end);
        self.epochs_unsaved |= Arc::make_mut(&mut self.epochs).truncate_from_end(end);
        self.publish();
    }

    /// Does on the disk what is left of a cut. Harmless when there is nothing.
    pub(super) fn finish_cut(&mut self) -> Result<(), LogError> {
        let Some(mut cut) = self.unfinished_cut.take() else { return Ok(()) };
        let done = self.carry_out(&mut cut);
        if done.is_err() {
            self.unfinished_cut = Some(cut);
        }
        done
    }

    /// Can be repeated from where it failed.
    fn carry_out(&mut self, cut: &mut Cut) -> Result<(), LogError> {
        // Until the next sync a power cut may bring back what goes now, beside what comes in its place.
        self.names_unsynced = true;
        self.note_cut_unsynced(Some(self.active.base_offset()));
        // The last first: whatever is left after a crash is a whole log.
        while let Some(segment) = cut.dropped.last() {
            for path in segment.mark_deleted()? {
                remove_if_there(&*self.env.host.disk, &path)?;
            }
            cut.dropped.pop();
        }
        let snapshots_behind = match cut.stays {
            Stays::UpTo(position) => {
                self.active.truncate(self.log_end_offset, position)?;
                self.log_end_offset
            }
            Stays::Nothing => {
                self.active.make_file(reserved_bytes_of(&self.config))?;
                Offset::MIN
            }
        };
        self.tail_is_dirty = false;
        self.active_first_timestamp = self.active.first_timestamp()?;
        self.drop_snapshots_behind(snapshots_behind)?;
        self.reload_producers(self.log_end_offset)
    }

    fn drop_snapshots_behind(&mut self, end: Offset) -> Result<(), LogError> {
        for snapshot in super::reload::snapshot_offsets(&*self.env.host.disk, &self.home.dir())? {
            if snapshot > end {
                let path = self.path(&names::offset_file(snapshot, SNAPSHOT));
                remove_if_there(&*self.env.host.disk, &path)?;
            }
        }
        Ok(())
    }
}

/// What of a cut has not been done on the disk yet. In memory it is done.
pub(super) struct Cut {
    /// Ascending.
    dropped: Vec<Arc<Segment>>,
    stays: Stays,
}

enum Stays {
    /// Of the youngest segment that is left, the bytes up to here.
    UpTo(u64),
    /// The log goes on in a new segment, whose file has to be made.
    Nothing,
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

/// What file systems allow.
const NAME_BYTES_MAX: usize = 255;

fn with_suffix(dir_name: &str, suffix: &str) -> String {
    let keep = dir_name.len().min(NAME_BYTES_MAX.saturating_sub(suffix.len()));
    let kept = dir_name.get(..keep).unwrap_or_default();
    format!("{kept}{suffix}")
}

/// The name of the directory that a replica is copied into before it moves to another log directory:
/// `<topic>-<partition>.<unique>-future`. `None` where the topic's name leaves no room for it.
pub fn future_dir_name(dir_name: &str, unique: &str) -> Option<String> {
    let name = format!("{dir_name}.{unique}-future");
    (name.len() <= NAME_BYTES_MAX).then_some(name)
}

/// The partition directory that a name of [`future_dir_name`] is to become.
pub fn future_of(name: &str) -> Option<&str> {
    let (dir_name, unique) = name.strip_suffix("-future")?.rsplit_once('.')?;
    let is_unique = unique.len() == 32 && unique.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_unique.then_some(dir_name)
}

/// Whether a directory of a log directory waits for its removal.
pub fn is_retired_dir_name(name: &str) -> bool {
    name.ends_with("-delete")
}
