//! What the nodes' quorums say to each other: a JSON head behind its length, and behind it, for a snapshot, a piece of its bytes.

use bytes::{BufMut, Bytes, BytesMut};
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, VoteRequest, VoteResponse};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::codec::StoredMembers;
use super::error::QuorumError;
use super::snapshot::SnapshotId;
use super::types::{LogId, TypeConfig, Vote};
use crate::base::BrokerId;

/// The largest head: entries are sent by the MiB, but a single one may be larger.
const HEAD_BYTES_MAX: usize = 256 * 1024 * 1024;

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
}

/// What a node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Condition {
    /// Nothing was ever agreed on here, as far as its log knows.
    pub(super) is_fresh: bool,
    pub(super) is_leader: bool,
    pub(super) term: u64,
    pub(super) last: Option<LogId>,
}

pub(super) fn encode(head: &impl Serialize, tail: &[u8]) -> Bytes {
    let head = serde_json::to_vec(head).unwrap_or_default();
    let mut bytes = BytesMut::with_capacity(4 + head.len() + tail.len());
    bytes.put_u32(u32::try_from(head.len()).unwrap_or(u32::MAX));
    bytes.put_slice(&head);
    bytes.put_slice(tail);
    bytes.freeze()
}

/// The head and what is behind it.
pub(super) fn decode<T: DeserializeOwned>(bytes: &Bytes) -> Result<(T, Bytes), QuorumError> {
    let bad = |what: &str| QuorumError::BadRequest(what.to_owned());
    let (len, rest) = bytes.split_first_chunk::<4>().ok_or_else(|| bad("no length"))?;
    let len = usize::try_from(u32::from_be_bytes(*len)).unwrap_or(usize::MAX);
    if len > HEAD_BYTES_MAX || len > rest.len() {
        return Err(QuorumError::BadRequest(format!("a head of {len} bytes in {} bytes", rest.len())));
    }
    let head = rest.get(..len).ok_or_else(|| bad("no head"))?;
    let head = serde_json::from_slice(head).map_err(|error| QuorumError::BadRequest(error.to_string()))?;
    Ok((head, bytes.slice(4 + len..)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_and_tail_survive_a_round_trip() {
        let bytes = encode(&Answer::PreVote { granted: true }, b"tail");
        let (answer, tail) = decode::<Answer>(&bytes).unwrap();
        assert!(matches!(answer, Answer::PreVote { granted: true }));
        assert_eq!(&tail[..], b"tail");
    }

    #[test]
    fn what_is_cut_short_or_lies_about_its_length_is_refused() {
        let whole = encode(&Call::Look, b"");
        for len in 0..whole.len() {
            assert!(decode::<Call>(&whole.slice(..len)).is_err());
        }
        assert!(decode::<Call>(&Bytes::from_static(&[0xff; 8])).is_err());
    }
}
