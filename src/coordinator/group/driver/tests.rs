//! Facts about the driver, over a log in memory whose commits are held back or fail when a test says so.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::poll_immediate;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::log::{AppendRefused, CommitFailed, CommitWait, OffsetsLog, ReadFailed};
use super::{GroupCoordinator, batch};
use crate::base::{ErrorCode, Offset, PartitionIndex, TopicId};
use crate::coordinator::group::words::*;
use crate::coordinator::group::{GroupConfig, Machine};
use crate::host::sim::SimHost;
use crate::records::{BatchBuilder, BatchHeader, Codec, ControlKind};

const PARTITIONS: i32 = 4;

/// What has become of all commits so far.
type Fate = Option<Result<(), CommitFailed>>;

#[derive(Default)]
struct MemoryPartition {
    batches: Vec<(Offset, Vec<u8>)>,
    end: Offset,
}

struct MemoryLog {
    partitions: Vec<Mutex<MemoryPartition>>,
    fate: watch::Sender<Fate>,
    refuses: Mutex<Option<AppendRefused>>,
}

impl MemoryLog {
    fn new() -> Arc<MemoryLog> {
        Arc::new(MemoryLog {
            partitions: (0..PARTITIONS).map(|_| Mutex::default()).collect(),
            fate: watch::channel(Some(Ok(()))).0,
            refuses: Mutex::new(None),
        })
    }

    fn put(&self, partition: PartitionIndex, batch: &[u8]) {
        let mut partition = self.partitions[partition as usize].lock();
        let mut batch = batch.to_vec();
        batch[..8].copy_from_slice(&partition.end.to_be_bytes());
        let (start, end) = (partition.end, BatchHeader::parse(&batch).map_or(0, |header| header.next_offset()));
        partition.batches.push((start, batch));
        partition.end = end;
    }

    /// Loses everything from `end` on.
    fn cut(&self, partition: PartitionIndex, end: Offset) {
        let mut partition = self.partitions[partition as usize].lock();
        partition.batches.retain(|(start, _)| *start < end);
        partition.end = end;
    }

    fn wait(&self) -> CommitWait {
        let mut fate = self.fate.subscribe();
        Box::pin(async move {
            match fate.wait_for(Option::is_some).await {
                Ok(fate) => (*fate).unwrap_or(Ok(())),
                Err(_) => Err(CommitFailed::NotLeader),
            }
        })
    }
}

impl OffsetsLog for MemoryLog {
    fn partitions(&self) -> i32 {
        PARTITIONS
    }

    fn append(&self, partition: PartitionIndex, batch: Bytes) -> Result<CommitWait, AppendRefused> {
        if let Some(refused) = *self.refuses.lock() {
            return Err(refused);
        }
        assert!(crate::records::crc_is_valid(&batch));
        self.put(partition, &batch);
        Ok(self.wait())
    }

    fn read_from(&self, partition: PartitionIndex, offset: Offset) -> Result<Option<Bytes>, ReadFailed> {
        let partition = self.partitions[partition as usize].lock();
        let from = partition.batches.partition_point(|(start, _)| *start < offset);
        Ok(partition.batches.get(from).map(|(_, batch)| Bytes::copy_from_slice(batch)))
    }

    fn log_end(&self, partition: PartitionIndex) -> Offset {
        self.partitions[partition as usize].lock().end
    }

    fn committed(&self, _partition: PartitionIndex) -> Option<CommitWait> {
        self.fate.borrow().is_none().then(|| self.wait())
    }
}

fn coordinator(log: &Arc<MemoryLog>, host: &SimHost) -> Arc<GroupCoordinator> {
    let config = GroupConfig { initial_rebalance_delay_ms: 0, ..GroupConfig::default() };
    Arc::new(GroupCoordinator::new(host.host(), log.clone(), config))
}

async fn loaded() -> (Arc<MemoryLog>, SimHost, Arc<GroupCoordinator>) {
    let (log, host) = (MemoryLog::new(), SimHost::new(7));
    let groups = coordinator(&log, &host);
    groups.clone().load_all().await;
    (log, host, groups)
}

fn join(group: &str) -> Join {
    Join {
        group: group.into(),
        member_id: "".into(),
        fresh_member_id: "".into(),
        instance_id: None,
        client_id: "client".into(),
        client_host: "/127.0.0.1".into(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 5_000,
        protocol_type: "consumer".into(),
        protocols: vec![Protocol { name: "range".into(), metadata: Bytes::from_static(b"\0\0\0\0\0\0") }],
        member_id_required: false,
        skip_assignment_known: true,
        reason: None,
    }
}

fn leader_sync(group: &str, member_id: &Arc<str>, generation: i32) -> Sync {
    Sync {
        group: group.into(),
        generation,
        member_id: member_id.clone(),
        instance_id: None,
        protocol_type: None,
        protocol: None,
        assignments: vec![(member_id.clone(), Bytes::from_static(b"all"))],
    }
}

fn offset(offset: Offset) -> OffsetToCommit<'static> {
    OffsetToCommit { topic: "t", topic_id: TopicId::ZERO, partition: 0, offset, leader_epoch: -1, metadata: "" }
}

fn commit<'a>(group: &'a str, offsets: &'a [OffsetToCommit<'a>]) -> CommitOffsets<'a> {
    CommitOffsets {
        group,
        generation: -1,
        member: MemberRef { member_id: "", instance_id: None },
        group_id_not_found_known: true,
        retention_ms: None,
        offsets,
    }
}

async fn committed(groups: &GroupCoordinator, group: &str) -> Result<Offset, ErrorCode> {
    let topics = [TopicToFetch { topic: "t", topic_id: TopicId::ZERO, partitions: &[0] }];
    let fetched = groups.fetch_offsets(group, Some(&topics), false).await?;
    Ok(fetched.first().and_then(|topic| topic.partitions.first()).map_or(-2, |one| one.offset))
}

#[tokio::test]
async fn a_member_joins_syncs_beats_and_leaves() {
    let (_, _, groups) = loaded().await;
    let joined = groups.join(join("g")).await;
    assert_eq!((joined.error, joined.generation), (ErrorCode::NONE, 1));
    assert!(joined.member_id.starts_with("client-") && joined.member_id.len() == "client-".len() + 36);
    let synced = groups.sync(leader_sync("g", &joined.member_id, 1)).await;
    assert_eq!((synced.error, &*synced.assignment), (ErrorCode::NONE, &b"all"[..]));
    let member = MemberRef { member_id: &joined.member_id, instance_id: None };
    assert_eq!(groups.heartbeat("g", member, 1), ErrorCode::NONE);
    let leaving = LeavingMember { member_id: joined.member_id.clone(), instance_id: None, reason: None };
    let left = groups.leave(Leave { group: "g".into(), members: vec![leaving] }).await;
    assert_eq!(left, Ok(vec![ErrorCode::NONE]));
    assert_eq!(groups.describe("g").map(|group| group.map(|group| group.state)), Ok(Some("Empty")));
}

#[tokio::test]
async fn an_assignment_is_given_out_only_when_it_is_committed() {
    let (log, _, groups) = loaded().await;
    let joined = groups.join(join("g")).await;
    log.fate.send_replace(None);
    let mut synced = Box::pin(groups.sync(leader_sync("g", &joined.member_id, 1)));
    let mut late = Box::pin(groups.sync(leader_sync("g", &joined.member_id, 1)));
    assert_eq!((poll_immediate(&mut synced).await, poll_immediate(&mut late).await), (None, None));
    log.fate.send_replace(Some(Ok(())));
    assert_eq!((synced.await.error, late.await.error), (ErrorCode::NONE, ErrorCode::NONE));
}

#[tokio::test]
async fn an_offset_is_acknowledged_and_shown_only_when_it_is_committed() {
    let (log, _, groups) = loaded().await;
    log.fate.send_replace(None);
    let offsets = [offset(5)];
    let request = commit("g", &offsets);
    let mut acknowledged = Box::pin(groups.commit_offsets(&request));
    assert_eq!(poll_immediate(&mut acknowledged).await, None);
    let mut shown = Box::pin(committed(&groups, "g"));
    assert_eq!(poll_immediate(&mut shown).await, None);
    log.fate.send_replace(Some(Ok(())));
    assert_eq!((acknowledged.await, shown.await), (Ok(vec![ErrorCode::NONE]), Ok(5)));
}

#[tokio::test]
async fn what_is_not_loaded_says_so_and_never_answers_none() {
    let (log, host) = (MemoryLog::new(), SimHost::new(7));
    let groups = coordinator(&log, &host);
    let offsets = [offset(5)];
    assert_eq!(committed(&groups, "g").await, Err(ErrorCode::NOT_COORDINATOR));
    let partition = groups.partition_of("g").unwrap_or(-1);
    let (shard, load) = groups.begin_load(partition).into_iter().next().unwrap_or_else(|| panic!("no shard"));
    let loading = ErrorCode::COORDINATOR_LOAD_IN_PROGRESS;
    assert_eq!(committed(&groups, "g").await, Err(loading));
    assert_eq!(groups.commit_offsets(&commit("g", &offsets)).await, Err(loading));
    assert_eq!(groups.join(join("g")).await.error, loading);
    assert_eq!(groups.describe("g"), Err(loading));
    assert_eq!(groups.list(), Err(loading));
    let member = MemberRef { member_id: "m", instance_id: None };
    assert_eq!(groups.heartbeat("g", member, 1), ErrorCode::NONE, "its sender may well be a member");
    groups.finish_load(shard, load).await;
    assert_eq!(committed(&groups, "g").await, Ok(-1));
}

#[tokio::test]
async fn a_new_coordinator_knows_what_the_old_one_wrote() {
    let (log, host, groups) = loaded().await;
    let joined = groups.join(join("g")).await;
    groups.sync(leader_sync("g", &joined.member_id, 1)).await;
    let offsets = [offset(5)];
    let member = MemberRef { member_id: &joined.member_id, instance_id: None };
    let by_member = CommitOffsets { generation: 1, member, ..commit("g", &offsets) };
    assert_eq!(groups.commit_offsets(&by_member).await, Ok(vec![ErrorCode::NONE]));
    assert_eq!(groups.commit_offsets(&commit("gone", &offsets)).await, Ok(vec![ErrorCode::NONE]));
    assert_eq!(groups.delete_group("gone").await, Ok(()));

    let next = coordinator(&log, &host);
    next.clone().load_all().await;
    assert_eq!(next.heartbeat("g", member, 1), ErrorCode::NONE);
    assert_eq!(committed(&next, "g").await, Ok(5));
    let listed: Vec<Arc<str>> = next.list().into_iter().flatten().map(|group| group.group).collect();
    assert_eq!(listed, ["g".into()]);
    let mut seen = Vec::new();
    next.for_each_offset(|group, topic, partition, offset| {
        seen.push((group.to_owned(), topic.to_owned(), partition, offset))
    });
    assert_eq!(seen, [("g".to_owned(), "t".to_owned(), 0, 5)]);
}

#[tokio::test]
async fn a_transaction_in_the_log_counts_when_its_marker_says_so() {
    let log = MemoryLog::new();
    let partition = crate::base::ids::partition_for_key("g", PARTITIONS);
    let pending = |producer: i64, value: Offset| {
        let record = crate::coordinator::group::record::Record::Offset {
            key: crate::coordinator::group::record::OffsetKey { group: "g", topic: "t", partition: producer as i32 },
            value: Some(crate::coordinator::group::record::OffsetValue {
                offset: value,
                leader_epoch: -1,
                metadata: "",
                commit_timestamp: 0,
                expire_timestamp: None,
                topic_id: TopicId::ZERO,
            }),
        };
        let (mut key, mut bytes) = (Vec::new(), Vec::new());
        record.encode_key(&mut key);
        record.encode_value(&mut bytes);
        let mut batch = BatchBuilder::new(Codec::None).with_producer(producer, 0, 0).with_transactional(true);
        batch.push(0, Some(&key), Some(&bytes), &[]);
        batch.finish(0, 0)
    };
    log.put(partition, &pending(0, 10));
    log.put(partition, &pending(1, 11));
    log.put(partition, &pending(2, 12));
    log.put(partition, &BatchBuilder::control_batch(ControlKind::Commit, &[], 0, Some((0, 0))).finish(0, 0));
    log.put(partition, &BatchBuilder::control_batch(ControlKind::Abort, &[], 0, Some((1, 0))).finish(0, 0));
    let groups = coordinator(&log, &SimHost::new(7));
    groups.clone().load_all().await;
    let topics = [TopicToFetch { topic: "t", topic_id: TopicId::ZERO, partitions: &[0, 1, 2] }];
    let fetched = groups.fetch_offsets("g", Some(&topics), true).await.unwrap_or_default();
    let fetched: Vec<(Offset, ErrorCode)> =
        fetched.iter().flat_map(|topic| &topic.partitions).map(|one| (one.offset, one.error)).collect();
    let unstable = (-1, ErrorCode::UNSTABLE_OFFSET_COMMIT);
    assert_eq!(fetched, [(10, ErrorCode::NONE), (-1, ErrorCode::NONE), unstable]);
}

#[tokio::test]
async fn a_partition_that_cannot_be_read_is_not_served() {
    let log = MemoryLog::new();
    let mut batch = BatchBuilder::new(Codec::None);
    batch.push(0, Some(&[0, 1, 0, 1, b'g', 0, 1, b't', 0, 0, 0, 0]), Some(&[0, 99]), &[]);
    let partition = crate::base::ids::partition_for_key("g", PARTITIONS);
    log.put(partition, &batch.finish(0, 0));
    let groups = coordinator(&log, &SimHost::new(7));
    groups.clone().load_all().await;
    assert_eq!(committed(&groups, "g").await, Err(ErrorCode::NOT_COORDINATOR));
}

#[tokio::test]
async fn a_parked_join_is_answered_when_the_partition_is_given_up() {
    let (_, _, groups) = loaded().await;
    let first = groups.join(join("g")).await;
    groups.sync(leader_sync("g", &first.member_id, 1)).await;
    let mut waits = Box::pin(groups.join(join("g")));
    assert!(poll_immediate(&mut waits).await.is_none());
    groups.unload(groups.partition_of("g").unwrap_or(-1));
    assert_eq!(waits.await.error, ErrorCode::NOT_COORDINATOR);
    assert_eq!(committed(&groups, "g").await, Err(ErrorCode::NOT_COORDINATOR));
}

#[tokio::test]
async fn what_the_log_refuses_is_not_done() {
    let (log, _, groups) = loaded().await;
    *log.refuses.lock() = Some(AppendRefused::NotEnoughReplicas);
    let offsets = [offset(5)];
    assert_eq!(groups.commit_offsets(&commit("g", &offsets)).await, Err(ErrorCode::COORDINATOR_NOT_AVAILABLE));
    assert_eq!(groups.join(join("g")).await.error, ErrorCode::COORDINATOR_NOT_AVAILABLE);
    assert_eq!(groups.describe("g"), Ok(None));
}

/// Everything of a coordinator that requests can see.
async fn picture(groups: &GroupCoordinator) -> (Vec<GroupListing>, Vec<GroupDescription>, Vec<(String, Offset)>) {
    let listed = groups.list().unwrap_or_else(|code| panic!("{code:?}"));
    let described = listed.iter().filter_map(|group| groups.describe(&group.group).ok().flatten()).collect();
    let mut offsets = Vec::new();
    groups.for_each_offset(|group, topic, partition, offset| {
        offsets.push((format!("{group} {topic}-{partition}"), offset))
    });
    offsets.sort();
    (listed, described, offsets)
}

#[tokio::test]
async fn what_the_disk_lost_is_forgotten_here_too() {
    let (log, host, groups) = loaded().await;
    let first = groups.join(join("g")).await;
    groups.sync(leader_sync("g", &first.member_id, 1)).await;
    let (kept, lost) = ([offset(5)], [offset(9)]);
    let member = MemberRef { member_id: &first.member_id, instance_id: None };
    let by_member = |offsets| CommitOffsets { generation: 1, member, ..commit("g", offsets) };
    assert_eq!(groups.commit_offsets(&by_member(&kept)).await, Ok(vec![ErrorCode::NONE]));
    let mut parked = Box::pin(groups.join(join("g")));
    assert!(poll_immediate(&mut parked).await.is_none());
    let partition = groups.partition_of("g").unwrap_or(-1);
    let end = log.log_end(partition);

    log.fate.send_replace(Some(Err(CommitFailed::Storage)));
    assert_eq!(groups.commit_offsets(&by_member(&lost)).await, Err(ErrorCode::NOT_COORDINATOR));
    log.cut(partition, end);
    log.fate.send_replace(Some(Ok(())));
    assert_eq!(parked.await.error, ErrorCode::NOT_COORDINATOR);
    assert_eq!(committed(&groups, "g").await, Err(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS));

    groups.reload_distrusted().await;
    assert_eq!(committed(&groups, "g").await, Ok(5));
    assert_eq!(groups.heartbeat("g", member, 1), ErrorCode::NONE);
    let replayed = coordinator(&log, &host);
    replayed.clone().load_all().await;
    assert_eq!(picture(&groups).await, picture(&replayed).await);
    assert_eq!(groups.commit_offsets(&by_member(&lost)).await, Ok(vec![ErrorCode::NONE]));
}

#[tokio::test]
async fn a_failure_that_nobody_waited_for_shows_at_the_next_append() {
    let (log, _, groups) = loaded().await;
    let (kept, lost) = ([offset(5)], [offset(9)]);
    assert_eq!(groups.commit_offsets(&commit("g", &kept)).await, Ok(vec![ErrorCode::NONE]));
    let partition = groups.partition_of("g").unwrap_or(-1);
    let end = log.log_end(partition);
    log.fate.send_replace(None);
    let (gone, next) = (commit("g", &lost), commit("g", &kept));
    let mut waits = Box::pin(groups.commit_offsets(&gone));
    assert!(poll_immediate(&mut waits).await.is_none());
    drop(waits);
    log.cut(partition, end);

    *log.refuses.lock() = Some(AppendRefused::Storage);
    assert_eq!(groups.commit_offsets(&next).await, Err(ErrorCode::NOT_COORDINATOR));
    assert_eq!(groups.describe("g"), Err(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS));
    log.fate.send_replace(Some(Ok(())));
    groups.reload_distrusted().await;
    assert_eq!(committed(&groups, "g").await, Ok(5));
}

#[tokio::test]
async fn a_full_disk_takes_nothing_away() {
    let (log, host, groups) = loaded().await;
    let (kept, refused) = ([offset(5)], [offset(9)]);
    assert_eq!(groups.commit_offsets(&commit("g", &kept)).await, Ok(vec![ErrorCode::NONE]));
    *log.refuses.lock() = Some(AppendRefused::DiskFull);
    assert_eq!(groups.commit_offsets(&commit("g", &refused)).await, Err(ErrorCode::NOT_COORDINATOR));
    assert_eq!(committed(&groups, "g").await, Ok(5));
    let replayed = coordinator(&log, &host);
    replayed.clone().load_all().await;
    assert_eq!(picture(&groups).await, picture(&replayed).await);
}

#[tokio::test]
async fn a_reload_comes_by_itself() {
    let (log, host) = (MemoryLog::new(), SimHost::new(7));
    let groups = coordinator(&log, &host);
    groups.clone().load_all().await;
    log.fate.send_replace(Some(Err(CommitFailed::Storage)));
    let offsets = [offset(5)];
    assert_eq!(groups.commit_offsets(&commit("g", &offsets)).await, Err(ErrorCode::NOT_COORDINATOR));
    log.fate.send_replace(Some(Ok(())));
    let served = async {
        while groups.describe("g").is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = served => {}
        () = groups.clone().run_timers() => unreachable!(),
    }
}

#[tokio::test]
async fn whoever_stops_waiting_does_not_hold_up_the_group() {
    let (_, host, groups) = loaded().await;
    let first = groups.join(join("g")).await;
    groups.sync(leader_sync("g", &first.member_id, 1)).await;
    let mut gone = Box::pin(groups.join(join("g")));
    assert!(poll_immediate(&mut gone).await.is_none());
    drop(gone);
    host.clock.advance_ms(5_000);
    groups.tick_due_groups();
    assert_eq!(groups.describe("g").map(|group| group.map(|group| group.state)), Ok(Some("CompletingRebalance")));
}

#[tokio::test]
async fn deadlines_come_by_themselves() {
    let log = MemoryLog::new();
    let config = GroupConfig { initial_rebalance_delay_ms: 20, ..GroupConfig::default() };
    let groups = Arc::new(GroupCoordinator::new(crate::host::Host::real(), log, config));
    groups.clone().load_all().await;
    let timers = groups.clone().run_timers();
    tokio::select! {
        joined = groups.join(join("g")) => assert_eq!(joined.generation, 1),
        () = timers => unreachable!(),
    }
}

#[tokio::test]
async fn expired_offsets_and_groups_are_deleted_in_the_log() {
    let (log, host, groups) = loaded().await;
    let offsets = [offset(5)];
    assert_eq!(groups.commit_offsets(&commit("g", &offsets)).await, Ok(vec![ErrorCode::NONE]));
    host.clock.advance_ms(7 * 86_400_000);
    groups.expire();
    let next = coordinator(&log, &host);
    next.clone().load_all().await;
    assert_eq!((groups.describe("g"), next.describe("g")), (Ok(None), Ok(None)));
}

#[tokio::test]
async fn offsets_of_deleted_topics_are_deleted_in_the_log() {
    let (log, host, groups) = loaded().await;
    let offsets = [offset(5)];
    assert_eq!(groups.commit_offsets(&commit("g", &offsets)).await, Ok(vec![ErrorCode::NONE]));
    groups.topics_deleted(&[("t".into(), TopicId::ZERO)]);
    let next = coordinator(&log, &host);
    next.clone().load_all().await;
    assert_eq!((committed(&groups, "g").await, committed(&next, "g").await), (Ok(-1), Ok(-1)));
}

#[tokio::test]
async fn an_empty_group_name_may_only_hold_offsets() {
    let (_, _, groups) = loaded().await;
    assert_eq!(groups.join(join("")).await.error, ErrorCode::INVALID_GROUP_ID);
    assert_eq!(groups.heartbeat("", MemberRef { member_id: "x", instance_id: None }, 1), ErrorCode::INVALID_GROUP_ID);
    assert_eq!(groups.delete_offsets("", &[("t", 0)]).await, Err(ErrorCode::INVALID_GROUP_ID));
    let offsets = [offset(5)];
    assert_eq!(groups.commit_offsets(&commit("", &offsets)).await, Ok(vec![ErrorCode::NONE]));
    assert_eq!(committed(&groups, "").await, Ok(5));
}

#[tokio::test]
async fn a_load_takes_over_a_hundred_thousand_offsets() {
    let (log, host) = (MemoryLog::new(), SimHost::new(7));
    for group in 0..100 {
        let name = format!("group-{group}");
        let offsets: Vec<OffsetToCommit<'_>> =
            (0..1_000).map(|partition| OffsetToCommit { partition, ..offset(5) }).collect();
        let machine = Machine::default();
        let now = Now { monotonic_ms: 0, timestamp_ms: 0 };
        let decided = machine.decide_commit(&commit(&name, &offsets), now, &GroupConfig::default()).unwrap_or_default();
        log.put(group % PARTITIONS, &batch::build(decided.iter().flatten(), 0));
    }
    let groups = coordinator(&log, &host);
    groups.clone().load_all().await;
    let mut count = 0;
    groups.for_each_offset(|_, _, _, _| count += 1);
    assert_eq!(count, 100_000);
}
