//! A network in memory: every node of it in one process, links that can be cut in either direction, nodes that can be gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::broadcast;

use super::handle::Quorum;
use super::transport::{RaftTransport, TransportError};
use crate::base::{BrokerId, NodeAddress};

/// Lost connections that a slow listener may be behind.
const EVENTS_MAX: usize = 64;

/// Cheap to clone; all clones are one network.
#[derive(Clone)]
pub struct MemoryNetwork {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    lost: broadcast::Sender<BrokerId>,
}

#[derive(Default)]
struct State {
    nodes: BTreeMap<BrokerId, Quorum>,
    /// Of those that were connected at one: they answer nowhere else.
    at: BTreeMap<BrokerId, NodeAddress>,
    /// From, to: what goes that way is lost without a word.
    cut: BTreeSet<(BrokerId, BrokerId)>,
    /// Requests carried so far.
    calls: u64,
}

impl Default for MemoryNetwork {
    fn default() -> MemoryNetwork {
        MemoryNetwork::new()
    }
}

impl MemoryNetwork {
    pub fn new() -> MemoryNetwork {
        let (state, lost) = (Mutex::new(State::default()), broadcast::Sender::new(EVENTS_MAX));
        MemoryNetwork { shared: Arc::new(Shared { state, lost }) }
    }

    /// The network as one node sees it.
    pub fn transport(&self, node: BrokerId) -> Arc<dyn RaftTransport> {
        Arc::new(MemoryTransport { node, network: self.clone() })
    }

    /// From now on the node answers.
    pub fn connect(&self, node: BrokerId, quorum: Quorum) {
        self.shared.state.lock().nodes.insert(node, quorum);
    }

    /// From now on the node answers at this address only.
    pub fn place(&self, node: BrokerId, address: NodeAddress) {
        self.shared.state.lock().at.insert(node, address);
    }

    /// The node is gone, as after a kill: its connections break, and new ones are refused.
    pub fn kill(&self, node: BrokerId) {
        let quorum = self.shared.state.lock().nodes.remove(&node);
        drop(quorum);
        let _ = self.shared.lost.send(node);
    }

    /// The connections of a node break, and it is as alive as before.
    pub fn break_connections(&self, node: BrokerId) {
        let _ = self.shared.lost.send(node);
    }

    /// Nothing passes between the node and the others, and nobody is told.
    pub fn isolate(&self, node: BrokerId, others: &[BrokerId]) {
        let mut state = self.shared.state.lock();
        for other in others.iter().filter(|other| **other != node) {
            state.cut.insert((node, *other));
            state.cut.insert((*other, node));
        }
    }

    /// Nothing passes from one node to the other; the other direction stays.
    pub fn cut(&self, from: BrokerId, to: BrokerId) {
        self.shared.state.lock().cut.insert((from, to));
    }

    /// Every link works again.
    pub fn heal(&self) {
        self.shared.state.lock().cut.clear();
    }

    pub fn call_count(&self) -> u64 {
        self.shared.state.lock().calls
    }

    fn is_cut(&self, from: BrokerId, to: BrokerId) -> bool {
        self.shared.state.lock().cut.contains(&(from, to))
    }
}

struct MemoryTransport {
    node: BrokerId,
    network: MemoryNetwork,
}

impl RaftTransport for MemoryTransport {
    fn call(
        &self,
        target: BrokerId,
        address: &NodeAddress,
        request: Bytes,
    ) -> BoxFuture<'static, Result<Bytes, TransportError>> {
        let (node, network, address) = (self.node, self.network.clone(), address.clone());
        Box::pin(async move {
            if network.is_cut(node, target) {
                return std::future::pending().await;
            }
            let quorum = {
                let mut state = network.shared.state.lock();
                state.calls += 1;
                let is_there = state.at.get(&target).is_none_or(|place| *place == address);
                state.nodes.get(&target).filter(|_| is_there).cloned()
            };
            let Some(quorum) = quorum else {
                return Err(TransportError::Unreachable(format!("node {target} is not there")));
            };
            let answer = quorum.handle_rpc(request).await;
            drop(quorum);
            if network.is_cut(target, node) {
                return std::future::pending().await;
            }
            answer.map_err(|error| TransportError::Refused(error.to_string()))
        })
    }

    fn connection_lost(&self) -> broadcast::Receiver<BrokerId> {
        self.network.shared.lost.subscribe()
    }
}
