//! One partition of a Fetch: the checks, and the region of the log that answers it.

use std::sync::Arc;

use crate::api::Broker;
use crate::api::data::fetch_session::{Besides, PartitionKey, Told, TopicKey, Wanted};
use crate::api::data::{leader_hints, preferred_reads};
use crate::api::errors;
use crate::base::ids::{NO_BROKER, NO_LEADER_EPOCH, NO_OFFSET};
use crate::base::{BrokerId, ErrorCode, LeaderEpoch, Offset, PartitionIndex};
use crate::log::{LogView, ReadSlice};
use crate::replica::{FollowerFetch, Partition, Partitions, Role, Rules, TopicReplicas};
use crate::telemetry::ApiMetrics;
use crate::wire::fetch_response::{DivergingEpoch, PartitionReply};
use crate::wire::response::Piece;

/// Who reads.
#[derive(Clone, Debug)]
pub enum Reader {
    Consumer {
        /// Whether it knows that a follower may answer.
        knows_followers: bool,
        /// `None` for one that does not say where it stands.
        rack: Option<Arc<str>>,
        connection: u64,
    },
    /// Another broker, which has been checked.
    Replica { id: BrokerId, epoch: i64 },
}

impl Reader {
    pub fn is_replica(&self) -> bool {
        matches!(self, Reader::Replica { .. })
    }
}

/// What holds for every partition of one request.
#[derive(Clone, Debug)]
pub struct Reading {
    pub bytes_max: usize,
    pub read_committed: bool,
    pub by_id: bool,
    pub reader: Reader,
}

impl Reading {
    /// The topic that a request means, under the one of its names that counts: with an id, the name may be an old one or none.
    pub fn topic(&self, partitions: &Partitions, key: &TopicKey) -> Option<Arc<TopicReplicas>> {
        if self.by_id { partitions.topic_by_id(key.id) } else { partitions.topic(&key.name) }
    }
}

pub struct PartitionAnswer {
    error: ErrorCode,
    high_watermark: Offset,
    last_stable_offset: Offset,
    log_start_offset: Offset,
    diverging: Option<DivergingEpoch>,
    slice: Option<ReadSlice>,
    /// Where the consumer should read instead; -1 for here.
    preferred: BrokerId,
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
            preferred: NO_BROKER,
            topic: None,
        }
    }

    /// Who leads, when the answer is that we do not.
    pub fn other_leader(&self, broker: &Broker, index: PartitionIndex) -> Option<(BrokerId, LeaderEpoch)> {
        if !leader_hints::is_about_leader(self.error) {
            return None;
        }
        leader_hints::leader(broker, self.topic.as_ref()?.id, index)
    }

    /// Counts the answer when it is sent. (It may be read several times before that.)
    pub fn count(&self, outcomes: &ApiMetrics, reader: &Reader, index: PartitionIndex) {
        outcomes.outcome(self.error);
        if let Reader::Replica { id, .. } = reader {
            // Bytes in and out are those of clients.
            if let Some(partition) = self.topic.as_ref().and_then(|topic| topic.partition(index)) {
                partition.note_sent(*id, self.bytes());
            }
            return;
        }
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

    fn besides(&self) -> Besides {
        if self.error.is_error() || self.diverging.is_some() {
            Besides::Refusal
        } else if self.preferred != NO_BROKER {
            Besides::Redirection
        } else {
            Besides::Nothing
        }
    }

    pub fn ends_the_wait(&self) -> bool {
        self.besides() != Besides::Nothing
    }

    pub fn told(&self) -> Told {
        Told { high_watermark: self.high_watermark, log_start_offset: self.log_start_offset, besides: self.besides() }
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
            preferred_read_replica: self.preferred,
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
    let Some(replicas) = reading.topic(&broker.partitions, topic) else {
        return PartitionAnswer::error(unknown_topic(broker, reading, topic));
    };
    let partition = match errors::hosted(&replicas, *index) {
        Ok(partition) => partition,
        Err(error) => return PartitionAnswer { topic: Some(replicas), ..PartitionAnswer::error(error) },
    };
    let rules = broker.partitions.rules();
    let mut answer =
        read_known(partition, &reading.reader, rules, wanted, left, first).unwrap_or_else(PartitionAnswer::error);
    if let Some(preferred) = preferred(broker, reading, &replicas, partition, wanted, &answer) {
        (answer.preferred, answer.slice) = (preferred, None);
    }
    answer.topic = Some(replicas);
    answer
}

/// A replica nearer to the consumer, if it should read there.
fn preferred(
    broker: &Broker,
    reading: &Reading,
    topic: &TopicReplicas,
    partition: &Partition,
    wanted: &Wanted,
    answer: &PartitionAnswer,
) -> Option<BrokerId> {
    let Reader::Consumer { rack: Some(rack), connection, .. } = &reading.reader else { return None };
    let has_choice = answer.error.is_none() && answer.diverging.is_none() && partition.is_leader();
    if !has_choice || !broker.options.selects_by_rack {
        return None;
    }
    let nearest = preferred_reads::nearest(broker, partition, rack, wanted.fetch_offset)?;
    let key = (*connection, topic.id, partition.identity.topic_partition.partition);
    let now = broker.host.clock.monotonic_ms();
    broker.fetch_sessions.sent_away.may_send(key, now).then_some(nearest)
}

/// Tells the leader's machine what a follower has, if its history is ours up to there.
pub fn note_follower(broker: &Broker, reading: &Reading, (topic, index): &PartitionKey, wanted: &Wanted) {
    let Reader::Replica { id, epoch: broker_epoch } = reading.reader else { return };
    let replicas = reading.topic(&broker.partitions, topic);
    let Some(partition) = replicas.as_ref().and_then(|replicas| replicas.partition(*index)) else { return };
    let rules = broker.partitions.rules();
    let epoch = if rules.checks_leader_epoch { wanted.current_leader_epoch } else { partition.leader_epoch() };
    if errors::check_leader_epoch(partition, epoch).is_err() || epoch == NO_LEADER_EPOCH {
        return;
    }
    let Ok(view) = partition.view() else { return };
    if !matches!(checked(&view, wanted, rules), Ok(None)) {
        return;
    }
    let fetch = FollowerFetch {
        broker: id,
        broker_epoch,
        fetch_offset: wanted.fetch_offset,
        log_start_offset: wanted.log_start_offset,
    };
    if let Err(reason) = partition.note_fetch(fetch, epoch) {
        tracing::debug!(partition = %partition.identity.topic_partition, replica = id, %reason, "a follower's fetch does not count");
    }
}

fn check_range(view: &LogView, wanted: &Wanted) -> Result<(), ErrorCode> {
    let known = view.log_start_offset..=view.log_end_offset;
    if known.contains(&wanted.fetch_offset) { Ok(()) } else { Err(ErrorCode::OFFSET_OUT_OF_RANGE) }
}

fn unknown_topic(broker: &Broker, reading: &Reading, topic: &TopicKey) -> ErrorCode {
    if !reading.by_id {
        return ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    }
    // A session remembers the name: when another topic has it now, the client is told that the two do not match.
    let replaced = !topic.name.is_empty() && broker.partitions.topic(&topic.name).is_some();
    if replaced { ErrorCode::INCONSISTENT_TOPIC_ID } else { ErrorCode::UNKNOWN_TOPIC_ID }
}

fn read_known(
    partition: &Partition,
    reader: &Reader,
    rules: Rules,
    wanted: &Wanted,
    left: usize,
    first: bool,
) -> Result<PartitionAnswer, ErrorCode> {
    let claimed = if rules.checks_leader_epoch { wanted.current_leader_epoch } else { NO_LEADER_EPOCH };
    let role = errors::check_epoch(partition, claimed)?;
    let may_read = match role {
        Role::Leader { .. } => true,
        Role::Follower { .. } => matches!(reader, Reader::Consumer { knows_followers: true, .. }),
        Role::Idle { .. } => false,
    };
    if !may_read {
        return Err(ErrorCode::NOT_LEADER_OR_FOLLOWER);
    }
    let view = partition.view().map_err(|error| errors::partition(&error))?;
    let high_watermark = partition.readable_below(&view);
    let mut answer = PartitionAnswer {
        high_watermark,
        last_stable_offset: high_watermark,
        log_start_offset: view.log_start_offset,
        ..PartitionAnswer::error(ErrorCode::NONE)
    };
    match checked(&view, wanted, rules) {
        Ok(None) => {}
        Ok(diverging) => {
            answer.diverging = diverging;
            return Ok(answer);
        }
        // A follower begins again where we do.
        Err(error) if reader.is_replica() => {
            let log_start_offset = view.log_start_offset;
            return Ok(PartitionAnswer { log_start_offset, ..PartitionAnswer::error(error) });
        }
        Err(_) if matches!(role, Role::Follower { .. }) && wanted.fetch_offset > view.log_end_offset => {
            // The leader has it and it will come; that is no reason to begin anew somewhere else (KIP-392).
            return Err(ErrorCode::OFFSET_NOT_AVAILABLE);
        }
        Err(error) => return Err(error),
    }
    match reader {
        Reader::Replica { id, .. } if partition.is_held_back(*id) => {}
        Reader::Replica { .. } => answer.slice = read_slice(&view, wanted, view.log_end_offset, left, first)?,
        Reader::Consumer { .. } => answer.slice = read_slice(&view, wanted, high_watermark, left, first)?,
    }
    Ok(answer)
}

/// A divergence, nothing, or an offset out of range, in this order.
fn checked(view: &LogView, wanted: &Wanted, rules: Rules) -> Result<Option<DivergingEpoch>, ErrorCode> {
    if !rules.cuts_by_epoch {
        return check_range(view, wanted).map(|()| None);
    }
    match divergence(view, wanted)? {
        None => check_range(view, wanted).map(|()| None),
        diverging => Ok(diverging),
    }
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

/// Where the reader's history leaves ours, if it does (KIP-595): the last epoch we share and its end. A divergence is told even where
/// the offset itself is beyond our end; one below our start is out of range.
fn divergence(view: &LogView, wanted: &Wanted) -> Result<Option<DivergingEpoch>, ErrorCode> {
    if wanted.last_fetched_epoch == NO_LEADER_EPOCH {
        return Ok(None);
    }
    let (epoch, end_offset) = view.epoch_end_offset(wanted.last_fetched_epoch);
    if end_offset == NO_OFFSET || wanted.fetch_offset < view.log_start_offset {
        return Err(ErrorCode::OFFSET_OUT_OF_RANGE);
    }
    let diverges = epoch < wanted.last_fetched_epoch || end_offset < wanted.fetch_offset;
    Ok(diverges.then_some(DivergingEpoch { epoch, end_offset }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_an_error_or_a_divergence_nothing_else_is_taken_over() {
        let plain = || PartitionAnswer { high_watermark: 106, ..PartitionAnswer::error(ErrorCode::NONE) };
        let diverging = Some(DivergingEpoch { epoch: 1, end_offset: 106 });
        for (answer, besides) in [
            (plain(), Besides::Nothing),
            (PartitionAnswer { diverging, ..plain() }, Besides::Refusal),
            (PartitionAnswer { preferred: 2, ..plain() }, Besides::Redirection),
            (PartitionAnswer::error(ErrorCode::FENCED_LEADER_EPOCH), Besides::Refusal),
        ] {
            assert_eq!((answer.told().besides, answer.ends_the_wait()), (besides, besides != Besides::Nothing));
        }
    }
}
