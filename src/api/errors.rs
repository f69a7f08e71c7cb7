//! The one place where errors of lower floors become Kafka's codes.

use std::sync::Arc;

use crate::base::ids::NO_LEADER_EPOCH;
use crate::base::{ErrorCode, LeaderEpoch, PartitionIndex};
use crate::log::{AppendError, LogError, ReadError};
use crate::replica::{AckFailure, Partition, PartitionError, Partitions, Role, TopicReplicas};

pub fn partition(error: &PartitionError) -> ErrorCode {
    match error {
        PartitionError::NotLeader => ErrorCode::NOT_LEADER_OR_FOLLOWER,
        PartitionError::NotEnoughReplicas => ErrorCode::NOT_ENOUGH_REPLICAS,
        PartitionError::Offline(_) => ErrorCode::KAFKA_STORAGE_ERROR,
        PartitionError::Append(error) => append(error),
    }
}

/// What was appended is not known to be safe.
pub fn ack(failure: AckFailure) -> ErrorCode {
    match failure {
        AckFailure::NotLeader => ErrorCode::NOT_LEADER_OR_FOLLOWER,
        AckFailure::NotEnoughReplicas => ErrorCode::NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        AckFailure::TimedOut => ErrorCode::REQUEST_TIMED_OUT,
        AckFailure::Storage => ErrorCode::KAFKA_STORAGE_ERROR,
    }
}

pub fn append(error: &AppendError) -> ErrorCode {
    match error {
        AppendError::OutOfOrderSequence { .. } => ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER,
        AppendError::InvalidProducerEpoch { .. } => ErrorCode::INVALID_PRODUCER_EPOCH,
        AppendError::TooLarge { .. } => ErrorCode::RECORD_LIST_TOO_LARGE,
        AppendError::UnexpectedOffset { .. } | AppendError::Malformed(_) => ErrorCode::CORRUPT_MESSAGE,
        AppendError::Storage(error) => storage(error),
    }
}

pub fn read(error: &ReadError) -> ErrorCode {
    match error {
        ReadError::OffsetOutOfRange { .. } => ErrorCode::OFFSET_OUT_OF_RANGE,
        ReadError::Missing(_) => ErrorCode::KAFKA_STORAGE_ERROR,
        ReadError::Storage(error) => storage(error),
    }
}

pub fn storage(error: &LogError) -> ErrorCode {
    match error {
        LogError::OffsetOutOfRange { .. } => ErrorCode::OFFSET_OUT_OF_RANGE,
        LogError::Storage { .. }
        | LogError::InconsistentTopicId { .. }
        | LogError::Corrupt { .. }
        | LogError::Text { .. } => ErrorCode::KAFKA_STORAGE_ERROR,
    }
}

/// A partition that lies here, or what a client is told that asks the wrong node for it, or for one that is nowhere.
pub fn hosted(topic: &TopicReplicas, index: PartitionIndex) -> Result<&Arc<Partition>, ErrorCode> {
    let elsewhere =
        if topic.has(index) { ErrorCode::NOT_LEADER_OR_FOLLOWER } else { ErrorCode::UNKNOWN_TOPIC_OR_PARTITION };
    topic.partition(index).ok_or(elsewhere)
}

/// The same by the topic's name.
pub fn hosted_by_name(
    partitions: &Partitions,
    topic: &str,
    index: PartitionIndex,
) -> Result<Arc<Partition>, ErrorCode> {
    let topic = partitions.topic(topic).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    hosted(&topic, index).cloned()
}

/// What the client believes the leader's epoch to be, against what it is (KIP-320), where only the leader may answer. -1: it does not
/// say.
pub fn check_leader_epoch(partition: &Partition, claimed: LeaderEpoch) -> Result<(), ErrorCode> {
    match check_epoch(partition, claimed)? {
        Role::Leader { .. } => Ok(()),
        Role::Follower { .. } | Role::Idle { .. } => Err(ErrorCode::NOT_LEADER_OR_FOLLOWER),
    }
}

/// The same where a follower may answer too. What this node is for the partition.
pub fn check_epoch(partition: &Partition, claimed: LeaderEpoch) -> Result<Role, ErrorCode> {
    let role = partition.role();
    match claimed {
        NO_LEADER_EPOCH => Ok(role),
        claimed if claimed < role.epoch() => Err(ErrorCode::FENCED_LEADER_EPOCH),
        claimed if claimed > role.epoch() => Err(ErrorCode::UNKNOWN_LEADER_EPOCH),
        _ => Ok(role),
    }
}
