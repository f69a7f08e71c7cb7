//! OffsetForLeaderEpoch (key 23), v2 to v4: where an epoch ended, for clients and followers that look for the point where their
//! history leaves the leader's (KIP-320).

use std::sync::Arc;

use crate::api::{Broker, Refused, RequestContext, errors};
use crate::base::ids::{NO_LEADER_EPOCH, NO_OFFSET};
use crate::base::{ErrorCode, LeaderEpoch, Offset};
use crate::wire::messages::offset_for_leader_epoch_request::OffsetForLeaderPartition;
use crate::wire::messages::offset_for_leader_epoch_response::{EpochEndOffset, OffsetForLeaderTopicResult};
use crate::wire::messages::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};

pub async fn handle(
    broker: &Arc<Broker>,
    _context: &RequestContext,
    request: OffsetForLeaderEpochRequest,
) -> Result<OffsetForLeaderEpochResponse, Refused> {
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in &topic.partitions {
            let (error, (epoch, end_offset)) = match look_up(broker, &topic.topic, asked) {
                Ok(found) => (ErrorCode::NONE, found),
                Err(error) => (error, (NO_LEADER_EPOCH, NO_OFFSET)),
            };
            partitions.push(
                EpochEndOffset::default()
                    .with_error_code(error.code())
                    .with_partition(asked.partition)
                    .with_leader_epoch(epoch)
                    .with_end_offset(end_offset),
            );
        }
        topics.push(OffsetForLeaderTopicResult::default().with_topic(topic.topic).with_partitions(partitions));
    }
    Ok(OffsetForLeaderEpochResponse::default().with_topics(topics))
}

fn look_up(broker: &Broker, topic: &str, asked: &OffsetForLeaderPartition) -> Result<(LeaderEpoch, Offset), ErrorCode> {
    let partition = errors::hosted_by_name(&broker.partitions, topic, asked.partition)?;
    errors::check_leader_epoch(&partition, asked.current_leader_epoch)?;
    let view = partition.view().map_err(|error| errors::partition(&error))?;
    // The leader's own epoch counts from the moment it leads, before its first record.
    if asked.leader_epoch == partition.leader_epoch() {
        return Ok((asked.leader_epoch, view.log_end_offset));
    }
    Ok(view.epoch_end_offset(asked.leader_epoch))
}
