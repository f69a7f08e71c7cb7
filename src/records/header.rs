//! The 61 bytes at the head of every batch (format version 2, KIP-98). Parsing checks only what is needed to know that the
//! bytes are a batch header at all; whether its claims are true is for `validate` and `crc`.

use super::codec::Codec;
use super::cursor::{take_i8, take_i16, take_i32, take_i64, take_u32};
use super::error::RecordError;
use crate::base::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, TimestampMs};

/// Bytes from the base offset to the record count, both included.
pub const BATCH_HEADER_BYTES: usize = 61;

/// Bytes in front of what `batch_length` counts: the base offset and the length itself.
pub const LENGTH_OVERHEAD_BYTES: usize = 12;

/// The smallest legal `batch_length`: a header without records.
pub(super) const BATCH_LENGTH_MIN: i32 = 49;

/// The only record format that is written today.
pub(super) const MAGIC: i8 = 2;

/// Where each field stands in the header, in bytes.
pub(super) mod at {
    pub const BATCH_LENGTH: usize = 8;
    pub const MAGIC: usize = 16;
    pub const CRC: usize = 17;
    /// The CRC covers the batch from here on.
    pub const ATTRIBUTES: usize = 21;
}

/// What a record's timestamp means (KIP-32).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TimestampType {
    /// The producer's clock, one timestamp for each record.
    #[default]
    CreateTime,
    /// The broker's clock, one timestamp for the whole batch: its `max_timestamp`.
    LogAppendTime,
}

/// The attribute bits of a batch: 0 to 2 codec, 3 timestamp type, 4 transactional, 5 control, 6 delete horizon (KIP-534).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Attributes(pub i16);

impl Attributes {
    const CODEC_MASK: i16 = 0x07;
    const LOG_APPEND_TIME: i16 = 0x08;
    const TRANSACTIONAL: i16 = 0x10;
    const CONTROL: i16 = 0x20;
    const DELETE_HORIZON: i16 = 0x40;

    /// The codec; an error for the three ids that name none.
    pub fn codec(self) -> Result<Codec, RecordError> {
        Codec::from_id(self.0 & Self::CODEC_MASK)
    }

    pub fn timestamp_type(self) -> TimestampType {
        if self.has(Self::LOG_APPEND_TIME) { TimestampType::LogAppendTime } else { TimestampType::CreateTime }
    }

    pub fn is_transactional(self) -> bool {
        self.has(Self::TRANSACTIONAL)
    }

    pub fn is_control(self) -> bool {
        self.has(Self::CONTROL)
    }

    /// Whether `base_timestamp` holds the time from which the batch's tombstones may be removed.
    pub fn has_delete_horizon(self) -> bool {
        self.has(Self::DELETE_HORIZON)
    }

    pub fn with_codec(self, codec: Codec) -> Attributes {
        Attributes((self.0 & !Self::CODEC_MASK) | codec.id())
    }

    pub fn with_timestamp_type(self, timestamp_type: TimestampType) -> Attributes {
        self.with(Self::LOG_APPEND_TIME, timestamp_type == TimestampType::LogAppendTime)
    }

    pub fn with_transactional(self, on: bool) -> Attributes {
        self.with(Self::TRANSACTIONAL, on)
    }

    pub fn with_control(self, on: bool) -> Attributes {
        self.with(Self::CONTROL, on)
    }

    pub fn with_delete_horizon(self, on: bool) -> Attributes {
        self.with(Self::DELETE_HORIZON, on)
    }

    fn has(self, bit: i16) -> bool {
        self.0 & bit != 0
    }

    fn with(self, bit: i16, on: bool) -> Attributes {
        Attributes(if on { self.0 | bit } else { self.0 & !bit })
    }
}

/// A batch header as it stands in the bytes. Numbers are Kafka's, with its sentinels (-1: no producer, no sequence).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    pub base_offset: Offset,
    /// Bytes of the batch behind this field.
    pub batch_length: i32,
    pub partition_leader_epoch: LeaderEpoch,
    pub magic: i8,
    /// CRC-32C of everything behind this field.
    pub crc: u32,
    pub attributes: Attributes,
    pub last_offset_delta: i32,
    /// What records' timestamp deltas count from, ms; the delete horizon when that bit is set.
    pub base_timestamp: TimestampMs,
    pub max_timestamp: TimestampMs,
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub base_sequence: i32,
    pub record_count: i32,
}

impl BatchHeader {
    /// Reads the header at the front of `bytes`.
    ///
    /// Checks that the header is there whole, that its magic is 2 and its length covers a header; nothing else.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<BatchHeader, RecordError> {
        let header =
            Self::read(bytes).ok_or(RecordError::Truncated { got: bytes.len(), expected: BATCH_HEADER_BYTES })?;
        if header.magic != MAGIC {
            return Err(RecordError::UnknownMagic { magic: header.magic });
        }
        if header.batch_length < BATCH_LENGTH_MIN {
            return Err(RecordError::BatchLength { batch_length: header.batch_length });
        }
        Ok(header)
    }

    #[inline]
    fn read(bytes: &[u8]) -> Option<BatchHeader> {
        let mut rest: &[u8] = bytes.first_chunk::<BATCH_HEADER_BYTES>()?;
        let rest = &mut rest;
        Some(BatchHeader {
            base_offset: take_i64(rest)?,
            batch_length: take_i32(rest)?,
            partition_leader_epoch: take_i32(rest)?,
            magic: take_i8(rest)?,
            crc: take_u32(rest)?,
            attributes: Attributes(take_i16(rest)?),
            last_offset_delta: take_i32(rest)?,
            base_timestamp: take_i64(rest)?,
            max_timestamp: take_i64(rest)?,
            producer_id: take_i64(rest)?,
            producer_epoch: take_i16(rest)?,
            base_sequence: take_i32(rest)?,
            record_count: take_i32(rest)?,
        })
    }

    /// The header as bytes, ready to stand in front of the records.
    pub fn to_bytes(&self) -> [u8; BATCH_HEADER_BYTES] {
        let mut out = [0u8; BATCH_HEADER_BYTES];
        let mut rest: &mut [u8] = &mut out;
        for field in [
            &self.base_offset.to_be_bytes()[..],
            &self.batch_length.to_be_bytes(),
            &self.partition_leader_epoch.to_be_bytes(),
            &self.magic.to_be_bytes(),
            &self.crc.to_be_bytes(),
            &self.attributes.0.to_be_bytes(),
            &self.last_offset_delta.to_be_bytes(),
            &self.base_timestamp.to_be_bytes(),
            &self.max_timestamp.to_be_bytes(),
            &self.producer_id.to_be_bytes(),
            &self.producer_epoch.to_be_bytes(),
            &self.base_sequence.to_be_bytes(),
            &self.record_count.to_be_bytes(),
        ] {
            let (head, tail) = rest.split_at_mut(field.len());
            head.copy_from_slice(field);
            rest = tail;
        }
        out
    }

    /// The whole batch's size: the length and what stands in front of it. Never below [`BATCH_HEADER_BYTES`] after `parse`.
    pub fn size_bytes(&self) -> usize {
        LENGTH_OVERHEAD_BYTES + usize::try_from(self.batch_length).unwrap_or(0)
    }

    pub fn last_offset(&self) -> Offset {
        self.base_offset.wrapping_add(i64::from(self.last_offset_delta))
    }

    /// The offset behind the batch's last one.
    pub fn next_offset(&self) -> Offset {
        self.last_offset().wrapping_add(1)
    }

    /// The last record's sequence; sequences run from 0 to `i32::MAX` and begin again at 0. -1 without a base sequence.
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence < 0 {
            return self.base_sequence;
        }
        let sum = i64::from(self.base_sequence) + i64::from(self.last_offset_delta.max(0));
        (sum % (i64::from(i32::MAX) + 1)) as i32
    }

    pub fn codec(&self) -> Result<Codec, RecordError> {
        self.attributes.codec()
    }

    pub fn timestamp_type(&self) -> TimestampType {
        self.attributes.timestamp_type()
    }

    pub fn is_transactional(&self) -> bool {
        self.attributes.is_transactional()
    }

    pub fn is_control(&self) -> bool {
        self.attributes.is_control()
    }

    pub fn has_producer(&self) -> bool {
        self.producer_id >= 0
    }

    /// The time from which the batch's tombstones may be removed, when compaction has set one (KIP-534).
    pub fn delete_horizon_ms(&self) -> Option<TimestampMs> {
        self.attributes.has_delete_horizon().then_some(self.base_timestamp)
    }

    /// The timestamp of a record with this delta.
    #[inline]
    pub(super) fn timestamp_of(&self, delta: i64) -> TimestampMs {
        match self.timestamp_type() {
            TimestampType::CreateTime => self.base_timestamp.wrapping_add(delta),
            TimestampType::LogAppendTime => self.max_timestamp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header() -> BatchHeader {
        BatchHeader {
            base_offset: 5,
            batch_length: 79,
            partition_leader_epoch: 7,
            magic: 2,
            crc: 0xfedc_ba98,
            attributes: Attributes(0),
            last_offset_delta: 2,
            base_timestamp: 1000,
            max_timestamp: 2000,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            record_count: 3,
        }
    }

    #[test]
    fn offsets_and_size_follow_from_the_fields() {
        let header = header();
        assert_eq!((header.size_bytes(), header.last_offset(), header.next_offset()), (91, 7, 8));
    }

    #[test]
    fn sequences_wrap_to_zero() {
        let sequenced = |base_sequence, last_offset_delta| {
            BatchHeader { base_sequence, last_offset_delta, ..header() }.last_sequence()
        };
        assert_eq!(sequenced(10, 4), 14);
        assert_eq!(sequenced(i32::MAX, 0), i32::MAX);
        assert_eq!(sequenced(i32::MAX, 1), 0);
        assert_eq!(sequenced(i32::MAX - 1, 3), 1);
        assert_eq!(sequenced(-1, 3), -1);
    }

    #[test]
    fn attribute_bits_are_kafkas() {
        let all = Attributes::default()
            .with_codec(Codec::Zstd)
            .with_timestamp_type(TimestampType::LogAppendTime)
            .with_transactional(true)
            .with_control(true)
            .with_delete_horizon(true);
        assert_eq!(all, Attributes(0x7c));
        assert_eq!(all.codec(), Ok(Codec::Zstd));
        assert_eq!(all.with_timestamp_type(TimestampType::CreateTime), Attributes(0x74));
        assert!(Attributes(0x05).codec().is_err());
    }

    #[test]
    fn a_short_slice_a_foreign_magic_and_a_short_length_are_refused() {
        let bytes = header().to_bytes();
        assert_eq!(
            BatchHeader::parse(&bytes[..60]),
            Err(RecordError::Truncated { got: 60, expected: BATCH_HEADER_BYTES })
        );
        for magic in [-1, 0, 1, 3] {
            let bytes = BatchHeader { magic, ..header() }.to_bytes();
            assert_eq!(BatchHeader::parse(&bytes), Err(RecordError::UnknownMagic { magic }));
        }
        for batch_length in [i32::MIN, -1, 0, 48] {
            let bytes = BatchHeader { batch_length, ..header() }.to_bytes();
            assert_eq!(BatchHeader::parse(&bytes), Err(RecordError::BatchLength { batch_length }));
        }
    }

    proptest! {
        #[test]
        fn parse_is_the_inverse_of_to_bytes(mut bytes in any::<[u8; BATCH_HEADER_BYTES]>()) {
            bytes[at::MAGIC] = 2;
            bytes[at::BATCH_LENGTH] &= 0x7f;
            bytes[at::BATCH_LENGTH + 2] = 1;
            let header = BatchHeader::parse(&bytes).unwrap();
            prop_assert_eq!(header.to_bytes(), bytes);
        }
    }
}
