//! Requests of other nodes. The library answers them; before it, whatever would take a working leader's place is refused.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use openraft::error::RaftError;
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, VoteRequest, VoteResponse};

use super::core::{Core, Receiving};
use super::error::QuorumError;
use super::rpc::{Answer, Call, Condition, PreVote, SnapshotPiece};
use super::snapshot::SnapshotData;
use super::types::{LogId, Snapshot, SnapshotMeta, TypeConfig, Vote, next_index};
use crate::base::BrokerId;
use crate::host::task;
use crate::wire::envelope;

/// The largest snapshot that is taken in.
const SNAPSHOT_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// A leader that was heard so lately speaks still: it does so several times a second.
const HEARD_JUST_NOW: Duration = Duration::from_secs(2);

fn stopped(error: RaftError<BrokerId>) -> QuorumError {
    match error {
        RaftError::Fatal(openraft::error::Fatal::StorageError(error)) => QuorumError::Storage(error.to_string()),
        _ => QuorumError::Closed,
    }
}

impl Core {
    pub(super) async fn handle_rpc(self: Arc<Self>, request: Bytes) -> Result<Bytes, QuorumError> {
        let (call, tail) = envelope::open(request).map_err(QuorumError::BadRequest)?;
        let answer = match call {
            Call::Append(request) => Answer::Append(self.take_entries(request).await?),
            Call::Vote { request, is_takeover } => Answer::Vote(self.give_vote(request, is_takeover).await?),
            Call::PreVote(asked) => Answer::PreVote { granted: self.would_vote(asked) },
            Call::Snapshot(piece) => Answer::Snapshot(self.take_piece(piece, tail).await?),
            Call::Look => Answer::Look(self.condition()),
            Call::AddressOf(id) => Answer::AddressOf(self.address_of(&self.metrics(), id)),
            Call::TakeOver => {
                self.takeover.notify_one();
                Answer::TakeOver
            }
        };
        Ok(envelope::seal(&answer, &[]))
    }

    async fn take_entries(
        &self,
        request: AppendEntriesRequest<TypeConfig>,
    ) -> Result<AppendEntriesResponse<BrokerId>, QuorumError> {
        if let Some(error) = self.storage.contradiction(&request) {
            // The library would cut what was agreed on.
            let _ = self.raft().shutdown().await;
            return Err(error);
        }
        let (leader, agreed) = (request.vote.leader_id.voted_for, request.leader_commit);
        let response = self.raft().append_entries(request).await.map_err(stopped)?;
        if !matches!(response, AppendEntriesResponse::HigherVote(_))
            && let Some(leader) = leader
        {
            self.hearing.heard(leader);
        }
        if response.is_success() && agreed.is_some() {
            self.end_joining(agreed).await?;
        }
        Ok(response)
    }

    /// A node that began with nothing votes from the moment on when it has all that was agreed on.
    async fn end_joining(&self, agreed: Option<LogId>) -> Result<(), QuorumError> {
        if !self.storage.is_joining() || next_index(self.published.applied().log_id) < next_index(agreed) {
            return Ok(());
        }
        let storage = self.storage.clone();
        task::blocking(move || storage.promise(|hard| hard.joining = false)).await?;
        tracing::info!(node_id = self.node_id, "this node has caught up with the metadata quorum");
        Ok(())
    }

    /// Another node that this one takes to lead, or itself.
    fn working_leader(&self) -> Option<BrokerId> {
        if self.leadership.borrow().is_me {
            return Some(self.node_id);
        }
        self.hearing.live(self.timing.election_min())
    }

    async fn give_vote(
        &self,
        request: VoteRequest<BrokerId>,
        is_takeover: bool,
    ) -> Result<VoteResponse<BrokerId>, QuorumError> {
        let leader = if is_takeover { None } else { self.working_leader() };
        if self.storage.is_joining() || leader.is_some_and(|leader| request.vote.leader_id.voted_for != Some(leader)) {
            return Ok(VoteResponse::new(self.metrics().vote, None, false));
        }
        self.raft().vote(request).await.map_err(stopped)
    }

    fn would_vote(&self, asked: PreVote) -> bool {
        if self.storage.is_joining() || asked.last < self.storage.log.last() {
            return false;
        }
        match self.working_leader() {
            None => true,
            Some(leader) if leader == asked.candidate => true,
            Some(_) => {
                // The other one may know more.
                self.suspicion.notify_one();
                false
            }
        }
    }

    pub(super) fn condition(&self) -> Condition {
        let last = self.storage.log.last();
        Condition {
            is_fresh: last.is_none_or(|id| id.leader_id.term == 0),
            is_leader: Core::is_leading(&self.metrics()),
            hears: self.hearing.live(HEARD_JUST_NOW),
            term: self.storage.term(),
            last,
        }
    }

    async fn take_piece(&self, piece: SnapshotPiece, tail: Bytes) -> Result<Vote, QuorumError> {
        let mine = self.metrics().vote;
        if mine > piece.vote {
            return Ok(mine);
        }
        if let Some(leader) = piece.vote.leader_id.voted_for {
            self.hearing.heard(leader);
        }
        let Some(bytes) = self.collect(&piece, tail).await? else { return Ok(piece.vote) };
        let meta = SnapshotMeta {
            last_log_id: piece.id().log_id(),
            last_membership: piece.members.to_stored_membership(),
            snapshot_id: piece.id().file_name(),
        };
        let snapshot = Snapshot { meta, snapshot: Box::new(SnapshotData::Bytes(bytes)) };
        let installed = self.raft().install_full_snapshot(piece.vote, snapshot).await;
        let response = installed.map_err(|fatal| QuorumError::Storage(fatal.to_string()))?;
        tracing::info!(next_index = piece.next_index, "took over a metadata snapshot");
        Ok(response.vote)
    }

    /// The whole snapshot, when this was the last piece of it.
    async fn collect(&self, piece: &SnapshotPiece, tail: Bytes) -> Result<Option<Bytes>, QuorumError> {
        let refused = |what: String| Err(QuorumError::BadRequest(what));
        if piece.total > SNAPSHOT_BYTES_MAX {
            return refused(format!("a snapshot of {} bytes", piece.total));
        }
        let mut receiving = self.receiving.lock().await;
        if piece.offset == 0 {
            *receiving = Some(Receiving { id: piece.id(), vote: piece.vote, bytes: BytesMut::new() });
        }
        let Some(held) = receiving.as_mut().filter(|held| held.id == piece.id() && held.vote == piece.vote) else {
            return refused("a piece of a snapshot whose beginning is not here".to_owned());
        };
        if held.bytes.len() != piece.offset || held.bytes.len() + tail.len() > piece.total {
            return refused(format!("a piece at {}, expected {}", piece.offset, held.bytes.len()));
        }
        held.bytes.extend_from_slice(&tail);
        if held.bytes.len() < piece.total {
            return Ok(None);
        }
        Ok(receiving.take().map(|held| held.bytes.freeze()))
    }
}
