//! Why a partition did not do what was asked.

use std::sync::Arc;

use crate::log::AppendError;

#[derive(Debug, thiserror::Error)]
pub enum PartitionError {
    #[error("this node does not lead the partition")]
    NotLeader,
    #[error("fewer replicas are in sync than min.insync.replicas asks for")]
    NotEnoughReplicas,
    #[error("the partition is offline: {0}")]
    Offline(Arc<str>),
    #[error(transparent)]
    Append(#[from] AppendError),
}
