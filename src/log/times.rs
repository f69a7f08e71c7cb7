//! Looking offsets up by time, per record, also inside compressed batches (KIP-33, KIP-734). Works on a view, without the lock.

use super::error::{Context, LogError};
use super::names::LOG;
use super::scan::{Found, HeaderWalk};
use super::segment::Segment;
use super::view::LogView;
use crate::base::{LeaderEpoch, Offset, TimestampMs};
use crate::host::DiskFile;
use crate::records::{BatchHeader, TimestampType, records};

/// A record found by its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedOffset {
    pub timestamp: TimestampMs,
    pub offset: Offset,
    /// The epoch that its batch carries.
    pub leader_epoch: LeaderEpoch,
}

impl LogView {
    /// The first record in offset order, from the log's start on, whose timestamp is not before `target`.
    ///
    /// At most `decompressed_bytes_max` bytes come out of a compressed batch.
    pub fn offset_for_time(
        &self,
        target: TimestampMs,
        decompressed_bytes_max: usize,
    ) -> Result<Option<TimedOffset>, LogError> {
        for (at, segment) in self.segments.iter().enumerate() {
            if self.bytes_of(at) == 0 || segment.max_timestamp()?.timestamp < target {
                continue;
            }
            let search = Search { target, from: self.log_start_offset, decompressed_bytes_max };
            let start = segment.search_start(target)?.max(self.log_start_offset);
            if let Some(found) = search.in_segment(segment, start, self.bytes_of(at))? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The first record that has the highest timestamp of the whole log; `None` when no record has a timestamp.
    pub fn max_timestamp(&self, decompressed_bytes_max: usize) -> Result<Option<TimedOffset>, LogError> {
        let mut best: Option<(usize, TimestampMs, Offset)> = None;
        for (at, segment) in self.segments.iter().enumerate() {
            if self.bytes_of(at) == 0 {
                continue;
            }
            let max = segment.max_timestamp()?;
            if max.timestamp >= 0 && best.is_none_or(|(_, timestamp, _)| max.timestamp > timestamp) {
                best = Some((at, max.timestamp, max.offset));
            }
        }
        let Some((at, target, offset)) = best else { return Ok(None) };
        let Some(segment) = self.segments.get(at) else { return Ok(None) };
        let search = Search { target, from: Offset::MIN, decompressed_bytes_max };
        search.in_segment(segment, offset, self.bytes_of(at))
    }
}

struct Search {
    target: TimestampMs,
    /// Records below do not count.
    from: Offset,
    decompressed_bytes_max: usize,
}

impl Search {
    fn in_segment(&self, segment: &Segment, start: Offset, end: u64) -> Result<Option<TimedOffset>, LogError> {
        let Some(place) = segment.locate(start, end)? else { return Ok(None) };
        let file = segment.file()?;
        let mut walk = HeaderWalk::new(&*file, place.position, end);
        loop {
            let position = walk.position;
            match walk.step().context("read", &segment.path(LOG))? {
                Found::Batch(header) if header.max_timestamp >= self.target => {
                    if let Some(found) = self.in_batch(segment, &*file, position, &header)? {
                        return Ok(Some(found));
                    }
                }
                Found::Batch(_) => {}
                Found::End => return Ok(None),
                Found::Broken(reason) => {
                    return Err(LogError::Corrupt { path: segment.path(LOG), position, reason });
                }
            }
        }
    }

    fn in_batch(
        &self,
        segment: &Segment,
        file: &dyn DiskFile,
        position: u64,
        header: &BatchHeader,
    ) -> Result<Option<TimedOffset>, LogError> {
        let leader_epoch = header.partition_leader_epoch;
        if header.timestamp_type() == TimestampType::LogAppendTime {
            let offset = header.base_offset.max(self.from);
            let inside = offset <= header.last_offset();
            return Ok(inside.then_some(TimedOffset { timestamp: header.max_timestamp, offset, leader_epoch }));
        }
        let mut batch = vec![0; header.size_bytes()];
        file.read_exact_at(&mut batch, position).context("read", &segment.path(LOG))?;
        let corrupt = |error: crate::records::RecordError| LogError::Corrupt {
            path: segment.path(LOG),
            position,
            reason: error.to_string(),
        };
        for record in &records(&batch, self.decompressed_bytes_max).map_err(corrupt)? {
            let record = record.map_err(corrupt)?;
            if record.timestamp >= self.target && record.offset >= self.from {
                return Ok(Some(TimedOffset { timestamp: record.timestamp, offset: record.offset, leader_epoch }));
            }
        }
        Ok(None)
    }
}
