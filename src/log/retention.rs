//! Which segments retention may remove. Pure: it sees summaries and chooses, `shorten` executes.

use crate::base::{Offset, TimestampMs};

/// What retention needs to know of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSummary {
    pub base_offset: Offset,
    /// The base offset of the next segment, or the log's end.
    pub end_offset: Offset,
    pub bytes: u64,
    /// The highest timestamp in it, or when it was last written to where no record has one.
    pub newest_ms: TimestampMs,
}

/// The limits. `None` is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionLimits {
    pub now: TimestampMs,
    pub retention_ms: Option<i64>,
    pub retention_bytes: Option<u64>,
    pub log_start_offset: Offset,
    /// Only what ends at or below it may go.
    pub high_watermark: Offset,
}

/// Why a segment is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// All of it is below the log's start (DeleteRecords).
    LogStart,
    /// Its newest record is older than `retention.ms`.
    Time,
    /// The log is larger than `retention.bytes` without it.
    Size,
}

/// How many segments from the log's begin go, each with its reason. A segment goes only when all before it go, so what stays is
/// one piece. The last segment goes too when every limit says so, unless it is empty.
///
/// A future timestamp keeps its segment until that time has passed, as in Kafka; nothing younger than `retention_ms` goes for its
/// age, and old timestamps make a segment old at once.
pub fn choose(segments: &[SegmentSummary], limits: &RetentionLimits) -> Vec<Reason> {
    let mut left: u64 = segments.iter().map(|segment| segment.bytes).sum();
    let mut reasons = Vec::new();
    for segment in segments {
        let is_last_and_empty = segment.bytes == 0 && reasons.len() + 1 == segments.len();
        if segment.end_offset > limits.high_watermark || is_last_and_empty {
            break;
        }
        let Some(reason) = reason(segment, left, reasons.len() + 1 == segments.len(), limits) else { break };
        left -= segment.bytes;
        reasons.push(reason);
    }
    reasons
}

fn reason(segment: &SegmentSummary, left: u64, is_last: bool, limits: &RetentionLimits) -> Option<Reason> {
    if !is_last && segment.end_offset <= limits.log_start_offset {
        return Some(Reason::LogStart);
    }
    if limits.retention_ms.is_some_and(|max| limits.now.saturating_sub(segment.newest_ms) > max) {
        return Some(Reason::Time);
    }
    (left.checked_sub(segment.bytes)? >= limits.retention_bytes?).then_some(Reason::Size)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000;
    const NOW: TimestampMs = 100 * DAY;

    /// Segments of ten records and 100 bytes, with the given ages of their newest records.
    fn segments(newest: &[TimestampMs]) -> Vec<SegmentSummary> {
        let segment = |(at, &newest_ms): (usize, &TimestampMs)| SegmentSummary {
            base_offset: at as Offset * 10,
            end_offset: at as Offset * 10 + 10,
            bytes: 100,
            newest_ms,
        };
        newest.iter().enumerate().map(segment).collect()
    }

    fn limits() -> RetentionLimits {
        RetentionLimits {
            now: NOW,
            retention_ms: Some(7 * DAY),
            retention_bytes: None,
            log_start_offset: 0,
            high_watermark: Offset::MAX,
        }
    }

    #[test]
    fn what_is_older_than_the_limit_goes_from_the_front() {
        let all = segments(&[NOW - 9 * DAY, NOW - 8 * DAY, NOW - 7 * DAY, NOW - 20 * DAY, NOW]);
        assert_eq!(choose(&all, &limits()), [Reason::Time, Reason::Time]);
    }

    #[test]
    fn trap_43_a_future_timestamp_keeps_its_segment_and_all_behind_it() {
        let all = segments(&[NOW + 3650 * DAY, NOW - 20 * DAY, NOW]);
        assert_eq!(choose(&all, &limits()), []);
    }

    #[test]
    fn trap_43_old_timestamps_make_even_the_last_segment_old() {
        assert_eq!(choose(&segments(&[NOW - 10 * DAY]), &limits()), [Reason::Time]);
    }

    #[test]
    fn g1_a_clock_that_jumps_back_removes_nothing() {
        let limits = RetentionLimits { now: NOW - 3650 * DAY, ..limits() };
        assert_eq!(choose(&segments(&[NOW - 9 * DAY, NOW]), &limits), []);
    }

    #[test]
    fn no_limit_keeps_everything() {
        let limits = RetentionLimits { retention_ms: None, ..limits() };
        assert_eq!(choose(&segments(&[0, 0, 0]), &limits), []);
    }

    #[test]
    fn size_keeps_at_least_the_limit() {
        let limits = RetentionLimits { retention_ms: None, retention_bytes: Some(250), ..limits() };
        assert_eq!(choose(&segments(&[NOW; 5]), &limits), [Reason::Size, Reason::Size]);
        let limits = RetentionLimits { retention_bytes: Some(0), ..limits };
        assert_eq!(choose(&segments(&[NOW; 2]), &limits), [Reason::Size, Reason::Size]);
    }

    #[test]
    fn nothing_above_the_high_watermark_goes() {
        let limits = RetentionLimits { high_watermark: 19, ..limits() };
        assert_eq!(choose(&segments(&[0, 0, 0]), &limits), [Reason::Time]);
    }

    #[test]
    fn deleted_records_take_their_whole_segments_along_but_not_the_last() {
        let limits = RetentionLimits { log_start_offset: 20, ..limits() };
        assert_eq!(choose(&segments(&[NOW; 2]), &limits), [Reason::LogStart]);
        assert_eq!(choose(&segments(&[NOW; 3]), &limits), [Reason::LogStart, Reason::LogStart]);
    }

    #[test]
    fn an_empty_last_segment_stays() {
        let mut all = segments(&[0, 0]);
        all[1].bytes = 0;
        assert_eq!(choose(&all, &limits()), [Reason::Time]);
    }
}
