//! APIs about the cluster itself: its nodes, its quorum, its features, its disks, and where coordinators are.

pub mod alter_replica_log_dirs;
pub mod api_versions;
pub mod describe_acls;
pub mod describe_cluster;
pub mod describe_log_dirs;
pub mod describe_quorum;
pub mod find_coordinator;
pub mod nodes;
pub mod raft_voters;
pub mod unregister_broker;
pub mod unregister_controller;
pub mod update_features;

use crate::base::ErrorCode;
use crate::controller::Refusal;
use crate::quorum::QuorumError;
use crate::wire::messages::StrBytes;

/// What a client is told when the quorum does not take a proposal.
pub fn quorum_refusal(error: &QuorumError) -> Refusal {
    let code = match error {
        QuorumError::Closed | QuorumError::NotLeader { .. } | QuorumError::Stale { .. } => ErrorCode::NOT_CONTROLLER,
        QuorumError::TimedOut => ErrorCode::REQUEST_TIMED_OUT,
        QuorumError::BadRequest(_) | QuorumError::Membership(_) => ErrorCode::INVALID_REQUEST,
        QuorumError::Refused(_) => ErrorCode::INVALID_REQUEST,
        QuorumError::Storage(_)
        | QuorumError::Damaged { .. }
        | QuorumError::Incomplete { .. }
        | QuorumError::UnknownRecord { .. }
        | QuorumError::Contradicted { .. } => ErrorCode::KAFKA_STORAGE_ERROR,
    };
    match error {
        // Whoever asked is told, and asks another node or again.
        QuorumError::NotLeader { .. } | QuorumError::Stale { .. } | QuorumError::TimedOut => {
            tracing::debug!(%error, "a metadata change was refused");
        }
        _ => tracing::warn!(%error, "a metadata change was refused"),
    }
    Refusal::new(code, error.to_string())
}

/// A text for an answer.
pub fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// A refusal's sentence for an answer.
pub fn message(refusal: &Refusal) -> Option<StrBytes> {
    refusal.message.as_deref().map(text)
}
