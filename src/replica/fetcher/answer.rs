//! Taking over what a leader answered for one partition. Blocks; runs where that is allowed.

use std::sync::Arc;

use crate::base::{ErrorCode, LeaderEpoch, Offset};
use crate::log::AppendError;
use crate::replica::error::PartitionError;
use crate::replica::flusher::Flusher;
use crate::replica::follower::Position;
use crate::replica::partition::Partition;
use crate::replica::partition_follow::{FollowError, LeaderSays};
use crate::wire::messages::fetch_response::PartitionData;

use super::session::Key;

/// One partition's part of an answer.
pub(super) struct Part {
    pub key: Key,
    pub partition: Arc<Partition>,
    pub epoch: LeaderEpoch,
    pub data: PartitionData,
}

/// What came of it.
pub(super) enum Taken {
    /// Goes on from here. `written_below`: records were written, and must be synced up to there before the next fetch says so.
    At { position: Position, written_below: Option<Offset> },
    /// Another role or epoch: this fetcher has nothing to do with it any more.
    Gone,
    /// Try again after a pause.
    Failed,
}

/// `false` when there is nothing in it that anybody has to act on.
pub(super) fn is_news(data: &PartitionData) -> bool {
    data.error_code != 0 || data.diverging_epoch.end_offset >= 0 || data.high_watermark >= 0
}

pub(super) fn take(part: &Part, flusher: &Flusher) -> Taken {
    let taken = take_over(part, flusher).and_then(|written_below| {
        let position = part.partition.position(part.epoch)?;
        Ok(written_below.map(|written_below| Taken::At { position, written_below }))
    });
    match taken {
        Ok(Some(taken)) => taken,
        Ok(None) => Taken::Failed,
        Err(FollowError::RoleChanged) => Taken::Gone,
        // It is about to be cut, and then this is fetched again.
        Err(FollowError::Damaged) => Taken::Failed,
        // That was said when it happened.
        Err(FollowError::Partition(PartitionError::Offline(_) | PartitionError::Append(AppendError::Storage(_)))) => {
            Taken::Failed
        }
        Err(error) => {
            if matches!(error, FollowError::Corrupt { .. } | FollowError::Malformed(_)) {
                part.partition.note_bad_answer();
            }
            tracing::warn!(partition = %part.partition.identity.topic_partition, leader_epoch = part.epoch, %error, "cannot take over what the leader sent; trying again");
            Taken::Failed
        }
    }
}

/// `Ok(None)`: nothing could be done about it now.
fn take_over(part: &Part, flusher: &Flusher) -> Result<Option<Option<Offset>>, FollowError> {
    let Part { partition, epoch, data, .. } = part;
    match ErrorCode(data.error_code) {
        ErrorCode::NONE => {}
        ErrorCode::OFFSET_OUT_OF_RANGE => {
            let repair = partition.restart_if_out_of_range(flusher, *epoch, data.log_start_offset)?;
            return Ok(repair.map(|_| None));
        }
        error => {
            if error == ErrorCode::KAFKA_STORAGE_ERROR {
                partition.note_bad_answer();
            }
            tracing::debug!(partition = %partition.identity.topic_partition, leader_epoch = epoch, %error, "the leader refuses a fetch");
            return Ok(None);
        }
    }
    let diverging = &data.diverging_epoch;
    if diverging.end_offset >= 0 {
        partition.cut_to_divergence(flusher, *epoch, diverging.epoch, diverging.end_offset)?;
        return Ok(Some(None));
    }
    let says = LeaderSays { high_watermark: data.high_watermark, log_start_offset: data.log_start_offset };
    let records = data.records.clone().unwrap_or_default();
    let end = partition.append_as_follower(*epoch, &records, says)?;
    Ok(Some((!records.is_empty()).then_some(end)))
}
