//! Produce (key 0), advertised from v0 (KAFKA-18659), accepted v3 to v13. Everything up to the append happens on the connection's
//! own task; only `acks=all` waits, for the in-sync replicas and for the group commit of the disk, and whoever appends the record that
//! `flush.messages` waits for.
//!
//! v3 transactional id, v5 log start offset, v8 record errors (KIP-467), v9 flexible, v10 leader hints (KIP-951), v12 implicit
//! AddPartitionsToTxn (KIP-890), v13 topic ids (KIP-516).

use std::sync::Arc;
use std::time::Duration;

use crate::api::answer::Answer;
use crate::api::data::leader_hints;
use crate::api::data::turned_away::{Spot, TurnedAway};
use crate::api::{Broker, Refused, RequestContext, dispatch, errors, refused};
use crate::base::ids::NO_OFFSET;
use crate::base::{BrokerId, ErrorCode, Offset, TimestampMs, TopicId};
use crate::log::{Appended, NewBatch};
use crate::records::{self, BatchHeader, RecordError, RecordIssue, Validated};
use crate::replica::{AckFailure, Partition, SyncWait, TopicReplicas, Unanswered};
use crate::telemetry::Reason;
use crate::wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use crate::wire::messages::produce_response::{
    BatchIndexAndErrorMessage, LeaderIdAndEpoch, NodeEndpoint, PartitionProduceResponse, TopicProduceResponse,
};
use crate::wire::messages::{ProduceRequest, ProduceResponse, StrBytes};
use crate::wire::table::Api;

const TOPIC_ID_VERSION: i16 = 13;
const LEADER_HINTS_VERSION: i16 = 10;

pub fn handle(broker: &Arc<Broker>, context: &RequestContext, api: &'static Api, request: ProduceRequest) -> Answer {
    let acks = request.acks;
    let produce = Produce {
        broker,
        context,
        version: context.api_version,
        transactional: request.transactional_id.is_some(),
        acks_are_legal: matches!(acks, -1..=1),
        wait: SyncWait::new(acks, broker.options.flush_policy),
        now: broker.host.clock.now_ms(),
    };
    let mut response = ProduceResponse::default();
    for topic in request.topic_data {
        if !topic.partition_data.is_empty() {
            response.responses.push(produce.topic(topic));
        }
    }
    if acks == 0 {
        return acks_zero(&response);
    }
    let timeout = Duration::from_millis(u64::try_from(request.timeout_ms).unwrap_or(0));
    match produce.wait.seal() {
        Some(unanswered) => {
            let (broker, context) = (broker.clone(), context.clone());
            Answer::Later(Box::pin(async move {
                if !unanswered.wait(timeout).await {
                    fail_unsafe(&broker, context.api_version, &mut response, &unanswered);
                }
                hint_leaders(&broker, &context, &mut response);
                dispatch::encode(&broker, api, &context, &response).map(Some)
            }))
        }
        None => {
            hint_leaders(broker, context, &mut response);
            match dispatch::encode(broker, api, context, &response) {
                Ok(response) => Answer::Now(response),
                Err(refused) => Answer::Close(refused),
            }
        }
    }
}

/// Tells the producer who leads the partitions that we do not lead (KIP-951).
fn hint_leaders(broker: &Broker, context: &RequestContext, response: &mut ProduceResponse) {
    if context.api_version < LEADER_HINTS_VERSION {
        return;
    }
    let mut leaders: Vec<BrokerId> = Vec::new();
    for topic in &mut response.responses {
        for partition in &mut topic.partition_responses {
            if !leader_hints::is_about_leader(ErrorCode(partition.error_code)) {
                continue;
            }
            let id = match topic.topic_id {
                id if id.is_nil() => broker.image().topic_id(&topic.name),
                id => Some(TopicId(id)),
            };
            let leader = id.and_then(|id| leader_hints::leader(broker, id, partition.index));
            if let Some((leader, epoch)) = leader {
                partition.current_leader =
                    LeaderIdAndEpoch::default().with_leader_id(leader.into()).with_leader_epoch(epoch);
                leaders.push(leader);
            }
        }
    }
    if !leaders.is_empty() {
        let nodes = leader_hints::endpoints(broker, context, leaders).into_iter();
        response.node_endpoints = nodes
            .map(|node| {
                NodeEndpoint::default()
                    .with_node_id(node.id.into())
                    .with_host(node.host)
                    .with_port(node.port)
                    .with_rack(node.rack)
            })
            .collect();
    }
}

/// A producer that wants no answers learns of an error by losing its connection.
fn acks_zero(response: &ProduceResponse) -> Answer {
    let failed = response.responses.iter().flat_map(|topic| &topic.partition_responses).find(|one| one.error_code != 0);
    match failed {
        None => Answer::Nothing,
        Some(partition) => Answer::Close(Refused::new(format!(
            "acks=0 and partition {} failed with {}",
            partition.index,
            ErrorCode(partition.error_code)
        ))),
    }
}

/// Some records did not become safe: they must not be acknowledged. What was appended is numbered in the order of the answers.
fn fail_unsafe(broker: &Broker, version: i16, response: &mut ProduceResponse, unanswered: &Unanswered) {
    let image = broker.image();
    let mut number = 0;
    for topic in &mut response.responses {
        // As a request that comes now would be answered; whoever is still here is asked again.
        let (is_known, unknown) = if version >= TOPIC_ID_VERSION {
            (image.topic_by_id(TopicId(topic.topic_id)).is_some(), ErrorCode::UNKNOWN_TOPIC_ID)
        } else {
            (image.topic(&topic.name).is_some(), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
        };
        let not_led = if is_known { errors::ack(AckFailure::NotLeader) } else { unknown };
        for partition in topic.partition_responses.iter_mut().filter(|partition| partition.error_code == 0) {
            match unanswered.outcome(number) {
                Ok(()) => {}
                Err(AckFailure::NotLeader) => *partition = failure(partition.index, not_led),
                Err(error) => *partition = failure(partition.index, errors::ack(error)),
            }
            number += 1;
        }
    }
}

fn failure(index: i32, error: ErrorCode) -> PartitionProduceResponse {
    PartitionProduceResponse::default()
        .with_index(index)
        .with_error_code(error.code())
        .with_base_offset(NO_OFFSET)
        .with_log_append_time_ms(-1)
        .with_log_start_offset(NO_OFFSET)
}

struct Produce<'a> {
    broker: &'a Arc<Broker>,
    context: &'a RequestContext,
    version: i16,
    transactional: bool,
    acks_are_legal: bool,
    wait: SyncWait,
    now: TimestampMs,
}

impl Produce<'_> {
    fn topic(&self, topic: TopicProduceData) -> TopicProduceResponse {
        let by_id = self.version >= TOPIC_ID_VERSION;
        let replicas = if by_id {
            self.broker.partitions.topic_by_id(TopicId(topic.topic_id))
        } else {
            self.broker.partitions.topic(&topic.name)
        };
        let unknown = if by_id { ErrorCode::UNKNOWN_TOPIC_ID } else { ErrorCode::UNKNOWN_TOPIC_OR_PARTITION };
        let mut answers = Vec::with_capacity(topic.partition_data.len());
        for data in topic.partition_data {
            let index = data.index;
            let spot = Spot { topic: &topic.name, topic_id: TopicId(topic.topic_id), partition: index };
            let answer = match &replicas {
                _ if !self.acks_are_legal => failure(index, ErrorCode::INVALID_REQUIRED_ACKS),
                None => self.unknown(spot, &data, unknown),
                Some(replicas) => self.counted(replicas, spot, data),
            };
            answers.push(answer);
        }
        TopicProduceResponse::default()
            .with_name(topic.name)
            .with_topic_id(topic.topic_id)
            .with_partition_responses(answers)
    }

    fn turned_away(&self) -> &TurnedAway {
        &self.context.connection.turned_away
    }

    /// Answers that there is no such partition, which may only be so for now.
    fn unknown(&self, spot: Spot<'_>, data: &PartitionProduceData, code: ErrorCode) -> PartitionProduceResponse {
        if let Some(Ok((header, _))) = data.records.as_ref().map(|records| records::single_batch(records, self.version))
        {
            self.turned_away().refused(spot, &header, code, self.context.received_nanos);
        }
        failure(spot.partition, code)
    }

    fn counted(
        &self,
        replicas: &TopicReplicas,
        spot: Spot<'_>,
        data: PartitionProduceData,
    ) -> PartitionProduceResponse {
        let received_bytes = data.records.as_ref().map_or(0, |records| records.len() as u64);
        let answer = self.partition(replicas, spot, data);
        if answer.error_code != 0 {
            replicas.metrics.produce_failed(received_bytes);
        }
        answer
    }

    fn partition(
        &self,
        replicas: &TopicReplicas,
        spot: Spot<'_>,
        data: PartitionProduceData,
    ) -> PartitionProduceResponse {
        let index = data.index;
        let Some(partition) = replicas.partition(index) else {
            return self.unknown(spot, &data, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        };
        let received = data.records.unwrap_or_default();
        let (header, batch) = match records::single_batch(&received, self.version) {
            Ok(single) => single,
            Err(error) => return self.rejected(index, partition, &error),
        };
        if header.is_transactional() && !self.transactional {
            return failure(index, ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
        }
        let validated = match records::validate(batch, &replicas.append_rules, self.now) {
            Ok(validated) => validated,
            Err(error) => return self.rejected(index, partition, &error),
        };
        if header.is_transactional() {
            // No transaction can be open yet: there is no transaction coordinator in this version.
            return failure(index, ErrorCode::INVALID_TXN_STATE);
        }
        match &validated {
            Validated::AsReceived(header) => {
                self.append(replicas, partition, spot, &NewBatch { header: *header, bytes: batch })
            }
            Validated::Rewritten { header, bytes } => {
                self.append(replicas, partition, spot, &NewBatch { header: *header, bytes })
            }
        }
    }

    /// Answers a refused batch, and says so in the refusal log: sending it again does not help.
    fn rejected(&self, index: i32, partition: &Partition, error: &RecordError) -> PartitionProduceResponse {
        let detail = format!("{}: {error}", partition.identity.topic_partition);
        refused::report_answered(self.broker, self.context, Reason::InvalidRecords, &detail);
        rejected(index, partition, error)
    }

    /// Appends the batch, unless one that belongs before it was turned away on this connection and is not in the log yet.
    fn append_in_turn(
        &self,
        partition: &Arc<Partition>,
        spot: Spot<'_>,
        batch: &NewBatch<'_>,
    ) -> Result<Appended, ErrorCode> {
        let (away, header, now) = (self.turned_away(), &batch.header, self.context.received_nanos);
        let before = away.before(spot, header, now);
        if let Some(code) = before
            && is_stranger(partition, header)
        {
            return Err(code);
        }
        match partition.append(batch, self.wait.is_acks_all()) {
            Ok(appended) => {
                away.accepted(spot, header);
                Ok(appended)
            }
            Err(error) => {
                let code = errors::partition(&error);
                away.refused(spot, header, code, now);
                Err(before.filter(|_| code == ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER).unwrap_or(code))
            }
        }
    }

    fn append(
        &self,
        replicas: &TopicReplicas,
        partition: &Arc<Partition>,
        spot: Spot<'_>,
        batch: &NewBatch<'_>,
    ) -> PartitionProduceResponse {
        let appended = match self.append_in_turn(partition, spot, batch) {
            Ok(appended) => appended,
            Err(code) => return failure(spot.partition, code).with_log_start_offset(log_start_offset(partition)),
        };
        self.wait.appended(&self.broker.flusher, partition, &appended);
        if !appended.duplicate {
            let messages = u64::try_from(batch.header.record_count).unwrap_or(0);
            replicas.metrics.produced(messages, batch.bytes.len() as u64);
        }
        PartitionProduceResponse::default()
            .with_index(spot.partition)
            .with_base_offset(appended.base_offset)
            .with_log_append_time_ms(appended.log_append_time.unwrap_or(-1))
            .with_log_start_offset(appended.log_start_offset)
    }
}

/// Whether the log would take any batch of this producer for its first.
fn is_stranger(partition: &Partition, header: &BatchHeader) -> bool {
    partition.is_leader() && partition.with_log(|log| !log.knows_producer(header.producer_id)).unwrap_or(false)
}

fn log_start_offset(partition: &Partition) -> Offset {
    partition.view().map_or(NO_OFFSET, |view| view.log_start_offset)
}

fn rejected(index: i32, partition: &Partition, error: &RecordError) -> PartitionProduceResponse {
    if let RecordError::Compress { .. } = error {
        tracing::error!(partition = %partition.identity.topic_partition, %error, "a batch cannot be stored as the topic wants it");
    }
    let mut answer = failure(index, error.error_code()).with_log_start_offset(log_start_offset(partition));
    let issue = |issue: &RecordIssue| {
        BatchIndexAndErrorMessage::default()
            .with_batch_index(issue.batch_index)
            .with_batch_index_error_message(Some(StrBytes::from_string(issue.message.clone())))
    };
    answer.record_errors = error.record_errors().iter().map(issue).collect();
    answer.error_message = error.client_message().map(StrBytes::from_string);
    answer
}
