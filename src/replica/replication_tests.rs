//! Three nodes in one process: real partitions, flushers and fetchers over simulated disks, wired by calls instead of a network. The
//! leader's side of a fetch is the one of `api/data/fetch` in small.

mod damage;
mod log_start;

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use uuid::Uuid;

use super::journal::{self, Journal};
use super::*;
use crate::base::{BrokerId, ErrorCode, LeaderEpoch, Offset, TopicId};
use crate::host::real::RealClock;
use crate::host::sim::{Crash, SimDisk, SimHost};
use crate::host::{Clock, Disk, Host, task};
use crate::log::{LogEnv, NewBatch};
use crate::metadata::config::LogConfig;
use crate::metadata::{BrokerRegistration, Image, MetadataRecord, PartitionState};
use crate::records::{BatchBuilder, BatchHeader, Batches, Codec};
use crate::telemetry::Telemetry;
use crate::wire::messages::fetch_response::{EpochEndOffset, FetchableTopicResponse, PartitionData};
use crate::wire::messages::{FetchRequest, FetchResponse};

const LOG_DIR: &str = "/data";
const TOPIC: TopicId = TopicId(Uuid::from_u128(7));
const NODES: [BrokerId; 3] = [1, 2, 3];

/// Nobody waits longer than this for what must happen.
const PATIENCE: Duration = Duration::from_secs(20);

struct Node {
    id: BrokerId,
    sim: SimHost,
    partitions: Arc<Partitions>,
    flusher: Arc<Flusher>,
    flusher_thread: Option<JoinHandle<()>>,
    fetching: Option<tokio::task::JoinHandle<()>>,
}

type Table = Arc<Mutex<Vec<(BrokerId, Arc<Partitions>)>>>;

/// The network: who is there, and which way is cut.
#[derive(Clone, Default)]
struct Wires {
    table: Table,
    cut: Arc<Mutex<Vec<BrokerId>>>,
    /// Flips a bit in what is sent, once.
    corrupt: Arc<Mutex<bool>>,
}

impl Wires {
    fn of(&self, id: BrokerId) -> Option<Arc<Partitions>> {
        self.table.lock().iter().find(|(node, _)| *node == id).map(|(_, partitions)| partitions.clone())
    }

    fn is_cut(&self, id: BrokerId) -> bool {
        self.cut.lock().contains(&id)
    }
}

impl ReplicaFetch for Wires {
    fn fetch(&self, leader: BrokerId, request: FetchRequest) -> BoxFuture<'static, Result<FetchResponse, FetchFailed>> {
        let wires = self.clone();
        Box::pin(async move {
            let from = request.replica_state.replica_id.0;
            let waiter = Waiter::new();
            for _ in 0..2 {
                if wires.is_cut(leader) || wires.is_cut(from) {
                    task::sleep(Duration::from_millis(1)).await;
                    return Err(FetchFailed("the network is cut".to_owned()));
                }
                let Some(partitions) = wires.of(leader) else { return Err(FetchFailed("nobody is there".to_owned())) };
                let Some(partition) = partitions.topic_by_id(TOPIC).and_then(|topic| topic.partition(0).cloned())
                else {
                    return Err(FetchFailed("no such topic".to_owned()));
                };
                partition.follower_waiters.register(&waiter);
                let answer = serve(&partition, &request);
                let has_records = answer.records.as_ref().is_some_and(|records| !records.is_empty());
                if answer.error_code != 0 || answer.diverging_epoch.end_offset >= 0 || has_records {
                    return Ok(wires.sent(answer));
                }
                // A short wait in place of sessions that know what was told.
                let _ = task::timeout(Duration::from_millis(5), waiter.moved()).await;
            }
            let Some(partition) = wires.of(leader).and_then(|partitions| partitions.partition("t", 0)) else {
                return Err(FetchFailed("nobody is there".to_owned()));
            };
            if wires.is_cut(leader) || wires.is_cut(from) {
                return Err(FetchFailed("the network was cut meanwhile".to_owned()));
            }
            Ok(wires.sent(serve(&partition, &request)))
        })
    }
}

impl Wires {
    fn sent(&self, mut answer: PartitionData) -> FetchResponse {
        if let Some(records) = answer.records.take() {
            let mut bytes = records.to_vec();
            if std::mem::take(&mut *self.corrupt.lock())
                && let Some(last) = bytes.last_mut()
            {
                *last ^= 1;
            }
            answer.records = Some(bytes.into());
        }
        let topic = FetchableTopicResponse::default().with_topic_id(TOPIC.0).with_partitions(vec![answer]);
        FetchResponse::default().with_responses(vec![topic])
    }
}

fn serve(partition: &Arc<Partition>, request: &FetchRequest) -> PartitionData {
    let refused = |error: ErrorCode| {
        PartitionData::default().with_error_code(error.code()).with_high_watermark(-1).with_log_start_offset(-1)
    };
    let Some(asked) = request.topics.iter().flat_map(|topic| &topic.partitions).next() else {
        return refused(ErrorCode::UNKNOWN_TOPIC_ID);
    };
    let epoch = asked.current_leader_epoch;
    if partition.leader_epoch() != epoch {
        return refused(ErrorCode::NOT_LEADER_OR_FOLLOWER);
    }
    let Ok(view) = partition.view() else { return refused(ErrorCode::NOT_LEADER_OR_FOLLOWER) };
    let (last, offset) = (asked.last_fetched_epoch, asked.fetch_offset);
    if last >= 0 {
        let (shared, end_offset) = view.epoch_end_offset(last);
        if end_offset >= 0 && (shared < last || end_offset < offset) {
            let end = EpochEndOffset::default().with_epoch(shared).with_end_offset(end_offset);
            return PartitionData::default().with_diverging_epoch(end).with_high_watermark(0);
        }
    }
    if !(view.log_start_offset..=view.log_end_offset).contains(&offset) {
        return refused(ErrorCode::OFFSET_OUT_OF_RANGE).with_log_start_offset(view.log_start_offset);
    }
    let fetch = FollowerFetch {
        broker: request.replica_state.replica_id.0,
        broker_epoch: request.replica_state.replica_epoch,
        fetch_offset: offset,
        log_start_offset: asked.log_start_offset,
    };
    let _ = partition.note_fetch(fetch, epoch);
    let answer = PartitionData::default()
        .with_high_watermark(partition.readable_below(&view))
        .with_log_start_offset(view.log_start_offset);
    let read = view.read(offset, asked.partition_max_bytes as usize, view.log_end_offset, true);
    let Ok(read) = read else { return refused(ErrorCode::KAFKA_STORAGE_ERROR) };
    match read {
        Some(slice) => {
            let mut bytes = vec![0; slice.len];
            slice.file.read_exact_at(&mut bytes, slice.position).unwrap();
            answer.with_records(Some(bytes.into()))
        }
        None => answer,
    }
}

impl Node {
    /// Starts on what the disk holds, knowing nothing of the cluster yet.
    fn start(id: BrokerId, sim: SimHost, wires: &Wires) -> Node {
        let dir = Path::new(LOG_DIR);
        // The disk is simulated; time is not, because the flusher's thread takes its own.
        let host = Host { clock: Arc::new(RealClock::new()), ..sim.host() };
        let checkpoints = Checkpoints::take(&*sim.disk, dir).unwrap();
        journal::recover(&*sim.disk, dir).unwrap();
        let journal = Journal::create(&*sim.disk, dir).unwrap();
        let telemetry = Telemetry::new(host.clock.now_ms());
        let (flusher, thread) = Flusher::start(Some(journal), host.clock.clone(), telemetry.clone()).unwrap();
        let config: ConfigSource =
            Box::new(|_, _| LogConfig { segment_bytes: 4096, min_insync_replicas: 2, ..LogConfig::default() });
        let options = ReplicaOptions::new(id, FlushPolicy::Sync, 60_000);
        let env = LogEnv::new(host.clone(), 8);
        let partitions =
            Arc::new(Partitions::new(env, LogDirs::only(dir.to_owned(), &checkpoints), options, config, telemetry));
        let mut table = wires.table.lock();
        table.retain(|(node, _)| *node != id);
        table.push((id, partitions.clone()));
        let fetchers = Fetchers::new(
            &partitions,
            flusher.clone(),
            host.clock.clone(),
            Arc::new(wires.clone()),
            FetcherOptions::default(),
        );
        let fetching = Some(tokio::spawn(fetchers.run()));
        Node { id, sim, partitions, flusher, flusher_thread: Some(thread), fetching }
    }

    fn partition(&self) -> Arc<Partition> {
        self.partitions.partition("t", 0).unwrap()
    }

    fn values(&self) -> Vec<(Offset, LeaderEpoch, String)> {
        let view = self.partition().view().unwrap();
        let (mut from, mut values) = (view.log_start_offset, Vec::new());
        while let Some(slice) = view.read(from, 1 << 20, view.log_end_offset, true).unwrap() {
            let mut bytes = vec![0; slice.len];
            slice.file.read_exact_at(&mut bytes, slice.position).unwrap();
            for batch in Batches::new(&bytes) {
                let (header, bytes) = batch.unwrap();
                for record in &crate::records::records(bytes, 1 << 20).unwrap() {
                    let record = record.unwrap();
                    let value = String::from_utf8(record.value.unwrap().to_vec()).unwrap();
                    values.push((record.offset, header.partition_leader_epoch, value));
                }
                from = header.next_offset();
            }
        }
        values
    }

    fn end(&self) -> Offset {
        self.partition().view().unwrap().log_end_offset
    }

    async fn stop(mut self) -> SimHost {
        if let Some(fetching) = self.fetching.take() {
            fetching.abort();
            let _ = fetching.await;
        }
        self.flusher.stop();
        if let Some(thread) = self.flusher_thread.take() {
            task::blocking(move || thread.join().unwrap()).await;
        }
        self.sim
    }
}

struct Cluster {
    nodes: Vec<Node>,
    wires: Wires,
    broker_epochs: Vec<i64>,
    state: PartitionState,
}

impl Cluster {
    fn new() -> Cluster {
        Cluster::seeded(0)
    }

    fn seeded(seed: u64) -> Cluster {
        let wires = Wires::default();
        let nodes = NODES.map(|id| {
            let sim = SimHost::new(10 * seed + id as u64);
            sim.disk.create_dir_all(Path::new(LOG_DIR)).unwrap();
            sim.disk.sync_dir(Path::new("/")).unwrap();
            Node::start(id, sim, &wires)
        });
        let state = PartitionState::new(NODES.to_vec(), vec![]);
        let cluster = Cluster { nodes: nodes.into(), wires, broker_epochs: vec![1; 3], state };
        NODES.iter().for_each(|id| cluster.tell(*id));
        cluster
    }

    fn node(&self, id: BrokerId) -> &Node {
        self.nodes.iter().find(|node| node.id == id).unwrap()
    }

    fn disk(&self, id: BrokerId) -> &SimDisk {
        &self.node(id).sim.disk
    }

    fn image(&self) -> Image {
        let mut image = Image::empty();
        for (id, epoch) in NODES.iter().zip(&self.broker_epochs) {
            let registration = BrokerRegistration {
                id: *id,
                incarnation: Uuid::from_u128(*epoch as u128),
                epoch: *epoch,
                ..BrokerRegistration::default()
            };
            image.apply(image.offset + 1, &MetadataRecord::Broker(registration)).unwrap();
        }
        let topic = MetadataRecord::Topic { id: TOPIC, name: "t".into(), partitions: vec![self.state.clone()] };
        image.apply(image.offset + 1, &topic).unwrap();
        image
    }

    /// One node learns how things are.
    fn tell(&self, id: BrokerId) {
        let node = self.node(id);
        node.partitions.set_broker_epoch(self.broker_epochs[id as usize - 1]);
        node.partitions.apply(&self.image(), false);
    }

    fn tell_all(&self) {
        NODES.iter().for_each(|id| self.tell(*id));
    }

    fn elect(&mut self, leader: BrokerId, isr: &[BrokerId]) {
        self.state.leader = leader;
        self.state.leader_epoch += 1;
        self.set_isr(isr);
    }

    fn set_isr(&mut self, isr: &[BrokerId]) {
        self.state.isr = isr.to_vec();
        self.state.partition_epoch += 1;
    }

    fn append(&self, leader: BrokerId, value: &str) -> Result<SyncWait, PartitionError> {
        let node = self.node(leader);
        let batch = batch(value);
        let header = BatchHeader::parse(&batch).unwrap();
        let partition = node.partition();
        let appended = partition.append(&NewBatch { header, bytes: &batch }, true)?;
        let wait = SyncWait::new(-1, FlushPolicy::Sync);
        wait.appended(&node.flusher, &partition, &appended);
        Ok(wait)
    }

    /// With `acks=all`. `Ok` when it was acknowledged.
    async fn produce(&self, leader: BrokerId, value: &str, timeout: Duration) -> Result<(), AckFailure> {
        match self.append(leader, value).unwrap().seal() {
            None => Ok(()),
            Some(unanswered) => {
                unanswered.wait(timeout).await;
                unanswered.outcome(0)
            }
        }
    }

    /// The power of one node goes; it comes back as another life of itself and knows nothing until it is told.
    async fn power_cut(&mut self, id: BrokerId) {
        self.crash(id, Crash::PowerLosesAll).await;
    }

    async fn crash(&mut self, id: BrokerId, how: Crash) {
        let at = self.nodes.iter().position(|node| node.id == id).unwrap();
        self.disk(id).crash(how);
        let sim = self.nodes.remove(at).stop().await;
        self.broker_epochs[id as usize - 1] += 1;
        self.nodes.push(Node::start(id, sim, &self.wires));
    }

    async fn until(&self, what: &str, holds: impl Fn(&Cluster) -> bool) {
        let wait = async {
            while !holds(self) {
                task::sleep(Duration::from_millis(1)).await;
            }
        };
        assert!(task::timeout(PATIENCE, wait).await.is_some(), "never happened: {what}");
    }

    async fn until_equal(&self) {
        self.until("all logs are the same", |cluster| {
            let values = cluster.nodes[0].values();
            cluster.nodes.iter().all(|node| node.values() == values)
        })
        .await;
    }

    async fn stop(self) {
        for node in self.nodes {
            node.stop().await;
        }
    }
}

fn batch(value: &str) -> Bytes {
    let mut builder = BatchBuilder::new(Codec::None);
    builder.push(1_700_000_000_000, None, Some(value.as_bytes()), &[]);
    builder.finish(0, -1).into()
}

#[tokio::test]
async fn acknowledged_records_are_on_every_in_sync_node_and_below_the_high_watermark() {
    let cluster = Cluster::new();
    for value in ["a", "b", "c"] {
        assert_eq!(cluster.produce(1, value, PATIENCE).await, Ok(()));
        assert!(NODES.iter().all(|id| cluster.node(*id).end() == cluster.node(1).end()));
    }
    assert_eq!(cluster.node(1).partition().high_watermark(), 3);
    cluster.until_equal().await;
    cluster
        .until("followers learn the high watermark", |cluster| {
            cluster.nodes.iter().all(|node| node.partition().high_watermark() == 3)
        })
        .await;
    cluster.stop().await;
}

#[tokio::test]
async fn without_its_followers_a_leader_acknowledges_nothing() {
    let cluster = Cluster::new();
    assert_eq!(cluster.produce(1, "a", PATIENCE).await, Ok(()));
    cluster.wires.cut.lock().push(2);
    assert_eq!(cluster.produce(1, "b", Duration::from_millis(30)).await, Err(AckFailure::TimedOut));
    assert_eq!(cluster.node(1).partition().high_watermark(), 1);
    cluster.wires.cut.lock().clear();
    assert_eq!(cluster.produce(1, "c", PATIENCE).await, Ok(()));
    cluster.until_equal().await;
    cluster.stop().await;
}

#[tokio::test]
async fn a_lost_leadership_fails_who_waits_and_the_old_leaders_tail_is_cut() {
    let mut cluster = Cluster::new();
    assert_eq!(cluster.produce(1, "a", PATIENCE).await, Ok(()));
    cluster.until("everybody has it", |cluster| cluster.nodes.iter().all(|node| node.end() == 1)).await;
    cluster.wires.cut.lock().push(1);
    let waiting = cluster.append(1, "lost").unwrap().seal().unwrap();
    cluster.elect(2, &[2, 3]);
    cluster.tell(2);
    cluster.tell(3);
    assert_eq!(cluster.produce(2, "b", PATIENCE).await, Ok(()));
    cluster.tell(1);
    assert!(!waiting.wait(PATIENCE).await);
    assert_eq!(waiting.outcome(0), Err(AckFailure::NotLeader));
    assert!(matches!(cluster.append(1, "x"), Err(PartitionError::NotLeader)));
    cluster.wires.cut.lock().clear();
    cluster.until_equal().await;
    let values = cluster.node(1).values();
    assert_eq!(values, [(0, 0, "a".to_owned()), (1, 1, "b".to_owned())]);
    cluster.stop().await;
}

/// KIP-279: two quick elections, and each of two nodes has records of its own that the other never saw.
#[tokio::test]
async fn histories_that_parted_twice_become_one() {
    let mut cluster = Cluster::new();
    assert_eq!(cluster.produce(1, "a", PATIENCE).await, Ok(()));
    cluster.until_equal().await;
    cluster.wires.cut.lock().extend(NODES);
    for value in ["x1", "x2", "x3"] {
        cluster.append(1, value).unwrap();
    }
    cluster.elect(2, &[1, 2]);
    cluster.tell(2);
    for value in ["y1", "y2"] {
        cluster.append(2, value).unwrap();
    }
    cluster.elect(1, &[1, 2]);
    cluster.tell(1);
    cluster.append(1, "z1").unwrap();
    cluster.elect(2, &[1, 2]);
    cluster.tell(2);
    cluster.append(2, "w1").unwrap();
    cluster.wires.cut.lock().clear();
    cluster.tell_all();
    cluster.until_equal().await;
    let values: Vec<String> = cluster.node(1).values().into_iter().map(|(_, _, value)| value).collect();
    assert_eq!(values, ["a", "y1", "y2", "w1"]);
    assert_eq!(cluster.produce(2, "end", PATIENCE).await, Ok(()));
    cluster.stop().await;
}

#[tokio::test]
async fn an_acknowledged_record_survives_the_power_of_all_followers_and_then_of_the_leader() {
    let mut cluster = Cluster::new();
    for round in 0..3 {
        assert_eq!(cluster.produce(1, &format!("v{round}"), PATIENCE).await, Ok(()));
    }
    for id in [2, 3] {
        cluster.power_cut(id).await;
        cluster.tell(id);
        assert_eq!(cluster.node(id).end(), 3, "a fetch says only what is on the device");
    }
    cluster.power_cut(1).await;
    cluster.elect(2, &[2, 3]);
    cluster.tell_all();
    assert_eq!(cluster.produce(2, "after", PATIENCE).await, Ok(()));
    cluster.until_equal().await;
    let values: Vec<String> = cluster.node(1).values().into_iter().map(|(_, _, value)| value).collect();
    assert_eq!(values, ["v0", "v1", "v2", "after"]);
    cluster.stop().await;
}

#[tokio::test]
async fn what_was_cut_does_not_come_back_from_the_flush_journal() {
    let mut cluster = Cluster::new();
    assert_eq!(cluster.produce(1, "a", PATIENCE).await, Ok(()));
    assert_eq!(cluster.produce(1, "b", PATIENCE).await, Ok(()));
    cluster.until_equal().await;
    cluster.wires.cut.lock().push(1);
    let tail = cluster.append(1, "a tail that only the first leader has, in its journal").unwrap();
    cluster.until("it is durable", |cluster| cluster.node(1).partition().is_durable(3)).await;
    drop(tail);
    cluster.elect(2, &[2, 3]);
    cluster.tell_all();
    assert_eq!(cluster.produce(2, "c", PATIENCE).await, Ok(()));
    cluster.wires.cut.lock().clear();
    cluster.until_equal().await;
    cluster.power_cut(1).await;
    cluster.tell(1);
    cluster.until_equal().await;
    let values: Vec<String> = cluster.node(1).values().into_iter().map(|(_, _, value)| value).collect();
    assert_eq!(values, ["a", "b", "c"]);
    cluster.stop().await;
}

/// Node 1 has a tail of its own, and everything that a start would read says so; then it learns that 2 leads, which has other records.
async fn with_a_checkpointed_tail(seed: u64, tail_start: Offset) -> Cluster {
    let mut cluster = Cluster::seeded(seed);
    assert_eq!(cluster.produce(1, "a", PATIENCE).await, Ok(()));
    cluster.until_equal().await;
    cluster.wires.cut.lock().push(1);
    for round in 0..20 {
        cluster.append(1, &format!("tail {round}")).unwrap();
    }
    let node = cluster.node(1);
    cluster.until("it is durable", |_| node.partition().is_durable(21)).await;
    node.partition()
        .with_log(|log| {
            log.delete_records_before(tail_start).unwrap();
            log.flush().unwrap();
            log.checkpoint().unwrap()
        })
        .unwrap();
    node.partitions.save_checkpoints();
    cluster.elect(2, &[2, 3]);
    cluster.tell(2);
    cluster.tell(3);
    for round in 0..30 {
        assert_eq!(cluster.produce(2, &format!("value {round} {}", "x".repeat(round)), PATIENCE).await, Ok(()));
    }
    cluster
}

#[tokio::test]
async fn a_recovery_point_of_what_was_cut_is_not_believed_of_what_came_in_its_place() {
    for seed in 0..10 {
        let mut cluster = with_a_checkpointed_tail(seed, 0).await;
        // Nothing that is written from now on reaches the device for sure.
        cluster.node(1).flusher.stop();
        cluster.tell(1);
        cluster.wires.cut.lock().clear();
        cluster.until("it is written", |cluster| cluster.node(1).end() == 31).await;
        cluster.crash(1, Crash::PowerLosesSome).await;
        cluster.tell(1);
        cluster.until("it has everything", |cluster| cluster.node(1).end() == 31).await;
        assert_eq!(cluster.node(1).values(), cluster.node(2).values(), "seed {seed}");
        cluster.stop().await;
    }
}

#[tokio::test]
async fn a_log_start_of_what_was_cut_is_not_believed_of_what_came_in_its_place() {
    let mut cluster = with_a_checkpointed_tail(0, 15).await;
    cluster.tell(1);
    cluster.wires.cut.lock().clear();
    cluster
        .until("it is durable", |cluster| cluster.node(1).end() == 31 && cluster.node(1).partition().is_durable(31))
        .await;
    cluster.power_cut(1).await;
    cluster.tell(1);
    let values = cluster.node(2).values();
    assert_eq!(cluster.node(1).values(), values[1..], "what the leader has from where the log began again");
    cluster.stop().await;
}

#[tokio::test]
async fn an_answer_that_is_damaged_behind_its_first_batch_is_gone_on_from_there() {
    let cluster = Cluster::new();
    assert_eq!(cluster.produce(1, "a", PATIENCE).await, Ok(()));
    cluster.until_equal().await;
    cluster.wires.cut.lock().push(1);
    cluster.append(1, "b").unwrap();
    cluster.append(1, "c").unwrap();
    *cluster.wires.corrupt.lock() = true;
    cluster.wires.cut.lock().clear();
    cluster.until_equal().await;
    assert!(!*cluster.wires.corrupt.lock(), "something was corrupted");
    cluster.stop().await;
}

#[tokio::test]
async fn a_former_leader_says_nothing_of_records_that_it_has_not_synced() {
    let mut cluster = Cluster::new();
    assert_eq!(cluster.produce(1, "a", PATIENCE).await, Ok(()));
    cluster.until_equal().await;
    // With acks=1: nobody asks for a sync.
    let bytes = batch("b");
    let new = NewBatch { header: BatchHeader::parse(&bytes).unwrap(), bytes: &bytes };
    cluster.node(1).partition().append(&new, false).unwrap();
    cluster.until("the others have it", |cluster| [2, 3].iter().all(|id| cluster.node(*id).end() == 2)).await;
    assert!(!cluster.node(1).partition().is_durable(2));
    cluster.elect(2, &NODES);
    cluster.tell_all();
    cluster.until("it is committed", |cluster| cluster.node(2).partition().high_watermark() == 2).await;
    assert!(cluster.node(1).partition().is_durable(2), "its fetch said so");
    cluster.power_cut(1).await;
    cluster.tell(1);
    assert_eq!(cluster.node(1).end(), 2);
    cluster.stop().await;
}

#[tokio::test]
async fn corrupt_bytes_are_never_written_and_asked_for_again() {
    let cluster = Cluster::new();
    assert_eq!(cluster.produce(1, "a", PATIENCE).await, Ok(()));
    *cluster.wires.corrupt.lock() = true;
    assert_eq!(cluster.produce(1, "b", PATIENCE).await, Ok(()));
    assert!(!*cluster.wires.corrupt.lock(), "something was corrupted");
    cluster.until_equal().await;
    cluster.stop().await;
}

#[tokio::test]
async fn below_min_insync_replicas_appends_are_refused_and_who_waits_is_told() {
    let mut cluster = Cluster::new();
    assert_eq!(cluster.produce(1, "a", PATIENCE).await, Ok(()));
    cluster.wires.cut.lock().push(1);
    let waiting = cluster.append(1, "b").unwrap().seal().unwrap();
    cluster.set_isr(&[1]);
    cluster.tell(1);
    assert!(!waiting.wait(PATIENCE).await);
    assert_eq!(waiting.outcome(0), Err(AckFailure::NotEnoughReplicas));
    assert!(matches!(cluster.append(1, "c"), Err(PartitionError::NotEnoughReplicas)));
    assert_eq!(cluster.node(1).partition().high_watermark(), 1);
    cluster.stop().await;
}

#[tokio::test]
async fn a_follower_behind_the_leaders_start_begins_there() {
    let cluster = Cluster::new();
    cluster.wires.cut.lock().push(3);
    let mut cluster = cluster;
    cluster.set_isr(&[1, 2]);
    cluster.tell_all();
    for round in 0..10 {
        assert_eq!(cluster.produce(1, &format!("{round}"), PATIENCE).await, Ok(()));
    }
    cluster.node(1).partition().with_log(|log| log.delete_records_before(6)).unwrap().unwrap();
    cluster.wires.cut.lock().clear();
    cluster.until_equal().await;
    assert_eq!(cluster.node(3).values().first().map(|(offset, ..)| *offset), Some(6));
    cluster.stop().await;
}

/// Answers at once and keeps what it was asked.
#[derive(Default)]
struct Controller {
    asked: Mutex<Vec<IsrProposal>>,
}

impl IsrProposals for Controller {
    fn propose(&self, proposals: Vec<IsrProposal>) -> BoxFuture<'static, IsrAnswers> {
        let answers = proposals.iter().map(|_| Ok(())).collect();
        self.asked.lock().extend(proposals);
        Box::pin(std::future::ready(Ok(answers)))
    }
}

#[tokio::test]
async fn a_follower_that_caught_up_is_proposed_with_its_broker_epoch() {
    let mut cluster = Cluster::new();
    cluster.set_isr(&[1, 2]);
    cluster.tell_all();
    let controller = Arc::new(Controller::default());
    let node = cluster.node(1);
    let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
    let driver = tokio::spawn(IsrDriver::new(node.partitions.clone(), clock, controller.clone()).run());
    assert_eq!(cluster.produce(1, "a", PATIENCE).await, Ok(()));
    cluster.until("it is proposed", |_| !controller.asked.lock().is_empty()).await;
    let asked = controller.asked.lock()[0].clone();
    let members: Vec<BrokerId> = asked.proposal.isr.iter().map(|(id, _)| *id).collect();
    assert_eq!((members, asked.proposal.isr[0], asked.proposal.isr[2]), (vec![1, 2, 3], (1, 1), (3, 1)));
    assert_eq!((asked.proposal.leader_epoch, asked.proposal.partition_epoch), (0, 1));
    let counted = || cluster.node(1).partitions.telemetry().render();
    cluster.until("it is counted", |_| counted().contains("isrexpands_total 1\n")).await;
    assert!(counted().contains("isrshrinks_total 0\n"));
    driver.abort();
    cluster.stop().await;
}

#[tokio::test]
async fn a_restarted_leader_knows_its_high_watermark_only_when_its_followers_have_told() {
    let mut cluster = Cluster::new();
    assert_eq!(cluster.produce(1, "a", PATIENCE).await, Ok(()));
    cluster.wires.cut.lock().extend(NODES);
    cluster.elect(2, &[1, 2]);
    cluster.tell(2);
    assert!(!cluster.node(2).partition().knows_high_watermark() || cluster.node(2).partition().high_watermark() == 1);
    cluster.wires.cut.lock().clear();
    cluster.tell_all();
    cluster.until("it knows", |cluster| cluster.node(2).partition().knows_high_watermark()).await;
    assert_eq!(cluster.node(2).partition().high_watermark(), 1);
    cluster.stop().await;
}
