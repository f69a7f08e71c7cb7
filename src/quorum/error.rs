//! What can go wrong at start, and what can go wrong with one proposal.

use std::path::PathBuf;

use crate::base::BrokerId;
use crate::metadata::ApplyError;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuorumError {
    /// The start is refused: starting with less than what was acknowledged would lose topics and data.
    #[error(
        "the metadata log is damaged: {0} at byte {position} (index {index}): {what}. Restore this file from a copy; where other \
         controllers are alive, remove this node from the quorum, move its directory away and add it again. Moving the directory \
         and meta.properties of a single node away starts a new cluster without any topic",
        file.display()
    )]
    Damaged { file: PathBuf, position: u64, index: i64, what: String },
    /// The start is refused: files that must be there are not.
    #[error(
        "the metadata log in {0} is incomplete: {what}. Restore the directory from a copy; where other controllers are alive, \
         remove this node from the quorum, move the directory away and add it again. Moving the directory and meta.properties of \
         a single node away starts a new cluster without any topic",
        dir.display()
    )]
    Incomplete { dir: PathBuf, what: String },
    /// What the quorum's leader has contradicts what this node knows to be agreed on.
    #[error(
        "the active controller's metadata is another history than what was agreed on before: it differs from index {index} on, and \
         everything before {agreed} was agreed on. Other controllers run on older copies of their disks, or on empty ones. Nothing was \
         removed here: stop them and put their newest disks back; or, to go on with their metadata and without what only this node \
         has, move {0} away and start this node with `add-controller` (docs/operations.md)",
        dir.display()
    )]
    Contradicted { dir: PathBuf, index: u64, agreed: u64 },
    /// The start is refused: the log was written by something that knows more than this binary, or less.
    #[error("the metadata log {0} holds a record that this version does not know (index {index}): {what}", file.display())]
    UnknownRecord { file: PathBuf, index: i64, what: String },
    /// The disk refused. A proposal with this answer is not in effect; after a failed sync it may come back with a restart.
    #[error("metadata cannot be written: {0}")]
    Storage(String),
    /// The proposal contradicts the image it would change.
    #[error("the proposal does not fit the metadata: {0}")]
    Refused(#[from] ApplyError),
    /// The image has moved on since the decision was made: decide again.
    #[error("the decision was made at metadata offset {expected}, and the metadata is at {found}")]
    Stale { expected: i64, found: i64 },
    /// This node is not the active controller.
    #[error("this node is not the active controller; {}", leader.map_or("nobody is known to be".to_owned(), |id| format!("node {id} is")))]
    NotLeader { leader: Option<BrokerId> },
    /// No majority agreed in time. Whether the proposal takes effect later is not known.
    #[error("no majority of the controllers answered in time; the change may or may not take effect")]
    TimedOut,
    /// A change of the quorum's members that cannot be made.
    #[error("the quorum's members cannot be changed: {0}")]
    Membership(String),
    /// What another node sent cannot be understood.
    #[error("a request of another controller cannot be understood: {0}")]
    BadRequest(String),
    #[error("the quorum is shutting down")]
    Closed,
}

impl QuorumError {
    pub(super) fn storage(doing: &str, error: &std::io::Error) -> QuorumError {
        QuorumError::Storage(format!("{doing}: {error}"))
    }
}
