//! What can be wrong with a batch, each with the code that Kafka's clients get for it. Texts say what was got and what was
//! expected, and end up in Produce v8's `errorMessage` where Kafka fills that.

use super::codec::Codec;
use crate::base::{ErrorCode, TimestampMs};

/// One record that has to be named in a Produce answer (`recordErrors`, version 8, KIP-467).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordIssue {
    /// The record's place in its batch, from 0.
    pub batch_index: i32,
    pub message: String,
}

/// Why a batch is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    #[error("the batch has {got} bytes where {expected} are needed")]
    Truncated { got: usize, expected: usize },
    #[error("unknown record format {magic}, only 2 is served")]
    UnknownMagic { magic: i8 },
    #[error("batch length {batch_length} is below the smallest legal one, 49")]
    BatchLength { batch_length: i32 },
    #[error("the CRC of the batch is not that of its bytes")]
    Crc,
    #[error("the {codec} library failed to compress")]
    Compress { codec: Codec },
    #[error("the {codec} data of the batch cannot be decompressed")]
    Decompress { codec: Codec },
    #[error("the records take more than the allowed {bytes_max} bytes once decompressed")]
    DecompressedTooLarge { bytes_max: usize },
    #[error("{0} is the id of no codec")]
    UnknownCodec(i16),
    #[error("this version of Produce must not carry {0}")]
    CodecNotAllowed(Codec),
    #[error("the batch has {bytes} bytes, {bytes_max} are allowed")]
    TooLarge { bytes: usize, bytes_max: usize },
    #[error("{0}")]
    Invalid(&'static str),
    #[error("record {index} of the batch is malformed: {reason}")]
    MalformedRecord { index: i32, reason: &'static str },
    #[error("{} record(s) without a key; a compacted topic needs one", .0.len())]
    NullKeys(Vec<RecordIssue>),
    #[error("{} record(s) with a timestamp outside the limits at {now}", .issues.len())]
    Timestamps { issues: Vec<RecordIssue>, now: TimestampMs },
}

impl RecordError {
    /// Kafka's code for it.
    pub fn error_code(&self) -> ErrorCode {
        use RecordError::*;
        match self {
            Truncated { .. } | UnknownMagic { .. } | BatchLength { .. } | Crc => ErrorCode::CORRUPT_MESSAGE,
            Decompress { .. } => ErrorCode::CORRUPT_MESSAGE,
            Compress { .. } => ErrorCode::UNKNOWN_SERVER_ERROR,
            UnknownCodec(_) | CodecNotAllowed(_) => ErrorCode::UNSUPPORTED_COMPRESSION_TYPE,
            TooLarge { .. } | DecompressedTooLarge { .. } => ErrorCode::MESSAGE_TOO_LARGE,
            Invalid(_) | MalformedRecord { .. } | NullKeys(_) => ErrorCode::INVALID_RECORD,
            Timestamps { .. } => ErrorCode::INVALID_TIMESTAMP,
        }
    }

    /// The records to name one by one; empty when the whole batch is at fault.
    pub fn record_errors(&self) -> &[RecordIssue] {
        match self {
            RecordError::NullKeys(issues) | RecordError::Timestamps { issues, .. } => issues,
            _ => &[],
        }
    }
}
