//! Who is the active controller, and the way of the quorum's messages to other nodes.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::broadcast;

use crate::base::{BrokerId, NodeAddress};

/// What this node knows of the active controller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leadership {
    pub leader: Option<BrokerId>,
    pub leader_address: Option<NodeAddress>,
    pub term: u64,
    /// This node is it, and everything of older terms is applied here.
    pub is_me: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// The request did not get there.
    #[error("{0}")]
    Unreachable(String),
    /// Nobody knows whether it got there.
    #[error("{0}")]
    Failed(String),
}

/// Messages to the Raft of another node.
pub trait RaftTransport: Send + Sync {
    fn call(&self, target: BrokerId, address: &NodeAddress, request: Bytes) -> BoxFuture<'static, Result<Bytes, TransportError>>;

    /// Tells of nodes whose connection broke.
    fn connection_lost(&self) -> broadcast::Receiver<BrokerId>;
}
