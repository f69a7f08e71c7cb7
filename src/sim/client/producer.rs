//! A producer with `acks=all`, as real clients are: several batches under way on one connection, and after an error everything that was not
//! acknowledged is sent again in its order, to whoever leads now. An idempotent one numbers its batches, so that a broker can tell a repeat.

use std::collections::VecDeque;

use super::line::Line;
use super::{ASK_MAX, Client, text};
use crate::base::{ErrorCode, Offset};
use crate::host::task;
use crate::records::{BatchBuilder, Codec};
use crate::sim::history::{Place, Value};
use crate::wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use crate::wire::messages::{InitProducerIdRequest, ProduceRequest, ProduceResponse};

/// Batches under way at most, as in the clients that promise order.
const IN_FLIGHT_MAX: usize = 5;

/// How long a broker may wait for followers.
const BROKER_WAIT_MS: i32 = 1_500;

/// After so many times that the first batch which nobody acknowledged yet was out of order, it will be so for ever. Real clients begin anew
/// then, with another id or epoch, and may write twice what they had open.
const REFUSED_MAX: u32 = 25;

pub struct Producer {
    pub client: Client,
    pub number: u32,
    pub place: Place,
    pub idempotent: bool,
}

struct Batch {
    values: Vec<Value>,
    sequence: i32,
    /// The how many-th of its producer.
    number: usize,
}

enum Verdict {
    Acked(Option<Offset>),
    /// Not known to be there; to be sent again.
    Refused(ErrorCode),
}

/// What is under way of a producer.
struct Work {
    id: Option<(i64, i16)>,
    next_value: u32,
    next_sequence: i32,
    made: usize,
    /// Not acknowledged yet, oldest first.
    open: VecDeque<Batch>,
    refused: u32,
}

impl Producer {
    pub async fn run(self) {
        let mut work = Work { id: None, next_value: 0, next_sequence: 0, made: 0, open: VecDeque::new(), refused: 0 };
        while !self.client.is_leaving() && (!self.client.is_finishing() || !work.open.is_empty()) {
            if self.idempotent && work.id.is_none() {
                work.id = self.producer_id().await;
                if work.id.is_none() {
                    self.client.pause(20..200).await;
                    continue;
                }
            }
            let Some(leader) = self.client.leader_of(&self.place).await else {
                self.client.pause(20..200).await;
                continue;
            };
            if let Some(mut line) = self.client.connect(&leader.address).await {
                self.produce(&mut work, &mut line).await;
            }
            self.client.pause(10..100).await;
        }
    }

    async fn producer_id(&self) -> Option<(i64, i16)> {
        let request = InitProducerIdRequest::default()
            .with_transactional_id(None)
            .with_producer_id((-1).into())
            .with_producer_epoch(-1)
            .with_transaction_timeout_ms(60_000);
        let answer = self.client.ask_anyone(&request).await?;
        if answer.error_code != 0 {
            return None;
        }
        self.client.history.note(&format!("{} has id {}", self.client.name, answer.producer_id.0));
        Some((answer.producer_id.0, answer.producer_epoch))
    }

    /// Sends and receives until something goes wrong or nothing is left.
    async fn produce(&self, work: &mut Work, line: &mut Line) {
        // What is under way on this line: all of `open` up to there.
        let mut under_way = 0;
        let in_flight_max = if self.idempotent { IN_FLIGHT_MAX } else { 1 };
        loop {
            if under_way < in_flight_max && (under_way < work.open.len() || self.make(work)) {
                let batch = &work.open[under_way];
                if line.send(&self.request(work, batch)).await.is_none() {
                    return;
                }
                under_way += 1;
                self.think().await;
                continue;
            }
            if under_way == 0 {
                return;
            }
            let answer = task::timeout(ASK_MAX, line.receive::<ProduceRequest>()).await.flatten();
            let Some(answer) = answer else { return };
            match verdict(&answer) {
                Verdict::Acked(offset) => {
                    self.note_acked(work, 0, offset);
                    under_way -= 1;
                }
                Verdict::Refused(error) => {
                    self.note_refused(work, error);
                    self.drain(work, line, under_way - 1).await;
                    return;
                }
            }
        }
    }

    /// The answers to what was sent behind a batch that was refused: some of it may have got through.
    async fn drain(&self, work: &mut Work, line: &mut Line, mut under_way: usize) {
        let mut at = 1;
        while under_way > 0 {
            let answer = task::timeout(ASK_MAX, line.receive::<ProduceRequest>()).await.flatten();
            let Some(answer) = answer else { return };
            match verdict(&answer) {
                Verdict::Acked(offset) => self.note_acked(work, at, offset),
                Verdict::Refused(_) => at += 1,
            }
            under_way -= 1;
        }
    }

    fn note_acked(&self, work: &mut Work, at: usize, offset: Option<Offset>) {
        let batch = work.open.remove(at).unwrap();
        self.client.history.acked(&self.place, offset, &batch.values);
        work.refused = 0;
    }

    fn note_refused(&self, work: &mut Work, error: ErrorCode) {
        let history = &self.client.history;
        history.count("refused batches");
        history.note(&format!("{} refused with {error}", self.client.name));
        let is_usual = matches!(
            error,
            ErrorCode::NOT_LEADER_OR_FOLLOWER
                | ErrorCode::NOT_ENOUGH_REPLICAS
                | ErrorCode::NOT_ENOUGH_REPLICAS_AFTER_APPEND
                | ErrorCode::REQUEST_TIMED_OUT
                | ErrorCode::KAFKA_STORAGE_ERROR
                | ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
                | ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER
        );
        if !is_usual {
            history.violated(format!("{} was refused with {error}", self.client.name));
        }
        if error == ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER {
            history.count("out of order");
            work.refused += 1;
        }
        if work.refused > REFUSED_MAX {
            history.violated(format!("{} cannot go on: its oldest open batch is out of order", self.client.name));
            work.refused = 0;
        }
    }

    /// Bursts, with pauses between them.
    async fn think(&self) {
        if self.client.dice.one_in(2) {
            self.client.pause(1..500).await;
        }
    }

    fn make(&self, work: &mut Work) -> bool {
        // Brokers remember five batches of a producer: clients make no more behind one that has no answer, whatever became of those between.
        let is_ahead = work.open.front().is_some_and(|oldest| work.made - oldest.number >= IN_FLIGHT_MAX);
        if self.client.is_finishing() || is_ahead {
            return false;
        }
        let count = u32::try_from(self.client.dice.between(1..4)).unwrap();
        let values = (0..count).map(|at| Value { producer: self.number, number: work.next_value + at }).collect();
        work.open.push_back(Batch { values, sequence: work.next_sequence, number: work.made });
        work.made += 1;
        work.next_value += count;
        work.next_sequence += i32::try_from(count).unwrap();
        true
    }

    fn request(&self, work: &Work, batch: &Batch) -> ProduceRequest {
        let mut builder = BatchBuilder::new(Codec::None);
        if let Some((id, epoch)) = work.id {
            builder = builder.with_producer(id, epoch, batch.sequence);
        }
        for value in &batch.values {
            builder.push(1_700_000_000_000, None, Some(value.text().as_bytes()), &[]);
        }
        let data = PartitionProduceData::default()
            .with_index(self.place.partition)
            .with_records(Some(builder.finish(0, -1).into()));
        let topic =
            TopicProduceData::default().with_name(text(&self.place.topic).into()).with_partition_data(vec![data]);
        ProduceRequest::default().with_acks(-1).with_timeout_ms(BROKER_WAIT_MS).with_topic_data(vec![topic])
    }
}

fn verdict(answer: &ProduceResponse) -> Verdict {
    let partition = &answer.responses[0].partition_responses[0];
    match ErrorCode(partition.error_code) {
        ErrorCode::NONE => Verdict::Acked((partition.base_offset >= 0).then_some(partition.base_offset)),
        ErrorCode::DUPLICATE_SEQUENCE_NUMBER => Verdict::Acked(None),
        error => Verdict::Refused(error),
    }
}
