//! The quorum's messages, over the lines between nodes.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::broadcast;

use crate::base::{BrokerId, NodeAddress};
use crate::peer::{PeerError, Peers};
use crate::quorum::{RaftTransport, TransportError};

pub struct PeerTransport {
    peers: Peers,
    /// After this long there is no answer (`controller.quorum.request.timeout.ms`).
    timeout: Duration,
}

impl PeerTransport {
    pub fn new(peers: Peers, timeout: Duration) -> PeerTransport {
        PeerTransport { peers, timeout }
    }
}

impl RaftTransport for PeerTransport {
    fn call(
        &self,
        target: BrokerId,
        address: &NodeAddress,
        request: Bytes,
    ) -> BoxFuture<'static, Result<Bytes, TransportError>> {
        let (peers, address, timeout) = (self.peers.clone(), address.clone(), self.timeout);
        Box::pin(async move {
            let answer = peers.raft(target, &address, &request, timeout).await;
            answer.map_err(|error| match error {
                PeerError::TimedOut(_) => TransportError::TimedOut,
                PeerError::Refused { sentence, .. } => TransportError::Refused(sentence),
                error => TransportError::Unreachable(error.to_string()),
            })
        })
    }

    fn connection_lost(&self) -> broadcast::Receiver<BrokerId> {
        self.peers.lost()
    }
}
