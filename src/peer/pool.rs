//! The lines to other nodes, by address and purpose.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{broadcast, mpsc, oneshot};

use super::error::PeerError;
use super::hello::{Hello, HelloAnswer, PeerIdentity};
use super::line::{self, Call, Line};
use crate::base::{BrokerId, NodeAddress};
use crate::host::{Host, task};
use crate::wire::client::{self, NodeRequest};
use crate::wire::private::PrivateApi;

/// Requests of one line that wait to be sent.
const CALLS_QUEUED_MAX: usize = 1024;

/// Losses that a slow listener may be behind; it then takes everybody for lost, which costs a question each.
const LOSSES_MAX: usize = 64;

/// Requests of different purposes never wait for one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Messages of the metadata quorum.
    Raft,
    /// Registrations, heartbeats, proposals, forwarded requests.
    Control,
    /// Records, by number of the fetcher; served on the runtime of whoever asks first.
    Fetch(u32),
}

/// What this node says of itself.
pub struct Myself {
    pub identity: PeerIdentity,
    /// Where this node takes messages of the metadata quorum.
    pub quorum_address: Option<NodeAddress>,
    cluster_id: ArcSwap<String>,
}

impl Myself {
    /// The cluster id is empty while the node belongs to none.
    pub fn new(identity: PeerIdentity, cluster_id: String, quorum_address: Option<NodeAddress>) -> Myself {
        Myself { identity, quorum_address, cluster_id: ArcSwap::from_pointee(cluster_id) }
    }

    /// Takes the cluster's id over. It does not change any more.
    pub fn join(&self, cluster_id: &str) {
        if self.cluster_id.load().is_empty() {
            self.cluster_id.store(Arc::new(cluster_id.to_owned()));
        }
    }

    pub fn cluster_id(&self) -> Arc<String> {
        self.cluster_id.load_full()
    }

    pub fn hello(&self) -> Hello {
        Hello {
            cluster_id: self.cluster_id().to_string(),
            identity: self.identity,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            quorum_address: self.quorum_address.clone(),
        }
    }
}

/// All lines. Cheap to clone.
#[derive(Clone)]
pub struct Peers {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub host: Host,
    pub myself: Arc<Myself>,
    /// `node-1`: the client id of our requests.
    pub client_id: String,
    /// Where lines that outlive their callers are served.
    home: Handle,
    lines: Mutex<HashMap<(NodeAddress, Purpose), mpsc::Sender<Call>>>,
    lost: broadcast::Sender<BrokerId>,
}

impl Peers {
    /// Must be called on the runtime that shall serve the lines.
    pub fn new(host: Host, myself: Arc<Myself>) -> Peers {
        let client_id = format!("node-{}", myself.identity.node_id);
        let (lost, _) = broadcast::channel(LOSSES_MAX);
        let home = Handle::current();
        Peers { shared: Arc::new(Shared { host, myself, client_id, home, lines: Mutex::default(), lost }) }
    }

    pub fn myself(&self) -> &Arc<Myself> {
        &self.shared.myself
    }

    /// Asks another node and waits for its answer, `timeout` at most.
    pub async fn call<Q: NodeRequest>(
        &self,
        address: &NodeAddress,
        purpose: Purpose,
        request: &Q,
        timeout: Duration,
    ) -> Result<Q::Answer, PeerError> {
        // The line puts its own correlation id in.
        let frame = client::encode_request(0, &self.shared.client_id, request)?;
        let body = self.exchange(address, purpose, frame, None, false, timeout).await?;
        Ok(Q::read_answer(body)?)
    }

    /// The same for a request between nodes of ours.
    pub async fn private(
        &self,
        address: &NodeAddress,
        purpose: Purpose,
        api: PrivateApi,
        body: &[u8],
        timeout: Duration,
    ) -> Result<Bytes, PeerError> {
        let frame = client::encode_private(api, 0, &self.shared.client_id, body)?;
        // Others' work may take as long as they allow it to.
        let is_patient = matches!(
            api,
            PrivateApi::Forward | PrivateApi::EnsureTopic | PrivateApi::GiveUpCopies | PrivateApi::LookAtCopy
        );
        self.exchange(address, purpose, frame, None, is_patient, timeout).await
    }

    /// A message of the metadata quorum for one node: another one that is there instead does not get it, for what it says would count as
    /// that node's word.
    pub async fn raft(
        &self,
        node: BrokerId,
        address: &NodeAddress,
        body: &[u8],
        timeout: Duration,
    ) -> Result<Bytes, PeerError> {
        let frame = client::encode_private(PrivateApi::Raft, 0, &self.shared.client_id, body)?;
        self.exchange(address, Purpose::Raft, frame, Some(node), false, timeout).await
    }

    /// Meets a node on a connection of its own, which is closed again: who is there, and does it let us in?
    pub async fn meet(&self, address: &NodeAddress, timeout: Duration) -> Result<HelloAnswer, PeerError> {
        let met = task::timeout(timeout, line::meet(&self.shared, address)).await;
        met.unwrap_or_else(|| Err(PeerError::TimedOut(address.clone()))).map(|(_, answer)| answer)
    }

    /// Tells of nodes to which, or from which, a connection broke: their process may be gone.
    pub fn lost(&self) -> broadcast::Receiver<BrokerId> {
        self.shared.lost.subscribe()
    }

    /// A connection that the node had made to us is gone.
    pub fn note_lost(&self, node: BrokerId) {
        self.shared.note_lost(node);
    }

    async fn exchange(
        &self,
        address: &NodeAddress,
        purpose: Purpose,
        frame: Bytes,
        node: Option<BrokerId>,
        is_patient: bool,
        timeout: Duration,
    ) -> Result<Bytes, PeerError> {
        let (reply, answer) = oneshot::channel();
        let call = Call { frame, node, is_patient, reply };
        let exchanged = async {
            let line = self.line(address, purpose);
            if line.send(call).await.is_err() {
                let why = "nothing was asked for a long time, and the line was closed".to_owned();
                return Err(PeerError::Unreachable { address: address.clone(), why });
            }
            answer.await.unwrap_or_else(|_| Err(PeerError::Lost(address.clone())))
        };
        task::timeout(timeout, exchanged).await.unwrap_or_else(|| Err(PeerError::TimedOut(address.clone())))
    }

    fn line(&self, address: &NodeAddress, purpose: Purpose) -> mpsc::Sender<Call> {
        let mut lines = self.shared.lines.lock();
        if let Some(line) = lines.get(&(address.clone(), purpose)).filter(|line| !line.is_closed()) {
            return line.clone();
        }
        let (sender, calls) = mpsc::channel(CALLS_QUEUED_MAX);
        let line = Line::new(self.shared.clone(), address.clone(), calls);
        match purpose {
            Purpose::Fetch(_) => drop(task::spawn(line.run())),
            Purpose::Raft | Purpose::Control => drop(task::spawn_on(&self.shared.home, line.run())),
        }
        lines.insert((address.clone(), purpose), sender.clone());
        sender
    }
}

impl Shared {
    pub fn note_lost(&self, node: BrokerId) {
        // Nobody listens: then nobody has to know.
        let _ = self.lost.send(node);
    }
}
