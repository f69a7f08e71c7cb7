//! AlterPartitionReassignments (key 45): other replicas for partitions, null takes a reassignment back (KIP-455).
//! v1 may forbid that the replication factor changes (KIP-860).

use std::sync::Arc;

use crate::api::cluster::{message, quorum_refusal, text};
use crate::api::{Broker, Refused, RequestContext};
use crate::base::PartitionIndex;
use crate::controller::Refusal;
use crate::controller::decide::reassignments::{Reassignment, ReassignmentOutcomes};
use crate::wire::messages::alter_partition_reassignments_request::{ReassignablePartition, ReassignableTopic};
use crate::wire::messages::alter_partition_reassignments_response::{
    ReassignablePartitionResponse, ReassignableTopicResponse,
};
use crate::wire::messages::{AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse, StrBytes};

pub async fn handle(
    broker: &Arc<Broker>,
    context: &RequestContext,
    request: AlterPartitionReassignmentsRequest,
) -> Result<AlterPartitionReassignmentsResponse, Refused> {
    // Before v1 a reassignment always may.
    let factor_may_change = context.api_version < 1 || request.allow_replication_factor_change;
    let response =
        AlterPartitionReassignmentsResponse::default().with_allow_replication_factor_change(factor_may_change);
    if request.topics.is_empty() {
        return Ok(response.with_error_message(Some(StrBytes::default())));
    }
    let topics = request.topics.iter().map(wanted).collect();
    Ok(match broker.controller.reassign(topics, factor_may_change).await {
        Ok(outcomes) => response.with_error_message(None).with_responses(told(outcomes)),
        Err(error) => {
            let refusal = quorum_refusal(&error);
            response.with_error_code(refusal.code.code()).with_error_message(message(&refusal))
        }
    })
}

fn wanted(topic: &ReassignableTopic) -> (String, Vec<Reassignment>) {
    let reassignment = |partition: &ReassignablePartition| Reassignment {
        partition: partition.partition_index,
        replicas: partition.replicas.as_ref().map(|replicas| replicas.iter().map(|id| id.0).collect()),
    };
    (topic.name.to_string(), topic.partitions.iter().map(reassignment).collect())
}

fn told(outcomes: ReassignmentOutcomes) -> Vec<ReassignableTopicResponse> {
    let each = outcomes.into_iter().map(|(name, partitions)| {
        ReassignableTopicResponse::default()
            .with_name(text(&name).into())
            .with_partitions(partitions.into_iter().map(|(index, outcome)| partition(index, outcome)).collect())
    });
    each.collect()
}

fn partition(index: PartitionIndex, outcome: Result<(), Refusal>) -> ReassignablePartitionResponse {
    let response = ReassignablePartitionResponse::default().with_partition_index(index).with_error_message(None);
    match outcome {
        Ok(()) => response,
        Err(refusal) => response.with_error_code(refusal.code.code()).with_error_message(message(&refusal)),
    }
}
