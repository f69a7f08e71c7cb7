//! What the Raft log carries: groups of changes. A group is one entry, so that proposals made at the same time share a write and a
//! round trip; each change in it is applied or refused by itself, alike on every node.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::snapshot::SnapshotData;
use crate::base::{BrokerId, NodeAddress};
use crate::host::raft_runtime::HostRuntime;
use crate::metadata::{ApplyError, MetadataRecord};

openraft::declare_raft_types!(
    /// The Raft library's types, filled in.
    pub(crate) TypeConfig:
        D = Request,
        R = Outcome,
        NodeId = BrokerId,
        Node = NodeAddress,
        Entry = openraft::Entry<TypeConfig>,
        SnapshotData = SnapshotData,
        Responder = openraft::impls::OneshotResponder<TypeConfig>,
        AsyncRuntime = HostRuntime,
);

pub(crate) type Raft = openraft::Raft<TypeConfig>;
pub(crate) type Entry = openraft::Entry<TypeConfig>;
pub(crate) type LogId = openraft::LogId<BrokerId>;
pub(crate) type Vote = openraft::Vote<BrokerId>;
pub(crate) type Membership = openraft::Membership<BrokerId, NodeAddress>;
pub(crate) type StoredMembership = openraft::StoredMembership<BrokerId, NodeAddress>;
pub(crate) type SnapshotMeta = openraft::SnapshotMeta<BrokerId, NodeAddress>;
pub(crate) type Snapshot = openraft::Snapshot<TypeConfig>;
pub(crate) type StorageError = openraft::StorageError<BrokerId>;
pub(crate) type StorageIoError = openraft::StorageIOError<BrokerId>;
pub(crate) type Metrics = openraft::RaftMetrics<BrokerId, NodeAddress>;

pub(crate) fn log_id(term: u64, index: u64) -> LogId {
    LogId::new(openraft::CommittedLeaderId::new(term, BrokerId::default()), index)
}

/// The index behind a log id, 0 behind none.
pub(crate) fn next_index(id: Option<LogId>) -> u64 {
    id.map_or(0, |id| id.index.saturating_add(1))
}

/// One proposal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    /// The change is refused unless the image's offset is this one when its turn comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expected_offset: Option<i64>,
    pub(crate) records: Vec<MetadataRecord>,
}

/// The proposals of one entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) changes: Arc<Vec<Change>>,
}

/// Why a change that was agreed on was not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rejected {
    Stale { offset: i64 },
    DoesNotFit(ApplyError),
}

/// What became of each change of an entry: the image's offset behind it, or why not. Never leaves the node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    #[serde(skip)]
    pub(crate) results: Vec<Result<i64, Rejected>>,
}
