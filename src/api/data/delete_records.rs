//! DeleteRecords (key 21), v0 to v2: moves a partition's log start offset forward (KIP-107).
//!
//! What is answered for stays deleted: the new start is in the checkpoint file of this node, and of every living follower, before. Apache
//! Kafka writes it down some time later.

use std::sync::Arc;
use std::time::Duration;

use crate::api::{Broker, Refused, RequestContext, errors};
use crate::base::ids::{NO_LEADER_EPOCH, NO_OFFSET};
use crate::base::{ErrorCode, LeaderEpoch, Offset};
use crate::host::task;
use crate::replica::{FlushPolicy, Partition, TopicReplicas, sync_up_to};
use crate::wire::messages::delete_records_request::DeleteRecordsTopic;
use crate::wire::messages::delete_records_response::{DeleteRecordsPartitionResult, DeleteRecordsTopicResult};
use crate::wire::messages::{DeleteRecordsRequest, DeleteRecordsResponse};

/// How often followers are looked at while somebody waits for them.
const FOLLOWERS_LOOKED_AT_EVERY: Duration = Duration::from_millis(5);

/// Stands for the high watermark.
const TO_THE_END: Offset = -1;

/// A partition that is to begin at an offset, while this node leads it in this epoch: whoever leads next may not have heard of it.
struct Deletion {
    partition: Arc<Partition>,
    epoch: LeaderEpoch,
    before: Offset,
}

/// What became of one partition of the request, in its order.
type Outcome = Result<Deletion, ErrorCode>;

pub async fn handle(
    broker: &Arc<Broker>,
    _context: &RequestContext,
    request: DeleteRecordsRequest,
) -> Result<DeleteRecordsResponse, Refused> {
    let timeout = Duration::from_millis(u64::try_from(request.timeout_ms).unwrap_or(0));
    let finder = broker.clone();
    let (topics, outcomes) = task::blocking(move || {
        let found = request.topics.iter().flat_map(|topic| find(&finder, topic)).collect::<Vec<_>>();
        (request.topics, found)
    })
    .await;
    // A start behind what a power cut leaves of the log would not be believed.
    if broker.options.flush_policy == FlushPolicy::Sync {
        let ends = outcomes.iter().flatten().map(|deletion| (&deletion.partition, deletion.before));
        sync_up_to(&broker.flusher, ends).await;
    }
    let deleter = broker.clone();
    let outcomes = task::blocking(move || delete(&deleter, outcomes)).await;
    reached_everywhere(&outcomes, timeout).await;
    Ok(answer(topics, outcomes))
}

fn find(broker: &Broker, topic: &DeleteRecordsTopic) -> Vec<Outcome> {
    let replicas = broker.partitions.topic(&topic.name);
    let found = topic.partitions.iter().map(|asked| {
        let replicas = replicas.as_deref().ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        find_one(replicas, asked.partition_index, asked.offset)
    });
    found.collect()
}

fn find_one(topic: &TopicReplicas, index: i32, offset: Offset) -> Outcome {
    let partition = errors::hosted(topic, index)?.clone();
    if !topic.config.cleanup.delete {
        return Err(ErrorCode::POLICY_VIOLATION);
    }
    let epoch = partition.leader_epoch();
    if epoch == NO_LEADER_EPOCH {
        return Err(ErrorCode::NOT_LEADER_OR_FOLLOWER);
    }
    let view = partition.view().map_err(|error| errors::partition(&error))?;
    let end = partition.readable_below(&view);
    let before = if offset == TO_THE_END { end } else { offset };
    if !(0..=end).contains(&before) {
        return Err(ErrorCode::OFFSET_OUT_OF_RANGE);
    }
    Ok(Deletion { partition, epoch, before })
}

/// All of them, and then the file that says where they begin. Blocks.
fn delete(broker: &Broker, outcomes: Vec<Outcome>) -> Vec<Outcome> {
    let must_be_synced = broker.options.flush_policy == FlushPolicy::Sync;
    let deleted = outcomes.into_iter().map(|outcome| delete_one(outcome?, must_be_synced)).collect::<Vec<_>>();
    broker.partitions.keep_starts(deleted.iter().flatten().map(|deletion| &deletion.partition));
    let kept = deleted.into_iter().map(|outcome| {
        let deletion = outcome?;
        let is_kept = deletion.partition.kept_start() >= deletion.before;
        if is_kept { Ok(deletion) } else { Err(ErrorCode::KAFKA_STORAGE_ERROR) }
    });
    kept.collect()
}

fn delete_one(deletion: Deletion, must_be_synced: bool) -> Outcome {
    let Deletion { partition, epoch, before } = deletion;
    if must_be_synced && !partition.is_durable(before) {
        return Err(ErrorCode::KAFKA_STORAGE_ERROR);
    }
    let deleted = partition.as_leader(epoch, |log| log.delete_records_before(before));
    let start = deleted.map_err(|error| errors::partition(&error))?.map_err(|error| errors::storage(&error))?;
    partition.waiters.wake_all();
    partition.follower_waiters.wake_all();
    Ok(Deletion { partition, epoch, before: start })
}

/// Waits until every living replica has let go of what is deleted. Followers learn of it with their next fetch.
async fn reached_everywhere(outcomes: &[Outcome], timeout: Duration) {
    let reached = async {
        while outcomes.iter().flatten().any(|deletion| deletion.everywhere() == Ok(None)) {
            task::sleep(FOLLOWERS_LOOKED_AT_EVERY).await;
        }
    };
    let _ = task::timeout(timeout, reached).await;
}

impl Deletion {
    /// Where all living replicas begin, once none of them has what is deleted.
    fn everywhere(&self) -> Result<Option<Offset>, ErrorCode> {
        let lowest = self.partition.low_watermark(self.epoch).ok_or(ErrorCode::NOT_LEADER_OR_FOLLOWER)?;
        Ok((lowest >= self.before).then_some(lowest))
    }
}

fn answer(topics: Vec<DeleteRecordsTopic>, outcomes: Vec<Outcome>) -> DeleteRecordsResponse {
    let mut outcomes = outcomes.into_iter();
    let topics = topics.into_iter().map(|topic| {
        // The outcomes go last, so that none is taken without its partition.
        let partitions = topic.partitions.iter().zip(outcomes.by_ref());
        let partitions = partitions.map(|(asked, outcome)| result(asked.partition_index, outcome)).collect();
        DeleteRecordsTopicResult::default().with_name(topic.name).with_partitions(partitions)
    });
    DeleteRecordsResponse::default().with_topics(topics.collect())
}

fn result(index: i32, outcome: Outcome) -> DeleteRecordsPartitionResult {
    let low_watermark = outcome.and_then(|deletion| deletion.everywhere()?.ok_or(ErrorCode::REQUEST_TIMED_OUT));
    let (error, low_watermark) = match low_watermark {
        Ok(low_watermark) => (ErrorCode::NONE, low_watermark),
        Err(error) => (error, NO_OFFSET),
    };
    DeleteRecordsPartitionResult::default()
        .with_partition_index(index)
        .with_low_watermark(low_watermark)
        .with_error_code(error.code())
}
