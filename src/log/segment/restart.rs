//! Going back to a sound place in a segment, to check or to cut what is behind it.

use super::Segment;
use super::state::{MaxTimestamp, State};
use crate::base::Offset;
use crate::host::OpenMode;
use crate::log::error::{Context, LogError};
use crate::log::names::{INDEX, LOG, TIME_INDEX};
use crate::log::scan::{Found, HeaderWalk};
use crate::log::sparse_index::OffsetEntry;

/// How much of the indexes is kept.
struct Start {
    offset: OffsetEntry,
    max: MaxTimestamp,
    offsets: u64,
    times: u64,
}

impl Segment {
    /// Brings the state back to a sound index entry for a batch that ends below `target`, from where the caller walks on and
    /// notes what it finds. Returns the byte to walk from.
    pub(in crate::log) fn resume_before(&self, target: Offset) -> Result<u64, LogError> {
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

    /// Cuts the file at `position`, where a batch begins, and the indexes with it.
    pub(in crate::log) fn truncate(&self, target: Offset, position: u64) -> Result<(), LogError> {
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
}
