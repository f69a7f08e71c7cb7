//! ElectLeaders (key 43): leadership for preferred replicas, or for whoever is there (KIP-183, KIP-460).
//! v0 knows preferred elections only and has no top-level error; null partitions mean all.

use std::sync::Arc;

use crate::api::cluster::{message, quorum_refusal, text};
use crate::api::{Broker, Refused, RequestContext};
use crate::base::{ErrorCode, PartitionIndex};
use crate::controller::Refusal;
use crate::controller::decide::elections::{Asked, ElectionOutcomes};
use crate::wire::messages::elect_leaders_response::{PartitionResult, ReplicaElectionResult};
use crate::wire::messages::{ElectLeadersRequest, ElectLeadersResponse};

/// The first version with a kind of election and a top-level error.
const KINDS_FROM: i16 = 1;
const PREFERRED: i8 = 0;
const UNCLEAN: i8 = 1;

pub async fn handle(
    broker: &Arc<Broker>,
    context: &RequestContext,
    request: ElectLeadersRequest,
) -> Result<ElectLeadersResponse, Refused> {
    let version = context.api_version;
    let partitions = named(&request);
    let kind = if version < KINDS_FROM { PREFERRED } else { request.election_type };
    let asked = match kind {
        PREFERRED => Asked::Preferred,
        UNCLEAN => Asked::Unclean,
        other => {
            let refusal = Refusal::new(ErrorCode::INVALID_REQUEST, format!("Unknown election type {other}"));
            return Ok(refused(version, partitions, &refusal));
        }
    };
    Ok(match broker.controller.elect_leaders(asked, partitions.clone()).await {
        Ok(outcomes) => answer(version, ErrorCode::NONE, outcomes),
        Err(error) => refused(version, partitions, &quorum_refusal(&error)),
    })
}

fn named(request: &ElectLeadersRequest) -> Option<Vec<(String, Vec<PartitionIndex>)>> {
    let topics = request.topic_partitions.as_ref()?;
    Some(topics.iter().map(|topic| (topic.topic.to_string(), topic.partitions.clone())).collect())
}

/// Every partition gets the code that the whole request gets.
fn refused(
    version: i16,
    partitions: Option<Vec<(String, Vec<PartitionIndex>)>>,
    refusal: &Refusal,
) -> ElectLeadersResponse {
    let each = |(topic, indexes): (String, Vec<PartitionIndex>)| {
        (topic, indexes.into_iter().map(|index| (index, Err(refusal.clone()))).collect())
    };
    answer(version, refusal.code, partitions.unwrap_or_default().into_iter().map(each).collect())
}

fn answer(version: i16, error: ErrorCode, outcomes: ElectionOutcomes) -> ElectLeadersResponse {
    let results = outcomes.into_iter().map(|(topic, partitions)| {
        ReplicaElectionResult::default()
            .with_topic(text(&topic).into())
            .with_partition_result(partitions.into_iter().map(|(index, outcome)| partition(index, outcome)).collect())
    });
    let response = ElectLeadersResponse::default().with_replica_election_results(results.collect());
    if version >= KINDS_FROM { response.with_error_code(error.code()) } else { response }
}

fn partition(index: PartitionIndex, outcome: Result<(), Refusal>) -> PartitionResult {
    let result = PartitionResult::default().with_partition_id(index).with_error_message(None);
    match outcome {
        Ok(()) => result,
        Err(refusal) => result.with_error_code(refusal.code.code()).with_error_message(message(&refusal)),
    }
}
