//! This node's own requests to the active controller, wherever that is: through the dispatcher when it is this node, else over the line
//! to the other one.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};

use super::ensure_topic::{self, Told, Wanted};
use super::envelope::Client;
use super::forward::{self, Unanswered};
use crate::api::{Broker, Refused};
use crate::base::{ErrorCode, NodeAddress};
use crate::controller::Refusal;
use crate::host::task;
use crate::peer::{Hello, PeerError, PeerIdentity, Peers, Purpose};
use crate::wire::client::{self, AnswerError, NodeRequest};
use crate::wire::encode::EncodeError;
use crate::wire::envelope;
use crate::wire::private::PrivateApi;

/// How long a node may take to say that it is alive at its old address.
const MEET_MAX: Duration = Duration::from_secs(1);

/// Why the active controller has not answered.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AskError {
    #[error("no active controller is known")]
    NoController,
    #[error(transparent)]
    Peer(#[from] PeerError),
    #[error("this node's controller: {0}")]
    Here(String),
}

impl From<Refused> for AskError {
    fn from(refused: Refused) -> AskError {
        AskError::Here(refused.detail.into_owned())
    }
}

impl From<AnswerError> for AskError {
    fn from(error: AnswerError) -> AskError {
        AskError::Peer(error.into())
    }
}

impl From<EncodeError> for AskError {
    fn from(error: EncodeError) -> AskError {
        AskError::Peer(error.into())
    }
}

/// Asks the active controller once.
pub async fn ask<Q: NodeRequest>(broker: &Arc<Broker>, request: &Q, timeout: Duration) -> Result<Q::Answer, AskError> {
    let leadership = broker.controller.quorum().leadership().borrow().clone();
    if leadership.is_me {
        let asked = task::timeout(timeout, ask_here(broker, request)).await;
        return asked.unwrap_or_else(|| Err(AskError::Here("no answer in time".to_owned())));
    }
    let address = leadership.leader_address.filter(|_| leadership.leader != Some(broker.options.node_id));
    let address = address.ok_or(AskError::NoController)?;
    Ok(broker.peers.call(&address, Purpose::Control, request, timeout).await?)
}

async fn ask_here<Q: NodeRequest>(broker: &Arc<Broker>, request: &Q) -> Result<Q::Answer, AskError> {
    let answer = forward::run_own(broker, frame(request)?).await?;
    let (_, rest) = client::correlation_id(answer)?;
    Ok(Q::read_answer(client::body(rest)?)?)
}

/// The request without its length prefix.
fn frame<Q: NodeRequest>(request: &Q) -> Result<Bytes, EncodeError> {
    let mut frame = client::encode_request(0, "broker", request)?;
    frame.advance(frame.len().min(4));
    Ok(frame)
}

/// Has the active controller answer a request of this node as it would a client's, and waits until the answer holds here.
pub async fn have_done<Q: NodeRequest>(broker: &Arc<Broker>, request: &Q) -> Result<Q::Answer, Refusal> {
    let told = |error: &dyn std::fmt::Display| Refusal::new(ErrorCode::REQUEST_TIMED_OUT, error.to_string());
    let frame = frame(request).map_err(|error| told(&error))?;
    let nowhere = std::net::SocketAddr::from(([0, 0, 0, 0], 0));
    let client = Client {
        node_id: broker.options.node_id,
        peer: nowhere,
        local: nowhere,
        listener: String::new(),
        principal: "User:ANONYMOUS".into(),
    };
    let answer = if broker.is_active_controller() {
        let answer = forward::run_own(broker, frame).await.map_err(|refused| told(&refused.detail))?;
        broker.wait_applied(broker.image().offset, forward::CATCH_UP_MAX).await;
        answer
    } else {
        let mut answer = hand_over(broker, PrivateApi::Forward, envelope::seal(&client, &frame), false).await?;
        answer.advance(answer.len().min(4));
        answer
    };
    let read = client::correlation_id(answer).and_then(|(_, rest)| Q::read_answer(client::body(rest)?));
    read.map_err(|error| told(&error))
}

pub(super) async fn hand_over(
    broker: &Arc<Broker>,
    api: PrivateApi,
    body: Bytes,
    may_repeat: bool,
) -> Result<Bytes, Refusal> {
    match forward::exchange(broker, api, &body, may_repeat).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(refused)) => Err(Refusal::new(ErrorCode::REQUEST_TIMED_OUT, refused.detail)),
        Err(Unanswered::NoController) => {
            Err(Refusal::new(ErrorCode::NOT_CONTROLLER, "There is no active controller at the moment"))
        }
        Err(Unanswered::Unknown) => {
            Err(Refusal::new(ErrorCode::REQUEST_TIMED_OUT, "The active controller's answer got lost"))
        }
    }
}

impl Broker {
    pub fn is_active_controller(&self) -> bool {
        self.controller.quorum().leadership().borrow().is_me
    }

    /// Waits until this node has acted on the metadata up to `offset`, `longest` at most.
    pub async fn wait_applied(&self, offset: i64, longest: Duration) {
        let mut applied = self.partitions.applied();
        // Overdue or stopping: whoever asked for the change sees it a little later.
        let _ = task::timeout(longest, applied.wait_for(|applied| *applied >= offset)).await;
    }

    /// Makes one of the coordinators' topics when it is not there.
    pub async fn ensure_internal_topic(self: &Arc<Self>, name: &str) -> Result<(), Refusal> {
        if self.image().topic(name).is_some() {
            return Ok(());
        }
        if self.is_active_controller() {
            let made = ensure_topic::here(self, name).await;
            self.wait_applied(self.image().offset, forward::CATCH_UP_MAX).await;
            return made;
        }
        let body = serde_json::to_vec(&Wanted { name: name.to_owned() }).unwrap_or_default();
        let answer = hand_over(self, PrivateApi::EnsureTopic, body.into(), true).await?;
        let told: Told = serde_json::from_slice(&answer)
            .map_err(|error| Refusal::new(ErrorCode::REQUEST_TIMED_OUT, error.to_string()))?;
        told.result()
    }

    /// Whether the active controller holds this broker for dead: it must not act as a leader then.
    pub fn note_fenced(&self, fenced: bool) {
        self.partitions.set_fenced(fenced);
    }

    /// Another node has come over a connection.
    pub fn note_peer(&self, hello: &Hello) {
        let id = hello.identity.node_id;
        tracing::debug!(node = id, version = hello.version, "a node says hello");
        let Some(address) = hello.quorum_address.clone().filter(|_| self.is_active_controller()) else { return };
        let (quorum, peers, identity) = (self.controller.quorum().clone(), self.peers.clone(), hello.identity);
        task::spawn(async move {
            let known = quorum.known_address(id).filter(|known| *known != address);
            if let Some(known) = known
                && !is_gone(&peers, &known, identity, &address).await
            {
                return;
            }
            if let Err(error) = quorum.ensure_learner(id, address).await {
                tracing::info!(node = id, %error, "a node cannot listen to the metadata yet");
            }
        });
    }

    /// A connection that another node had made is gone. Its process may be, too.
    pub fn note_peer_gone(&self, identity: &crate::peer::PeerIdentity) {
        if identity.node_id != self.options.node_id {
            self.peers.note_lost(identity.node_id);
        }
    }
}

/// Whether no other process under the node's id answers at its old address. Else two run under it, and the first one stays.
async fn is_gone(peers: &Peers, old: &NodeAddress, new: PeerIdentity, address: &NodeAddress) -> bool {
    let id = new.node_id;
    match peers.meet(old, MEET_MAX).await {
        Ok(answer) if answer.identity.node_id == id && answer.identity != new => {
            tracing::warn!(
                "a process at {address} says that it is node {id}, which is alive at {old}: stop one of them, or give it another node.id"
            );
            false
        }
        _ => true,
    }
}
