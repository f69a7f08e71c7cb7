//! The first look at what a client produces to a partition: exactly one batch of format 2 (KIP-98), with perhaps the beginning
//! of something behind it that Kafka drops without a word, and so do we.

use super::codec::Codec;
use super::cursor::take_i32;
use super::error::RecordError;
use super::header::{BATCH_HEADER_BYTES, BatchHeader, LENGTH_OVERHEAD_BYTES, MAGIC, at};

/// Produce versions below this one must not carry zstd (KIP-110).
const ZSTD_PRODUCE_VERSION_MIN: i16 = 7;

/// The smallest batch length of any format there ever was; less is damage.
const ANY_FORMAT_LENGTH_MIN: i32 = 14;

/// Cuts the one batch out of `records`, the bytes that a Produce request of this version has for a partition.
///
/// `INVALID_RECORD` for none, more than one, a cut one or one of an old format; `CORRUPT_MESSAGE` for what is no batch;
/// `UNSUPPORTED_COMPRESSION_TYPE` for zstd below version 7.
pub fn single_batch(records: &[u8], produce_version: i16) -> Result<(BatchHeader, &[u8]), RecordError> {
    let Some(size) = next_size(records)? else {
        return Err(RecordError::Invalid { reason: "there must be one whole batch for a partition, there is none" });
    };
    let (batch, behind) = records.split_at_checked(size).unwrap_or((records, &[]));
    if batch.get(at::MAGIC).is_some_and(|&magic| i8::from_be_bytes([magic]) != MAGIC) {
        return Err(RecordError::Invalid { reason: "record formats 0 and 1 are not written any more, 2 is" });
    }
    if batch.len() < BATCH_HEADER_BYTES {
        return Err(RecordError::Truncated { got: batch.len(), expected: BATCH_HEADER_BYTES });
    }
    let header = BatchHeader::parse(batch)?;
    if produce_version < ZSTD_PRODUCE_VERSION_MIN && header.codec() == Ok(Codec::Zstd) {
        return Err(RecordError::CodecNotAllowed { codec: Codec::Zstd });
    }
    match next_size(behind) {
        Ok(None) => Ok((header, batch)),
        Ok(Some(_)) => Err(RecordError::Invalid { reason: "there must be one batch for a partition, there are more" }),
        Err(_) => Err(RecordError::Trailing),
    }
}

/// The size of the batch, in any format, at the front of `bytes`; `None` when it is not there whole.
fn next_size(bytes: &[u8]) -> Result<Option<usize>, RecordError> {
    let Some(batch_length) = bytes.get(at::BATCH_LENGTH..).and_then(|mut rest| take_i32(&mut rest)) else {
        return Ok(None);
    };
    if batch_length < ANY_FORMAT_LENGTH_MIN {
        return Err(RecordError::BatchLength { batch_length });
    }
    let Some(&magic) = bytes.get(at::MAGIC) else {
        return Ok(None);
    };
    let magic = i8::from_be_bytes([magic]);
    if !(0..=MAGIC).contains(&magic) {
        return Err(RecordError::UnknownMagic { magic });
    }
    let size = usize::try_from(batch_length).unwrap_or(usize::MAX).saturating_add(LENGTH_OVERHEAD_BYTES);
    Ok((size <= bytes.len()).then_some(size))
}

#[cfg(test)]
mod tests {
    use super::super::BatchBuilder;
    use super::*;
    use crate::base::ErrorCode;

    fn batch(codec: Codec) -> Vec<u8> {
        let mut builder = BatchBuilder::new(codec);
        builder.push(1000, Some(b"k"), Some(b"v"), &[]);
        builder.finish(0, -1)
    }

    fn code(records: &[u8], version: i16) -> ErrorCode {
        single_batch(records, version).map_or_else(|error| error.error_code(), |_| ErrorCode::NONE)
    }

    #[test]
    fn exactly_one_batch_is_taken() {
        let one = batch(Codec::None);
        assert_eq!(single_batch(&one, 9).unwrap().1, one);
        assert_eq!(code(&[], 9), ErrorCode::INVALID_RECORD);
        assert_eq!(code(&[one.clone(), one.clone()].concat(), 3), ErrorCode::INVALID_RECORD);
        for keep in [1, 12, 17, 40, 61, one.len() - 1] {
            assert_eq!(code(&one[..keep], 9), ErrorCode::INVALID_RECORD, "{keep}");
        }
    }

    #[test]
    fn the_beginning_of_another_batch_is_dropped_but_rubbish_is_not() {
        let one = batch(Codec::None);
        let with = |behind: &[u8]| [&one[..], behind].concat();
        assert_eq!(single_batch(&with(&[0; 5]), 9).unwrap().1, one);
        assert_eq!(single_batch(&with(&one[..40]), 9).unwrap().1, one);
        assert_eq!(code(&with(&[0; 30]), 9), ErrorCode::CORRUPT_MESSAGE);
        assert_eq!(single_batch(&with(&[0; 30]), 9).unwrap_err().client_message(), None);
    }

    #[test]
    fn lengths_and_magics_get_kafkas_codes() {
        let broken = |position: usize, bytes: &[u8]| {
            let mut batch = batch(Codec::None);
            batch[position..position + bytes.len()].copy_from_slice(bytes);
            code(&batch, 9)
        };
        for length in [-1i32, i32::MIN, 0, 10, 13, 14, 48] {
            assert_eq!(broken(8, &length.to_be_bytes()), ErrorCode::CORRUPT_MESSAGE, "{length}");
        }
        for length in [70i32, i32::MAX] {
            assert_eq!(broken(8, &length.to_be_bytes()), ErrorCode::INVALID_RECORD, "{length}");
        }
        for (magic, expected) in [(0u8, 87), (1, 87), (2, 0), (3, 2), (0xff, 2)] {
            assert_eq!(broken(16, &[magic]), ErrorCode(expected), "{magic}");
        }
    }

    #[test]
    fn zstd_needs_version_7() {
        assert_eq!(code(&batch(Codec::Zstd), 6), ErrorCode::UNSUPPORTED_COMPRESSION_TYPE);
        assert_eq!(code(&batch(Codec::Zstd), 7), ErrorCode::NONE);
        assert_eq!(code(&batch(Codec::Lz4), 3), ErrorCode::NONE);
    }
}
