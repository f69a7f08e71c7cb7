//! What can be wrong with a batch, each with the code that Kafka's clients get for it. Texts say what was got and what was
//! expected; [`RecordError::client_message`] gives those that a Produce answer carries.

use super::codec::Codec;
use crate::base::ErrorCode;

/// One record that a Produce answer has to name (`recordErrors`, version 8, KIP-467).
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
    #[error("record format {magic} is none that is served, 2 is")]
    UnknownMagic { magic: i8 },
    #[error("batch length {batch_length} is below the smallest legal one, 49")]
    BatchLength { batch_length: i32 },
    #[error("what follows the batch is neither a batch nor the beginning of one")]
    Trailing,
    #[error("the CRC of the batch is not that of its bytes")]
    Crc,
    #[error("the {codec} data of the batch cannot be decompressed")]
    Decompress { codec: Codec },
    #[error("the {codec} library failed to compress")]
    Compress { codec: Codec },
    #[error("decompressed, the records take more than the allowed {bytes_max} bytes")]
    DecompressedTooLarge { bytes_max: usize },
    #[error("{id} is the id of no codec")]
    UnknownCodec { id: i16 },
    #[error("this version of the request must not carry {codec}")]
    CodecNotAllowed { codec: Codec },
    #[error("the batch takes more than the allowed {bytes_max} bytes")]
    TooLarge { bytes_max: usize },
    #[error("{reason}")]
    Invalid { reason: &'static str },
    #[error("record {index} of the batch is malformed: {reason}")]
    MalformedRecord { index: i32, reason: &'static str },
    #[error("{count} record(s) refused, the first: {}", .issues.first().map_or("", |issue| &issue.message))]
    Rejected {
        /// `INVALID_TIMESTAMP` when one record's timestamp is out of range, else `INVALID_RECORD`.
        code: ErrorCode,
        /// The refused records in their order, at most [`super::RECORD_ISSUES_MAX`].
        issues: Vec<RecordIssue>,
        /// How many there are in all.
        count: usize,
    },
}

impl RecordError {
    /// Kafka's code for it. Data that cannot be decompressed is the producer's doing (its CRC is right), so it gets a code that
    /// clients do not retry.
    pub fn error_code(&self) -> ErrorCode {
        use RecordError::*;
        match self {
            Truncated { .. } | UnknownMagic { .. } | BatchLength { .. } | Trailing | Crc => ErrorCode::CORRUPT_MESSAGE,
            UnknownCodec { .. } | CodecNotAllowed { .. } => ErrorCode::UNSUPPORTED_COMPRESSION_TYPE,
            TooLarge { .. } => ErrorCode::MESSAGE_TOO_LARGE,
            Invalid { .. } | MalformedRecord { .. } | Decompress { .. } | DecompressedTooLarge { .. } => {
                ErrorCode::INVALID_RECORD
            }
            Compress { .. } => ErrorCode::UNKNOWN_SERVER_ERROR,
            Rejected { code, .. } => *code,
        }
    }

    /// The records that a Produce answer names one by one; empty when the whole batch is at fault.
    pub fn record_errors(&self) -> &[RecordIssue] {
        match self {
            RecordError::Rejected { issues, .. } => issues,
            _ => &[],
        }
    }

    /// The text for a Produce answer's `errorMessage`; `None` where Kafka sends null. Logs take the `Display` text instead.
    pub fn client_message(&self) -> Option<String> {
        match self {
            RecordError::UnknownMagic { .. } | RecordError::BatchLength { .. } | RecordError::Rejected { .. } => {
                Some(self.to_string())
            }
            _ => None,
        }
    }
}
