//! Readers that are assigned by hand: one that follows everything from the start, and the full read at the end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::{ClientConfig, ClientContext, Offset, TopicPartitionList};

use super::history::{Action, By, Recorder};
use super::producers::debug;
use crate::clients::CALL_MAX;

const POLL: Duration = Duration::from_millis(50);

/// A value that no producer uses, for payloads that are no number.
const NO_VALUE: u64 = u64::MAX;

/// What a record holds.
pub fn value(message: &BorrowedMessage<'_>) -> u64 {
    let text = message.payload().and_then(|payload| std::str::from_utf8(payload).ok());
    text.and_then(|text| text.parse().ok()).unwrap_or(NO_VALUE)
}

fn note(history: &Recorder, process: u32, by: By, message: &BorrowedMessage<'_>) {
    let (partition, offset, value) = (message.partition(), message.offset(), value(message));
    history.note(process, Action::Read { by, partition, offset, value });
}

fn assign<C: ConsumerContext>(consumer: &BaseConsumer<C>, topic: &str, partitions: i32) {
    let mut all = TopicPartitionList::new();
    for partition in 0..partitions {
        all.add_partition_offset(topic, partition, Offset::Offset(0)).expect("an offset");
    }
    consumer.assign(&all).expect("assign");
}

/// Writes down what the client's library logs.
struct Logs {
    history: Arc<Recorder>,
    process: u32,
}

impl ClientContext for Logs {
    fn log(&self, _: RDKafkaLogLevel, facility: &str, message: &str) {
        self.history.note(self.process, Action::Log { text: format!("{facility}: {message}") });
    }
}

impl ConsumerContext for Logs {}

/// Follows every partition from offset 0.
pub fn start(
    mut config: ClientConfig,
    process: u32,
    (topic, partitions): (String, i32),
    history: Arc<Recorder>,
    over: Arc<AtomicBool>,
) -> JoinHandle<()> {
    debug(&mut config);
    let logs = Logs { history: history.clone(), process };
    let consumer: BaseConsumer<Logs> = config.create_with_context(logs).expect("a consumer");
    std::thread::spawn(move || {
        (0..partitions).for_each(|partition| history.note(process, Action::Seek { partition, offset: 0 }));
        assign(&consumer, &topic, partitions);
        while !over.load(Ordering::Relaxed) {
            // Errors are of connections that break, which is what happens here.
            if let Some(Ok(message)) = consumer.poll(POLL) {
                note(&history, process, By::Strict, &message);
            }
        }
    })
}

/// Reads each partition up to the high watermark that it has now; panics when that cannot be reached.
#[track_caller]
pub fn read_all(consumer: &BaseConsumer, process: u32, topic: &str, partitions: i32, history: &Recorder) -> usize {
    let mut missing: BTreeMap<i32, i64> = BTreeMap::new();
    for partition in 0..partitions {
        let (_, end) = consumer.fetch_watermarks(topic, partition, CALL_MAX).expect("watermarks of a healed cluster");
        if end > 0 {
            missing.insert(partition, end);
        }
    }
    assign(consumer, topic, partitions);
    let (mut count, mut progress) = (0, Instant::now());
    while !missing.is_empty() {
        if let Some(Ok(message)) = consumer.poll(POLL) {
            note(history, process, By::Final, &message);
            (count, progress) = (count + 1, Instant::now());
            if missing.get(&message.partition()).is_some_and(|end| message.offset() + 1 >= *end) {
                missing.remove(&message.partition());
            }
        }
        assert!(progress.elapsed() < CALL_MAX, "the full read gets no further than {count}; left: {missing:?}");
    }
    count
}
