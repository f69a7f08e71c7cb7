//! What can go wrong at start, and what can go wrong with one proposal.

use std::path::PathBuf;

use crate::metadata::ApplyError;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuorumError {
    /// The start is refused: starting with less than what was acknowledged would lose topics and data.
    #[error(
        "the metadata log is damaged: {0} at byte {position} (offset {offset}): {what}. Restore this file from a copy; moving \
         its directory and meta.properties away starts a new cluster without any topic",
        file.display()
    )]
    Damaged { file: PathBuf, position: u64, offset: i64, what: String },
    /// The start is refused: files that must be there are not.
    #[error(
        "the metadata log in {0} is incomplete: {what}. Restore the directory from a copy; moving it and meta.properties away \
         starts a new cluster without any topic",
        dir.display()
    )]
    Incomplete { dir: PathBuf, what: String },
    /// The start is refused: the log was written by something that knows more than this binary.
    #[error("the metadata log {0} holds a record that this version does not know (offset {offset}): {what}", file.display())]
    UnknownRecord { file: PathBuf, offset: i64, what: String },
    /// The disk refused. A proposal with this answer has not happened.
    #[error("metadata cannot be written: {0}")]
    Storage(String),
    /// The proposal contradicts the image it would change.
    #[error("the proposal does not fit the metadata: {0}")]
    Refused(#[from] ApplyError),
    #[error("the quorum is shutting down")]
    Closed,
}

impl QuorumError {
    pub(super) fn storage(doing: &str, error: &std::io::Error) -> QuorumError {
        QuorumError::Storage(format!("{doing}: {error}"))
    }
}
