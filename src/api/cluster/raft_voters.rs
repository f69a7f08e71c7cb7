//! AddRaftVoter (key 80) and RemoveRaftVoter (key 81), KIP-853. The quorum has one voter and cannot change yet; requests for another
//! cluster or about voters that do not exist get the codes that Kafka gives.

use std::sync::Arc;

use super::message;
use crate::api::{Broker, Refused, RequestContext};
use crate::base::ErrorCode;
use crate::controller::Refusal;
use crate::wire::messages::{
    AddRaftVoterRequest, AddRaftVoterResponse, RemoveRaftVoterRequest, RemoveRaftVoterResponse, StrBytes,
};

pub async fn handle_add(
    broker: &Arc<Broker>,
    _: &RequestContext,
    request: AddRaftVoterRequest,
) -> Result<AddRaftVoterResponse, Refused> {
    let voter = request.voter_id;
    let refusal = check_cluster(broker, request.cluster_id.as_ref()).err().unwrap_or_else(|| {
        if voter == broker.options.node_id {
            let sentence = format!("{voter} is a voter already");
            return Refusal::new(ErrorCode::DUPLICATE_VOTER, sentence);
        }
        let sentence = "This quorum has one voter and cannot take another";
        Refusal::new(ErrorCode::INVALID_REQUEST, sentence)
    });
    Ok(AddRaftVoterResponse {
        error_code: refusal.code.code(),
        error_message: message(&refusal),
        ..AddRaftVoterResponse::default()
    })
}

pub async fn handle_remove(
    broker: &Arc<Broker>,
    _: &RequestContext,
    request: RemoveRaftVoterRequest,
) -> Result<RemoveRaftVoterResponse, Refused> {
    let voter = request.voter_id;
    let refusal = check_cluster(broker, request.cluster_id.as_ref()).err().unwrap_or_else(|| {
        if voter == broker.options.node_id {
            return Refusal::new(ErrorCode::INVALID_REQUEST, "The only voter cannot be removed");
        }
        Refusal::new(ErrorCode::VOTER_NOT_FOUND, format!("{voter} is not among the voters"))
    });
    Ok(RemoveRaftVoterResponse::default().with_error_code(refusal.code.code()).with_error_message(message(&refusal)))
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
