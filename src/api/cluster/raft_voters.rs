//! AddRaftVoter (key 80) and RemoveRaftVoter (key 81), KIP-853: who has a vote in the metadata quorum. A node that is to get one runs
//! already and has been reached before anything is changed; it votes once it has everything.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::{message, quorum_refusal};
use crate::api::{Broker, Refused, RequestContext};
use crate::base::{BrokerId, ErrorCode, NodeAddress, TopicId};
use crate::controller::Refusal;
use crate::wire::messages::{
    AddRaftVoterRequest, AddRaftVoterResponse, RemoveRaftVoterRequest, RemoveRaftVoterResponse, StrBytes,
};

/// How long the new voter may take to say hello.
const HELLO_MAX: Duration = Duration::from_secs(2);

pub async fn handle_add(
    broker: &Arc<Broker>,
    _: &RequestContext,
    request: AddRaftVoterRequest,
) -> Result<AddRaftVoterResponse, Refused> {
    let refusal = match add(broker, &request).await {
        Ok(()) => return Ok(AddRaftVoterResponse::default()),
        Err(refusal) => refusal,
    };
    Ok(AddRaftVoterResponse {
        error_code: refusal.code.code(),
        error_message: message(&refusal),
        ..AddRaftVoterResponse::default()
    })
}

async fn add(broker: &Arc<Broker>, request: &AddRaftVoterRequest) -> Result<(), Refusal> {
    broker.controller.must_be_active().map_err(|error| quorum_refusal(&error))?;
    check_cluster(broker, request.cluster_id.as_ref())?;
    let id = request.voter_id;
    if is_voter(broker, id) {
        return Err(Refusal::new(ErrorCode::DUPLICATE_VOTER, format!("{id} is a voter already")));
    }
    let listener = request.listeners.first();
    let listener = listener.ok_or_else(|| invalid(format!("No listener of {id} is named")))?;
    let address = NodeAddress::new(listener.host.to_string(), listener.port);
    match broker.peers.meet(&address, HELLO_MAX).await {
        Ok(answer) if answer.identity.node_id == id => {}
        Ok(answer) => {
            return Err(invalid(format!("At {address} there is node {}, not {id}", answer.identity.node_id)));
        }
        Err(error) => return Err(invalid(format!("Node {id} does not answer: {error}"))),
    }
    if has_another_directory(broker, id, request.voter_directory_id) {
        let named = TopicId(request.voter_directory_id);
        return Err(invalid(format!("Node {id} runs, but not on a directory with the id {named}")));
    }
    broker.controller.quorum().add_voter(id, address).await.map_err(|error| quorum_refusal(&error))
}

pub async fn handle_remove(
    broker: &Arc<Broker>,
    _: &RequestContext,
    request: RemoveRaftVoterRequest,
) -> Result<RemoveRaftVoterResponse, Refused> {
    let refusal = match remove(broker, &request).await {
        Ok(()) => return Ok(RemoveRaftVoterResponse::default()),
        Err(refusal) => refusal,
    };
    Ok(RemoveRaftVoterResponse::default().with_error_code(refusal.code.code()).with_error_message(message(&refusal)))
}

async fn remove(broker: &Broker, request: &RemoveRaftVoterRequest) -> Result<(), Refusal> {
    broker.controller.must_be_active().map_err(|error| quorum_refusal(&error))?;
    check_cluster(broker, request.cluster_id.as_ref())?;
    let id = request.voter_id;
    if !is_voter(broker, id) {
        return Err(Refusal::new(ErrorCode::VOTER_NOT_FOUND, format!("{id} is not among the voters")));
    }
    if has_another_directory(broker, id, request.voter_directory_id) {
        let sentence =
            format!("{id} with directory id {} is not among the voters", TopicId(request.voter_directory_id));
        return Err(Refusal::new(ErrorCode::VOTER_NOT_FOUND, sentence));
    }
    broker.controller.quorum().remove_voter(id).await.map_err(|error| quorum_refusal(&error))
}

fn is_voter(broker: &Broker, id: BrokerId) -> bool {
    broker.controller.quorum().describe().voters.iter().any(|voter| voter.id == id)
}

/// Whether a node is known to keep its data elsewhere than the caller thinks. Of a node that is only a controller it is not known.
fn has_another_directory(broker: &Broker, id: BrokerId, named: Uuid) -> bool {
    let image = broker.controller.quorum().image();
    let known = image.broker(id).map(|known| known.directories.as_slice()).unwrap_or_default();
    !named.is_nil() && !known.is_empty() && !known.contains(&named)
}

fn invalid(sentence: String) -> Refusal {
    Refusal::new(ErrorCode::INVALID_REQUEST, sentence)
}

fn check_cluster(broker: &Broker, named: Option<&StrBytes>) -> Result<(), Refusal> {
    let image = broker.controller.quorum().image();
    match named {
        Some(named) if named.as_str() != &*image.cluster_id => {
            let sentence = format!("This is cluster {}, not {}", image.cluster_id, named.as_str());
            Err(Refusal::new(ErrorCode::INCONSISTENT_CLUSTER_ID, sentence))
        }
        _ => Ok(()),
    }
}
