//! rdkafka clients set up for tests: short waits, delivery reports kept, whole partitions read back.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Message, OwnedHeaders};
use rdkafka::producer::{BaseRecord, DeliveryResult, Producer, ProducerContext, ThreadedProducer};
use rdkafka::types::RDKafkaErrorCode as Code;
use rdkafka::{ClientConfig, ClientContext, Offset, TopicPartitionList};

use crate::{Broker, Cluster};

/// How long any one client call may take.
pub const CALL_MAX: Duration = Duration::from_secs(20);

/// Whom clients connect to first.
pub trait Bootstrap {
    /// `IP:PORT`, separated by commas.
    fn bootstrap(&self) -> String;
}

impl Bootstrap for Broker {
    fn bootstrap(&self) -> String {
        self.address()
    }
}

impl Bootstrap for Cluster {
    fn bootstrap(&self) -> String {
        self.addresses()
    }
}

/// What every client needs to reach the broker, and these settings on top.
pub fn config(broker: &impl Bootstrap, settings: &[(&str, &str)]) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", broker.bootstrap()).set("broker.address.family", "v4");
    for (key, value) in settings {
        config.set(*key, *value);
    }
    config
}

/// A topic, group or client name that no other test uses.
pub fn unique(tag: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    format!("{tag}-{:x}-{}", since.as_micros() & 0xfff_ffff, COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Runs a future of rdkafka's to its end.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(CALL_MAX, future).await.expect("an answer in time") })
}

pub fn admin(broker: &impl Bootstrap) -> AdminClient<DefaultClientContext> {
    config(broker, &[]).create().expect("an admin client")
}

pub fn admin_options() -> AdminOptions {
    AdminOptions::new().operation_timeout(Some(CALL_MAX)).request_timeout(Some(CALL_MAX))
}

/// Makes a topic with a name of its own and waits until every partition has a leader.
pub fn create_topic(broker: &impl Bootstrap, tag: &str, partitions: i32, configs: &[(&str, &str)]) -> String {
    create_replicated(broker, tag, partitions, 1, configs)
}

/// The same with several copies.
pub fn create_replicated(
    broker: &impl Bootstrap,
    tag: &str,
    partitions: i32,
    copies: i32,
    configs: &[(&str, &str)],
) -> String {
    let name = unique(tag);
    let mut topic = NewTopic::new(&name, partitions, TopicReplication::Fixed(copies));
    for (key, value) in configs {
        topic = topic.set(key, value);
    }
    let made = wait(admin(broker).create_topics([&topic], &admin_options())).expect("create_topics");
    assert_eq!(made, [Ok(name.clone())]);
    let consumer: BaseConsumer = config(broker, &[]).create().expect("a consumer");
    crate::until("leaders of a new topic", CALL_MAX, || {
        let metadata = consumer.fetch_metadata(Some(&name), CALL_MAX).ok()?;
        let topic = metadata.topics().first()?;
        let led = topic.partitions().iter().filter(|p| p.leader() >= 0).count();
        (led == partitions as usize).then_some(())
    });
    name
}

/// Commits synchronously. A coordinator that is just loading says so, Kafka's too, and this client hands that to its user.
#[track_caller]
pub fn commit<C: ConsumerContext>(consumer: &BaseConsumer<C>, offsets: &TopicPartitionList) {
    crate::until("a commit", CALL_MAX, || match consumer.commit(offsets, CommitMode::Sync) {
        Ok(()) => Some(()),
        Err(error) => match error.rdkafka_error_code() {
            Some(Code::CoordinatorLoadInProgress | Code::NotCoordinator | Code::CoordinatorNotAvailable) => None,
            _ => panic!("commit: {error}"),
        },
    });
}

/// What became of one record.
pub type Delivery = Result<(i32, i64), Code>;

/// Keeps every delivery report by the record's number.
#[derive(Default)]
pub struct Deliveries(Mutex<BTreeMap<usize, Delivery>>);

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, number: usize) {
        let delivery = match result {
            Ok(message) => Ok((message.partition(), message.offset())),
            Err((error, _)) => Err(error.rdkafka_error_code().unwrap_or(Code::Unknown)),
        };
        self.0.lock().expect("lock").insert(number, delivery);
    }
}

impl Deliveries {
    /// The reports so far, by record number.
    fn count(&self) -> usize {
        self.0.lock().expect("lock").len()
    }

    pub fn so_far(&self) -> BTreeMap<usize, Delivery> {
        self.0.lock().expect("lock").clone()
    }
}

/// A producer that remembers what became of each record it was given.
pub struct Sender(ThreadedProducer<Deliveries>);

/// One record to send; what is left out is null, and no partition means the partitioner's choice.
#[derive(Clone, Debug, Default)]
pub struct Outgoing {
    pub partition: Option<i32>,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub timestamp: Option<i64>,
    pub headers: Option<OwnedHeaders>,
}

impl Outgoing {
    pub fn value(value: impl AsRef<[u8]>) -> Outgoing {
        Outgoing { value: Some(value.as_ref().to_vec()), ..Outgoing::default() }
    }

    pub fn to(partition: i32, value: impl AsRef<[u8]>) -> Outgoing {
        Outgoing { partition: Some(partition), ..Outgoing::value(value) }
    }
}

impl Sender {
    pub fn new(broker: &impl Bootstrap, settings: &[(&str, &str)]) -> Sender {
        Sender(config(broker, settings).create_with_context(Deliveries::default()).expect("a producer"))
    }

    /// Hands one record to the client, waiting while its queue is full.
    pub fn send(&self, topic: &str, number: usize, outgoing: &Outgoing) -> Result<(), KafkaError> {
        let mut record = BaseRecord::<[u8], [u8], usize>::with_opaque_to(topic, number);
        record.partition = outgoing.partition;
        record.key = outgoing.key.as_deref();
        record.payload = outgoing.value.as_deref();
        record.timestamp = outgoing.timestamp;
        record.headers = outgoing.headers.clone();
        loop {
            match self.0.send(record) {
                Ok(()) => return Ok(()),
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), again)) => {
                    record = again;
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err((error, _)) => return Err(error),
            }
        }
    }

    /// Waits until every record has a report.
    pub fn flush(&self) {
        self.0.flush(CALL_MAX).expect("flush");
    }

    /// How many reports there are so far; unlike [`Sender::deliveries`] it copies nothing.
    pub fn delivered(&self) -> usize {
        self.0.context().count()
    }

    pub fn deliveries(&self) -> BTreeMap<usize, Delivery> {
        self.0.context().so_far()
    }
}

/// Sends these records and gives what became of each, in their order.
pub fn send_all(
    broker: &impl Bootstrap,
    settings: &[(&str, &str)],
    topic: &str,
    records: &[Outgoing],
) -> Vec<Delivery> {
    let sender = Sender::new(broker, settings);
    for (number, record) in records.iter().enumerate() {
        sender.send(topic, number, record).expect("the client takes the record");
    }
    sender.flush();
    let deliveries = sender.deliveries();
    assert_eq!(deliveries.len(), records.len(), "a report for each record");
    deliveries.into_values().collect()
}

/// A record as it came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming {
    pub partition: i32,
    pub offset: i64,
    pub timestamp: rdkafka::Timestamp,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Incoming {
    pub fn from(message: &BorrowedMessage<'_>) -> Incoming {
        let headers = message.headers().map(|h| {
            use rdkafka::message::Headers;
            h.iter().map(|one| (one.key.to_string(), one.value.map(<[u8]>::to_vec))).collect()
        });
        Incoming {
            partition: message.partition(),
            offset: message.offset(),
            timestamp: message.timestamp(),
            key: message.key().map(<[u8]>::to_vec),
            value: message.payload().map(<[u8]>::to_vec),
            headers: headers.unwrap_or_default(),
        }
    }

    /// The value as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.value.as_deref().unwrap_or_default()).into_owned()
    }
}

/// A consumer without group membership that reads these partitions from `offset`.
pub fn reader(
    broker: &impl Bootstrap,
    topic: &str,
    partitions: i32,
    offset: Offset,
    settings: &[(&str, &str)],
) -> BaseConsumer {
    let mut config = config(broker, &[("group.id", "unused"), ("enable.auto.commit", "false")]);
    for (key, value) in settings {
        config.set(*key, *value);
    }
    let consumer: BaseConsumer = config.create().expect("a consumer");
    let mut all = TopicPartitionList::new();
    for partition in 0..partitions {
        all.add_partition_offset(topic, partition, offset).expect("an offset");
    }
    consumer.assign(&all).expect("assign");
    consumer
}

/// The next `count` records, in the order they came.
#[track_caller]
pub fn read<C: ConsumerContext>(consumer: &BaseConsumer<C>, count: usize) -> Vec<Incoming> {
    let deadline = Instant::now() + CALL_MAX;
    let mut records = Vec::with_capacity(count);
    while records.len() < count {
        assert!(Instant::now() < deadline, "only {} of {count} records came", records.len());
        match consumer.poll(Duration::from_millis(100)) {
            Some(Ok(message)) => records.push(Incoming::from(&message)),
            Some(Err(KafkaError::PartitionEOF(_))) | None => {}
            Some(Err(error)) => assert!(is_passing(&error), "consuming: {error}"),
        }
    }
    records
}

/// Everything that is in a topic now, sorted by partition and offset.
#[track_caller]
pub fn read_topic(broker: &impl Bootstrap, topic: &str, partitions: i32) -> Vec<Incoming> {
    let consumer = reader(broker, topic, partitions, Offset::Beginning, &[]);
    let ends = (0..partitions).map(|p| consumer.fetch_watermarks(topic, p, CALL_MAX).expect("watermarks"));
    let count: i64 = ends.map(|(low, high)| high - low).sum();
    let mut records = read(&consumer, usize::try_from(count).expect("a count"));
    records.sort_by_key(|r| (r.partition, r.offset));
    records
}

/// Errors that a client reports while it reconnects and gets over by itself.
pub fn is_passing(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(Code::BrokerTransportFailure | Code::AllBrokersDown | Code::OperationTimedOut | Code::Resolve)
    )
}
