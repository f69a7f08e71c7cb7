//! What a segment knows of itself in memory: its size, its indexes, and the places of the batches that were written last.

use std::collections::VecDeque;

use crate::base::{Offset, TimestampMs};
use crate::log::sparse_index::{OffsetEntry, SparseIndex, TimeEntry};
use crate::records::BatchHeader;

/// Batches whose places are remembered in memory.
const RECENT_MAX: usize = 64;

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

pub(super) struct State {
    pub(super) bytes: u64,
    /// The offset behind the last batch; `None` until the end has been seen.
    pub(super) next_offset: Option<Offset>,
    pub(super) offsets: SparseIndex<OffsetEntry>,
    pub(super) times: SparseIndex<TimeEntry>,
    pub(super) recent: VecDeque<Place>,
    /// The highest timestamp and the last offset of the batch that has it; `None` until somebody asks.
    pub(super) max_timestamp: Option<MaxTimestamp>,
    pub(super) last_time_entry: TimestampMs,
    pub(super) bytes_since_entry: u64,
    pub(super) rebuilt: bool,
}

impl State {
    pub(super) fn new(bytes: u64, offset_entries: u64, time_entries: u64) -> State {
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
    pub(super) fn note(&mut self, base: Offset, header: &BatchHeader, interval: u64) {
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
    pub(super) fn push_time(&mut self, base: Offset) {
        let Some(max) = self.max_timestamp else { return };
        if max.timestamp > self.last_time_entry {
            self.times.push(TimeEntry { timestamp: max.timestamp, relative_offset: relative(base, max.offset) });
            self.last_time_entry = max.timestamp;
        }
    }

    pub(super) fn remember(&mut self, place: Place) {
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(place);
    }

    /// The first batch that ends at or behind `target`, when it is surely among the remembered ones.
    pub(super) fn recent(&self, target: Offset) -> Option<Place> {
        if self.recent.front()?.base_offset > target {
            return None;
        }
        self.recent.get(self.recent.partition_point(|place| place.last_offset < target)).copied()
    }
}

fn relative(base: Offset, offset: Offset) -> i32 {
    i32::try_from(offset - base).unwrap_or(i32::MAX)
}
