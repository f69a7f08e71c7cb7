//! Taking over what a leader answered for one partition. Blocks; runs where that is allowed.

use std::sync::Arc;

use crate::base::{ErrorCode, LeaderEpoch};
use crate::log::AppendError;
use crate::replica::error::PartitionError;
use crate::replica::follower::{BadBatch, Position};
use crate::replica::partition::Partition;
use crate::replica::partition_follow::{Files, FollowError, LeaderSays};
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
    /// Goes on from here.
    At(Position),
    /// Another role or epoch: this fetcher has nothing to do with it any more.
    Gone,
    /// Try again after a pause.
    Failed,
}

/// `false` when there is nothing in it that anybody has to act on.
pub(super) fn is_news(data: &PartitionData) -> bool {
    data.error_code != 0 || data.diverging_epoch.end_offset >= 0 || data.high_watermark >= 0
}

/// Whether it moves at most what readers may see: nothing is written, and nothing has to be waited for.
pub(super) fn is_quick(data: &PartitionData) -> bool {
    data.error_code == 0
        && data.diverging_epoch.end_offset < 0
        && data.records.as_ref().is_none_or(|records| records.is_empty())
}

pub(super) fn take(part: &Part, files: Files<'_>) -> Taken {
    let position = take_over(part, files)
        .and_then(|is_done| if is_done { part.partition.position(part.epoch).map(Some) } else { Ok(None) });
    match position {
        Ok(Some(position)) => Taken::At(position),
        Ok(None) => Taken::Failed,
        Err(FollowError::RoleChanged) => Taken::Gone,
        // It is about to be cut, and then this is fetched again.
        Err(FollowError::Damaged) => Taken::Failed,
        // That was said when it happened.
        Err(FollowError::Partition(PartitionError::Offline(_) | PartitionError::Append(AppendError::Storage(_)))) => {
            Taken::Failed
        }
        Err(error) => {
            let is_bad =
                matches!(error, FollowError::Corrupt { .. } | FollowError::Malformed(_) | FollowError::Misfit { .. });
            let reason = if let FollowError::Misfit { reason, .. } = &error { Some(*reason) } else { None };
            part.partition.note_went_back(matches!(reason, Some(BadBatch::Epoch { got, least, .. }) if got < least));
            let partition = &part.partition.identity.topic_partition;
            if is_bad && !part.partition.note_bad_answer() {
                tracing::debug!(%partition, leader_epoch = part.epoch, %error, "still cannot take over what the leader sent");
            } else {
                tracing::warn!(%partition, leader_epoch = part.epoch, %error, "cannot take over what the leader sent; trying again");
            }
            Taken::Failed
        }
    }
}

/// `false`: nothing could be done about it now.
fn take_over(part: &Part, files: Files<'_>) -> Result<bool, FollowError> {
    let Part { partition, epoch, data, .. } = part;
    match ErrorCode(data.error_code) {
        ErrorCode::NONE => {}
        ErrorCode::OFFSET_OUT_OF_RANGE => {
            let repair = partition.restart_if_out_of_range(files, *epoch, data.log_start_offset)?;
            return Ok(repair.is_some() || partition.follow_start_when_damaged(*epoch, data.log_start_offset)?);
        }
        error => {
            if error == ErrorCode::KAFKA_STORAGE_ERROR {
                partition.note_bad_answer();
            }
            tracing::debug!(partition = %partition.identity.topic_partition, leader_epoch = epoch, %error, "the leader refuses a fetch");
            return Ok(false);
        }
    }
    let diverging = &data.diverging_epoch;
    if diverging.end_offset >= 0 {
        return partition.cut_to_divergence(files, *epoch, diverging.epoch, diverging.end_offset);
    }
    let says = LeaderSays { high_watermark: data.high_watermark, log_start_offset: data.log_start_offset };
    partition.append_as_follower(files, *epoch, data.records.as_deref().unwrap_or_default(), says)?;
    Ok(true)
}
