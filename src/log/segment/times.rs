//! A segment's timestamps: the highest one, and from where a search by time has to look. Like offset entries, time entries are
//! checked against the batches they name.

use super::Segment;
use super::state::MaxTimestamp;
use crate::base::{Offset, TimestampMs};
use crate::host::OpenMode;
use crate::log::error::{Context, LogError};
use crate::log::names::{LOG, TIME_INDEX};
use crate::log::scan::{Found, HeaderWalk};

impl Segment {
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
    pub(in crate::log) fn search_start(&self, target: TimestampMs) -> Result<Offset, LogError> {
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

    /// Whether the batch that ends at the offset has that timestamp.
    pub(super) fn time_is_true(&self, max: MaxTimestamp) -> Result<bool, LogError> {
        let file = self.file()?;
        let end = file.len().context("read", &self.path(LOG))?;
        let Some(place) = self.locate(max.offset, end)? else { return Ok(false) };
        let found = HeaderWalk::new(&*file, place.position, end).peek().context("read", &self.path(LOG))?;
        Ok(matches!(found, Found::Batch(header)
            if header.last_offset() == max.offset && header.max_timestamp == max.timestamp))
    }

    /// The highest timestamp of the first batch; `None` in an empty segment.
    pub(in crate::log) fn first_timestamp(&self) -> Result<Option<TimestampMs>, LogError> {
        let bytes = self.bytes();
        let file = self.file()?;
        match HeaderWalk::new(&*file, 0, bytes).peek().context("read", &self.path(LOG))? {
            Found::Batch(header) => Ok(Some(header.max_timestamp)),
            _ => Ok(None),
        }
    }
}
