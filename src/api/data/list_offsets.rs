//! ListOffsets (key 2), v1 to v11: an offset by time, or one of the special ones.
//!
//! v2 isolation level (KIP-98), v4 leader epochs (KIP-320), v7 max timestamp (KIP-734), v8 earliest local (KIP-405), v9 latest tiered
//! (KIP-1005), v10 timeout (KIP-1075), v11 earliest pending upload. There is no tiered storage, so the tiered ones answer "none".

use std::collections::HashSet;
use std::sync::Arc;

use crate::api::{Broker, Refused, RequestContext, errors};
use crate::base::ids::{NO_LEADER_EPOCH, NO_OFFSET};
use crate::base::{ErrorCode, LeaderEpoch, Offset, TimestampMs};
use crate::host::task;
use crate::replica::Partition;
use crate::wire::messages::list_offsets_request::ListOffsetsPartition;
use crate::wire::messages::list_offsets_response::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse};
use crate::wire::messages::{ListOffsetsRequest, ListOffsetsResponse};

const LATEST: TimestampMs = -1;
const EARLIEST: TimestampMs = -2;
const MAX_TIMESTAMP: TimestampMs = -3;
const EARLIEST_LOCAL: TimestampMs = -4;
const LATEST_TIERED: TimestampMs = -5;
const EARLIEST_PENDING_UPLOAD: TimestampMs = -6;

const NO_TIMESTAMP: TimestampMs = -1;

/// Timestamp, offset, leader epoch.
type Found = (TimestampMs, Offset, LeaderEpoch);
const NOTHING_FOUND: Found = (NO_TIMESTAMP, NO_OFFSET, NO_LEADER_EPOCH);

pub async fn handle(
    broker: &Arc<Broker>,
    context: &RequestContext,
    request: ListOffsetsRequest,
) -> Result<ListOffsetsResponse, Refused> {
    let version = context.api_version;
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let twice = asked_twice(&topic.partitions);
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in topic.partitions {
            let index = asked.partition_index;
            let found = if twice.contains(&index) {
                Err(ErrorCode::INVALID_REQUEST)
            } else {
                match errors::hosted_by_name(&broker.partitions, &topic.name, index) {
                    Ok(partition) => look_up(partition, version, &asked).await,
                    Err(error) => Err(error),
                }
            };
            // A partition named twice is refused once.
            if !partitions.iter().any(|done: &ListOffsetsPartitionResponse| done.partition_index == index) {
                partitions.push(answer(version, index, found));
            }
        }
        topics.push(ListOffsetsTopicResponse::default().with_name(topic.name).with_partitions(partitions));
    }
    Ok(ListOffsetsResponse::default().with_topics(topics))
}

fn asked_twice(partitions: &[ListOffsetsPartition]) -> HashSet<i32> {
    let mut seen = HashSet::with_capacity(partitions.len());
    partitions.iter().map(|partition| partition.partition_index).filter(|index| !seen.insert(*index)).collect()
}

/// First version whose clients know that an offset may not be available yet (KIP-207).
const OFFSET_NOT_AVAILABLE_VERSION: i16 = 5;

/// First version that carries leader epochs.
const LEADER_EPOCH_VERSION: i16 = 4;

fn answer(version: i16, index: i32, found: Result<Found, ErrorCode>) -> ListOffsetsPartitionResponse {
    let (error, (timestamp, offset, leader_epoch)) = match found {
        Ok(found) => (ErrorCode::NONE, found),
        Err(error) => (error, NOTHING_FOUND),
    };
    ListOffsetsPartitionResponse::default()
        .with_partition_index(index)
        .with_error_code(error.code())
        .with_timestamp(timestamp)
        .with_offset(offset)
        .with_leader_epoch(if version >= LEADER_EPOCH_VERSION { leader_epoch } else { NO_LEADER_EPOCH })
}

/// The first version that knows a special timestamp; `None` for numbers that mean nothing.
fn known_from(timestamp: TimestampMs) -> Option<i16> {
    match timestamp {
        0.. | LATEST | EARLIEST => Some(1),
        MAX_TIMESTAMP => Some(7),
        EARLIEST_LOCAL => Some(8),
        LATEST_TIERED => Some(9),
        EARLIEST_PENDING_UPLOAD => Some(11),
        _ => None,
    }
}

async fn look_up(partition: Arc<Partition>, version: i16, asked: &ListOffsetsPartition) -> Result<Found, ErrorCode> {
    let timestamp = asked.timestamp;
    if known_from(timestamp).is_none_or(|first| version < first) {
        return Err(ErrorCode::UNSUPPORTED_VERSION);
    }
    errors::check_leader_epoch(&partition, asked.current_leader_epoch)?;
    let view = partition.view().map_err(|error| errors::partition(&error))?;
    match timestamp {
        LATEST => {
            check_high_watermark_known(&partition, version)?;
            Ok((NO_TIMESTAMP, partition.readable_below(&view), partition.leader_epoch()))
        }
        EARLIEST | EARLIEST_LOCAL => {
            let epoch = view.epoch_at(view.log_start_offset);
            Ok((NO_TIMESTAMP, view.log_start_offset, epoch.unwrap_or_else(|| partition.leader_epoch())))
        }
        LATEST_TIERED | EARLIEST_PENDING_UPLOAD => Ok(NOTHING_FOUND),
        // Reads batches, perhaps from the disk.
        _ => task::blocking(move || search(&partition, timestamp, version)).await,
    }
}

/// A new leader learns from its followers how far everything was committed before it. Until then it would answer less than a client may
/// have seen already (KIP-207).
fn check_high_watermark_known(partition: &Partition, version: i16) -> Result<(), ErrorCode> {
    if partition.knows_high_watermark() {
        return Ok(());
    }
    let knows_error = version >= OFFSET_NOT_AVAILABLE_VERSION;
    Err(if knows_error { ErrorCode::OFFSET_NOT_AVAILABLE } else { ErrorCode::LEADER_NOT_AVAILABLE })
}

fn search(partition: &Partition, timestamp: TimestampMs, version: i16) -> Result<Found, ErrorCode> {
    let view = partition.view().map_err(|error| errors::partition(&error))?;
    let up_to = partition.readable_below(&view);
    let decompressed_bytes_max = partition.config().max_decompressed_message_bytes;
    let found = match timestamp {
        MAX_TIMESTAMP => view.max_timestamp(decompressed_bytes_max),
        _ => view.offset_for_time(timestamp, decompressed_bytes_max),
    };
    match found.map_err(|error| errors::storage(&error))? {
        Some(found) if found.offset < up_to => Ok((found.timestamp, found.offset, found.leader_epoch)),
        // There is something, or may be, above what is known to be committed.
        _ => check_high_watermark_known(partition, version).map(|()| NOTHING_FOUND),
    }
}
