//! What can go wrong in a partition's log, one small type per operation. `api/errors.rs` turns them into Kafka codes.

use std::io;
use std::path::{Path, PathBuf};

use crate::base::{Offset, ProducerEpoch, ProducerId, TopicId};
use crate::host::disk::is_passing;

/// Trouble with the files of a log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The device or the file system refused. The first one from a sync takes the log directory offline (A9).
    #[error("cannot {action} {path}: {source}")]
    Storage { action: &'static str, path: PathBuf, source: io::Error },

    /// The directory belongs to another topic of the same name (B9).
    #[error("directory {path} belongs to topic id {found}, expected {expected}")]
    InconsistentTopicId { path: PathBuf, found: TopicId, expected: TopicId },

    /// Bytes that are no batch stand where a batch must be.
    #[error("no whole batch at byte {position} of {path}: {reason}")]
    Corrupt { path: PathBuf, position: u64, reason: String },

    /// A small text file beside the logs that does not say what it must.
    #[error("{path} cannot be understood: {reason}")]
    Text { path: PathBuf, reason: String },

    #[error("offset {offset} is outside the log's {start} to {end}")]
    OffsetOutOfRange { offset: Offset, start: Offset, end: Offset },
}

/// The `action` of a sync that failed.
pub(crate) const SYNC: &str = "sync";

impl LogError {
    /// Whether the file system had no room: the log stays readable and heals when space returns (A10).
    pub fn is_disk_full(&self) -> bool {
        matches!(self, LogError::Storage { source, .. } if is_disk_full(source))
    }

    /// Whether the machine lacked something that it may have again in a moment (see [`is_passing`]): worth another try, and nothing
    /// is lost by it. Never said of a sync that failed.
    pub fn is_passing(&self) -> bool {
        matches!(self, LogError::Storage { action, source, .. } if *action != SYNC && is_passing(source))
    }

    /// The file or directory that it is about.
    pub fn path(&self) -> Option<&Path> {
        match self {
            LogError::Storage { path, .. }
            | LogError::InconsistentTopicId { path, .. }
            | LogError::Corrupt { path, .. }
            | LogError::Text { path, .. } => Some(path),
            LogError::OffsetOutOfRange { .. } => None,
        }
    }

    /// Whether a file that was there before is gone, as a deleted segment's is.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, LogError::Storage { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

pub(crate) fn is_disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Adds what was being done and to which file.
pub(crate) trait Context<T> {
    fn context(self, action: &'static str, path: &Path) -> Result<T, LogError>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, action: &'static str, path: &Path) -> Result<T, LogError> {
        self.map_err(|source| LogError::Storage { action, path: path.to_owned(), source })
    }
}

/// Why a batch was not appended. Nothing of it is in the log then.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// `INVALID_PRODUCER_EPOCH`: a newer incarnation of the producer has written here.
    #[error("producer {producer_id} has epoch {current}, got {got}")]
    InvalidProducerEpoch { producer_id: ProducerId, got: ProducerEpoch, current: ProducerEpoch },

    /// `OUT_OF_ORDER_SEQUENCE_NUMBER`: a gap, or a duplicate older than the last five batches.
    #[error("producer {producer_id} is at sequence {current}, got {got}")]
    OutOfOrderSequence { producer_id: ProducerId, got: i32, current: i32 },

    /// `RECORD_LIST_TOO_LARGE`: all batches together do not fit into one segment.
    #[error("{bytes} bytes do not fit into a segment of {max}")]
    TooLarge { bytes: u64, max: u64 },

    /// A follower was given offsets that do not continue its log.
    #[error("batch begins at offset {got}, expected {expected}")]
    UnexpectedOffset { got: Offset, expected: Offset },

    /// A follower was given bytes that are no batches.
    #[error("malformed batch: {0}")]
    Malformed(String),

    #[error(transparent)]
    Storage(#[from] LogError),
}

/// Why nothing was read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The log should have it and does not: damage, where nothing is compacted. Or the log was cut since this picture of it.
    #[error("offset {0} is missing inside the log")]
    Missing(Offset),

    /// `OFFSET_OUT_OF_RANGE`.
    #[error("offset {offset} is outside the log's {start} to {end}")]
    OffsetOutOfRange { offset: Offset, start: Offset, end: Offset },

    #[error(transparent)]
    Storage(#[from] LogError),
}
