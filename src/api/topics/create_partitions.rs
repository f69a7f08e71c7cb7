//! CreatePartitions (key 37): more partitions for topics that exist (KIP-195).

use std::sync::Arc;

use crate::api::cluster::{message, quorum_refusal};
use crate::api::{Broker, Refused, RequestContext};
use crate::controller::decide::create_partitions::{MorePartitions, PartitionsOutcome};
use crate::wire::messages::create_partitions_request::{CreatePartitionsAssignment, CreatePartitionsTopic};
use crate::wire::messages::create_partitions_response::CreatePartitionsTopicResult;
use crate::wire::messages::{CreatePartitionsRequest, CreatePartitionsResponse, StrBytes};

pub async fn handle(
    broker: &Arc<Broker>,
    _: &RequestContext,
    request: CreatePartitionsRequest,
) -> Result<CreatePartitionsResponse, Refused> {
    let topics: Vec<MorePartitions> = request.topics.iter().map(wanted).collect();
    let outcomes = match broker.controller.create_partitions(topics, request.validate_only).await {
        Ok(outcomes) => outcomes,
        Err(error) => {
            let refusal = quorum_refusal(&error);
            let refused = |topic: &CreatePartitionsTopic| PartitionsOutcome {
                name: topic.name.to_string(),
                refusal: Some(refusal.clone()),
            };
            request.topics.iter().map(refused).collect()
        }
    };
    Ok(CreatePartitionsResponse::default().with_results(outcomes.into_iter().map(result).collect()))
}

fn wanted(topic: &CreatePartitionsTopic) -> MorePartitions {
    let replicas = |one: &CreatePartitionsAssignment| one.broker_ids.iter().map(|id| id.0).collect();
    MorePartitions {
        name: topic.name.to_string(),
        count: topic.count,
        assignments: topic.assignments.as_ref().map(|assignments| assignments.iter().map(replicas).collect()),
    }
}

fn result(outcome: PartitionsOutcome) -> CreatePartitionsTopicResult {
    let mut result = CreatePartitionsTopicResult::default().with_name(StrBytes::from_string(outcome.name).into());
    if let Some(refusal) = outcome.refusal {
        result = result.with_error_code(refusal.code.code()).with_error_message(message(&refusal));
    }
    result
}
