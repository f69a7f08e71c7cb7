//! The way to the other nodes, as the quorum needs it. The server puts its connections behind it, tests and the simulation a network
//! in memory.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::broadcast;

use crate::base::{BrokerId, NodeAddress};

/// Why a request was not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// Nobody is there: the connection was refused, or broke.
    #[error("unreachable: {0}")]
    Unreachable(String),
    #[error("no answer in time")]
    TimedOut,
    /// The other side answered with an error.
    #[error("refused: {0}")]
    Refused(String),
}

pub trait RaftTransport: Send + Sync {
    /// Sends a request to a node's [`super::Quorum::handle_rpc`] and answers what came back. Every call ends, within a few seconds at
    /// the latest; dropping the future gives the call up.
    fn call(
        &self,
        target: BrokerId,
        address: &NodeAddress,
        request: Bytes,
    ) -> BoxFuture<'static, Result<Bytes, TransportError>>;

    /// Tells of each node to or from which a connection broke. A hint: the quorum looks for itself before it believes anything.
    fn connection_lost(&self) -> broadcast::Receiver<BrokerId>;
}

/// No way to anybody: for a node that is alone.
#[cfg(test)]
pub struct NoTransport(broadcast::Sender<BrokerId>);

#[cfg(test)]
impl Default for NoTransport {
    fn default() -> NoTransport {
        NoTransport(broadcast::Sender::new(1))
    }
}

#[cfg(test)]
impl RaftTransport for NoTransport {
    fn call(&self, target: BrokerId, _: &NodeAddress, _: Bytes) -> BoxFuture<'static, Result<Bytes, TransportError>> {
        Box::pin(async move { Err(TransportError::Unreachable(format!("no way to node {target}"))) })
    }

    fn connection_lost(&self) -> broadcast::Receiver<BrokerId> {
        self.0.subscribe()
    }
}
