//! What a reader sees of a partition's log: an immutable picture that needs no lock. The owner publishes a new one with every
//! append; whoever holds an older one reads on in it, even while segments are rolled or removed.

use std::path::Path;
use std::sync::Arc;

use super::epochs::EpochTable;
use super::error::{LogError, ReadError};
use super::names::LOG;
use super::segment::{Place, Segment};
use crate::base::{LeaderEpoch, Offset};
use crate::host::DiskFile;

/// A picture of a log.
#[derive(Clone)]
pub struct LogView {
    pub log_start_offset: Offset,
    /// The offset that the next record gets.
    pub log_end_offset: Offset,
    /// Bytes of the youngest segment that belong to this view.
    pub end_position: u64,
    /// In ascending order, never empty; the last one is the one being written.
    pub segments: Arc<[Arc<Segment>]>,
    pub epochs: Arc<EpochTable>,
    /// The topic is compacted: offsets may be missing between its batches. Anywhere else that is damage.
    pub may_have_gaps: bool,
}

/// A region of a segment file that begins with a whole batch.
#[derive(Clone, Debug)]
pub struct ReadSlice {
    pub file: Arc<dyn DiskFile>,
    /// In bytes from the file's begin.
    pub position: u64,
    /// In bytes. May end inside a batch when the limit asks for it, as Apache Kafka's answers do.
    pub len: usize,
    /// The first batch's base offset; at or below the offset asked for.
    pub first_offset: Offset,
    /// The first batch's bytes. Above `len` never.
    pub first_batch_bytes: usize,
    /// Bytes from `position` to the end of what may be read in this segment, beyond any limit.
    pub available_bytes: u64,
}

impl LogView {
    /// Where the segment begins whose records lie in this file.
    pub fn base_of(&self, path: &Path) -> Option<Offset> {
        self.segments.iter().find(|segment| segment.path(LOG) == path).map(|segment| segment.base_offset())
    }

    /// The batches from the one that holds `from` on, up to (not including) the batch that holds `up_to`, from one segment.
    ///
    /// `bytes_max` limits the length; when not even the first batch fits, that batch alone comes back if `min_one_batch`, else
    /// nothing. `None`: nothing to read there (yet).
    ///
    /// # Errors
    /// `OffsetOutOfRange` when `from` is not between the log's start and end (both allowed); `Missing` where a reader would skip records
    /// that nobody has compacted away.
    pub fn read(
        &self,
        from: Offset,
        bytes_max: usize,
        up_to: Offset,
        min_one_batch: bool,
    ) -> Result<Option<ReadSlice>, ReadError> {
        let up_to = up_to.min(self.log_end_offset);
        if from < self.log_start_offset || from > self.log_end_offset {
            return Err(self.out_of_range(from));
        }
        if from >= up_to {
            return Ok(None);
        }
        match self.find(from) {
            Ok(found) if !self.may_have_gaps && found.is_none_or(|(_, place)| place.base_offset > from) => {
                Err(ReadError::Missing(from))
            }
            Ok(Some((at, place))) if place.base_offset < up_to => {
                self.slice(at, place, bytes_max, up_to, min_one_batch)
            }
            Ok(_) => Ok(None),
            // The segment has just been removed by retention: the log now starts behind it.
            Err(error) if error.is_not_found() => Err(self.out_of_range(from)),
            Err(error) => Err(error.into()),
        }
    }

    fn out_of_range(&self, offset: Offset) -> ReadError {
        ReadError::OffsetOutOfRange { offset, start: self.log_start_offset, end: self.log_end_offset }
    }

    /// The first batch that ends at or behind `from`, with its segment's place. Compacted logs have gaps, also between segments.
    pub(super) fn find(&self, from: Offset) -> Result<Option<(usize, Place)>, LogError> {
        let above = self.segments.partition_point(|segment| segment.base_offset() <= from);
        for (at, segment) in self.segments.iter().enumerate().skip(above.saturating_sub(1)) {
            if let Some(place) = segment.locate(from, self.bytes_of(at))? {
                return Ok(Some((at, place)));
            }
        }
        Ok(None)
    }

    /// Bytes of a segment that belong to this view.
    pub(super) fn bytes_of(&self, at: usize) -> u64 {
        if at + 1 == self.segments.len() { self.end_position } else { self.segments.get(at).map_or(0, |s| s.bytes()) }
    }

    fn slice(
        &self,
        at: usize,
        place: Place,
        bytes_max: usize,
        up_to: Offset,
        min_one_batch: bool,
    ) -> Result<Option<ReadSlice>, ReadError> {
        let Some(segment) = self.segments.get(at) else { return Ok(None) };
        let end = self.readable_end(at, segment, up_to)?;
        let available_bytes = end.saturating_sub(place.position);
        let first_batch_bytes = usize::try_from(place.bytes).unwrap_or(usize::MAX);
        let limit = if first_batch_bytes <= bytes_max {
            bytes_max
        } else if min_one_batch {
            first_batch_bytes
        } else {
            return Ok(None);
        };
        if available_bytes < place.bytes {
            return Ok(None);
        }
        let len = usize::try_from(available_bytes).unwrap_or(usize::MAX).min(limit);
        let (file, position, first_offset) = (segment.file()?, place.position, place.base_offset);
        Ok(Some(ReadSlice { file, position, len, first_offset, first_batch_bytes, available_bytes }))
    }

    /// The byte of the segment before which all batches end below `up_to`.
    fn readable_end(&self, at: usize, segment: &Segment, up_to: Offset) -> Result<u64, LogError> {
        let bytes = self.bytes_of(at);
        let next_base = self.segments.get(at + 1).map_or(self.log_end_offset, |next| next.base_offset());
        if up_to >= next_base {
            return Ok(bytes);
        }
        Ok(segment.locate(up_to, bytes)?.map_or(bytes, |place| place.position))
    }

    /// Bytes of all segments.
    pub fn size_bytes(&self) -> u64 {
        (0..self.segments.len()).map(|at| self.bytes_of(at)).sum()
    }

    /// The largest epoch that is not above `epoch`, and the offset behind its last record; (-1, -1) when nobody can know (KIP-101).
    pub fn epoch_end_offset(&self, epoch: LeaderEpoch) -> (LeaderEpoch, Offset) {
        self.epochs.end_offset(epoch, self.log_end_offset)
    }

    pub fn latest_epoch(&self) -> Option<LeaderEpoch> {
        self.epochs.latest()
    }

    /// The epoch in which the record at `offset` was written.
    pub fn epoch_at(&self, offset: Offset) -> Option<LeaderEpoch> {
        self.epochs.epoch_at(offset)
    }
}
