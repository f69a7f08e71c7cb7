//! Forward (key 30002): requests that only the active controller can answer, handed on whole by the node that got them (KIP-590). The
//! answer tells from which metadata offset on it holds; the node that handed on waits until it has come so far itself, so that a topic
//! made through any node is usable through that node at once.
//!
//! A change is sent again only if it was certainly not carried out. Whoever's topic was made and whose answer got lost must not be told
//! that the topic exists already.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{Buf, Bytes};

use super::envelope::{Client, Outcome};
use crate::api::answer::{Answer, Response};
use crate::api::context::{ConnectionInfo, Door, RequestContext};
use crate::api::{Broker, Refused, dispatch};
use crate::base::NodeAddress;
use crate::host::task;
use crate::peer::{PeerError, Purpose};
use crate::telemetry::Reason;
use crate::wire::envelope;
use crate::wire::private::{PrivateApi, RawBody};
use crate::wire::table::keys;

/// How long a request is tried to be handed on while there is no active controller.
pub const HAND_ON_MAX: Duration = Duration::from_secs(10);

/// How long the active controller may take for one request.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(50);

/// How long a change may take to get here, before it is answered all the same.
pub const CATCH_UP_MAX: Duration = Duration::from_secs(1);

/// Why there is no answer of an active controller elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// There is none, or it is this node. Nothing was carried out.
    NoController,
    /// It was asked. Whether it did what it was asked for is not known.
    Unknown,
}

/// The active controller's answer to a client's request.
pub async fn hand_on(
    broker: &Arc<Broker>,
    context: &RequestContext,
    frame: &Bytes,
) -> Result<Result<Response, Unanswered>, Refused> {
    let connection = &context.connection;
    let client = Client {
        node_id: broker.options.node_id,
        peer: connection.peer,
        local: connection.local,
        listener: connection.listener.to_string(),
        principal: connection.principal.to_string(),
    };
    let body = envelope::seal(&client, frame);
    match exchange(broker, PrivateApi::Forward, &body, changes_nothing(context.api_key)).await {
        Ok(Ok(answer)) => Ok(Ok(Response::Whole(answer))),
        Ok(Err(refused)) => Err(refused),
        Err(unanswered) => Ok(Err(unanswered)),
    }
}

/// Whether a request may be carried out any number of times.
fn changes_nothing(api_key: i16) -> bool {
    matches!(api_key, keys::DESCRIBE_QUORUM | keys::LIST_PARTITION_REASSIGNMENTS)
}

/// Asks the active controller as long as it takes to find one, within bounds, and waits until its answer holds here too. What may be
/// repeated is asked again when an answer got lost.
pub async fn exchange(
    broker: &Arc<Broker>,
    api: PrivateApi,
    body: &Bytes,
    may_repeat: bool,
) -> Result<Result<Bytes, Refused>, Unanswered> {
    let is_under_way = AtomicBool::new(false);
    let tried = task::timeout(HAND_ON_MAX, async {
        loop {
            // Whoever becomes the active controller while it looks for one answers for itself.
            let Some(address) = controller_elsewhere(broker).await else { return Err(Unanswered::NoController) };
            is_under_way.store(!may_repeat, Ordering::Relaxed);
            let sent = broker.peers.private(&address, Purpose::Control, api, body, ANSWER_MAX).await;
            let may_be_done = match sent.map(envelope::open::<Outcome>) {
                Ok(Ok((Outcome::Answered { offset }, answer))) => return Ok((offset, Ok(answer))),
                Ok(Ok((Outcome::Refused { sentence }, _))) => {
                    return Ok((-1, Err(Refused::because(Reason::InvalidRequest, sentence))));
                }
                Ok(Ok((Outcome::NotController, _))) => false,
                Ok(Err(why)) => {
                    tracing::warn!(%address, why, "an answer of the active controller cannot be read");
                    true
                }
                Err(error @ PeerError::Refused { .. }) => {
                    tracing::warn!(%error, "a request cannot be handed on");
                    false
                }
                Err(error) => {
                    tracing::debug!(%error, "a request was not handed on");
                    !error.is_unsent()
                }
            };
            if may_be_done && !may_repeat {
                return Err(Unanswered::Unknown);
            }
            is_under_way.store(false, Ordering::Relaxed);
            task::sleep(PAUSE).await;
        }
    });
    let overdue = || if is_under_way.load(Ordering::Relaxed) { Unanswered::Unknown } else { Unanswered::NoController };
    let (offset, answer) = tried.await.unwrap_or_else(|| Err(overdue()))?;
    broker.wait_applied(offset, CATCH_UP_MAX).await;
    Ok(answer)
}

/// Waits until another node is known to be the active controller; `None` when it is this one.
async fn controller_elsewhere(broker: &Broker) -> Option<NodeAddress> {
    let mut leadership = broker.controller.quorum().leadership();
    loop {
        let now = leadership.borrow_and_update().clone();
        if now.is_me {
            return None;
        }
        if let (Some(leader), Some(address)) = (now.leader, now.leader_address)
            && leader != broker.options.node_id
        {
            return Some(address);
        }
        leadership.changed().await.ok()?;
    }
}

/// On the active controller: a request that another node got.
pub async fn handle(broker: &Arc<Broker>, context: &RequestContext, body: Bytes) -> Result<RawBody, Refused> {
    let (client, frame) = envelope::open::<Client>(body)
        .map_err(|why| Refused::because(Reason::MalformedRequest, format!("Forward cannot be read: {why}")))?;
    if !broker.is_active_controller() {
        return Ok(RawBody(envelope::seal(&Outcome::NotController, &[])));
    }
    let answer = answer(broker, context, client, frame).await;
    Ok(RawBody(match answer {
        Ok(frame) => envelope::seal(&Outcome::Answered { offset: broker.image().offset }, &frame),
        Err(refused) => envelope::seal(&Outcome::Refused { sentence: refused.detail.into_owned() }, &[]),
    }))
}

async fn answer(
    broker: &Arc<Broker>,
    context: &RequestContext,
    client: Client,
    frame: Bytes,
) -> Result<Bytes, Refused> {
    let mut connection =
        ConnectionInfo::new(context.connection.id, client.peer, client.local, client.listener.into(), Door::Broker);
    connection.principal = client.principal.into();
    connection.forwarded_by = Some(client.node_id);
    run(broker, &Arc::new(connection), frame).await
}

/// Runs a request through the dispatcher as if it had come over a connection; the answer with its length prefix.
async fn run(broker: &Arc<Broker>, connection: &Arc<ConnectionInfo>, frame: Bytes) -> Result<Bytes, Refused> {
    let now = broker.host.clock.monotonic_nanos();
    let request_bytes = frame.len();
    let started = dispatch::start(broker, connection, frame, now).map_err(|(_, refused)| refused)?;
    let response = match started.answer {
        Answer::Now(response) => Some(response),
        Answer::Later(later) => later.await?,
        Answer::Nothing => None,
        Answer::Close(refused) => return Err(refused),
    };
    let now = broker.host.clock.monotonic_nanos();
    dispatch::observe(broker, &started.context, request_bytes, response.as_ref(), now);
    match response {
        Some(Response::Whole(bytes)) => Ok(bytes),
        _ => Err(Refused::because(Reason::InvalidRequest, "only requests with a plain answer are handed on")),
    }
}

/// Runs a request of this node itself, on this node; the answer without its length prefix.
pub async fn run_own(broker: &Arc<Broker>, frame: Bytes) -> Result<Bytes, Refused> {
    let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let connection = ConnectionInfo::new(0, nowhere, nowhere, "".into(), Door::Controller);
    let _ = connection.peer_node.set(broker.peers.myself().identity);
    let mut answer = run(broker, &Arc::new(connection), frame).await?;
    if answer.len() < 4 {
        return Err(Refused::because(Reason::Internal, "an answer without a length"));
    }
    answer.advance(4);
    Ok(answer)
}
