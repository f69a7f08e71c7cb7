//! Making one batch: records are encoded as they are pushed, compressed at the end, and the header put in front. Broker-side
//! batches (offsets, markers, metadata) and tests are made with it; clients' batches are stored as they came.

use super::codec::Codec;
use super::control::ControlKind;
use super::crc::crc_of;
use super::header::{Attributes, BATCH_HEADER_BYTES, BatchHeader, LENGTH_OVERHEAD_BYTES, MAGIC, TimestampType, at};
use super::varint::{put_varint, put_varlong};
use crate::base::ids::{NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE};
use crate::base::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, TimestampMs};

/// A batch in the making. Records get the offset deltas 0, 1, 2 ... in the order of [`BatchBuilder::push`].
#[derive(Clone, Debug)]
pub struct BatchBuilder {
    codec: Codec,
    level: i32,
    attributes: Attributes,
    producer_id: ProducerId,
    producer_epoch: ProducerEpoch,
    base_sequence: i32,
    base_timestamp: Option<TimestampMs>,
    max_timestamp: TimestampMs,
    append_time: Option<TimestampMs>,
    record_count: i32,
    next_offset_delta: i32,
    records: Vec<u8>,
    body: Vec<u8>,
}

impl BatchBuilder {
    /// An empty batch that will be compressed with `codec` at its default level.
    pub fn new(codec: Codec) -> BatchBuilder {
        BatchBuilder {
            codec,
            level: codec.default_level(),
            attributes: Attributes::default(),
            producer_id: NO_PRODUCER_ID,
            producer_epoch: NO_PRODUCER_EPOCH,
            base_sequence: NO_SEQUENCE,
            base_timestamp: None,
            max_timestamp: -1,
            append_time: None,
            record_count: 0,
            next_offset_delta: 0,
            records: Vec::new(),
            body: Vec::new(),
        }
    }

    /// Compresses at `level`, in the codec's own scale.
    pub fn with_level(mut self, level: i32) -> BatchBuilder {
        self.level = level;
        self
    }

    pub fn with_producer(mut self, id: ProducerId, epoch: ProducerEpoch, base_sequence: i32) -> BatchBuilder {
        (self.producer_id, self.producer_epoch, self.base_sequence) = (id, epoch, base_sequence);
        self
    }

    pub fn with_transactional(mut self, on: bool) -> BatchBuilder {
        self.attributes = self.attributes.with_transactional(on);
        self
    }

    /// Marks the batch as one that clients do not deliver; its records' keys are [`ControlKind::key`]s.
    pub fn with_control(mut self) -> BatchBuilder {
        self.attributes = self.attributes.with_control(true);
        self
    }

    /// Gives every record the broker's time `append_time` instead of its own.
    pub fn with_append_time(mut self, append_time: TimestampMs) -> BatchBuilder {
        self.attributes = self.attributes.with_timestamp_type(TimestampType::LogAppendTime);
        self.append_time = Some(append_time);
        self
    }

    /// Sets the time from which the batch's tombstones may be removed (KIP-534). Only before the first push.
    pub fn with_delete_horizon(mut self, delete_horizon_ms: TimestampMs) -> BatchBuilder {
        debug_assert_eq!(self.record_count, 0, "timestamp deltas count from the horizon");
        self.attributes = self.attributes.with_delete_horizon(true);
        self.base_timestamp = Some(delete_horizon_ms);
        self
    }

    /// Adds a record. Header keys may repeat and header values be null (`None`).
    pub fn push(
        &mut self,
        timestamp: TimestampMs,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&[u8], Option<&[u8]>)],
    ) -> &mut BatchBuilder {
        self.push_at(self.next_offset_delta, timestamp, key, value, headers.iter().copied())
    }

    /// Adds a record at a given offset delta, which is to grow from record to record; compaction leaves holes.
    pub fn push_at<'h>(
        &mut self,
        offset_delta: i32,
        timestamp: TimestampMs,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: impl ExactSizeIterator<Item = (&'h [u8], Option<&'h [u8]>)>,
    ) -> &mut BatchBuilder {
        let base_timestamp = *self.base_timestamp.get_or_insert(timestamp);
        self.max_timestamp = self.max_timestamp.max(timestamp);
        self.body.clear();
        self.body.push(0); // record attributes: none are defined
        put_varlong(&mut self.body, timestamp.wrapping_sub(base_timestamp));
        put_varint(&mut self.body, offset_delta);
        put_bytes(&mut self.body, key);
        put_bytes(&mut self.body, value);
        put_varint(&mut self.body, length(headers.len()));
        for (key, value) in headers {
            put_bytes(&mut self.body, Some(key));
            put_bytes(&mut self.body, value);
        }
        put_varint(&mut self.records, length(self.body.len()));
        self.records.extend_from_slice(&self.body);
        self.record_count += 1;
        self.next_offset_delta = offset_delta.saturating_add(1);
        self
    }

    pub fn record_count(&self) -> i32 {
        self.record_count
    }

    pub fn is_empty(&self) -> bool {
        self.record_count == 0
    }

    /// The batch's size so far if it were not compressed.
    pub fn uncompressed_bytes(&self) -> usize {
        BATCH_HEADER_BYTES + self.records.len()
    }

    /// The batch. `last_offset_delta` is the last record's; -1 in a batch without records.
    pub fn finish(self, base_offset: Offset, leader_epoch: LeaderEpoch) -> Vec<u8> {
        let last_offset_delta = self.next_offset_delta - 1;
        self.finish_with_last_delta(base_offset, leader_epoch, last_offset_delta)
    }

    /// The batch with a last offset delta of its own: compaction keeps the offsets that a batch covered.
    pub fn finish_with_last_delta(self, base_offset: Offset, epoch: LeaderEpoch, last_offset_delta: i32) -> Vec<u8> {
        // A codec that fails (it cannot on bytes in memory, short of running out of it) leaves the records uncompressed.
        let (codec, records) = match self.codec.compress(self.level, &self.records) {
            Ok(compressed) if self.codec != Codec::None => (self.codec, compressed),
            _ => (Codec::None, self.records),
        };
        let header = BatchHeader {
            base_offset,
            batch_length: length(BATCH_HEADER_BYTES - LENGTH_OVERHEAD_BYTES + records.len()),
            partition_leader_epoch: epoch,
            magic: MAGIC,
            crc: 0,
            attributes: self.attributes.with_codec(codec),
            last_offset_delta,
            base_timestamp: self.base_timestamp.unwrap_or(-1),
            max_timestamp: self.append_time.unwrap_or(self.max_timestamp),
            producer_id: self.producer_id,
            producer_epoch: self.producer_epoch,
            base_sequence: self.base_sequence,
            record_count: self.record_count,
        };
        assemble(&header, &records)
    }

    /// A batch of one control record, such as a transaction marker.
    pub fn control_batch(
        kind: ControlKind,
        value: &[u8],
        timestamp: TimestampMs,
        producer: Option<(ProducerId, ProducerEpoch)>,
    ) -> BatchBuilder {
        let mut builder = BatchBuilder::new(Codec::None).with_control();
        if let Some((id, epoch)) = producer {
            builder = builder.with_producer(id, epoch, NO_SEQUENCE).with_transactional(true);
        }
        builder.push(timestamp, Some(&kind.key()), Some(value), &[]);
        builder
    }
}

/// Puts `header`, with the right CRC, in front of `records`.
pub(super) fn assemble(header: &BatchHeader, records: &[u8]) -> Vec<u8> {
    let mut batch = Vec::with_capacity(BATCH_HEADER_BYTES + records.len());
    batch.extend_from_slice(&header.to_bytes());
    batch.extend_from_slice(records);
    if let (Some(crc), Some(field)) = (crc_of(&batch), batch.get_mut(at::CRC..at::ATTRIBUTES)) {
        field.copy_from_slice(&crc.to_be_bytes());
    }
    batch
}

fn put_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => put_varint(out, -1),
        Some(bytes) => {
            put_varint(out, length(bytes.len()));
            out.extend_from_slice(bytes);
        }
    }
}

/// A length as the format holds it. Nothing that a broker builds comes near 2 GiB: requests are bounded far below.
fn length(len: usize) -> i32 {
    debug_assert!(i32::try_from(len).is_ok(), "a batch of {len} bytes");
    i32::try_from(len).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::crc_is_valid;
    use super::*;

    /// The first batch of the conformance walk `produce-batches`, made by Kafka's own codec.
    const KAFKA_BATCH: &str = "AAAAAAAAAAAAAABP/////wIbEwetAAAAAAACAAAAAAAAA+gAAAAAAAAD6P//////////////////AAAAAxIAAAACawR2MAASAAACAmsEdjEAEgAABAJrBHYyAA==";

    #[test]
    fn bytes_are_those_of_kafkas_own_builder() {
        use base64::Engine;
        let expected = base64::engine::general_purpose::STANDARD.decode(KAFKA_BATCH).unwrap();
        let mut builder = BatchBuilder::new(Codec::None);
        for value in ["v0", "v1", "v2"] {
            builder.push(1000, Some(b"k"), Some(value.as_bytes()), &[]);
        }
        assert_eq!(builder.uncompressed_bytes(), expected.len());
        assert_eq!(builder.finish(0, -1), expected);
    }

    #[test]
    fn an_empty_batch_covers_no_offset() {
        let batch = BatchBuilder::new(Codec::None).finish(9, 1);
        let header = BatchHeader::parse(&batch).unwrap();
        assert_eq!((header.record_count, header.last_offset_delta, header.next_offset()), (0, -1, 9));
        assert!(crc_is_valid(&batch));
    }

    #[test]
    fn producer_marker_and_append_time_fields_are_set() {
        let marker = BatchBuilder::control_batch(ControlKind::Commit, &[1], 50, Some((7, 2))).finish(3, 4);
        let header = BatchHeader::parse(&marker).unwrap();
        assert!(header.is_control() && header.is_transactional());
        assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (7, 2, -1));

        let mut builder = BatchBuilder::new(Codec::Gzip).with_append_time(99);
        builder.push(5, None, None, &[]);
        let header = BatchHeader::parse(&builder.finish(0, 0)).unwrap();
        assert_eq!(header.timestamp_type(), TimestampType::LogAppendTime);
        assert_eq!((header.base_timestamp, header.max_timestamp, header.codec()), (5, 99, Ok(Codec::Gzip)));
    }
}
