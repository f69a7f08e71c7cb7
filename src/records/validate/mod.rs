//! What a client's batch must be before a log takes it, and what the topic's settings make of it. A plain batch on a plain topic
//! is only looked at: nothing is allocated, and it is stored as it came.

use bytes::Bytes;

use crate::base::{ErrorCode, TimestampMs};
use crate::records::codec::Codec;
use crate::records::crc::crc_is_valid;
use crate::records::error::{RecordError, RecordIssue};
use crate::records::header::{BATCH_HEADER_BYTES, BatchHeader, TimestampType};
use crate::records::record::Fault;
use crate::records::rewrite::{compressed_copy, recompressed, with_times};
use crate::records::walk::{Seen, StreamLimits, walk_compressed, walk_slice};

/// Refused records that an answer names one by one; the rest are only counted.
pub const RECORD_ISSUES_MAX: usize = 1000;

/// What may come out of a compressed batch: this much, or ...
pub const DECOMPRESSED_BATCH_BYTES_MAX: usize = 256 * 1024 * 1024;

/// ... this many times its compressed size, whichever is more.
pub const DECOMPRESSED_BATCH_RATIO_MAX: usize = 128;

/// A record without a timestamp; the limits do not apply to it.
const NO_TIMESTAMP: TimestampMs = -1;

/// How a topic wants its batches compressed (`compression.type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TargetCodec {
    /// As the producer sent them.
    #[default]
    Producer,
    /// With this codec. Batches that have it already stay as they are, whatever their level.
    Fixed { codec: Codec, level: i32 },
}

/// The settings of a topic that decide over a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendRules {
    /// Whether `cleanup.policy` has `compact`: every record needs a key.
    pub compacted: bool,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`: how much older than now a record may be.
    pub before_max_ms: i64,
    /// `message.timestamp.after.max.ms`: how much newer than now a record may be.
    pub after_max_ms: i64,
    pub target_codec: TargetCodec,
    /// `max.message.bytes`: the batch with its header, as it came and as it is stored.
    pub batch_bytes_max: usize,
    /// `max.decompressed.message.bytes`: one record of a compressed batch.
    pub decompressed_bytes_max: usize,
}

impl Default for AppendRules {
    /// A topic without settings.
    fn default() -> AppendRules {
        AppendRules {
            compacted: false,
            timestamp_type: TimestampType::CreateTime,
            before_max_ms: i64::MAX,
            after_max_ms: 3_600_000,
            target_codec: TargetCodec::Producer,
            batch_bytes_max: 1_048_588,
            decompressed_bytes_max: crate::base::limits::DECOMPRESSED_BYTES_MAX,
        }
    }
}

/// A batch that a log may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Validated {
    /// Store the bytes that came.
    AsReceived(BatchHeader),
    /// Store these instead: LogAppendTime, another codec, or a header that claimed wrong times.
    Rewritten { header: BatchHeader, bytes: Bytes },
}

impl Validated {
    pub fn header(&self) -> &BatchHeader {
        match self {
            Validated::AsReceived(header) | Validated::Rewritten { header, .. } => header,
        }
    }
}

/// Checks one batch from a client. `batch` is exactly that batch (see [`super::single_batch`]), `now` the broker's time.
///
/// Whether its producer is known and its sequence follows is for the log.
pub fn validate(batch: &[u8], rules: &AppendRules, now: TimestampMs) -> Result<Validated, RecordError> {
    let (header, payload) = check_whole(batch, rules)?;
    let source = header.codec()?;
    let target = match rules.target_codec {
        TargetCodec::Fixed { codec, level } if codec != source => Some((codec, level)),
        _ => None,
    };
    let mut check = Check::new(&header, rules, now);
    let mut visit = |index, seen| check.record(index, seen);
    let rewritten = match (source, target) {
        (Codec::None, None) => walk_slice(payload, header.record_count, visit).map(|()| None),
        (Codec::None, Some((codec, level))) => walk_slice(payload, header.record_count, visit)
            .and_then(|()| compressed_copy(payload, codec, level, rules.batch_bytes_max))
            .map(Some),
        (source, None) => {
            walk_compressed(source, payload, header.record_count, limits(payload, rules), None, &mut visit)
                .map(|()| None)
        }
        (source, Some((codec, level))) => {
            recompressed(&header, source, payload, codec, level, limits(payload, rules), &mut visit).map(Some)
        }
    }?;
    let (timestamp_type, max_timestamp) = check.times()?;
    let codec = target.map_or(source, |(codec, _)| codec);
    Ok(with_times(&header, batch, rewritten, codec, timestamp_type, max_timestamp))
}

/// Everything that needs no look at the records.
fn check_whole<'a>(batch: &'a [u8], rules: &AppendRules) -> Result<(BatchHeader, &'a [u8]), RecordError> {
    let header = BatchHeader::parse(batch)?;
    if header.size_bytes() != batch.len() {
        return Err(RecordError::Truncated { got: batch.len(), expected: header.size_bytes() });
    }
    if header.base_offset != 0 {
        return Err(invalid("a producer's batch begins at offset 0"));
    }
    if batch.len() > rules.batch_bytes_max {
        return Err(RecordError::TooLarge { bytes_max: rules.batch_bytes_max });
    }
    if !crc_is_valid(batch) {
        return Err(RecordError::Crc);
    }
    check_claims(&header)?;
    let payload = batch.get(BATCH_HEADER_BYTES..).unwrap_or_default();
    Ok((header, payload))
}

/// What the header says must hold together.
fn check_claims(header: &BatchHeader) -> Result<(), RecordError> {
    if header.record_count <= 0 {
        return Err(invalid("a batch has at least one record"));
    }
    if i64::from(header.last_offset_delta) + 1 != i64::from(header.record_count) {
        return Err(invalid("the number of records and the last offset delta disagree"));
    }
    if header.has_producer() && header.base_sequence < 0 {
        return Err(invalid("a batch with a producer id needs a sequence"));
    }
    if header.is_control() {
        return Err(invalid("clients must not write control records"));
    }
    Ok(())
}

fn invalid(reason: &'static str) -> RecordError {
    RecordError::Invalid { reason }
}

fn limits(payload: &[u8], rules: &AppendRules) -> StreamLimits {
    StreamLimits {
        record_bytes_max: rules.decompressed_bytes_max,
        output_bytes_max: payload.len().saturating_mul(DECOMPRESSED_BATCH_RATIO_MAX).max(DECOMPRESSED_BATCH_BYTES_MAX),
        copy_bytes_max: rules.batch_bytes_max,
    }
}

/// What a topic does with the timestamps of a batch's records.
#[derive(Clone, Copy, Debug)]
enum Timestamps {
    /// They must be within the topic's limits.
    Limited,
    /// The broker's time takes their place.
    Ignored,
    /// The broker's time would, had the producer not claimed to have set it. Kafka refuses this too, but only on such topics.
    Usurped,
}

/// Gathers what the records say, and which of them the topic refuses.
struct Check<'r> {
    rules: &'r AppendRules,
    now: TimestampMs,
    base_timestamp: TimestampMs,
    max_timestamp: TimestampMs,
    timestamps: Timestamps,
    issues: Vec<RecordIssue>,
    issue_count: usize,
    timestamp_refused: bool,
}

impl<'r> Check<'r> {
    fn new(header: &BatchHeader, rules: &'r AppendRules, now: TimestampMs) -> Check<'r> {
        Check {
            rules,
            now,
            base_timestamp: header.base_timestamp,
            max_timestamp: NO_TIMESTAMP,
            timestamps: match (rules.timestamp_type, header.timestamp_type()) {
                (TimestampType::CreateTime, _) => Timestamps::Limited,
                (TimestampType::LogAppendTime, TimestampType::CreateTime) => Timestamps::Ignored,
                (TimestampType::LogAppendTime, TimestampType::LogAppendTime) => Timestamps::Usurped,
            },
            issues: Vec::new(),
            issue_count: 0,
            timestamp_refused: false,
        }
    }

    /// Every record has its own time here, even in a batch that claims LogAppendTime.
    #[inline(always)]
    fn record(&mut self, index: i32, seen: Seen) -> Result<(), Fault> {
        if seen.offset_delta != index {
            // Stored so, two records could have one offset.
            return Err("its offset delta is not its place in the batch");
        }
        let timestamp = self.base_timestamp.wrapping_add(seen.timestamp_delta);
        self.max_timestamp = self.max_timestamp.max(timestamp);
        if self.rules.compacted && !seen.has_key {
            self.refuse_key(index);
        } else {
            match self.timestamps {
                Timestamps::Limited if self.is_within_limits(timestamp) => {}
                Timestamps::Limited => self.refuse_timestamp(index, timestamp),
                Timestamps::Ignored => {}
                Timestamps::Usurped => self.refuse_usurped(index),
            }
        }
        Ok(())
    }

    /// Wraps around as Java does, for timestamps at the far ends of 64 bits.
    #[inline(always)]
    fn is_within_limits(&self, timestamp: TimestampMs) -> bool {
        let age_ms = self.now.wrapping_sub(timestamp);
        timestamp == NO_TIMESTAMP
            || (age_ms <= self.rules.before_max_ms && age_ms.wrapping_neg() <= self.rules.after_max_ms)
    }

    #[cold]
    fn refuse_key(&mut self, batch_index: i32) {
        self.refuse(batch_index, || "a compacted topic takes no record without a key".to_owned());
    }

    #[cold]
    fn refuse_timestamp(&mut self, batch_index: i32, timestamp: TimestampMs) {
        self.timestamp_refused = true;
        let from = self.now.saturating_sub(self.rules.before_max_ms);
        let to = self.now.saturating_add(self.rules.after_max_ms);
        self.refuse(batch_index, || format!("timestamp {timestamp} is outside of {from} to {to}"));
    }

    #[cold]
    fn refuse_usurped(&mut self, batch_index: i32) {
        self.timestamp_refused = true;
        self.refuse(batch_index, || "LogAppendTime is for the broker to set, not for a producer".to_owned());
    }

    fn refuse(&mut self, batch_index: i32, message: impl FnOnce() -> String) {
        self.issue_count += 1;
        if self.issues.len() < RECORD_ISSUES_MAX {
            self.issues.push(RecordIssue { batch_index, message: message() });
        }
    }

    /// The timestamp type and the highest timestamp to store, if no record is refused.
    fn times(self) -> Result<(TimestampType, TimestampMs), RecordError> {
        if self.issue_count > 0 {
            let code = if self.timestamp_refused { ErrorCode::INVALID_TIMESTAMP } else { ErrorCode::INVALID_RECORD };
            return Err(RecordError::Rejected { code, issues: self.issues, count: self.issue_count });
        }
        Ok(match self.rules.timestamp_type {
            TimestampType::CreateTime => (TimestampType::CreateTime, self.max_timestamp),
            TimestampType::LogAppendTime => (TimestampType::LogAppendTime, self.now),
        })
    }
}

#[cfg(test)]
mod tests;
