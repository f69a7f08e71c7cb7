//! AddRaftVoter (key 80) and RemoveRaftVoter (key 81), KIP-853: who has a vote in the metadata quorum. A node that is to get one runs
//! already and has been reached before anything is changed; it votes once it has everything.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::{message, quorum_refusal};
use crate::api::{Broker, Refused, RequestContext};
use crate::base::{BrokerId, ErrorCode, NodeAddress};
use crate::controller::Refusal;
use crate::quorum::VoterDescription;
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
    check_cluster(broker, request.cluster_id.as_ref())?;
    let id = request.voter_id;
    let voters = broker.controller.quorum().describe().voters;
    if !voters.iter().any(|voter| is_meant(voter, id, request.voter_directory_id)) {
        let sentence = format!("{id} with this directory id is not among the voters");
        return Err(Refusal::new(ErrorCode::VOTER_NOT_FOUND, sentence));
    }
    broker.controller.quorum().remove_voter(id).await.map_err(|error| quorum_refusal(&error))
}

fn is_voter(broker: &Broker, id: BrokerId) -> bool {
    broker.controller.quorum().describe().voters.iter().any(|voter| voter.id == id)
}

/// Whoever names a directory means the node with that disk, not another one that has its id by now. A voter whose directory nobody knows
/// can be named by its id alone.
fn is_meant(voter: &VoterDescription, id: BrokerId, directory_id: Uuid) -> bool {
    voter.id == id && (voter.directory_id.is_nil() || voter.directory_id == directory_id)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn voter(id: BrokerId, directory_id: Uuid) -> VoterDescription {
        VoterDescription {
            id,
            directory_id,
            address: None,
            log_end_offset: -1,
            last_fetch_ms: -1,
            last_caught_up_ms: -1,
        }
    }

    #[test]
    fn a_voter_is_meant_by_its_id_and_its_directory() {
        let (first, second) = (Uuid::from_u128(1), Uuid::from_u128(2));
        assert!(is_meant(&voter(3, first), 3, first));
        assert!(!is_meant(&voter(3, first), 3, second));
        assert!(!is_meant(&voter(3, first), 2, first));
        assert!(is_meant(&voter(3, Uuid::nil()), 3, second), "nobody knows which directory it has");
    }
}
