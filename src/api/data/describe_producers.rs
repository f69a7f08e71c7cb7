//! DescribeProducers (key 61), v0: the producers whose state a partition's leader remembers (KIP-664).

use std::sync::Arc;

use crate::api::{Broker, Refused, RequestContext, errors};
use crate::base::ErrorCode;
use crate::log::ProducerEntry;
use crate::metadata::topic_name;
use crate::wire::messages::describe_producers_response::{PartitionResponse, ProducerState, TopicResponse};
use crate::wire::messages::{DescribeProducersRequest, DescribeProducersResponse, StrBytes};

pub async fn handle(
    broker: &Arc<Broker>,
    _context: &RequestContext,
    request: DescribeProducersRequest,
) -> Result<DescribeProducersResponse, Refused> {
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let legal = topic_name::validate(&topic.name);
        let known = broker.partitions.topic(&topic.name).is_some();
        let mut partitions = Vec::with_capacity(topic.partition_indexes.len());
        for index in topic.partition_indexes {
            let answer = PartitionResponse::default().with_partition_index(index);
            partitions.push(match (&legal, producers(broker, &topic.name, index)) {
                (Err(error), _) => answer
                    .with_error_code(ErrorCode::INVALID_TOPIC_EXCEPTION.code())
                    .with_error_message(Some(StrBytes::from_string(error.to_string()))),
                (Ok(()), Err(error)) => {
                    let message = (!known).then(|| StrBytes::from_static_str(error.name()));
                    answer.with_error_code(error.code()).with_error_message(message)
                }
                (Ok(()), Ok(producers)) => answer.with_error_message(None).with_active_producers(producers),
            });
        }
        topics.push(TopicResponse::default().with_name(topic.name).with_partitions(partitions));
    }
    Ok(DescribeProducersResponse::default().with_topics(topics))
}

fn producers(broker: &Broker, topic: &str, index: i32) -> Result<Vec<ProducerState>, ErrorCode> {
    let partition = errors::hosted_by_name(&broker.partitions, topic, index)?;
    if !partition.is_leader() {
        return Err(ErrorCode::NOT_LEADER_OR_FOLLOWER);
    }
    partition
        .with_log(|log| {
            let state = |producer: &ProducerEntry| {
                ProducerState::default()
                    .with_producer_id(producer.producer_id.into())
                    .with_producer_epoch(i32::from(producer.epoch))
                    .with_last_sequence(producer.last_sequence())
                    .with_last_timestamp(producer.last_timestamp)
                    .with_coordinator_epoch(producer.coordinator_epoch)
                    .with_current_txn_start_offset(producer.current_txn_first_offset.unwrap_or(-1))
            };
            log.producers().map(state).collect()
        })
        .map_err(|error| errors::partition(&error))
}
