//! The library's requests, over the transport.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use openraft::error::{NetworkError, RPCError, RaftError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{Backoff, RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse};
use parking_lot::Mutex;

use super::addresses::Addresses;
use super::codec::StoredMembers;
use super::rpc::{Answer, Call, SnapshotPiece};
use super::snapshot::SnapshotId;
use super::transport::{RaftTransport, TransportError};
use super::types::{LogId, Snapshot, TypeConfig, Vote, next_index};
use crate::base::{BrokerId, NodeAddress, TimestampMs};
use crate::host::{Host, task};
use crate::wire::envelope;

/// Bytes of a snapshot in one request.
const PIECE_BYTES: usize = 1024 * 1024;

/// A piece may wait for a slow disk, and the last one for the whole installation.
const PIECE_TIMEOUT: Duration = Duration::from_secs(30);

/// The pause before a node that is not there is called again.
const RETRY_AFTER: Duration = Duration::from_millis(100);

type Rpc<E = openraft::error::Infallible> = RPCError<BrokerId, NodeAddress, RaftError<BrokerId, E>>;

/// When a node last answered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Acked {
    pub(super) answered_ms: TimestampMs,
    pub(super) caught_up_ms: TimestampMs,
    pub(super) matched: Option<LogId>,
}

/// The ways to all other nodes.
pub(super) struct Links {
    pub(super) host: Host,
    pub(super) transport: Arc<dyn RaftTransport>,
    pub(super) addresses: Addresses,
    pub(super) acked: Mutex<BTreeMap<BrokerId, Acked>>,
    /// The next campaign is at the old leader's wish.
    pub(super) is_takeover: AtomicBool,
}

impl Links {
    pub(super) async fn call(
        &self,
        target: BrokerId,
        address: &NodeAddress,
        call: &Call,
    ) -> Result<Answer, TransportError> {
        self.call_with(target, address, envelope::seal(call, &[])).await
    }

    async fn call_with(
        &self,
        target: BrokerId,
        address: &NodeAddress,
        request: Bytes,
    ) -> Result<Answer, TransportError> {
        let attempt = self.addresses.attempt(target, address);
        let called = self.transport.call(target, &attempt.address, request).await;
        attempt.end(called.is_ok());
        let (answer, _) = envelope::open(called?).map_err(TransportError::Refused)?;
        Ok(answer)
    }

    fn note_ack(&self, target: BrokerId, matched: Option<LogId>, is_caught_up: bool) {
        let now = self.host.clock.now_ms();
        let mut acked = self.acked.lock();
        let acked = acked.entry(target).or_default();
        acked.answered_ms = now;
        acked.matched = acked.matched.max(matched);
        if is_caught_up {
            acked.caught_up_ms = now;
        }
    }
}

pub(crate) struct Network(pub(super) Arc<Links>);

impl RaftNetworkFactory<TypeConfig> for Network {
    type Network = Link;

    async fn new_client(&mut self, target: BrokerId, node: &NodeAddress) -> Link {
        Link { links: self.0.clone(), target, address: node.clone() }
    }
}

/// The way to one node.
pub(crate) struct Link {
    links: Arc<Links>,
    target: BrokerId,
    address: NodeAddress,
}

fn unreachable(error: &TransportError) -> Unreachable {
    Unreachable::new(error)
}

fn unexpected() -> NetworkError {
    NetworkError::new(&TransportError::Refused("an answer to another question".to_owned()))
}

impl Link {
    async fn ask(&self, call: &Call) -> Result<Answer, Rpc> {
        self.links
            .call(self.target, &self.address, call)
            .await
            .map_err(|error| RPCError::Unreachable(unreachable(&error)))
    }

    async fn send_pieces(&self, vote: Vote, snapshot: Snapshot) -> Result<Vote, StreamingError<TypeConfig, Fatal>> {
        let (disk, data) = (self.links.host.disk.clone(), snapshot.snapshot);
        let content = task::blocking(move || data.content(disk.as_ref()))
            .await
            .map_err(|error| StreamingError::Unreachable(Unreachable::new(&error)))?;
        let id = SnapshotId::of(snapshot.meta.last_log_id);
        let members = StoredMembers::of(&snapshot.meta.last_membership);
        let mut offset = 0;
        loop {
            let end = content.len().min(offset + PIECE_BYTES);
            let piece = SnapshotPiece {
                vote,
                next_index: id.next_index,
                term: id.term,
                members: members.clone(),
                offset,
                total: content.len(),
            };
            let request = envelope::seal(&Call::Snapshot(piece), content.get(offset..end).unwrap_or_default());
            let sent = task::timeout(PIECE_TIMEOUT, self.links.call_with(self.target, &self.address, request)).await;
            match sent.unwrap_or(Err(TransportError::TimedOut)) {
                Ok(Answer::Snapshot(theirs)) if theirs > vote || end == content.len() => return Ok(theirs),
                Ok(Answer::Snapshot(_)) => offset = end,
                Ok(_) => return Err(StreamingError::Network(unexpected())),
                Err(error) => return Err(StreamingError::Unreachable(unreachable(&error))),
            }
        }
    }
}

type Fatal = openraft::error::Fatal<BrokerId>;

impl RaftNetwork<TypeConfig> for Link {
    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<TypeConfig>,
        _: RPCOption,
    ) -> Result<AppendEntriesResponse<BrokerId>, Rpc> {
        let last = request.entries.last().map(|entry| entry.log_id).or(request.prev_log_id);
        let agreed = request.leader_commit;
        match self.ask(&Call::Append(request)).await? {
            Answer::Append(response) => {
                let matched = if response.is_success() { last } else { None };
                self.links.note_ack(self.target, matched, response.is_success() && last >= agreed);
                Ok(response)
            }
            _ => Err(RPCError::Network(unexpected())),
        }
    }

    async fn vote(&mut self, request: VoteRequest<BrokerId>, _: RPCOption) -> Result<VoteResponse<BrokerId>, Rpc> {
        let is_takeover = self.links.is_takeover.load(Ordering::Relaxed);
        match self.ask(&Call::Vote { request, is_takeover }).await? {
            Answer::Vote(response) => Ok(response),
            _ => Err(RPCError::Network(unexpected())),
        }
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot,
        cancel: impl Future<Output = ReplicationClosed> + Send + 'static,
        _: RPCOption,
    ) -> Result<SnapshotResponse<BrokerId>, StreamingError<TypeConfig, Fatal>> {
        let upto = snapshot.meta.last_log_id;
        tracing::info!(node = self.target, next_index = next_index(upto), "sending a metadata snapshot");
        tokio::select! {
            biased;
            closed = cancel => Err(StreamingError::Closed(closed)),
            sent = self.send_pieces(vote, snapshot) => {
                let theirs = sent?;
                self.links.note_ack(self.target, upto, false);
                Ok(SnapshotResponse::new(theirs))
            }
        }
    }

    fn backoff(&self) -> Backoff {
        Backoff::new(std::iter::repeat(RETRY_AFTER))
    }
}
