//! Members of a group that commit synchronously what they have read, and ask for what is committed when they are given partitions.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::message::Message;
use rdkafka::{ClientConfig, ClientContext, Offset, TopicPartitionList, bindings};

use super::history::{Action, By, Outcome, Recorder};
use super::readers::value;

const POLL: Duration = Duration::from_millis(50);
const COMMIT_EVERY: Duration = Duration::from_millis(250);
const ASK_MAX: Duration = Duration::from_secs(10);

struct Ownership {
    history: Arc<Recorder>,
    process: u32,
    given: Mutex<bool>,
}

impl ClientContext for Ownership {}

impl ConsumerContext for Ownership {
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        let numbers = |list: &TopicPartitionList| list.elements().iter().map(|one| one.partition()).collect();
        let generation = generation(consumer);
        let action = match rebalance {
            Rebalance::Assign(list) => Action::Assigned { generation, partitions: numbers(list) },
            Rebalance::Revoke(list) => Action::Revoked { generation, partitions: numbers(list) },
            Rebalance::Error(_) => return,
        };
        self.history.note(self.process, action);
        *self.given.lock().expect("lock") = matches!(rebalance, Rebalance::Assign(_));
    }
}

/// The generation that the client is in; -1 when it is in none.
#[expect(unsafe_code, reason = "the Rust client does not hand out the generation, librdkafka does")]
fn generation<C: ConsumerContext>(consumer: &BaseConsumer<C>) -> i32 {
    // SAFETY: the client is alive while it is borrowed, and what librdkafka gives is read before it is freed, once.
    unsafe {
        let about = bindings::rd_kafka_consumer_group_metadata(consumer.client().native_ptr());
        if about.is_null() {
            return -1;
        }
        let generation = bindings::rd_kafka_consumer_group_metadata_generation_id(about);
        bindings::rd_kafka_consumer_group_metadata_destroy(about);
        generation
    }
}

/// A member until told to stop; it leaves by closing.
pub fn start(
    config: &ClientConfig,
    process: u32,
    topic: String,
    history: Arc<Recorder>,
    over: Arc<AtomicBool>,
) -> JoinHandle<()> {
    let context = Ownership { history: Arc::clone(&history), process, given: Mutex::new(false) };
    let consumer: BaseConsumer<Ownership> = config.create_with_context(context).expect("a group member");
    std::thread::spawn(move || {
        consumer.subscribe(&[&topic]).expect("subscribe");
        let mut read: BTreeMap<i32, i64> = BTreeMap::new();
        let mut committed = Instant::now();
        while !over.load(Ordering::Relaxed) {
            if let Some(Ok(message)) = consumer.poll(POLL) {
                let (partition, offset, value) = (message.partition(), message.offset(), value(&message));
                history.note(process, Action::Read { by: By::Group, partition, offset, value });
                read.insert(partition, offset + 1);
            }
            if std::mem::take(&mut *consumer.context().given.lock().expect("lock")) {
                read.clear();
                if let Ok(list) = consumer.assignment() {
                    let partitions: Vec<i32> = list.elements().iter().map(|one| one.partition()).collect();
                    ask(&consumer, process, &topic, &partitions, &history);
                }
            }
            if committed.elapsed() > COMMIT_EVERY && !read.is_empty() {
                commit(&consumer, process, &topic, &std::mem::take(&mut read), &history);
                committed = Instant::now();
            }
        }
    })
}

fn commit(
    consumer: &BaseConsumer<Ownership>,
    process: u32,
    topic: &str,
    offsets: &BTreeMap<i32, i64>,
    history: &Recorder,
) {
    // What was taken away meanwhile is another member's to commit.
    let owned = consumer.assignment().map(|list| list.elements().iter().map(|one| one.partition()).collect::<Vec<_>>());
    let owned = owned.unwrap_or_default();
    let op = history.number();
    let mut list = TopicPartitionList::new();
    for (partition, offset) in offsets.iter().filter(|(partition, _)| owned.contains(partition)) {
        let _ = list.add_partition_offset(topic, *partition, Offset::Offset(*offset));
        history.put(process, op, Action::Commit { partition: *partition, offset: *offset });
    }
    if list.count() == 0 {
        return;
    }
    // The client asks again by itself, so that a refusal at last does not prove that the first attempt was refused.
    let outcome = if consumer.commit(&list, CommitMode::Sync).is_ok() { Outcome::Ok } else { Outcome::Info };
    for (partition, offset) in offsets.iter().filter(|(partition, _)| owned.contains(partition)) {
        history.put(process, op, Action::Committed { partition: *partition, offset: *offset, outcome });
    }
}

/// Asks the coordinator what is committed; false when it does not say.
pub fn ask<C: ConsumerContext>(
    consumer: &BaseConsumer<C>,
    process: u32,
    topic: &str,
    partitions: &[i32],
    history: &Recorder,
) -> bool {
    let mut list = TopicPartitionList::new();
    let op = history.number();
    for partition in partitions {
        list.add_partition(topic, *partition);
        history.put(process, op, Action::AskCommitted { partition: *partition });
    }
    let Ok(told) = consumer.committed_offsets(list, ASK_MAX) else { return false };
    for one in told.elements() {
        if one.error().is_err() {
            continue;
        }
        let offset = match one.offset() {
            Offset::Offset(offset) => offset,
            _ => -1,
        };
        history.put(process, op, Action::ToldCommitted { partition: one.partition(), offset });
    }
    true
}
