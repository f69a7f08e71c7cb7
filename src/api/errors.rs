//! The one place where errors of lower floors become Kafka's codes.

use crate::base::ids::NO_LEADER_EPOCH;
use crate::base::{ErrorCode, LeaderEpoch};
use crate::log::{AppendError, LogError, ReadError};
use crate::replica::{Partition, PartitionError};

pub fn partition(error: &PartitionError) -> ErrorCode {
    match error {
        PartitionError::NotLeader => ErrorCode::NOT_LEADER_OR_FOLLOWER,
        PartitionError::Offline(_) => ErrorCode::KAFKA_STORAGE_ERROR,
        PartitionError::Append(error) => append(error),
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

/// What the client believes the leader's epoch to be, against what it is (KIP-320). -1: it does not say.
pub fn check_leader_epoch(partition: &Partition, claimed: LeaderEpoch) -> Result<(), ErrorCode> {
    let current = partition.leader_epoch();
    if current == NO_LEADER_EPOCH {
        return Err(ErrorCode::NOT_LEADER_OR_FOLLOWER);
    }
    match claimed {
        NO_LEADER_EPOCH => Ok(()),
        claimed if claimed < current => Err(ErrorCode::FENCED_LEADER_EPOCH),
        claimed if claimed > current => Err(ErrorCode::UNKNOWN_LEADER_EPOCH),
        _ => Ok(()),
    }
}
