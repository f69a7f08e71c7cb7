//! Opening a log: take stock of the directory, check the tail that may not have reached the device, and bring epochs and producers
//! up to the log's end. After a clean stop that is a look at the last few batches; after a crash it costs time in proportion to
//! what was not checkpointed, not to the data.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32};

use arc_swap::ArcSwap;
use parking_lot::RwLock;

use super::due::{Due, EpochsRead};
use super::epochs::EpochTable;
use super::error::{Context, LogError};
use super::names::{self, CLEANED, DELETED, INDEX, LEADER_EPOCHS, LOG, TIME_INDEX, TXN_INDEX};
use super::partition_log::{Log, LogEnv, LogIdentity, interval_of, reserved_bytes_of};
use super::partition_metadata;
use super::producers::Producers;
use super::reload::for_each_header;
use super::scan::{CheckedWalk, Found, HeaderWalk};
use super::segment::{Home, Segment};
use super::shorten::remove_if_there;
use super::view::LogView;
use crate::base::Offset;
use crate::host::disk::read_file;
use crate::host::{Disk, DiskFile};
use crate::metadata::config::LogConfig;
use crate::records::BatchHeader;

/// What is known of the directory's last life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenHow {
    /// The log directory was closed in order: sizes and indexes are as they should be.
    pub clean_shutdown: bool,
    /// Everything below was on the device (`recovery-point-offset-checkpoint`).
    pub recovery_point: Offset,
    /// Where the log starts, when that is inside a segment (`log-start-offset-checkpoint`).
    pub log_start_offset: Option<Offset>,
}

/// What opening found, for the log line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    pub batches_checked: u64,
    pub bytes_checked: u64,
    /// Bytes behind the last whole batch.
    pub truncated_bytes: u64,
    pub segments_removed: usize,
    /// Side files that were missing or damaged and have been made anew.
    pub rebuilt: Vec<String>,
}

impl Log {
    /// Opens the log in `dir`, which is made when it is not there.
    ///
    /// # Errors
    /// `InconsistentTopicId` when the directory belongs to another topic; storage errors.
    pub fn open(
        env: &LogEnv,
        dir: PathBuf,
        identity: LogIdentity,
        config: Arc<LogConfig>,
        how: OpenHow,
    ) -> Result<(Log, Recovery), LogError> {
        let now = env.host.clock.now_ms();
        let mut opening = Opening::begin(env, dir, &config, how)?;
        opening.check_identity(&identity)?;
        opening.load_epochs()?;
        opening.check_segments()?;
        if !how.clean_shutdown && opening.how.recovery_point > opening.end_offset() {
            // Whatever it was said of is not this log: nothing of it is trusted unread.
            opening.disbelieve("recovery point", opening.how.recovery_point);
            opening.how.recovery_point = 0;
            opening.check_segments()?;
        }
        let (active, end) = opening.settle_end()?;
        let Opening {
            home,
            how,
            segments,
            epochs,
            recovery,
            is_new,
            epochs_unsaved,
            metadata_unsynced,
            cut_unsynced,
            ..
        } = opening;
        let log_start_offset = segments.first().map_or(end.offset, |first| first.base_offset());
        let log_start_offset = log_start_offset.max(how.log_start_offset.unwrap_or(0));
        let segments: Arc<[Arc<Segment>]> = segments.into();
        let flushed =
            if how.clean_shutdown { end.offset } else { how.recovery_point.clamp(log_start_offset, end.offset) };
        let view = LogView {
            log_start_offset,
            log_end_offset: end.offset,
            end_position: end.position,
            segments: Arc::clone(&segments),
            epochs: Arc::new(epochs),
            may_have_gaps: config.cleanup.compact,
        };
        let mut log = Log {
            env: env.clone(),
            home,
            identity,
            config,
            active_since: now,
            active_first_timestamp: active.first_timestamp()?,
            active,
            roll_jitter_ms: 0,
            log_start_offset,
            log_end_offset: end.offset,
            end_position: end.position,
            flushed,
            recovery_point: flushed,
            appended_bytes: if flushed < end.offset { recovery.bytes_checked } else { 0 },
            flushed_bytes: 0,
            checkpointed_bytes: 0,
            epochs: Arc::clone(&view.epochs),
            epochs_unsaved,
            epoch_assigned: false,
            producers: Producers::default(),
            snapshots: Vec::new(),
            published: Arc::new(ArcSwap::from_pointee(view)),
            segments,
            removals: Vec::new(),
            writeback_mark: (0, 0),
            names_unsynced: !how.clean_shutdown,
            // Also when a former try made the directory and got no further: nothing was flushed into it yet.
            dir_unsynced: is_new || end.offset == 0,
            metadata_unsynced,
            cut_unsynced,
            tail_is_dirty: false,
            unfinished_cut: None,
        };
        if log.config.preallocate {
            // Its life before may have ended without giving it back.
            log.active.may_have_reserved();
        }
        log.roll_jitter_ms = log.draw_jitter();
        log.trim_epochs();
        // What a snapshot above the recovery point counts on may have been lost, or cut away and written anew.
        log.reload_producers(if how.clean_shutdown { end.offset } else { how.recovery_point })?;
        log.publish();
        if log.flushed < log.log_end_offset || log.cut_unsynced.is_some() {
            // Nobody may read what the next power cut could take away (trap 54), and what was cut off must not come back behind it.
            log.flush()?;
        }
        Ok((log, recovery))
    }

    fn trim_epochs(&mut self) {
        let epochs = Arc::make_mut(&mut self.epochs);
        // An epoch may begin at the very end: assigned, with nothing written in it yet.
        let from_end = epochs.truncate_from_end(self.log_end_offset.saturating_add(1));
        let from_start = epochs.truncate_from_start(self.log_start_offset);
        self.epochs_unsaved |= from_end || from_start;
    }
}

struct End {
    offset: Offset,
    position: u64,
}

struct Opening<'a> {
    disk: &'a dyn Disk,
    home: Arc<Home>,
    how: OpenHow,
    segments: Vec<Arc<Segment>>,
    epochs: EpochTable,
    epochs_unsaved: bool,
    epochs_read: EpochsRead,
    epochs_lost: bool,
    recovery: Recovery,
    is_new: bool,
    metadata_unsynced: bool,
    compacted: bool,
    reserved_bytes: Option<u64>,
    end: End,
    /// As in the log.
    cut_unsynced: Option<Offset>,
}

impl<'a> Opening<'a> {
    fn begin(env: &'a LogEnv, dir: PathBuf, config: &LogConfig, how: OpenHow) -> Result<Opening<'a>, LogError> {
        let disk = &*env.host.disk;
        let is_new = !disk.exists(&dir);
        if is_new {
            disk.create_dir_all(&dir).context("create", &dir)?;
        }
        // What is remembered of a directory that is not there was said of another one of the name.
        let how = if is_new { OpenHow { recovery_point: 0, log_start_offset: None, ..how } } else { how };
        let index_interval_bytes = AtomicU32::new(interval_of(config));
        let home = Arc::new(Home {
            dir: RwLock::new(dir.into()),
            files: Arc::clone(&env.files),
            index_interval_bytes,
            retired: AtomicBool::new(false),
        });
        let segments = take_stock(disk, &home)?;
        Ok(Opening {
            disk,
            home,
            how,
            segments,
            epochs: EpochTable::default(),
            epochs_unsaved: false,
            epochs_read: EpochsRead::NONE,
            epochs_lost: false,
            recovery: Recovery::default(),
            is_new,
            metadata_unsynced: false,
            compacted: config.cleanup.compact,
            reserved_bytes: reserved_bytes_of(config),
            end: End { offset: 0, position: 0 },
            cut_unsynced: None,
        })
    }

    fn check_identity(&mut self, identity: &LogIdentity) -> Result<(), LogError> {
        let expected = identity.topic_id;
        match partition_metadata::read(self.disk, &self.home.dir())? {
            Some(found) if found == expected || expected.is_zero() => Ok(()),
            Some(found) => Err(LogError::InconsistentTopicId { path: self.home.dir().to_path_buf(), found, expected }),
            None if expected.is_zero() => Ok(()),
            None => {
                self.metadata_unsynced = true;
                partition_metadata::write(self.disk, &self.home.dir(), expected)
            }
        }
    }

    fn load_epochs(&mut self) -> Result<(), LogError> {
        let path = self.home.dir().join(LEADER_EPOCHS);
        let content = match read_file(self.disk, &path) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.epochs_lost = self.segments.iter().any(|segment| segment.bytes() > 0);
                return Ok(());
            }
            Err(error) => return Err(error).context("read", &path),
        };
        match EpochTable::parse(&String::from_utf8_lossy(&content)) {
            Ok(epochs) => self.epochs = epochs,
            Err(error) => {
                self.recovery.rebuilt.push(format!("{LEADER_EPOCHS} ({error})"));
                self.epochs_lost = true;
            }
        }
        Ok(())
    }

    /// Checks what may not have reached the device, cuts the log at the first byte that is no whole batch, and finds its end.
    fn check_segments(&mut self) -> Result<(), LogError> {
        if self.epochs_lost {
            self.rebuild_epochs()?;
        }
        let first = if self.how.clean_shutdown {
            self.segments.len().saturating_sub(1)
        } else {
            let above = self.segments.partition_point(|segment| segment.base_offset() <= self.how.recovery_point);
            self.cut_overlap(above)?;
            above.saturating_sub(1)
        };
        for at in first..self.segments.len() {
            let Some(segment) = self.segments.get(at).cloned() else { break };
            let is_last = at + 1 == self.segments.len();
            let from = if self.how.clean_shutdown { Offset::MAX } else { self.how.recovery_point };
            let next_base = self.segments.get(at + 1).map_or(Offset::MAX, |next| next.base_offset());
            let cut = self.check_segment(&segment, from, next_base)?;
            if !is_last && ((cut && self.end.offset < next_base) || self.has_hole_behind(next_base)) {
                return self.drop_behind(at);
            }
            if !is_last {
                segment.finish_indexes()?;
                segment.forget_recent();
            }
        }
        Ok(())
    }

    /// When the last of the first `count` segments begins at the recovery point, the one before may have been cut there and have its old end
    /// again. Everything else of it was on the device.
    fn cut_overlap(&mut self, count: usize) -> Result<(), LogError> {
        let Some([before, next]) = self.segments.get(count.saturating_sub(2)..count) else { return Ok(()) };
        let (end, bytes) = (next.base_offset(), before.bytes());
        if end != self.how.recovery_point {
            return Ok(());
        }
        let place = match before.locate(end, bytes) {
            // Of old damage there nothing is known now; whoever reads it finds it.
            Err(LogError::Corrupt { .. }) => return Ok(()),
            place => place?,
        };
        if let Some(place) = place.filter(|place| place.base_offset == end) {
            before.truncate(end, place.position)?;
            self.recovery.truncated_bytes += bytes.saturating_sub(place.position);
            self.cut_unsynced = Some(before.base_offset());
        }
        Ok(())
    }

    /// Whether batches that were never synced are missing between a segment and the next one. What follows a hole was not
    /// acknowledged either, and a log is a prefix of what was written (A7). Compaction leaves holes of its own.
    fn has_hole_behind(&self, next_base: Offset) -> bool {
        !self.compacted && self.end.offset < next_base && self.end.offset >= self.how.recovery_point
    }

    /// Walks one segment from a sound place before `from` on, up to where the next one begins. `true` when something was cut off.
    fn check_segment(&mut self, segment: &Segment, from: Offset, next_base: Offset) -> Result<bool, LogError> {
        let file = segment.file()?;
        let len = file.len().context("read", &segment.path(LOG))?;
        let start = segment.resume_before(from)?;
        let read = self.epochs_read;
        if self.how.clean_shutdown && self.trust(segment, &*file, start, len)? {
            return Ok(false);
        }
        self.epochs_read = read;
        let start = segment.resume_before(from)?;
        let mut walk = CheckedWalk::new(&*file, start, len);
        let mut due = Due::at(segment, start);
        loop {
            let position = walk.position;
            match walk.step().context("read", &segment.path(LOG))? {
                Found::Batch(header) if due.takes(&header, self.compacted) && fits(segment, &header, next_base) => {
                    due = Due::Exactly(header.next_offset());
                    self.note(segment, &header);
                    self.recovery.batches_checked += 1;
                }
                Found::End => {
                    self.recovery.bytes_checked += len.saturating_sub(start);
                    self.end = End { offset: due.offset(), position: len };
                    return Ok(false);
                }
                Found::Batch(_) | Found::Broken(_) => {
                    self.recovery.bytes_checked += len.saturating_sub(start);
                    self.recovery.truncated_bytes += len - position;
                    file.set_len(position).context("truncate", &segment.path(LOG))?;
                    self.cut_unsynced = self.cut_unsynced.or(Some(segment.base_offset()));
                    self.end = End { offset: due.offset(), position };
                    return Ok(true);
                }
            }
        }
    }

    /// After a clean stop the headers behind the last index entry only have to lead to the end that the log had then.
    fn trust(&mut self, segment: &Segment, file: &dyn DiskFile, start: u64, len: u64) -> Result<bool, LogError> {
        let mut due = Due::at(segment, start);
        let mut walk = HeaderWalk::new(file, start, len);
        loop {
            match walk.step().context("read", &segment.path(LOG))? {
                Found::Batch(header) if due.takes(&header, self.compacted) && fits(segment, &header, Offset::MAX) => {
                    due = Due::Exactly(header.next_offset());
                    self.note(segment, &header);
                }
                Found::End => {
                    self.end = End { offset: due.offset(), position: len };
                    return Ok(due.offset() <= self.how.recovery_point);
                }
                _ => return Ok(false),
            }
        }
    }

    fn note(&mut self, segment: &Segment, header: &BatchHeader) {
        segment.note(std::iter::once(header));
        self.epochs_unsaved |= self.epochs_read.note(header, &mut self.epochs);
    }

    fn drop_behind(&mut self, at: usize) -> Result<(), LogError> {
        for segment in self.segments.split_off(at + 1) {
            self.recovery.truncated_bytes += segment.bytes();
            self.recovery.segments_removed += 1;
            for path in segment.mark_deleted()? {
                remove_if_there(self.disk, &path)?;
            }
        }
        Ok(())
    }

    /// Without its file the table is read off the batches, which costs a look at every header.
    fn rebuild_epochs(&mut self) -> Result<(), LogError> {
        let mut epochs = EpochTable::default();
        for segment in &self.segments {
            for_each_header(segment, 0, segment.bytes(), |header| {
                epochs.advance(header.partition_leader_epoch, header.base_offset);
            })?;
        }
        self.epochs = epochs;
        self.epochs_unsaved = true;
        Ok(())
    }

    /// The log's end, as far as the segments say.
    fn end_offset(&self) -> Offset {
        self.end.offset.max(self.segments.last().map_or(0, |last| last.base_offset()))
    }

    fn disbelieve(&mut self, what: &str, offset: Offset) {
        self.recovery.rebuilt.push(format!("{what} {offset} (the log ends at {})", self.end_offset()));
    }

    /// The segment to write to. A log without any goes on at its start. A start behind the end of what is there was said of a dead
    /// namesake, or of records that a power cut took: it must not take those that are there along.
    fn settle_end(&mut self) -> Result<(Arc<Segment>, End), LogError> {
        let start = self.how.log_start_offset.unwrap_or(0);
        if start > self.end_offset() && !self.segments.is_empty() {
            self.disbelieve("log start offset", start);
            self.how.log_start_offset = None;
        }
        match self.segments.last() {
            Some(active) => Ok((Arc::clone(active), End { offset: self.end_offset(), position: self.end.position })),
            None => {
                let active = Arc::new(Segment::create(&self.home, start, self.reserved_bytes)?);
                self.segments.push(Arc::clone(&active));
                Ok((active, End { offset: start, position: 0 }))
            }
        }
    }
}

/// Whether the batch may stand in the segment: its offsets are at or behind the segment's base, before the next segment's, and near
/// enough for the index.
fn fits(segment: &Segment, header: &BatchHeader, next_base: Offset) -> bool {
    header.base_offset >= segment.base_offset()
        && header.next_offset() <= next_base
        && i32::try_from(header.last_offset() - segment.base_offset()).is_ok()
}

/// The segments by their files' names and sizes. Leftovers of removals and unfinished writes go.
fn take_stock(disk: &dyn Disk, home: &Arc<Home>) -> Result<Vec<Arc<Segment>>, LogError> {
    let mut files: BTreeMap<Offset, [Option<u64>; 3]> = BTreeMap::new();
    let mut orphans = Vec::new();
    let dir = home.dir();
    for entry in disk.read_dir(&dir).context("list", &dir)? {
        let path = dir.join(&entry.name);
        if entry.is_dir {
            continue;
        }
        if [DELETED, CLEANED, names::ASIDE].iter().any(|suffix| entry.name.ends_with(suffix)) {
            remove_if_there(disk, &path)?;
            continue;
        }
        let Some((offset, kind)) = names::parse_offset_file(&entry.name) else { continue };
        let at = match kind {
            LOG => 0,
            INDEX => 1,
            TIME_INDEX => 2,
            TXN_INDEX => {
                orphans.push((offset, path));
                continue;
            }
            _ => continue,
        };
        if at > 0 {
            orphans.push((offset, path));
        }
        files.entry(offset).or_default()[at] = Some(entry.len);
    }
    for (offset, path) in orphans {
        if files.get(&offset).is_none_or(|sizes| sizes[0].is_none()) {
            remove_if_there(disk, &path)?;
        }
    }
    let segment = |(offset, [log, index, times]): (Offset, [Option<u64>; 3])| {
        Some(Arc::new(Segment::existing(home, offset, log?, index.unwrap_or(0), times.unwrap_or(0))))
    };
    Ok(files.into_iter().filter_map(segment).collect())
}
