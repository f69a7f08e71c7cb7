//! One partition of a Fetch: the checks, and the region of the log that answers it.

use std::sync::Arc;

use crate::api::Broker;
use crate::api::data::fetch_session::{PartitionKey, Told, TopicKey, Wanted};
use crate::api::errors;
use crate::base::ids::{NO_LEADER_EPOCH, NO_OFFSET};
use crate::base::{ErrorCode, Offset, PartitionIndex};
use crate::log::{LogView, ReadSlice};
use crate::replica::{Partition, TopicReplicas};
use crate::telemetry::ApiMetrics;
use crate::wire::fetch_response::{DivergingEpoch, PartitionReply};
use crate::wire::response::Piece;

/// What holds for every partition of one request.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    pub bytes_max: usize,
    pub read_committed: bool,
    pub by_id: bool,
}

pub struct PartitionAnswer {
    error: ErrorCode,
    high_watermark: Offset,
    last_stable_offset: Offset,
    log_start_offset: Offset,
    diverging: Option<DivergingEpoch>,
    slice: Option<ReadSlice>,
    /// The topic, where it is known: it counts what is sent.
    topic: Option<Arc<TopicReplicas>>,
}

impl PartitionAnswer {
    fn error(error: ErrorCode) -> PartitionAnswer {
        PartitionAnswer {
            error,
            high_watermark: NO_OFFSET,
            last_stable_offset: NO_OFFSET,
            log_start_offset: NO_OFFSET,
            diverging: None,
            slice: None,
            topic: None,
        }
    }

    /// Counts the answer when it is sent. (It may be read several times before that.)
    pub fn count(&self, outcomes: &ApiMetrics) {
        outcomes.outcome(self.error);
        match &self.topic {
            Some(topic) if self.error.is_error() => topic.metrics.fetch_failed(),
            Some(topic) => topic.metrics.fetched(self.bytes() as u64),
            None => {}
        }
    }

    pub fn bytes(&self) -> usize {
        self.slice.as_ref().map_or(0, |slice| slice.len)
    }

    /// Refused before the log was asked: answered first, and with an empty list of aborted transactions instead of none.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self.error,
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION | ErrorCode::UNKNOWN_TOPIC_ID | ErrorCode::TOPIC_AUTHORIZATION_FAILED
        )
    }

    pub fn ends_the_wait(&self) -> bool {
        self.error.is_error() || self.diverging.is_some()
    }

    pub fn told(&self) -> Told {
        Told { high_watermark: self.high_watermark, log_start_offset: self.log_start_offset, error: self.error }
    }

    pub fn into_reply(self, partition: PartitionIndex, read_committed: bool) -> PartitionReply {
        let has_aborted_list = self.is_refusal() || (read_committed && self.error.is_none());
        PartitionReply {
            high_watermark: self.high_watermark,
            last_stable_offset: self.last_stable_offset,
            log_start_offset: self.log_start_offset,
            diverging_epoch: self.diverging,
            aborted_transactions: has_aborted_list.then(Vec::new),
            records: self.slice.map(records).into_iter().collect(),
            ..PartitionReply::refused(partition, self.error.code())
        }
    }
}

/// Regions up to this size are read into the answer: one write of everything is cheaper than a call per region.
const COPIED_REGION_BYTES_MAX: usize = 8 * 1024;

fn records(slice: ReadSlice) -> Piece {
    if slice.len <= COPIED_REGION_BYTES_MAX {
        let mut bytes = vec![0; slice.len];
        if slice.file.read_exact_at(&mut bytes, slice.position).is_ok() {
            return Piece::Bytes(bytes.into());
        }
    }
    Piece::File { file: slice.file, position: slice.position, len: slice.len }
}

/// Reads at most `left` bytes (and `wanted.bytes_max`), but one whole batch when nothing was read before (`first`, KIP-74).
pub fn read_partition(
    broker: &Arc<Broker>,
    reading: &Reading,
    (topic, index): &PartitionKey,
    wanted: &Wanted,
    left: usize,
    first: bool,
) -> PartitionAnswer {
    let replicas =
        if reading.by_id { broker.partitions.topic_by_id(topic.id) } else { broker.partitions.topic(&topic.name) };
    let Some(replicas) = replicas else {
        return PartitionAnswer::error(unknown_topic(broker, reading, topic));
    };
    let Some(partition) = replicas.partition(*index) else {
        return PartitionAnswer::error(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    };
    let mut answer = read_known(partition, wanted, left, first).unwrap_or_else(PartitionAnswer::error);
    answer.topic = Some(replicas);
    answer
}

fn unknown_topic(broker: &Broker, reading: &Reading, topic: &TopicKey) -> ErrorCode {
    if !reading.by_id {
        return ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    }
    // A session remembers the name: when another topic has it now, the client is told that the two do not match.
    let replaced = !topic.name.is_empty() && broker.partitions.topic(&topic.name).is_some();
    if replaced { ErrorCode::INCONSISTENT_TOPIC_ID } else { ErrorCode::UNKNOWN_TOPIC_ID }
}

fn read_known(partition: &Partition, wanted: &Wanted, left: usize, first: bool) -> Result<PartitionAnswer, ErrorCode> {
    errors::check_leader_epoch(partition, wanted.current_leader_epoch)?;
    let view = partition.view().map_err(|error| errors::partition(&error))?;
    let high_watermark = Partition::high_watermark(&view);
    let mut answer = PartitionAnswer {
        error: ErrorCode::NONE,
        high_watermark,
        last_stable_offset: high_watermark,
        log_start_offset: view.log_start_offset,
        diverging: None,
        slice: None,
        topic: None,
    };
    if wanted.last_fetched_epoch != NO_LEADER_EPOCH {
        answer.diverging = divergence(&view, wanted)?;
        if answer.diverging.is_some() {
            return Ok(answer);
        }
    }
    if wanted.fetch_offset < view.log_start_offset || wanted.fetch_offset > view.log_end_offset {
        return Err(ErrorCode::OFFSET_OUT_OF_RANGE);
    }
    answer.slice = read_slice(&view, wanted, high_watermark, left, first)?;
    Ok(answer)
}

fn read_slice(
    view: &LogView,
    wanted: &Wanted,
    up_to: Offset,
    left: usize,
    first: bool,
) -> Result<Option<ReadSlice>, ErrorCode> {
    let bytes_max = usize::try_from(wanted.bytes_max).unwrap_or(0).min(left);
    if wanted.fetch_offset >= up_to || (bytes_max == 0 && !first) {
        return Ok(None);
    }
    view.read(wanted.fetch_offset, bytes_max, up_to, first).map_err(|error| errors::read(&error))
}

/// Where the consumer's history leaves ours, if it does (KIP-595): the last epoch we share and its end.
fn divergence(view: &LogView, wanted: &Wanted) -> Result<Option<DivergingEpoch>, ErrorCode> {
    let (epoch, end_offset) = view.epoch_end_offset(wanted.last_fetched_epoch);
    if end_offset == NO_OFFSET {
        return Err(ErrorCode::OFFSET_OUT_OF_RANGE);
    }
    let diverges = epoch < wanted.last_fetched_epoch || end_offset < wanted.fetch_offset;
    Ok(diverges.then_some(DivergingEpoch { epoch, end_offset }))
}
