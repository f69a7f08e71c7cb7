//! One segment of a partition's log: a file of batches and its two sparse indexes. The log's owner writes to the youngest one;
//! anybody who holds a view reads from any of them, without the partition's lock.
//!
//! Batches that were written lately are remembered with their places, so a reader at the tail needs no look at the disk.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use parking_lot::RwLock;

use super::error::{Context, LogError};
use super::file_cache::{FileCache, Slot};
use super::names::{self, DELETED, INDEX, LOG, TIME_INDEX};
use super::scan::{Found, HeaderWalk};
use super::sparse_index::{OffsetEntry, SparseIndex, TimeEntry};
use crate::base::{Offset, TimestampMs};
use crate::host::{DiskFile, OpenMode};
use crate::records::BatchHeader;

/// Batches whose places are remembered in memory.
const RECENT_MAX: usize = 64;

/// Index entries that wait in memory before they are written out: one run for every 4 MiB of data.
const PENDING_MAX: usize = 1024;

/// A walk that skips more than this many index intervals says that the index has holes.
const SUSPICIOUS_INTERVALS: u64 = 8;

/// What all segments of one partition share.
pub(super) struct Home {
    pub dir: PathBuf,
    pub files: Arc<FileCache>,
    pub index_interval_bytes: AtomicU32,
}

pub struct Segment {
    base_offset: Offset,
    home: Arc<Home>,
    log: Arc<Slot>,
    index: Arc<Slot>,
    time_index: Arc<Slot>,
    /// The files carry the suffix of those that wait for removal.
    deleted: AtomicBool,
    state: RwLock<State>,
}

struct State {
    bytes: u64,
    /// The offset behind the last batch; `None` until the end has been seen.
    next_offset: Option<Offset>,
    offsets: SparseIndex<OffsetEntry>,
    times: SparseIndex<TimeEntry>,
    recent: VecDeque<Place>,
    /// The highest timestamp and the last offset of the batch that has it; `None` until somebody asks.
    max_timestamp: Option<MaxTimestamp>,
    last_time_entry: TimestampMs,
    bytes_since_entry: u64,
    rebuilt: bool,
}

/// The highest timestamp of a segment, -1 when none has one, and the last offset of the first batch that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxTimestamp {
    pub timestamp: TimestampMs,
    pub offset: Offset,
}

/// Where a batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub position: u64,
    pub bytes: u64,
    pub base_offset: Offset,
    pub last_offset: Offset,
}

impl State {
    fn new(bytes: u64, offset_entries: u64, time_entries: u64) -> State {
        State {
            bytes,
            next_offset: None,
            offsets: SparseIndex::new(offset_entries),
            times: SparseIndex::new(time_entries),
            recent: VecDeque::new(),
            max_timestamp: None,
            last_time_entry: -1,
            bytes_since_entry: 0,
            rebuilt: false,
        }
    }

    /// Takes note of a batch that stands at the end of the file.
    fn note(&mut self, base: Offset, header: &BatchHeader, interval: u64) {
        let size = header.size_bytes() as u64;
        let last_offset = header.last_offset();
        let known = self.max_timestamp.get_or_insert(MaxTimestamp { timestamp: -1, offset: base - 1 });
        if header.max_timestamp > known.timestamp {
            *known = MaxTimestamp { timestamp: header.max_timestamp, offset: last_offset };
        }
        if self.bytes_since_entry > interval {
            let relative_offset = relative(base, last_offset);
            self.offsets.push(OffsetEntry { relative_offset, position: self.bytes as u32 });
            self.push_time(base);
            self.bytes_since_entry = 0;
        }
        self.remember(Place { position: self.bytes, bytes: size, base_offset: header.base_offset, last_offset });
        self.bytes_since_entry += size;
        self.bytes += size;
        self.next_offset = Some(header.next_offset());
    }

    /// Adds the highest timestamp so far to the time index, if it is news there.
    fn push_time(&mut self, base: Offset) {
        let Some(max) = self.max_timestamp else { return };
        if max.timestamp > self.last_time_entry {
            self.times.push(TimeEntry { timestamp: max.timestamp, relative_offset: relative(base, max.offset) });
            self.last_time_entry = max.timestamp;
        }
    }

    fn remember(&mut self, place: Place) {
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(place);
    }

    /// The first batch that ends at or behind `target`, when it is surely among the remembered ones.
    fn recent(&self, target: Offset) -> Option<Place> {
        if self.recent.front()?.base_offset > target {
            return None;
        }
        self.recent.get(self.recent.partition_point(|place| place.last_offset < target)).copied()
    }
}

fn relative(base: Offset, offset: Offset) -> i32 {
    i32::try_from(offset - base).unwrap_or(i32::MAX)
}

impl Segment {
    /// Makes the empty segment that begins at `base_offset`.
    pub(super) fn create(home: &Arc<Home>, base_offset: Offset) -> Result<Segment, LogError> {
        let segment = Segment::existing(home, base_offset, 0, 0, 0);
        let path = segment.path(LOG);
        home.files.open(&segment.log, OpenMode::Truncate, || &path).context("create", &path)?;
        Ok(segment)
    }

    /// A segment whose files are there, of the sizes that the directory shows. Nothing is opened.
    pub(super) fn existing(
        home: &Arc<Home>,
        base_offset: Offset,
        bytes: u64,
        index_bytes: u64,
        time_index_bytes: u64,
    ) -> Segment {
        Segment {
            base_offset,
            home: Arc::clone(home),
            log: Arc::default(),
            index: Arc::default(),
            time_index: Arc::default(),
            deleted: AtomicBool::new(false),
            state: RwLock::new(State::new(bytes, index_bytes / 8, time_index_bytes / 12)),
        }
    }

    pub fn base_offset(&self) -> Offset {
        self.base_offset
    }

    /// Bytes of batches now; a view may know fewer.
    pub fn bytes(&self) -> u64 {
        self.state.read().bytes
    }

    /// Entries in the offset and in the time index.
    pub(super) fn index_entries(&self) -> (u64, u64) {
        let state = self.state.read();
        (state.offsets.len(), state.times.len())
    }

    /// The file of batches, opened when it is not.
    #[inline]
    pub fn file(&self) -> Result<Arc<dyn DiskFile>, LogError> {
        match self.log.get() {
            Some(file) => Ok(file),
            None => self.open(&self.log, LOG, OpenMode::ReadWrite),
        }
    }

    /// Always for reading and writing: the cache holds one descriptor for both.
    fn open(&self, slot: &Arc<Slot>, kind: &str, mode: OpenMode) -> Result<Arc<dyn DiskFile>, LogError> {
        let path = self.path(kind);
        match self.home.files.open(slot, mode, || &path) {
            // Renamed between the two looks, for removal.
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.path(kind) != path => {
                self.home.files.open(slot, mode, || self.path(kind)).context("open", &path)
            }
            opened => opened.context("open", &path),
        }
    }

    pub(super) fn path(&self, kind: &str) -> PathBuf {
        let mut name = names::offset_file(self.base_offset, kind);
        if self.deleted.load(Ordering::Acquire) {
            name.push_str(DELETED);
        }
        self.home.dir.join(name)
    }

    fn interval(&self) -> u64 {
        u64::from(self.home.index_interval_bytes.load(Ordering::Relaxed))
    }

    /// Writes behind the last batch. The segment does not know of it before [`Segment::note`].
    pub(super) fn write(&self, slices: &[IoSlice<'_>], position: u64) -> io::Result<()> {
        match self.log.get() {
            Some(file) => file.write_all_vectored_at(slices, position),
            None => {
                let file = self.home.files.open(&self.log, OpenMode::ReadWrite, || self.path(LOG))?;
                file.write_all_vectored_at(slices, position)
            }
        }
    }

    /// Takes note of batches that now stand behind the last one, with their final offsets.
    pub(super) fn note<'a>(&self, headers: impl Iterator<Item = &'a BatchHeader>) {
        let interval = self.interval();
        let mut state = self.state.write();
        for header in headers {
            state.note(self.base_offset, header, interval);
        }
        if state.offsets.pending().len() >= PENDING_MAX {
            // Entries that cannot be written now stay in memory and go with the next run.
            let _ = self.spill(&mut state);
        }
    }

    fn spill(&self, state: &mut State) -> Result<(), LogError> {
        let index = self.open(&self.index, INDEX, OpenMode::Create)?;
        state.offsets.spill(&*index).context("write", &self.path(INDEX))?;
        let times = self.open(&self.time_index, TIME_INDEX, OpenMode::Create)?;
        state.times.spill(&*times).context("write", &self.path(TIME_INDEX))
    }

    /// Writes the indexes out with the closing entry of the time index, as when the segment gets a successor or the log closes.
    pub(super) fn finish_indexes(&self) -> Result<(), LogError> {
        let mut state = self.state.write();
        state.push_time(self.base_offset);
        self.spill(&mut state)
    }

    /// Writes out index entries that wait in memory.
    pub(super) fn write_indexes(&self) -> Result<(), LogError> {
        let mut state = self.state.write();
        let waiting = !state.offsets.pending().is_empty() || !state.times.pending().is_empty();
        if waiting { self.spill(&mut state) } else { Ok(()) }
    }

    /// Frees what only the youngest segment needs.
    pub(super) fn forget_recent(&self) {
        self.state.write().recent = VecDeque::new();
    }

    /// The first batch that ends at or behind `target` and begins before byte `end`.
    pub fn locate(&self, target: Offset, end: u64) -> Result<Option<Place>, LogError> {
        {
            let state = self.state.read();
            if let Some(place) = state.recent(target) {
                return Ok((place.position < end).then_some(place));
            }
            if end == 0 || state.next_offset.is_some_and(|next| next <= target) {
                return Ok(None);
            }
        }
        let file = self.file()?;
        let start = self.floor(target)?;
        match self.walk_to(&*file, start, target, end)? {
            Walked::To(place) => Ok(place),
            Walked::IndexIsWrong => {
                self.rebuild_indexes(&*file)?;
                let start = self.floor(target)?;
                match self.walk_to(&*file, start, target, end)? {
                    Walked::To(place) => Ok(place),
                    Walked::IndexIsWrong => self.walk_from_start(&*file, target, end),
                }
            }
        }
    }

    fn walk_from_start(&self, file: &dyn DiskFile, target: Offset, end: u64) -> Result<Option<Place>, LogError> {
        match self.walk_to(file, None, target, end)? {
            Walked::To(place) => Ok(place),
            Walked::IndexIsWrong => Ok(None),
        }
    }

    /// The last index entry at or before `target`.
    fn floor(&self, target: Offset) -> Result<Option<OffsetEntry>, LogError> {
        let key = target.saturating_sub(self.base_offset);
        let written = {
            let state = self.state.read();
            if let Some(entry) = state.offsets.floor_pending(key) {
                return Ok(Some(entry));
            }
            state.offsets.written()
        };
        if written.entries == 0 {
            return Ok(None);
        }
        match self.open(&self.index, INDEX, OpenMode::ReadWrite) {
            Ok(index) => written.floor(&*index, key).context("read", &self.path(INDEX)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn walk_to(
        &self,
        file: &dyn DiskFile,
        start: Option<OffsetEntry>,
        target: Offset,
        end: u64,
    ) -> Result<Walked, LogError> {
        let first = start.map_or(0, |entry| u64::from(entry.position));
        if first >= end {
            let beyond = start.is_some() && first >= self.bytes();
            return Ok(if beyond { Walked::IndexIsWrong } else { Walked::To(None) });
        }
        let mut expected = start.map(|entry| self.base_offset + i64::from(entry.relative_offset));
        let mut walk = HeaderWalk::new(file, first, end);
        let mut largest = 0;
        loop {
            let position = walk.position;
            let header = match walk.step().context("read", &self.path(LOG))? {
                Found::Batch(header) => header,
                Found::End => return Ok(Walked::To(None)),
                Found::Broken(_) if start.is_some() => return Ok(Walked::IndexIsWrong),
                Found::Broken(reason) => return Err(LogError::Corrupt { path: self.path(LOG), position, reason }),
            };
            if expected.take().is_some_and(|expected| expected != header.last_offset()) {
                return Ok(Walked::IndexIsWrong);
            }
            let bytes = header.size_bytes() as u64;
            largest = largest.max(bytes);
            if header.last_offset() >= target {
                let place =
                    Place { position, bytes, base_offset: header.base_offset, last_offset: header.last_offset() };
                return Ok(self.judge_walk(position - first, largest).unwrap_or(Walked::To(Some(place))));
            }
        }
    }

    /// Whether a walk over `skipped` bytes is longer than a sound index would have asked for.
    fn judge_walk(&self, skipped: u64, largest: u64) -> Option<Walked> {
        let usual = SUSPICIOUS_INTERVALS * self.interval().max(4096) + 2 * largest;
        (skipped > usual && !self.state.read().rebuilt).then_some(Walked::IndexIsWrong)
    }

    /// Makes both indexes anew from the batches. Never more than once in a segment's life in this process.
    fn rebuild_indexes(&self, file: &dyn DiskFile) -> Result<(), LogError> {
        let (bytes, rebuilt) = {
            let state = self.state.read();
            (state.bytes, state.rebuilt)
        };
        if rebuilt {
            return Ok(());
        }
        let fresh = self.scan(file, bytes)?;
        let mut state = self.state.write();
        let behind = state.offsets.pending().iter().filter(|entry| u64::from(entry.position) >= bytes);
        let behind: Vec<OffsetEntry> = behind.copied().collect();
        let times_behind = state.times.pending().iter().filter(|entry| entry.timestamp > fresh.last_time_entry);
        let times_behind: Vec<TimeEntry> = times_behind.copied().collect();
        state.offsets = fresh.offsets;
        state.times = fresh.times;
        state.last_time_entry = state.last_time_entry.max(fresh.last_time_entry);
        state.max_timestamp = match (state.max_timestamp, fresh.max_timestamp) {
            (Some(known), Some(found)) if known.timestamp > found.timestamp => Some(known),
            (known, found) => found.or(known),
        };
        behind.into_iter().for_each(|entry| state.offsets.push(entry));
        times_behind.into_iter().for_each(|entry| state.times.push(entry));
        state.rebuilt = true;
        // In memory they serve as well, should the disk be full or read-only.
        let _ = self.spill(&mut state);
        Ok(())
    }

    /// What the state would be had the first `bytes` just been written.
    fn scan(&self, file: &dyn DiskFile, bytes: u64) -> Result<State, LogError> {
        let interval = self.interval();
        let mut state = State::new(0, 0, 0);
        let mut walk = HeaderWalk::new(file, 0, bytes);
        while let Found::Batch(header) = walk.step().context("read", &self.path(LOG))? {
            state.note(self.base_offset, &header, interval);
        }
        Ok(state)
    }

    /// Brings the state back to a sound index entry for a batch that ends below `target`, from where the caller walks on and
    /// notes what it finds. Returns the byte to walk from.
    pub(super) fn resume_before(&self, target: Offset) -> Result<u64, LogError> {
        if !self.state.read().offsets.pending().is_empty() {
            self.spill(&mut self.state.write())?;
        }
        let start = match self.floor(target.saturating_sub(1))? {
            Some(entry) => self.checked_start(entry)?,
            None => None,
        };
        let mut state = self.state.write();
        state.recent.clear();
        state.bytes_since_entry = 0;
        state.next_offset = None;
        match start {
            Some(start) => {
                state.bytes = u64::from(start.offset.position);
                state.offsets.truncate(start.offsets);
                state.times.truncate(start.times);
                state.last_time_entry = start.max.timestamp;
                state.max_timestamp = Some(start.max);
            }
            None => *state = State::new(0, 0, 0),
        }
        Ok(state.bytes)
    }

    /// How much of the indexes to keep when starting again at `offset`; `None` when they cannot be trusted.
    fn checked_start(&self, offset: OffsetEntry) -> Result<Option<Start>, LogError> {
        let written = {
            let state = self.state.read();
            (state.offsets.written(), state.times.written())
        };
        // No entry names the file's begin; the zeros of an index that Kafka had preallocated seem to.
        if offset.position == 0 {
            return Ok(None);
        }
        let index = self.open(&self.index, INDEX, OpenMode::ReadWrite)?;
        let place = written.0.last_where(&*index, |entry| entry.relative_offset <= offset.relative_offset);
        let place = place.context("read", &self.path(INDEX))?;
        let times = match self.open(&self.time_index, TIME_INDEX, OpenMode::ReadWrite) {
            Ok(times) => times,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        let time = written.1.last_where(&*times, |entry| entry.relative_offset <= offset.relative_offset);
        let time = time.context("read", &self.path(TIME_INDEX))?;
        let (Some((place, _)), Some((time_place, time))) = (place, time) else { return Ok(None) };
        let max =
            MaxTimestamp { timestamp: time.timestamp, offset: self.base_offset + i64::from(time.relative_offset) };
        if !self.batch_is_there(offset)? || !self.time_is_true(max)? {
            return Ok(None);
        }
        Ok(Some(Start { offset, max, offsets: place + 1, times: time_place + 1 }))
    }

    fn batch_is_there(&self, entry: OffsetEntry) -> Result<bool, LogError> {
        let file = self.file()?;
        let end = file.len().context("read", &self.path(LOG))?;
        let found = HeaderWalk::new(&*file, u64::from(entry.position), end).peek().context("read", &self.path(LOG))?;
        let expected = self.base_offset + i64::from(entry.relative_offset);
        Ok(matches!(found, Found::Batch(header) if header.last_offset() == expected))
    }

    /// Whether the batch that ends at the offset has that timestamp.
    fn time_is_true(&self, max: MaxTimestamp) -> Result<bool, LogError> {
        let file = self.file()?;
        let end = file.len().context("read", &self.path(LOG))?;
        let Some(place) = self.locate(max.offset, end)? else { return Ok(false) };
        let found = HeaderWalk::new(&*file, place.position, end).peek().context("read", &self.path(LOG))?;
        Ok(matches!(found, Found::Batch(header)
            if header.last_offset() == max.offset && header.max_timestamp == max.timestamp))
    }

    /// The highest timestamp, read from the time index the first time.
    pub fn max_timestamp(&self) -> Result<MaxTimestamp, LogError> {
        let (known, bytes, times) = {
            let state = self.state.read();
            (state.max_timestamp, state.bytes, state.times.written())
        };
        if let Some(known) = known {
            return Ok(known);
        }
        let mut max = MaxTimestamp { timestamp: -1, offset: self.base_offset - 1 };
        if bytes > 0 {
            max = match self.last_time_entry(times.entries)? {
                Some(max) => max,
                None => self.scan(&*self.file()?, bytes)?.max_timestamp.unwrap_or(max),
            };
        }
        Ok(*self.state.write().max_timestamp.get_or_insert(max))
    }

    /// The closing entry of the time index, when there is one and it is true.
    fn last_time_entry(&self, entries: u64) -> Result<Option<MaxTimestamp>, LogError> {
        let Some(last) = entries.checked_sub(1) else { return Ok(None) };
        let times = match self.open(&self.time_index, TIME_INDEX, OpenMode::ReadWrite) {
            Ok(times) => times,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        let written = self.state.read().times.written();
        let entry = written.at(&*times, last).context("read", &self.path(TIME_INDEX))?;
        let max =
            MaxTimestamp { timestamp: entry.timestamp, offset: self.base_offset + i64::from(entry.relative_offset) };
        Ok(self.time_is_true(max)?.then_some(max))
    }

    /// The offset before which no record has a timestamp of `target` or later, as far as the time index knows.
    pub(super) fn search_start(&self, target: TimestampMs) -> Result<Offset, LogError> {
        let (pending, written) = {
            let state = self.state.read();
            (state.times.floor_pending(target), state.times.written())
        };
        let entry = match pending {
            Some(entry) => Some(entry),
            None if written.entries == 0 => None,
            None => match self.open(&self.time_index, TIME_INDEX, OpenMode::ReadWrite) {
                Ok(times) => written.floor(&*times, target).context("read", &self.path(TIME_INDEX))?,
                Err(error) if error.is_not_found() => None,
                Err(error) => return Err(error),
            },
        };
        let Some(entry) = entry else { return Ok(self.base_offset) };
        let max =
            MaxTimestamp { timestamp: entry.timestamp, offset: self.base_offset + i64::from(entry.relative_offset) };
        if self.time_is_true(max)? {
            return Ok(max.offset);
        }
        self.rebuild_indexes(&*self.file()?)?;
        Ok(self.base_offset)
    }

    /// The highest timestamp of the first batch; `None` in an empty segment.
    pub(super) fn first_timestamp(&self) -> Result<Option<TimestampMs>, LogError> {
        let bytes = self.bytes();
        let file = self.file()?;
        match HeaderWalk::new(&*file, 0, bytes).peek().context("read", &self.path(LOG))? {
            Found::Batch(header) => Ok(Some(header.max_timestamp)),
            _ => Ok(None),
        }
    }

    /// Cuts the file at `position`, where a batch begins, and the indexes with it.
    pub(super) fn truncate(&self, target: Offset, position: u64) -> Result<(), LogError> {
        let from = self.resume_before(target)?;
        let file = self.file()?;
        let mut walk = HeaderWalk::new(&*file, from, position);
        while let Found::Batch(header) = walk.step().context("read", &self.path(LOG))? {
            self.note(std::iter::once(&header));
        }
        file.set_len(position).context("truncate", &self.path(LOG))?;
        let mut state = self.state.write();
        state.bytes = position;
        self.spill(&mut state)
    }

    /// The byte at or before `position` where a batch begins that the offset index knows; else the file's begin.
    pub(super) fn batch_start_before(&self, position: u64) -> Result<u64, LogError> {
        let written = {
            let state = self.state.read();
            let pending = state.offsets.pending();
            let below = pending.partition_point(|entry| u64::from(entry.position) <= position);
            if let Some(entry) = below.checked_sub(1).and_then(|at| pending.get(at)) {
                return Ok(u64::from(entry.position));
            }
            state.offsets.written()
        };
        if position == 0 || written.entries == 0 {
            return Ok(0);
        }
        let index = match self.open(&self.index, INDEX, OpenMode::ReadWrite) {
            Ok(index) => index,
            Err(error) if error.is_not_found() => return Ok(0),
            Err(error) => return Err(error),
        };
        let found = written.last_where(&*index, |entry| u64::from(entry.position) <= position);
        match found.context("read", &self.path(INDEX))? {
            Some((_, entry)) if self.batch_is_there(entry)? => Ok(u64::from(entry.position)),
            _ => Ok(0),
        }
    }

    /// Cuts off what a failed write may have left behind the last batch.
    pub(super) fn cut_to_size(&self) -> io::Result<()> {
        let bytes = self.bytes();
        let file = self.home.files.open(&self.log, OpenMode::ReadWrite, || self.path(LOG))?;
        if file.len()? != bytes { file.set_len(bytes) } else { Ok(()) }
    }

    /// Renames the files so that they no longer count, whatever happens next. Who reads them goes on reading.
    pub(super) fn mark_deleted(&self) -> Result<Vec<PathBuf>, LogError> {
        let disk = self.home.files.disk();
        let mut renamed = Vec::new();
        for kind in [LOG, INDEX, TIME_INDEX, names::TXN_INDEX, names::SNAPSHOT] {
            let from = self.home.dir.join(names::offset_file(self.base_offset, kind));
            let to = suffixed(&from, DELETED);
            match disk.rename(&from, &to) {
                Ok(()) => renamed.push(to),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error).context("rename", &from),
            }
        }
        self.deleted.store(true, Ordering::Release);
        [&self.log, &self.index, &self.time_index].into_iter().for_each(|slot| slot.close());
        Ok(renamed)
    }
}

pub(super) fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

enum Walked {
    To(Option<Place>),
    IndexIsWrong,
}

struct Start {
    offset: OffsetEntry,
    max: MaxTimestamp,
    offsets: u64,
    times: u64,
}
