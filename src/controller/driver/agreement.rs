//! What the driver asks of the quorum, in one place: who leads it, and to keep records behind exactly the image they were decided on.

use tokio::sync::watch;

use crate::base::BrokerId;
use crate::metadata::MetadataRecord;
use crate::quorum::{Quorum, QuorumError};

pub use crate::quorum::Leadership;

pub(super) fn leadership(quorum: &Quorum) -> watch::Receiver<Leadership> {
    quorum.leadership()
}

/// What a caller is told on a node that does not lead.
pub(super) fn not_leader(leader: Option<BrokerId>) -> QuorumError {
    QuorumError::NotLeader { leader }
}

/// Whether the image moved on under the decision, so that it has to be made again.
pub(super) fn is_stale(error: &QuorumError) -> bool {
    matches!(error, QuorumError::Stale { .. })
}

/// Keeps the records if nothing was kept since `offset`. Answers the offset of the last one.
pub(super) async fn propose_at(quorum: &Quorum, offset: i64, records: Vec<MetadataRecord>) -> Result<i64, QuorumError> {
    quorum.propose_at(offset, records).await
}
