//! DeleteRecords (key 21), v0 to v2: moves a partition's log start offset forward (KIP-107).

use std::sync::Arc;
use std::time::Duration;

use crate::api::{Broker, Refused, RequestContext, errors};
use crate::base::ids::NO_OFFSET;
use crate::base::{ErrorCode, Offset};
use crate::host::task;
use crate::replica::{Partition, PartitionError, TopicReplicas};
use crate::wire::messages::delete_records_response::{DeleteRecordsPartitionResult, DeleteRecordsTopicResult};
use crate::wire::messages::{DeleteRecordsRequest, DeleteRecordsResponse};

/// How often followers are looked at while somebody waits for them.
const FOLLOWERS_LOOKED_AT_EVERY: Duration = Duration::from_millis(5);

/// Stands for the high watermark.
const TO_THE_END: Offset = -1;

pub async fn handle(
    broker: &Arc<Broker>,
    _context: &RequestContext,
    request: DeleteRecordsRequest,
) -> Result<DeleteRecordsResponse, Refused> {
    let timeout = Duration::from_millis(u64::try_from(request.timeout_ms).unwrap_or(0));
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let replicas = broker.partitions.topic(&topic.name);
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in topic.partitions {
            let deleted = match &replicas {
                Some(replicas) => delete(replicas, asked.partition_index, asked.offset, timeout).await,
                None => Err(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
            };
            let (error, low_watermark) = match deleted {
                Ok(low_watermark) => (ErrorCode::NONE, low_watermark),
                Err(error) => (error, NO_OFFSET),
            };
            partitions.push(
                DeleteRecordsPartitionResult::default()
                    .with_partition_index(asked.partition_index)
                    .with_low_watermark(low_watermark)
                    .with_error_code(error.code()),
            );
        }
        topics.push(DeleteRecordsTopicResult::default().with_name(topic.name).with_partitions(partitions));
    }
    broker.partitions.note_start_moved();
    Ok(DeleteRecordsResponse::default().with_topics(topics))
}

async fn delete(topic: &TopicReplicas, index: i32, offset: Offset, timeout: Duration) -> Result<Offset, ErrorCode> {
    let partition = errors::hosted(topic, index)?;
    if !topic.config.cleanup.delete {
        return Err(ErrorCode::POLICY_VIOLATION);
    }
    let (deleting, partition) = (partition.clone(), partition.clone());
    let low_watermark = task::blocking(move || delete_before(&deleting, offset)).await?;
    reached_everywhere(&partition, low_watermark, timeout).await
}

/// Waits until every living replica has let go of what is below `offset`. Followers learn of it with their next fetch.
async fn reached_everywhere(partition: &Partition, offset: Offset, timeout: Duration) -> Result<Offset, ErrorCode> {
    let reached = async {
        while partition.low_watermark() < offset {
            task::sleep(FOLLOWERS_LOOKED_AT_EVERY).await;
        }
    };
    match task::timeout(timeout, reached).await {
        Some(()) => Ok(partition.low_watermark()),
        None => Err(ErrorCode::REQUEST_TIMED_OUT),
    }
}

fn delete_before(partition: &Arc<Partition>, offset: Offset) -> Result<Offset, ErrorCode> {
    if !partition.is_leader() {
        return Err(ErrorCode::NOT_LEADER_OR_FOLLOWER);
    }
    let deleted: Result<_, PartitionError> = partition.with_log(|log| {
        let end = partition.high_watermark().min(log.log_end_offset());
        let before = if offset == TO_THE_END { end } else { offset };
        if !(0..=end).contains(&before) {
            return Err(ErrorCode::OFFSET_OUT_OF_RANGE);
        }
        log.delete_records_before(before).map_err(|error| errors::storage(&error))
    });
    let low_watermark = deleted.map_err(|error| errors::partition(&error))??;
    partition.waiters.wake_all();
    partition.follower_waiters.wake_all();
    Ok(low_watermark)
}
