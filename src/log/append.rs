//! Appending: judge the producer, roll when needed, one write, a few numbers, one published view. Either all batches of a call are
//! in the log afterwards, or none is.

use std::io::IoSlice;
use std::sync::Arc;

use super::error::{AppendError, Context, LogError, is_disk_full};
use super::names::LOG;
use super::partition_log::{Log, reserved_bytes_of};
use super::producers::{BatchMemory, Verdict};
use super::segment::{SEGMENT_BYTES_MAX, Segment};
use crate::base::{LeaderEpoch, Offset, TimestampMs};
use crate::metadata::config::MessageTimestampType;
use crate::records::{BatchHeader, TimestampType};

/// The bytes at the head of a batch that the broker sets: base offset, length, leader epoch. They stand in front of the CRC's cover.
const STAMP_BYTES: usize = 16;

/// A batch that has been validated. `bytes` is exactly the batch that `header` was read from.
#[derive(Clone, Copy, Debug)]
pub struct NewBatch<'a> {
    pub header: BatchHeader,
    pub bytes: &'a [u8],
}

/// Where an append went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    pub base_offset: Offset,
    pub last_offset: Offset,
    /// The batch's time when the topic uses LogAppendTime.
    pub log_append_time: Option<TimestampMs>,
    pub log_start_offset: Offset,
    /// It was there already; the offsets are those it got the first time.
    pub duplicate: bool,
    /// The epoch of the leader that did it; of a follower's append, that of the last batch.
    pub leader_epoch: LeaderEpoch,
}

impl Log {
    /// Appends validated batches as the leader in `leader_epoch`: they get the next offsets.
    ///
    /// A batch that is a duplicate of one of its producer's last five makes the whole call a duplicate. Nothing is synced.
    pub fn append(&mut self, batches: &[NewBatch<'_>], leader_epoch: LeaderEpoch) -> Result<Appended, AppendError> {
        if self.unfinished_cut.is_some() {
            self.finish_cut()?;
        }
        if let Some(first) = self.judge_producers(batches)? {
            return Ok(self.duplicate(first, leader_epoch));
        }
        match batches {
            [one] => {
                let (header, stamp) = stamp(one, self.log_end_offset, leader_epoch)?;
                self.write(&[header], &[IoSlice::new(&stamp), IoSlice::new(rest(one.bytes))])
            }
            many => {
                let mut next = self.log_end_offset;
                let mut headers = Vec::with_capacity(many.len());
                let mut stamps = Vec::with_capacity(many.len());
                for batch in many {
                    let (header, stamp) = stamp(batch, next, leader_epoch)?;
                    next = header.next_offset();
                    headers.push(header);
                    stamps.push(stamp);
                }
                let pairs = stamps.iter().zip(many);
                let slices: Vec<IoSlice<'_>> =
                    pairs.flat_map(|(stamp, batch)| [IoSlice::new(stamp), IoSlice::new(rest(batch.bytes))]).collect();
                self.write(&headers, &slices)
            }
        }
    }

    /// Appends batches as a leader elsewhere has stored them: offsets and epochs as given. `bytes` are the whole batches that `headers`
    /// were read from. Gaps are taken over only where compaction makes them.
    pub fn append_as_follower(&mut self, headers: &[BatchHeader], bytes: &[u8]) -> Result<Appended, AppendError> {
        self.finish_cut()?;
        let mut expected = self.log_end_offset;
        for header in headers {
            let is_gap = header.base_offset > expected && !self.config.cleanup.compact;
            if is_gap || header.base_offset < expected || header.last_offset_delta < 0 {
                return Err(AppendError::UnexpectedOffset { got: header.base_offset, expected });
            }
            expected = header.next_offset();
        }
        let size: usize = headers.iter().map(BatchHeader::size_bytes).sum();
        if size != bytes.len() {
            return Err(AppendError::Malformed(format!("{} bytes where the headers say {size}", bytes.len())));
        }
        self.write(headers, &[IoSlice::new(bytes)])
    }

    /// The batch's first life, when one of them is a duplicate.
    fn judge_producers(&self, batches: &[NewBatch<'_>]) -> Result<Option<BatchMemory>, AppendError> {
        for (at, batch) in batches.iter().enumerate() {
            if !batch.header.has_producer() {
                continue;
            }
            let earlier = batches.get(..at).unwrap_or_default().iter().map(|batch| &batch.header);
            if let Verdict::Duplicate(first) = self.producers.check_behind(earlier, &batch.header)? {
                return Ok(Some(first));
            }
        }
        Ok(None)
    }

    fn duplicate(&self, first: BatchMemory, leader_epoch: LeaderEpoch) -> Appended {
        let has_append_time = self.config.message_timestamp_type == MessageTimestampType::LogAppendTime;
        Appended {
            base_offset: first.first_offset(),
            last_offset: first.last_offset,
            log_append_time: has_append_time.then_some(first.timestamp),
            log_start_offset: self.log_start_offset,
            duplicate: true,
            leader_epoch,
        }
    }

    /// Writes `slices`, which hold the batches of `headers` with their final offsets, and takes note of them.
    fn write(&mut self, headers: &[BatchHeader], slices: &[IoSlice<'_>]) -> Result<Appended, AppendError> {
        let (Some(first), Some(last)) = (headers.first(), headers.last()) else {
            return Err(AppendError::Malformed("no batch".to_owned()));
        };
        let bytes: usize = slices.iter().map(|slice| slice.len()).sum();
        let now = self.now();
        self.make_room(bytes, headers, last.last_offset(), now)?;
        self.write_at_end(slices)?;
        self.active.note(headers.iter());
        for header in headers {
            self.note_epoch(header.partition_leader_epoch, header.base_offset);
            self.producers.note(header, now);
        }
        self.active_first_timestamp.get_or_insert(first.max_timestamp);
        self.end_position += bytes as u64;
        self.appended_bytes += bytes as u64;
        self.log_end_offset = last.next_offset();
        self.publish();
        Ok(Appended {
            base_offset: first.base_offset,
            last_offset: last.last_offset(),
            log_append_time: (last.timestamp_type() == TimestampType::LogAppendTime).then_some(last.max_timestamp),
            log_start_offset: self.log_start_offset,
            duplicate: false,
            leader_epoch: last.partition_leader_epoch,
        })
    }

    fn write_at_end(&mut self, slices: &[IoSlice<'_>]) -> Result<(), LogError> {
        if self.tail_is_dirty {
            self.active.cut_to_size().context("truncate", &self.active.path(LOG))?;
            self.tail_is_dirty = false;
        }
        let written = self.active.write(slices, self.end_position);
        if let Err(error) = &written {
            // What a short write left must not be taken for batches after a restart.
            self.tail_is_dirty = !is_disk_full(error) || self.active.cut_to_size().is_err();
        }
        written.map_err(|source| LogError::Storage { action: "write", path: self.active.path(LOG), source })
    }

    fn make_room(
        &mut self,
        bytes: usize,
        headers: &[BatchHeader],
        last_offset: Offset,
        now: TimestampMs,
    ) -> Result<(), AppendError> {
        let (bytes, max) = (bytes as u64, self.config.segment_bytes.min(SEGMENT_BYTES_MAX));
        if bytes > max {
            return Err(AppendError::TooLarge { bytes, max });
        }
        let is_full = self.end_position + bytes > max;
        let offsets_overflow = last_offset - self.active.base_offset() > i64::from(i32::MAX);
        if is_full || offsets_overflow || self.index_is_full() || self.is_old(headers, now) {
            self.roll(now)?;
        }
        Ok(())
    }

    fn index_is_full(&self) -> bool {
        let bytes = self.config.segment_index_bytes;
        let (offsets, times) = self.active.index_entries();
        // One place in the time index is kept for its closing entry.
        offsets >= (bytes / 8).max(1) || times + 1 >= (bytes / 12).max(2)
    }

    /// Whether `segment.ms` has passed since the first batch, by the batches' own timestamps where they have one.
    fn is_old(&self, headers: &[BatchHeader], now: TimestampMs) -> bool {
        let limit = self.config.segment_ms.saturating_sub(self.roll_jitter_ms);
        let waited = match self.active_first_timestamp {
            Some(first) if first >= 0 => {
                let newest = headers.iter().map(|header| header.max_timestamp).max().unwrap_or(first);
                newest.saturating_sub(first)
            }
            _ => now.saturating_sub(self.active_since),
        };
        self.end_position > 0 && waited > limit
    }

    /// Begins a new segment when `segment.ms` has passed by the wall clock since this one was begun and something is in it.
    pub fn roll_if_due(&mut self, now: TimestampMs) -> Result<bool, LogError> {
        self.finish_cut()?;
        let limit = self.config.segment_ms.saturating_sub(self.roll_jitter_ms);
        if self.end_position == 0 || now.saturating_sub(self.active_since) <= limit {
            return Ok(false);
        }
        self.roll(now)?;
        self.publish();
        Ok(true)
    }

    /// Begins a new segment at the log's end. Does nothing when the active one is empty.
    pub(super) fn roll(&mut self, now: TimestampMs) -> Result<(), LogError> {
        if self.end_position == 0 {
            return Ok(());
        }
        if self.tail_is_dirty {
            self.active.cut_to_size().context("truncate", &self.active.path(LOG))?;
            self.tail_is_dirty = false;
        }
        self.active.finish_indexes()?;
        self.active.give_back_reserved();
        self.take_snapshot()?;
        let next = Segment::create(&self.home, self.log_end_offset, reserved_bytes_of(&self.config))?;
        let next = Arc::new(next);
        self.active.forget_recent();
        self.names_unsynced = true;
        self.segments = self.segments.iter().cloned().chain([Arc::clone(&next)]).collect();
        self.active = next;
        self.end_position = 0;
        self.active_since = now;
        self.active_first_timestamp = None;
        self.roll_jitter_ms = self.draw_jitter();
        Ok(())
    }
}

/// The batch's header with its place in the log, and the stamped bytes that go to the file instead of its first ones.
fn stamp(
    batch: &NewBatch<'_>,
    base_offset: Offset,
    partition_leader_epoch: LeaderEpoch,
) -> Result<(BatchHeader, [u8; STAMP_BYTES]), AppendError> {
    let header = BatchHeader { base_offset, partition_leader_epoch, ..batch.header };
    if header.size_bytes() != batch.bytes.len() || header.last_offset_delta < 0 {
        let (size, got) = (header.size_bytes(), batch.bytes.len());
        return Err(AppendError::Malformed(format!("{got} bytes where the header says {size}")));
    }
    let mut stamp = [0; STAMP_BYTES];
    stamp[..8].copy_from_slice(&base_offset.to_be_bytes());
    stamp[8..12].copy_from_slice(&header.batch_length.to_be_bytes());
    stamp[12..].copy_from_slice(&partition_leader_epoch.to_be_bytes());
    Ok((header, stamp))
}

fn rest(bytes: &[u8]) -> &[u8] {
    bytes.get(STAMP_BYTES..).unwrap_or_default()
}
