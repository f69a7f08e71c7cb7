//! Changing a batch where the topic asks for it: other times in the header, another codec around the records. The records
//! themselves stay byte for byte as they came.

use std::io::{self, Write};

use bytes::Bytes;

use super::codec::{Codec, Sink, Writer};
use super::crc::stamp_crc;
use super::error::RecordError;
use super::header::{BATCH_HEADER_BYTES, BatchHeader, LENGTH_OVERHEAD_BYTES, TimestampType};
use super::record::Fault;
use super::validate::Validated;
use super::walk::{Seen, StreamLimits, copy_failure, walk_compressed};
use crate::base::TimestampMs;

/// Room for a header, then `records` compressed with `codec`; header and records together at most `batch_bytes_max` bytes.
pub(super) fn compressed_copy(
    records: &[u8],
    codec: Codec,
    level: i32,
    batch_bytes_max: usize,
) -> Result<Vec<u8>, RecordError> {
    let written = writer_behind_header(codec, level, batch_bytes_max).and_then(|mut writer| {
        writer.write_all(records)?;
        writer.finish()
    });
    written.map(Sink::into_bytes).map_err(|error| copy_failure(&error, codec, batch_bytes_max))
}

/// Room for a header, then what `payload` decompresses to, compressed with `codec`. The records are walked on the way, and never
/// all in memory at once.
pub(super) fn recompressed(
    header: &BatchHeader,
    source: Codec,
    payload: &[u8],
    codec: Codec,
    level: i32,
    limits: StreamLimits,
    visit: impl FnMut(i32, Seen) -> Result<(), Fault>,
) -> Result<Vec<u8>, RecordError> {
    let failed = |error: io::Error| copy_failure(&error, codec, limits.copy_bytes_max);
    let mut writer = writer_behind_header(codec, level, limits.copy_bytes_max).map_err(failed)?;
    walk_compressed(source, payload, header.record_count, limits, Some(&mut writer), visit)?;
    writer.finish().map(Sink::into_bytes).map_err(failed)
}

fn writer_behind_header(codec: Codec, level: i32, batch_bytes_max: usize) -> io::Result<Writer> {
    codec.writer(level, Sink::new(vec![0; BATCH_HEADER_BYTES], batch_bytes_max))
}

/// The batch with these times: as received when nothing is to change, else a copy with a new header and CRC. `rewritten` is a copy
/// that exists already, with room for the header.
pub(super) fn with_times(
    received: &BatchHeader,
    batch: &[u8],
    rewritten: Option<Vec<u8>>,
    codec: Codec,
    timestamp_type: TimestampType,
    max_timestamp: TimestampMs,
) -> Validated {
    let mut header = BatchHeader {
        attributes: received.attributes.with_codec(codec).with_timestamp_type(timestamp_type),
        max_timestamp,
        ..*received
    };
    if rewritten.is_none() && header == *received {
        return Validated::AsReceived(header);
    }
    let mut bytes = rewritten.unwrap_or_else(|| batch.to_vec());
    header.batch_length = i32::try_from(bytes.len().saturating_sub(LENGTH_OVERHEAD_BYTES)).unwrap_or(i32::MAX);
    if let Some(front) = bytes.first_chunk_mut::<BATCH_HEADER_BYTES>() {
        *front = header.to_bytes();
    }
    header.crc = stamp_crc(&mut bytes).unwrap_or(header.crc);
    Validated::Rewritten { header, bytes: Bytes::from(bytes) }
}
