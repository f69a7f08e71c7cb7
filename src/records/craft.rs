//! For tests only: batches with any claim in the header and any bytes as records, always with a right CRC.

use super::builder::assemble;
use super::codec::Codec;
use super::header::{Attributes, BatchHeader, MAGIC};
use super::varint::{put_varint, put_varlong};

pub(super) const BASE_TIMESTAMP: i64 = 1000;

/// A record `k` = `v` with this offset delta and timestamp delta.
pub(super) fn record(offset_delta: i32, timestamp_delta: i64) -> Vec<u8> {
    sized(&body(offset_delta, timestamp_delta, Some(b"k"), Some(b"v")))
}

pub(super) fn keyless(offset_delta: i32, timestamp_delta: i64) -> Vec<u8> {
    sized(&body(offset_delta, timestamp_delta, None, Some(b"v")))
}

/// A record with a value of `len` bytes.
pub(super) fn large(offset_delta: i32, len: usize) -> Vec<u8> {
    sized(&body(offset_delta, 0, None, Some(&vec![b'x'; len])))
}

/// A record body without headers.
pub(super) fn body(offset_delta: i32, timestamp_delta: i64, key: Option<&[u8]>, value: Option<&[u8]>) -> Vec<u8> {
    let mut body = vec![0];
    put_varlong(&mut body, timestamp_delta);
    put_varint(&mut body, offset_delta);
    for field in [key, value] {
        put_varint(&mut body, field.map_or(-1, |field| field.len() as i32));
        body.extend_from_slice(field.unwrap_or_default());
    }
    put_varint(&mut body, 0);
    body
}

/// Puts its length in front of a record body.
pub(super) fn sized(body: &[u8]) -> Vec<u8> {
    let mut record = Vec::new();
    put_varint(&mut record, body.len() as i32);
    record.extend_from_slice(body);
    record
}

/// A header that tells the truth about `count` records at [`BASE_TIMESTAMP`], to be changed as a test needs.
pub(super) fn header(count: usize, codec: Codec) -> BatchHeader {
    BatchHeader {
        base_offset: 0,
        batch_length: 0,
        partition_leader_epoch: -1,
        magic: MAGIC,
        crc: 0,
        attributes: Attributes::default().with_codec(codec),
        last_offset_delta: count as i32 - 1,
        base_timestamp: BASE_TIMESTAMP,
        max_timestamp: BASE_TIMESTAMP,
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        record_count: count as i32,
    }
}

/// A batch of these records, compressed, with what `change` does to its header.
pub(super) fn batch(records: &[Vec<u8>], codec: Codec, change: impl FnOnce(&mut BatchHeader)) -> Vec<u8> {
    let payload = codec.compress(codec.default_level(), &records.concat()).unwrap();
    with_payload(records.len(), codec, &payload, change)
}

/// A batch that says to hold `count` records, with these bytes behind the header.
pub(super) fn with_payload(
    count: usize,
    codec: Codec,
    payload: &[u8],
    change: impl FnOnce(&mut BatchHeader),
) -> Vec<u8> {
    let mut header = header(count, codec);
    header.batch_length = 49 + payload.len() as i32;
    change(&mut header);
    assemble(&header, payload)
}
