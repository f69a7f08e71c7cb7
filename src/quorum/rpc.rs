//! What the nodes' quorums say to each other, in an envelope ([`crate::wire::envelope`]); behind the head of a snapshot there is a piece of
//! its bytes.

use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, VoteRequest, VoteResponse};
use serde::{Deserialize, Serialize};

use super::codec::StoredMembers;
use super::snapshot::SnapshotId;
use super::types::{LogId, TypeConfig, Vote};
use crate::base::{BrokerId, NodeAddress};

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Call {
    Append(AppendEntriesRequest<TypeConfig>),
    Vote {
        request: VoteRequest<BrokerId>,
        /// The leader itself asked for this election.
        is_takeover: bool,
    },
    /// Whether a vote would be given. Changes nothing, so a node that has been away does not disturb anybody.
    PreVote(PreVote),
    Snapshot(SnapshotPiece),
    /// What the node has and whom it follows.
    Look,
    /// The leader gives up in favour of the one it says this to.
    TakeOver,
    /// Where the quorum looks for a node.
    AddressOf(BrokerId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PreVote {
    pub(super) candidate: BrokerId,
    pub(super) term: u64,
    pub(super) last: Option<LogId>,
}

/// A part of a snapshot; its bytes stand behind the head.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SnapshotPiece {
    pub(super) vote: Vote,
    pub(super) next_index: u64,
    pub(super) term: u64,
    pub(super) members: StoredMembers,
    pub(super) offset: usize,
    pub(super) total: usize,
}

impl SnapshotPiece {
    pub(super) fn id(&self) -> SnapshotId {
        SnapshotId { next_index: self.next_index, term: self.term }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    Append(AppendEntriesResponse<BrokerId>),
    Vote(VoteResponse<BrokerId>),
    PreVote {
        granted: bool,
    },
    /// The receiver's vote; one that is newer than the sender's ends the sender's leadership.
    Snapshot(Vote),
    Look(Condition),
    TakeOver,
    AddressOf(Option<NodeAddress>),
}

/// What a node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Condition {
    /// Nothing was ever agreed on here, as far as its log knows.
    pub(super) is_fresh: bool,
    pub(super) is_leader: bool,
    /// The leader that it has just heard.
    #[serde(default)]
    pub(super) hears: Option<BrokerId>,
    pub(super) term: u64,
    pub(super) last: Option<LogId>,
}
