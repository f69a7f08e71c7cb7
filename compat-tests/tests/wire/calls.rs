//! The requests that several of these tests send, in the versions they send most.

use compat_tests::Broker;
use compat_tests::batch::Batch;
use compat_tests::clients::unique;
use compat_tests::wire::{
    Body, CREATE_TOPICS, Connection, FETCH, INIT_PRODUCER_ID, LIST_OFFSETS, METADATA, OFFSET_FOR_LEADER_EPOCH, PRODUCE,
    Reader,
};

pub const NONE: i16 = 0;
pub const OFFSET_OUT_OF_RANGE: i16 = 1;
pub const CORRUPT_MESSAGE: i16 = 2;
pub const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
pub const UNSUPPORTED_VERSION: i16 = 35;
pub const OUT_OF_ORDER_SEQUENCE: i16 = 45;
pub const FETCH_SESSION_ID_NOT_FOUND: i16 = 70;
pub const INVALID_FETCH_SESSION_EPOCH: i16 = 71;
pub const FENCED_LEADER_EPOCH: i16 = 74;
pub const UNKNOWN_LEADER_EPOCH: i16 = 75;
pub const INVALID_RECORD: i16 = 87;

/// Creates a topic by CreateTopics v4 and waits until it can be written.
pub fn topic(broker: &Broker, tag: &str, partitions: i32, configs: &[(&str, &str)]) -> String {
    let name = unique(tag);
    create_topic(broker, &name, partitions, configs);
    name
}

/// Creates a topic of a given name, and waits until it can be written.
pub fn create_topic(broker: &Broker, name: &str, partitions: i32, configs: &[(&str, &str)]) {
    let mut body = Body::new().i32(1).string(name).i32(partitions).i16(1).i32(0).i32(configs.len() as i32);
    for (key, value) in configs {
        body = body.string(key).string(value);
    }
    let mut connection = broker.connect();
    let mut answer = connection.call(CREATE_TOPICS, 4, &body.i32(20_000).bool(false));
    answer.i32();
    let codes = answer.array(|r| (r.string(), r.i16(), r.string()));
    assert_eq!(codes, [(Some(name.to_owned()), NONE, None)]);
    compat_tests::until("leaders of a new topic", compat_tests::clients::CALL_MAX, || {
        let found = metadata(&mut connection, name);
        let led = found.partitions.iter().filter(|p| p.leader >= 0).count();
        // The leader may take a moment longer than the metadata that names it.
        (led == partitions as usize && (0..partitions).all(|p| leader_is_ready(&mut connection, name, p))).then_some(())
    });
}

fn leader_is_ready(connection: &mut Connection, topic: &str, partition: i32) -> bool {
    let body = Body::new().i32(-1).i8(0).i32(1).string(topic).i32(1).i32(partition).i32(-1).i64(-1);
    let mut answer = connection.call(LIST_OFFSETS, 5, &body);
    answer.i32();
    let codes = answer.array(|r| {
        r.string();
        r.array(|r| (r.i32(), r.i16(), r.i64(), r.i64(), r.i32()).1)
    });
    codes.concat() == [NONE]
}

/// What Metadata v12 says of one topic.
#[derive(Clone, Debug, Default)]
pub struct Topic {
    pub id: [u8; 16],
    pub partitions: Vec<Partition>,
    pub cluster_id: Option<String>,
    pub controller: i32,
    pub brokers: Vec<i32>,
}

#[derive(Clone, Debug)]
pub struct Partition {
    pub index: i32,
    pub leader: i32,
    pub leader_epoch: i32,
}

/// Metadata v12 of one topic, which is not created.
pub fn metadata(connection: &mut Connection, name: &str) -> Topic {
    let body = Body::new().compact_array(1).raw(&[0; 16]).compact_string(name).tags().bool(false).bool(false).tags();
    let mut answer = connection.call(METADATA, 12, &body);
    answer.i32();
    let brokers = answer.compact_array(|r| {
        let id = r.i32();
        r.compact_string().expect("a host");
        r.i32();
        r.compact_string();
        r.tags();
        id
    });
    let (cluster_id, controller) = (answer.compact_string(), answer.i32());
    let mut topics = answer.compact_array(|r| {
        r.i16();
        r.compact_string();
        let id = r.uuid();
        r.bool();
        let mut partitions = r.compact_array(|r| {
            r.i16();
            let partition = Partition { index: r.i32(), leader: r.i32(), leader_epoch: r.i32() };
            (0..3).for_each(|_| drop(r.compact_array(Reader::i32)));
            r.tags();
            partition
        });
        partitions.sort_by_key(|p| p.index);
        r.i32();
        r.tags();
        Topic { id, partitions, ..Topic::default() }
    });
    answer.tags();
    answer.end();
    Topic { cluster_id, controller, brokers, ..topics.remove(0) }
}

/// The body of a Produce v3 to v8 for one partition.
pub fn produce_body(topic: &str, partition: i32, acks: i16, records: &[u8]) -> Body {
    Body::new().null_string().i16(acks).i32(10_000).i32(1).string(topic).i32(1).i32(partition).bytes(records)
}

/// Error code and base offset of a Produce v7 answer for one partition.
pub fn produced(mut answer: Reader) -> (i16, i64) {
    let mut topics = answer.array(|r| {
        r.string();
        r.array(|r| {
            r.i32();
            let result = (r.i16(), r.i64());
            r.i64();
            r.i64();
            result
        })
    });
    answer.i32();
    answer.end();
    topics.remove(0).remove(0)
}

/// Produces one batch with `acks=all` by Produce v7: error code and base offset.
#[track_caller]
pub fn produce(connection: &mut Connection, topic: &str, partition: i32, batch: &Batch) -> (i16, i64) {
    produced(connection.call(PRODUCE, 7, &produce_body(topic, partition, -1, &batch.bytes())))
}

/// A Fetch of any version from 4 to 17.
#[derive(Clone, Debug)]
pub struct Fetch {
    pub version: i16,
    pub wait_ms: i32,
    pub min_bytes: i32,
    pub max_bytes: i32,
    pub isolation: i8,
    pub session: (i32, i32),
    pub topics: Vec<FetchTopic>,
    pub forgotten: Vec<(String, Vec<i32>)>,
    pub rack: String,
}

#[derive(Clone, Debug)]
pub struct FetchTopic {
    pub name: String,
    pub id: [u8; 16],
    pub partitions: Vec<FetchPartition>,
}

#[derive(Clone, Copy, Debug)]
pub struct FetchPartition {
    pub index: i32,
    pub offset: i64,
    pub max_bytes: i32,
    pub leader_epoch: i32,
}

impl FetchPartition {
    pub fn from(index: i32, offset: i64) -> FetchPartition {
        FetchPartition { index, offset, max_bytes: 1 << 20, leader_epoch: -1 }
    }
}

/// The answer: top-level error and session, then each partition by topic (name, or hex of the id) and index.
#[derive(Clone, Debug)]
pub struct Fetched {
    pub error: i16,
    pub session: i32,
    pub partitions: Vec<FetchedPartition>,
}

#[derive(Clone, Debug)]
pub struct FetchedPartition {
    pub index: i32,
    pub error: i16,
    pub high_watermark: i64,
    pub last_stable: i64,
    pub log_start: i64,
    pub aborted: usize,
    pub preferred_replica: i32,
    pub records: Option<Vec<u8>>,
}

impl Fetch {
    /// One topic, no session, no wait.
    pub fn of(version: i16, name: &str, id: [u8; 16], partitions: &[FetchPartition]) -> Fetch {
        Fetch {
            version,
            wait_ms: 0,
            min_bytes: 1,
            max_bytes: 50 << 20,
            isolation: 0,
            session: (0, -1),
            topics: vec![FetchTopic { name: name.into(), id, partitions: partitions.to_vec() }],
            forgotten: Vec::new(),
            rack: String::new(),
        }
    }

    pub fn call(&self, connection: &mut Connection) -> Fetched {
        self.read(connection.call(FETCH, self.version, &self.body()))
    }

    pub fn body(&self) -> Body {
        let v = self.version;
        let flexible = v >= 12;
        let mut body = Body::new();
        if v < 15 {
            body = body.i32(-1);
        }
        body = body.i32(self.wait_ms).i32(self.min_bytes).i32(self.max_bytes).i8(self.isolation);
        if v >= 7 {
            body = body.i32(self.session.0).i32(self.session.1);
        }
        body = count(body, flexible, self.topics.len());
        for topic in &self.topics {
            body = match (v >= 13, flexible) {
                (true, _) => body.raw(&topic.id),
                (_, true) => body.compact_string(&topic.name),
                _ => body.string(&topic.name),
            };
            body = count(body, flexible, topic.partitions.len());
            for p in &topic.partitions {
                body = body.i32(p.index);
                if v >= 9 {
                    body = body.i32(p.leader_epoch);
                }
                body = body.i64(p.offset);
                if v >= 12 {
                    body = body.i32(-1);
                }
                if v >= 5 {
                    body = body.i64(-1);
                }
                body = tags(body.i32(p.max_bytes), flexible);
            }
            body = tags(body, flexible);
        }
        if v >= 7 {
            body = count(body, flexible, self.forgotten.len());
            for (name, partitions) in &self.forgotten {
                assert!(v < 12, "forgotten topics are sent by name here");
                body = body.string(name).i32(partitions.len() as i32);
                body = partitions.iter().fold(body, |body, index| body.i32(*index));
            }
        }
        if v >= 11 {
            body = if flexible { body.compact_string(&self.rack) } else { body.string(&self.rack) };
        }
        tags(body, flexible)
    }

    pub fn read(&self, mut r: Reader) -> Fetched {
        let v = self.version;
        let flexible = v >= 12;
        r.i32();
        let (error, session) = if v >= 7 { (r.i16(), r.i32()) } else { (NONE, 0) };
        let topics = array(&mut r, flexible, |r| {
            match (v >= 13, flexible) {
                (true, _) => drop(r.uuid()),
                (_, true) => drop(r.compact_string()),
                _ => drop(r.string()),
            }
            let partitions = array(r, flexible, |r| read_partition(r, v));
            if flexible {
                r.tags();
            }
            partitions
        });
        if flexible {
            r.tags();
        }
        r.end();
        Fetched { error, session, partitions: topics.into_iter().flatten().collect() }
    }
}

fn read_partition(r: &mut Reader, v: i16) -> FetchedPartition {
    let flexible = v >= 12;
    let (index, error, high_watermark, last_stable) = (r.i32(), r.i16(), r.i64(), r.i64());
    let log_start = if v >= 5 { r.i64() } else { -1 };
    let aborted = array(r, flexible, |r| {
        r.i64();
        r.i64();
        if flexible {
            r.tags();
        }
    });
    let preferred_replica = if v >= 11 { r.i32() } else { -1 };
    let records = if flexible { r.compact_bytes() } else { r.bytes() };
    if flexible {
        r.tags();
    }
    FetchedPartition {
        index,
        error,
        high_watermark,
        last_stable,
        log_start,
        aborted: aborted.len(),
        preferred_replica,
        records,
    }
}

fn count(body: Body, flexible: bool, count: usize) -> Body {
    if flexible { body.compact_array(count as u32) } else { body.i32(count as i32) }
}

fn tags(body: Body, flexible: bool) -> Body {
    if flexible { body.tags() } else { body }
}

fn array<T>(r: &mut Reader, flexible: bool, element: impl FnMut(&mut Reader) -> T) -> Vec<T> {
    if flexible { r.compact_array(element) } else { r.array(element) }
}

/// ListOffsets v5 of one partition: error, timestamp, offset, leader epoch.
pub fn list_offset(
    connection: &mut Connection,
    topic: &str,
    isolation: i8,
    leader_epoch: i32,
    time: i64,
) -> (i16, i64, i64, i32) {
    let body = Body::new().i32(-1).i8(isolation).i32(1).string(topic).i32(1).i32(0).i32(leader_epoch).i64(time);
    let mut answer = connection.call(LIST_OFFSETS, 5, &body);
    answer.i32();
    let mut topics = answer.array(|r| {
        r.string();
        r.array(|r| {
            r.i32();
            (r.i16(), r.i64(), r.i64(), r.i32())
        })
    });
    answer.end();
    topics.remove(0).remove(0)
}

/// OffsetForLeaderEpoch v3 of partition 0: error, epoch, end offset.
pub fn epoch_end(connection: &mut Connection, topic: &str, current: i32, epoch: i32) -> (i16, i32, i64) {
    let body = Body::new().i32(-1).i32(1).string(topic).i32(1).i32(0).i32(current).i32(epoch);
    let mut answer = connection.call(OFFSET_FOR_LEADER_EPOCH, 3, &body);
    answer.i32();
    let mut topics = answer.array(|r| {
        r.string();
        r.array(|r| {
            let error = r.i16();
            r.i32();
            (error, r.i32(), r.i64())
        })
    });
    answer.end();
    topics.remove(0).remove(0)
}

/// A new producer id with its epoch.
pub fn producer_id(connection: &mut Connection) -> (i64, i16) {
    let mut answer = connection.call(INIT_PRODUCER_ID, 1, &Body::new().null_string().i32(60_000));
    answer.i32();
    assert_eq!(answer.i16(), NONE);
    let id = (answer.i64(), answer.i16());
    answer.end();
    id
}
