//! Finding the batch of an offset: among the ones written last, else from an index entry on. An entry that does not lead to the
//! batch it names, or leads only near it, makes both indexes anew.

use super::Segment;
use super::state::{Place, State};
use crate::base::Offset;
use crate::host::{DiskFile, OpenMode};
use crate::log::error::{Context, LogError};
use crate::log::names::{INDEX, LOG};
use crate::log::scan::{Found, HeaderWalk};
use crate::log::sparse_index::{OffsetEntry, TimeEntry};

/// A walk that skips more than this many index intervals says that the index has holes.
const SUSPICIOUS_INTERVALS: u64 = 8;

enum Walked {
    To(Option<Place>),
    IndexIsWrong,
}

impl Segment {
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
    pub(super) fn floor(&self, target: Offset) -> Result<Option<OffsetEntry>, LogError> {
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
                // Behind a batch that is where the index says, the batches are wrong, and no other index helps.
                Found::Broken(_) if expected.is_some() => return Ok(Walked::IndexIsWrong),
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
    pub(super) fn rebuild_indexes(&self, file: &dyn DiskFile) -> Result<(), LogError> {
        let (bytes, rebuilt) = {
            let state = self.state.read();
            (state.bytes, state.rebuilt)
        };
        if rebuilt {
            return Ok(());
        }
        let fresh = self.scan(file, bytes)?;
        let mut state = self.state.write();
        if fresh.bytes < bytes {
            // The batches are damaged: the index still leads behind that place, and a new one would not.
            state.rebuilt = true;
            return Ok(());
        }
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
    pub(super) fn scan(&self, file: &dyn DiskFile, bytes: u64) -> Result<State, LogError> {
        let interval = self.interval();
        let mut state = State::new(0, 0, 0);
        let mut walk = HeaderWalk::new(file, 0, bytes);
        while let Found::Batch(header) = walk.step().context("read", &self.path(LOG))? {
            state.note(self.base_offset, &header, interval);
        }
        Ok(state)
    }

    /// The byte at or before `position` where a batch begins that the offset index knows; else the file's begin.
    pub(in crate::log) fn batch_start_before(&self, position: u64) -> Result<u64, LogError> {
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

    /// The offset behind the last batch before byte `end`, where one ends; `None` when there is none, or what is there does not lead to
    /// that byte.
    pub(in crate::log) fn end_before(&self, end: u64) -> Result<Option<Offset>, LogError> {
        let Some(before) = end.checked_sub(1) else { return Ok(None) };
        let file = self.file()?;
        let mut walk = HeaderWalk::new(&*file, self.batch_start_before(before)?, end);
        let mut next_offset = None;
        loop {
            match walk.step().context("read", &self.path(LOG))? {
                Found::Batch(header) => next_offset = Some(header.next_offset()),
                Found::End => return Ok(next_offset),
                Found::Broken(_) => return Ok(None),
            }
        }
    }

    pub(super) fn batch_is_there(&self, entry: OffsetEntry) -> Result<bool, LogError> {
        let file = self.file()?;
        let end = file.len().context("read", &self.path(LOG))?;
        let found = HeaderWalk::new(&*file, u64::from(entry.position), end).peek().context("read", &self.path(LOG))?;
        let expected = self.base_offset + i64::from(entry.relative_offset);
        Ok(matches!(found, Found::Batch(header) if header.last_offset() == expected))
    }
}
