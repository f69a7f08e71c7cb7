//! DescribeQuorum (key 55): leader, voters and ends of the metadata log.
//! v1 adds fetch times (KIP-836), v2 directory ids, sentences and the voters' endpoints (KIP-853).

use std::sync::Arc;

use super::text;
use crate::api::{Broker, Refused, RequestContext};
use crate::base::ErrorCode;
use crate::metadata::{Endpoint, topic_name};
use crate::quorum::{QuorumDescription, VoterDescription};
use crate::wire::messages::describe_quorum_response::{Listener, Node, PartitionData, ReplicaState, TopicData};
use crate::wire::messages::{
    BrokerId, DescribeQuorumRequest, DescribeQuorumResponse, StrBytes, describe_quorum_request,
};

pub async fn handle(
    broker: &Arc<Broker>,
    context: &RequestContext,
    request: DescribeQuorumRequest,
) -> Result<DescribeQuorumResponse, Refused> {
    let version = context.api_version;
    let mut response = DescribeQuorumResponse::default();
    if version >= 2 {
        response.error_message = Some(StrBytes::default());
    }
    let quorum = broker.controller.quorum();
    if asks_for_the_quorum(&request.topics) {
        let description = quorum.describe();
        response.topics = vec![topic(topic_name::CLUSTER_METADATA, vec![partition(&description, version)])];
        if version >= 2 {
            response.nodes = description
                .voters
                .iter()
                .chain(&description.observers)
                .map(|voter| node(broker, context, voter))
                .collect();
        }
    } else {
        response.topics = request.topics.iter().map(|asked| unknown(asked, version)).collect();
    }
    Ok(response)
}

/// As in Kafka, the question is for exactly this one partition.
fn asks_for_the_quorum(topics: &[describe_quorum_request::TopicData]) -> bool {
    let [topic] = topics else { return false };
    let [partition] = topic.partitions.as_slice() else { return false };
    topic.topic_name.as_str() == topic_name::CLUSTER_METADATA && partition.partition_index == 0
}

fn topic(name: &str, partitions: Vec<PartitionData>) -> TopicData {
    TopicData::default().with_topic_name(text(name).into()).with_partitions(partitions)
}

fn partition(description: &QuorumDescription, version: i16) -> PartitionData {
    PartitionData::default()
        .with_error_message((version >= 2).then(StrBytes::default))
        .with_leader_id(BrokerId(description.leader_id))
        .with_leader_epoch(description.leader_epoch)
        .with_high_watermark(description.high_watermark)
        .with_current_voters(description.voters.iter().map(|voter| replica(voter, version)).collect())
        .with_observers(description.observers.iter().map(|observer| replica(observer, version)).collect())
}

fn replica(voter: &VoterDescription, version: i16) -> ReplicaState {
    let mut state =
        ReplicaState::default().with_replica_id(BrokerId(voter.id)).with_log_end_offset(voter.log_end_offset);
    if version >= 1 {
        state.last_fetch_timestamp = voter.last_fetch_ms;
        state.last_caught_up_timestamp = voter.last_caught_up_ms;
    }
    if version >= 2 {
        state.replica_directory_id = voter.directory_id;
    }
    state
}

/// A voter is reached at its controller's address, or, when it has none of its own, where its broker is: at a host that it does not advertise
/// where this client reached us.
fn node(broker: &Broker, context: &RequestContext, voter: &VoterDescription) -> Node {
    let controllers = broker.options.controller_listener.as_deref().zip(voter.address.as_ref());
    if let Some((name, address)) = controllers {
        let listener = Listener::default().with_name(text(name)).with_host(text(&address.host)).with_port(address.port);
        return Node::default().with_node_id(BrokerId(voter.id)).with_listeners(vec![listener]);
    }
    let image = broker.controller.quorum().image();
    let endpoints = image.broker(voter.id).map(|broker| broker.endpoints.as_slice()).unwrap_or_default();
    let reached = broker.options.endpoint_for(context).0;
    let listener = |endpoint: &Endpoint| {
        let host = if endpoint.host.is_empty() { &*reached } else { endpoint.host.as_str() };
        Listener::default().with_name(text(&endpoint.listener)).with_host(text(host)).with_port(endpoint.port)
    };
    Node::default().with_node_id(BrokerId(voter.id)).with_listeners(endpoints.iter().map(listener).collect())
}

fn unknown(asked: &describe_quorum_request::TopicData, version: i16) -> TopicData {
    let partitions = asked.partitions.iter().map(|partition| {
        let sentence = StrBytes::from_static_str("This server does not host this topic-partition.");
        PartitionData::default()
            .with_partition_index(partition.partition_index)
            .with_error_code(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.code())
            .with_error_message((version >= 2).then_some(sentence))
    });
    topic(&asked.topic_name, partitions.collect())
}
