//! Fetch (key 1), v4 to v18. Answers at once when there are enough bytes, an error, or nothing asked; else waits for any of the
//! partitions to move, or for `max_wait_ms`.
//!
//! v7 sessions (KIP-227), v9 leader epoch check (KIP-320), v11 rack and reading from followers (KIP-392), v12 diverging epochs (KIP-595),
//! v13 topic ids (KIP-516), v15 replica state (KIP-903), v16 node endpoints (KIP-951), v17 directory ids, v18 high watermark (of the
//! metadata quorum, which is not fetched here). Record bytes leave as file regions and are not copied.
//!
//! A follower's fetch is the same path, plus a note to the leader's machine. It reads to the end of the log, and is also answered when
//! the high watermark moved past what its session was told, so that followers are never a round trip behind.

use std::sync::Arc;
use std::time::Duration;

use crate::api::answer::{Answer, Response};
use crate::api::data::fetch_read::{PartitionAnswer, Reader, Reading, note_follower, read_partition};
use crate::api::data::fetch_session::{PartitionKey, Resolved, SessionRequest, Told, TopicKey, Wanted};
use crate::api::data::leader_hints;
use crate::api::{Broker, Refused, RequestContext};
use crate::base::ids::NO_OFFSET;
use crate::base::{BrokerId, ErrorCode, TopicId};
use crate::host::task;
use crate::replica::{Partitions, Waiter};
use crate::telemetry::Reason;
use crate::wire::fetch_response::{self, CurrentLeader, FetchReply, NodeEndpoint, TopicReply};
use crate::wire::messages::{FetchRequest, StrBytes};
use crate::wire::table::keys;

/// First version that names topics by id.
const TOPIC_ID_VERSION: i16 = 13;

/// First version that carries the state of a replica, its broker epoch above all.
const REPLICA_STATE_VERSION: i16 = 15;

/// First version whose clients may read from followers, and are told which.
const FOLLOWERS_VERSION: i16 = 11;

/// The request as the rest of this file sees it, holding nothing of the frame's memory.
struct Fetch {
    context: RequestContext,
    resolved: Resolved,
    reading: Reading,
    wait: Duration,
    bytes_min: usize,
}

pub fn handle(broker: &Arc<Broker>, context: &RequestContext, request: &FetchRequest) -> Answer {
    let now = broker.host.clock.monotonic_ms();
    let reader = match reader(broker, context, request) {
        Ok(reader) => reader,
        Err(error) => return now_or_close(refusal(context, error)),
    };
    let session = session_request(broker, context, request, &reader);
    let resolved = match broker.fetch_sessions.resolve(session, random_session_id(broker), now) {
        Ok(resolved) => resolved,
        Err(error) => return now_or_close(refusal(context, error)),
    };
    let fetch = Fetch {
        context: context.clone(),
        resolved,
        reading: Reading {
            bytes_max: usize::try_from(request.max_bytes.min(broker.options.fetch_bytes_max)).unwrap_or(0),
            read_committed: request.isolation_level == 1,
            by_id: context.api_version >= TOPIC_ID_VERSION,
            reader,
        },
        wait: Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0)),
        bytes_min: usize::try_from(request.min_bytes).unwrap_or(0),
    };
    if let Reader::Replica { .. } = fetch.reading.reader {
        fetch.note_follower(broker);
    }
    let answers = fetch.read(broker);
    if fetch.is_enough(&answers) {
        return now_or_close(fetch.respond(broker, answers));
    }
    let broker = broker.clone();
    Answer::Later(Box::pin(async move { fetch.wait(&broker).await.map(Some) }))
}

/// Who asks. Only a node of the cluster that has shown itself may be a replica, and only itself, in its newest life (B8).
fn reader(broker: &Broker, context: &RequestContext, request: &FetchRequest) -> Result<Reader, ErrorCode> {
    let (id, epoch) = if context.api_version >= REPLICA_STATE_VERSION {
        (request.replica_state.replica_id.0, request.replica_state.replica_epoch)
    } else {
        (request.replica_id.0, -1)
    };
    if id < 0 {
        return Ok(Reader::Consumer {
            knows_followers: context.api_version >= FOLLOWERS_VERSION,
            rack: (!request.rack_id.is_empty()).then(|| request.rack_id.as_str().into()),
            connection: context.connection.id,
        });
    }
    if context.connection.peer_node.get().is_none_or(|node| node.node_id != id) {
        return Err(ErrorCode::CLUSTER_AUTHORIZATION_FAILED);
    }
    if broker.partitions.image().broker(id).is_some_and(|registered| epoch < registered.epoch) {
        return Err(ErrorCode::STALE_BROKER_EPOCH);
    }
    Ok(Reader::Replica { id, epoch })
}

impl Fetch {
    /// Tells the leader's machines how far the follower is: once, before anything is read, so that the answer has what follows of it.
    fn note_follower(&self, broker: &Broker) {
        for (key, wanted) in &self.resolved.partitions {
            note_follower(broker, &self.reading, key, wanted);
        }
    }

    fn read(&self, broker: &Arc<Broker>) -> Vec<PartitionAnswer> {
        let mut left = self.reading.bytes_max;
        let mut first = true;
        let mut answers = Vec::with_capacity(self.resolved.partitions.len());
        for (key, wanted) in &self.resolved.partitions {
            let answer = read_partition(broker, &self.reading, key, wanted, left, first);
            let bytes = answer.bytes();
            left = left.saturating_sub(bytes);
            first &= bytes == 0;
            answers.push(answer);
        }
        answers
    }

    fn is_enough(&self, answers: &[PartitionAnswer]) -> bool {
        self.wait.is_zero()
            || answers.is_empty()
            || answers.iter().map(PartitionAnswer::bytes).sum::<usize>() >= self.bytes_min
            || answers.iter().any(PartitionAnswer::ends_the_wait)
            || (self.reading.reader.is_replica() && self.has_news_of_commits(answers))
    }

    fn has_news_of_commits(&self, answers: &[PartitionAnswer]) -> bool {
        let pairs = self.resolved.partitions.iter().zip(answers);
        pairs.into_iter().any(|((_, wanted), answer)| answer.told().high_watermark > wanted.told_high_watermark)
    }

    async fn wait(self, broker: &Arc<Broker>) -> Result<Response, Refused> {
        let waiter = Waiter::new();
        broker.fetch_sessions.park(self.resolved.session_id, &waiter);
        let mut deadline = std::pin::pin!(task::sleep(self.wait));
        loop {
            // Registered before reading: what moves in between is seen either by the read or by the waiter.
            self.register(&broker.partitions, &waiter);
            let answers = self.read(broker);
            if self.is_enough(&answers) || !broker.fetch_sessions.is_newest(&self.resolved) {
                return self.respond(broker, answers);
            }
            tokio::select! {
                () = waiter.moved() => {}
                () = &mut deadline => {
                    let answers = self.read(broker);
                    return self.respond(broker, answers);
                }
            }
        }
    }

    fn register(&self, partitions: &Partitions, waiter: &Arc<Waiter>) {
        for ((topic, index), _) in &self.resolved.partitions {
            let topic = self.reading.topic(partitions, topic);
            if let Some(partition) = topic.as_ref().and_then(|topic| topic.partition(*index)) {
                let waiters =
                    if self.reading.reader.is_replica() { &partition.follower_waiters } else { &partition.waiters };
                waiters.register(waiter);
            }
        }
    }

    fn respond(&self, broker: &Broker, answers: Vec<PartitionAnswer>) -> Result<Response, Refused> {
        let named: Vec<bool> = if self.resolved.session_id == 0 && !self.resolved.incremental {
            vec![true; answers.len()]
        } else {
            let told: Vec<(PartitionKey, Told, bool)> = (self.resolved.partitions.iter().zip(&answers))
                .map(|((key, _), answer)| (key.clone(), answer.told(), answer.bytes() > 0))
                .collect();
            broker.fetch_sessions.news(self.resolved.session_id, &told, self.resolved.incremental)
        };
        let outcomes = broker.telemetry.api(keys::FETCH, "Fetch");
        let mut topics: Vec<TopicReply> = Vec::new();
        let mut leaders: Vec<BrokerId> = Vec::new();
        // The log's answers in the order of the request, then what was refused without asking a log, as in Kafka.
        let indexed: Vec<_> = self.resolved.partitions.iter().zip(answers).zip(named).collect();
        let (refused, read): (Vec<_>, Vec<_>) = indexed.into_iter().partition(|((_, answer), _)| answer.is_refusal());
        for ((((topic, index), _), answer), named) in read.into_iter().chain(refused) {
            if !named {
                continue;
            }
            answer.count(outcomes, &self.reading.reader, *index);
            let leader = answer.other_leader(broker, *index);
            let mut partition = answer.into_reply(*index, self.reading.read_committed);
            if let Some((leader_id, leader_epoch)) = leader {
                partition.current_leader = Some(CurrentLeader { leader_id, leader_epoch });
                leaders.push(leader_id);
            }
            match topics.last_mut() {
                Some(last) if *last.name == *topic.name && last.id == topic.id => last.partitions.push(partition),
                _ => topics.push(TopicReply {
                    name: StrBytes::from_string(topic.name.to_string()).into(),
                    id: topic.id,
                    partitions: vec![partition],
                }),
            }
        }
        let node_endpoints = self.endpoints(broker, leaders);
        let reply =
            FetchReply { session_id: self.resolved.session_id, topics, node_endpoints, ..FetchReply::default() };
        encode(self.context.api_version, self.context.correlation_id, reply)
    }

    fn endpoints(&self, broker: &Broker, leaders: Vec<BrokerId>) -> Vec<NodeEndpoint> {
        if leaders.is_empty() {
            return Vec::new();
        }
        let nodes = leader_hints::endpoints(broker, &self.context, leaders).into_iter();
        nodes.map(|node| NodeEndpoint { node_id: node.id, host: node.host, port: node.port, rack: node.rack }).collect()
    }
}

fn encode(version: i16, correlation_id: i32, reply: FetchReply) -> Result<Response, Refused> {
    fetch_response::encode(version, correlation_id, reply)
        .map(Response::Pieces)
        .map_err(|error| Refused::because(Reason::Internal, format!("the answer cannot be encoded: {error}")))
}

/// A session error is the answer's only content.
fn refusal(context: &RequestContext, error: ErrorCode) -> Result<Response, Refused> {
    let reply = FetchReply { error_code: error.code(), ..FetchReply::default() };
    encode(context.api_version, context.correlation_id, reply)
}

fn now_or_close(answer: Result<Response, Refused>) -> Answer {
    match answer {
        Ok(response) => Answer::Now(response),
        Err(refused) => Answer::Close(refused),
    }
}

fn random_session_id(broker: &Broker) -> i32 {
    let mut bytes = [0; 4];
    broker.host.entropy.fill(&mut bytes);
    (i32::from_be_bytes(bytes) & i32::MAX).max(1)
}

fn session_request(
    broker: &Broker,
    context: &RequestContext,
    request: &FetchRequest,
    reader: &Reader,
) -> SessionRequest {
    let by_id = context.api_version >= TOPIC_ID_VERSION;
    let mut wanted = Vec::new();
    for topic in &request.topics {
        let key = topic_key(broker, by_id, &topic.topic, topic.topic_id);
        for partition in &topic.partitions {
            let asked = Wanted {
                fetch_offset: partition.fetch_offset,
                bytes_max: partition.partition_max_bytes,
                current_leader_epoch: partition.current_leader_epoch,
                last_fetched_epoch: partition.last_fetched_epoch,
                log_start_offset: partition.log_start_offset,
                told_high_watermark: NO_OFFSET,
            };
            wanted.push(((key.clone(), partition.partition), asked));
        }
    }
    let mut forgotten = Vec::new();
    for topic in &request.forgotten_topics_data {
        let key = topic_key(broker, by_id, &topic.topic, topic.topic_id);
        forgotten.extend(topic.partitions.iter().map(|partition| (key.clone(), *partition)));
    }
    // Before v7 there are no sessions: the epoch's default (-1) says so.
    SessionRequest {
        id: request.session_id,
        epoch: request.session_epoch,
        uses_topic_ids: by_id,
        is_replica: reader.is_replica(),
        wanted,
        forgotten,
    }
}

/// The topic under both of its names where it is known; a name that stands for nothing stays as it was sent.
fn topic_key(broker: &Broker, by_id: bool, name: &str, id: uuid::Uuid) -> TopicKey {
    if by_id {
        let id = TopicId(id);
        let name = broker.partitions.topic_by_id(id).map_or_else(|| "".into(), |topic| topic.name.clone());
        return TopicKey { name, id };
    }
    match broker.partitions.topic(name) {
        // By name: whatever topic has that name when it is read. The id must not become part of the key.
        Some(topic) => TopicKey { name: topic.name.clone(), id: TopicId::ZERO },
        None => TopicKey { name: name.into(), id: TopicId::ZERO },
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::path::PathBuf;

    use futures_util::FutureExt;

    use super::*;
    use crate::api::context::{ConnectionInfo, Door};
    use crate::host::sim::SimHost;
    use crate::log::LogEnv;
    use crate::metadata::config::LogConfig;
    use crate::metadata::{Image, MetadataRecord, PartitionState};
    use crate::replica::{Checkpoints, FlushPolicy, LogDirs, ReplicaOptions};
    use crate::telemetry::Telemetry;

    const TOPIC: TopicId = TopicId(uuid::Uuid::from_u128(7));

    /// A broker with the topic `t`.
    fn partitions() -> Partitions {
        let env = LogEnv::new(SimHost::new(1).host(), 8);
        let options = ReplicaOptions::new(1, FlushPolicy::Os, 30_000);
        let config = Box::new(|_: &Image, _: &str| LogConfig::default());
        let (dir, telemetry) = (PathBuf::from("/data"), Telemetry::new(0));
        let partitions = Partitions::new(env, LogDirs::only(dir, &Checkpoints::default()), options, config, telemetry);
        let mut image = Image::empty();
        let states = vec![PartitionState::new(vec![1], Vec::new())];
        image.apply(1, &MetadataRecord::Topic { id: TOPIC, name: "t".into(), partitions: states }).unwrap();
        partitions.apply(&image, true);
        partitions
    }

    fn waiting_for(name: &str, id: TopicId) -> Fetch {
        let address = SocketAddr::from(([127, 0, 0, 1], 9092));
        let context = RequestContext {
            connection: Arc::new(ConnectionInfo::new(1, address, address, "PLAINTEXT".into(), Door::Broker)),
            api_key: keys::FETCH,
            api_version: TOPIC_ID_VERSION,
            correlation_id: 1,
            client_id: None,
            received_nanos: 0,
        };
        let wanted = Wanted {
            fetch_offset: 0,
            bytes_max: 1,
            current_leader_epoch: -1,
            last_fetched_epoch: -1,
            log_start_offset: -1,
            told_high_watermark: NO_OFFSET,
        };
        let partitions = vec![((TopicKey { name: name.into(), id }, 0), wanted)];
        let reader = Reader::Consumer { knows_followers: true, rack: None, connection: 1 };
        Fetch {
            context,
            resolved: Resolved { session_id: 7, incremental: true, next_epoch: 2, partitions },
            reading: Reading { bytes_max: 1, read_committed: false, by_id: true, reader },
            wait: Duration::from_secs(1),
            bytes_min: 1,
        }
    }

    /// A session keeps the name that an id stood for when it was named: none, where the topic was not known yet.
    #[test]
    fn who_waits_for_a_topic_by_its_id_hears_of_that_topic() {
        let partitions = partitions();
        for (name, id, hears) in [("", TOPIC, true), ("t", TOPIC, true), ("t", TopicId::ZERO, false)] {
            let waiter = Waiter::new();
            waiting_for(name, id).register(&partitions, &waiter);
            partitions.partition("t", 0).unwrap().waiters.wake_all();
            assert_eq!(waiter.moved().now_or_never().is_some(), hears, "{name:?} {id}");
        }
    }
}
