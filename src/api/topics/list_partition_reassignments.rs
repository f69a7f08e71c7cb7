//! ListPartitionReassignments (key 46): what is on its way to other replicas (KIP-455). Null topics mean all.

use std::sync::Arc;

use crate::api::cluster::{message, quorum_refusal, text};
use crate::api::topics::partition_view::broker_ids;
use crate::api::{Broker, Refused, RequestContext};
use crate::controller::decide::reassignments::Ongoing;
use crate::wire::messages::list_partition_reassignments_response::{
    OngoingPartitionReassignment, OngoingTopicReassignment,
};
use crate::wire::messages::{ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse};

pub async fn handle(
    broker: &Arc<Broker>,
    _: &RequestContext,
    request: ListPartitionReassignmentsRequest,
) -> Result<ListPartitionReassignmentsResponse, Refused> {
    let topics: Option<Vec<_>> = request
        .topics
        .as_ref()
        .map(|topics| topics.iter().map(|topic| (topic.name.to_string(), topic.partition_indexes.clone())).collect());
    let response = ListPartitionReassignmentsResponse::default();
    Ok(match broker.controller.list_reassignments(topics.as_deref()) {
        Ok(ongoing) => response.with_error_message(None).with_topics(ongoing.into_iter().map(topic).collect()),
        Err(error) => {
            let refusal = quorum_refusal(&error);
            response.with_error_code(refusal.code.code()).with_error_message(message(&refusal))
        }
    })
}

fn topic((name, partitions): (String, Vec<Ongoing>)) -> OngoingTopicReassignment {
    OngoingTopicReassignment::default()
        .with_name(text(&name).into())
        .with_partitions(partitions.iter().map(partition).collect())
}

fn partition(ongoing: &Ongoing) -> OngoingPartitionReassignment {
    OngoingPartitionReassignment::default()
        .with_partition_index(ongoing.partition)
        .with_replicas(broker_ids(&ongoing.replicas))
        .with_adding_replicas(broker_ids(&ongoing.adding))
        .with_removing_replicas(broker_ids(&ongoing.removing))
}
