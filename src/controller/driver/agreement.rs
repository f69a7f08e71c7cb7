//! What the driver asks of the quorum, in one place: who leads it, and to keep records behind exactly the image they were decided on.

use tokio::sync::watch;

use crate::base::BrokerId;
use crate::metadata::MetadataRecord;
use crate::quorum::{Quorum, QuorumError};

/// Who is the active controller, as far as this node knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leadership {
    pub leader: Option<BrokerId>,
    /// This node leads and has applied everything that earlier leaders decided.
    pub is_me: bool,
}

/// With one voter this node leads for as long as it runs.
pub(super) fn leadership(quorum: &Quorum) -> watch::Receiver<Leadership> {
    watch::channel(Leadership { leader: Some(quorum.node_id()), is_me: true }).1
}

/// What a caller is told on a node that does not lead.
pub(super) fn not_leader(_: Option<BrokerId>) -> QuorumError {
    QuorumError::Closed
}

/// Whether the image moved on under the decision, so that it has to be made again.
pub(super) fn is_stale(_: &QuorumError) -> bool {
    false
}

/// Keeps the records if nothing was kept since `offset`. Answers the offset of the last one.
pub(super) async fn propose_at(
    quorum: &Quorum,
    _offset: i64,
    records: Vec<MetadataRecord>,
) -> Result<i64, QuorumError> {
    quorum.propose(records).await
}
