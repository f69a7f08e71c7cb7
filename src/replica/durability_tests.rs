//! What of an answered request is there after the power has gone, by `acks`, `flush.policy` and `flush.messages`; and that what a
//! start would have to read stays bounded.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use uuid::Uuid;

use super::journal::{self, Journal};
use super::tail::TailBound;
use super::*;
use crate::base::{Offset, TopicId};
use crate::host::Disk;
use crate::host::sim::{Crash, SimHost};
use crate::log::checkpoints::{RECOVERY_POINTS, read_offsets};
use crate::log::{Appended, LogEnv, NewBatch};
use crate::metadata::config::LogConfig;
use crate::metadata::{Image, MetadataRecord, PartitionState};
use crate::records::{BatchBuilder, BatchHeader, Codec};
use crate::telemetry::Telemetry;

pub(super) const LOG_DIR: &str = "/data";
const NODE: i32 = 1;

/// A node's disk with the topic `t` of three partitions, and the parts that make it safe.
pub(super) struct World {
    pub(super) sim: SimHost,
    pub(super) env: LogEnv,
    pub(super) partitions: Arc<Partitions>,
    pub(super) flusher: Arc<Flusher>,
    pub(super) thread: JoinHandle<()>,
    policy: FlushPolicy,
    flush_messages: i64,
}

impl World {
    pub(super) fn new(policy: FlushPolicy, flush_messages: i64) -> World {
        let sim = SimHost::new(1);
        sim.disk.create_dir_all(Path::new(LOG_DIR)).unwrap();
        sim.disk.sync_dir(Path::new("/")).unwrap();
        World::start(sim, policy, flush_messages)
    }

    fn start(sim: SimHost, policy: FlushPolicy, flush_messages: i64) -> World {
        World::start_with(sim, policy, flush_messages, &image(0))
    }

    pub(super) fn start_with(sim: SimHost, policy: FlushPolicy, flush_messages: i64, image: &Image) -> World {
        let (host, dir) = (sim.host(), Path::new(LOG_DIR));
        let checkpoints = Checkpoints::take(&*sim.disk, dir).unwrap();
        journal::recover(&*sim.disk, dir).unwrap();
        let journal = (policy == FlushPolicy::Sync).then(|| Journal::create(&*sim.disk, dir).unwrap());
        let telemetry = Telemetry::new(host.clock.now_ms());
        let (flusher, thread) = Flusher::start(journal, host.clock.clone(), telemetry.clone()).unwrap();
        let config: ConfigSource = Box::new(move |_, _| LogConfig { flush_messages, ..LogConfig::default() });
        let env = LogEnv::new(host, 8);
        let options = ReplicaOptions::new(NODE, policy, 30_000);
        let partitions = Arc::new(Partitions::new(
            env.clone(),
            LogDirs::only(dir.to_owned(), &checkpoints),
            options,
            config,
            telemetry,
        ));
        partitions.apply(image, true);
        World { sim, env, partitions, flusher, thread, policy, flush_messages }
    }

    pub(super) fn partition(&self, index: i32) -> Arc<Partition> {
        self.partitions.partition("t", index).unwrap()
    }

    pub(super) fn end(&self, index: i32) -> Offset {
        self.partition(index).view().unwrap().log_end_offset
    }

    /// Appends one record as Produce does. What its answer waits for.
    pub(super) fn append(&self, index: i32, acks: i16, value_bytes: usize) -> Option<Unanswered> {
        let partition = self.partition(index);
        let mut builder = BatchBuilder::new(Codec::None);
        builder.push(1_700_000_000_000, None, Some(&vec![7; value_bytes]), &[]);
        let bytes = builder.finish(0, -1);
        let header = BatchHeader::parse(&bytes).unwrap();
        let appended = partition.append(&NewBatch { header, bytes: &bytes }, acks == -1).unwrap();
        let wait = SyncWait::new(acks, self.policy);
        wait.appended(&self.flusher, &partition, &appended);
        wait.seal()
    }

    /// Waits for the answer. Whether it was a good one.
    pub(super) async fn produce(&self, index: i32, acks: i16) -> bool {
        match self.append(index, acks, 10) {
            Some(unanswered) => unanswered.wait(Duration::from_secs(30)).await,
            None => true,
        }
    }

    /// The machine goes down and comes up again.
    fn lose_power(self) -> World {
        self.sim.disk.crash(Crash::PowerLosesAll);
        self.flusher.stop();
        self.thread.join().unwrap();
        World::start(self.sim, self.policy, self.flush_messages)
    }
}

fn image(leader_epoch: i32) -> Image {
    image_of(1, leader_epoch)
}

/// With the topic `t` under the given id.
pub(super) fn image_of(topic_id: u128, leader_epoch: i32) -> Image {
    image_on(topic_id, leader_epoch, vec![NODE])
}

/// The same with other replicas, of which the first leads.
pub(super) fn image_on(topic_id: u128, leader_epoch: i32, replicas: Vec<i32>) -> Image {
    let mut image = Image::empty();
    let state = PartitionState { leader_epoch, ..PartitionState::new(replicas, vec![]) };
    let topic =
        MetadataRecord::Topic { id: TopicId(Uuid::from_u128(topic_id)), name: "t".into(), partitions: vec![state; 3] };
    image.apply(image.offset + 1, &topic).unwrap();
    image
}

const POLICIES: [FlushPolicy; 3] = [FlushPolicy::Sync, FlushPolicy::Interval, FlushPolicy::Os];

#[tokio::test]
async fn with_flush_messages_1_every_answered_record_survives_a_power_cut() {
    for policy in POLICIES {
        for acks in [1, -1] {
            let mut world = World::new(policy, 1);
            for round in 0..3 {
                for _ in 0..4 {
                    assert!(world.produce(0, acks).await);
                }
                world = world.lose_power();
                assert_eq!(world.end(0), (round + 1) * 4, "{policy:?}, acks={acks}");
            }
        }
    }
}

#[tokio::test]
async fn without_flush_messages_only_acks_all_survives_a_power_cut_and_only_by_policy() {
    for policy in POLICIES {
        let world = World::new(policy, i64::MAX);
        assert!(world.append(0, 1, 10).is_none(), "acks=1 is answered at once");
        assert!(world.produce(1, -1).await);
        let world = world.lose_power();
        assert_eq!(world.end(0), 0, "{policy:?}");
        assert_eq!(world.end(1), if policy == FlushPolicy::Sync { 1 } else { 0 }, "{policy:?}");
    }
}

#[tokio::test]
async fn what_is_answered_after_the_flush_journal_found_no_room_survives_a_power_cut() {
    let world = World::new(FlushPolicy::Sync, i64::MAX);
    for _ in 0..2 {
        assert!(world.produce(0, -1).await);
    }
    // Enough for the record, not for what the journal says of it.
    world.sim.disk.set_capacity_bytes(world.sim.disk.used_bytes() + 100);
    assert!(world.produce(0, -1).await, "then it is synced where it is");
    world.sim.disk.set_capacity_bytes(u64::MAX);
    for _ in 0..2 {
        assert!(world.produce(0, -1).await);
    }
    assert_eq!(world.lose_power().end(0), 5);
}

#[tokio::test]
async fn the_append_that_reaches_flush_messages_waits_and_takes_the_others_along() {
    let world = World::new(FlushPolicy::Sync, 3);
    for synced in [3, 6] {
        assert!(world.append(0, 1, 10).is_none());
        assert!(world.append(0, 1, 10).is_none());
        assert!(world.append(1, 1, 10).is_none(), "partitions count for themselves");
        assert!(!world.partition(0).is_durable(synced - 2));
        assert!(world.produce(0, 1).await);
        assert!(world.partition(0).is_durable(synced));
    }
    assert!(world.append(0, 1, 10).is_none());
    let world = world.lose_power();
    assert_eq!((world.end(0), world.end(1)), (6, 0));
}

#[tokio::test]
async fn acks_0_reaches_flush_messages_without_anybody_waiting() {
    let world = World::new(FlushPolicy::Sync, 2);
    assert!(world.append(0, 0, 10).is_none());
    assert!(world.append(0, 0, 10).is_none());
    while !world.partition(0).is_durable(2) {
        std::thread::yield_now();
    }
    assert_eq!(world.lose_power().end(0), 2);
}

#[tokio::test]
async fn a_failed_sync_fails_the_answer_and_is_not_tried_again() {
    for flush_messages in [1, i64::MAX] {
        let acks = if flush_messages == 1 { 1 } else { -1 };
        let world = World::new(FlushPolicy::Sync, flush_messages);
        assert_eq!(world.end(0), 0, "open, and what that syncs is synced");
        world.sim.disk.fail_sync_at(1);
        assert!(!world.produce(0, acks).await);
        let partition = world.partition(0);
        let late = AckTicket::new();
        partition.claim_synced(1, &late, 0);
        late.seal();
        world.flusher.request(&partition);
        late.clone().wait().await;
        assert_eq!(late.outcome(0), Err(AckFailure::Storage), "a second sync would say that all is well");
        assert!(world.partitions.failure().is_some());
    }
}

#[test]
fn a_request_whose_sync_failed_before_it_was_sealed_is_told_so() {
    let world = World::new(FlushPolicy::Sync, i64::MAX);
    let partition = world.partition(0);
    let wait = SyncWait::new(-1, FlushPolicy::Sync);
    let appended = Appended {
        base_offset: 0,
        last_offset: 0,
        log_append_time: None,
        log_start_offset: 0,
        duplicate: false,
        leader_epoch: 0,
    };
    partition.retire();
    wait.appended(&world.flusher, &partition, &appended);
    // The flusher answers for the claim, whenever it comes to it.
    world.flusher.stop();
    world.thread.join().unwrap();
    assert!(wait.seal().is_some());
}

/// Looks as often as the housekeeper would need to.
fn step_until_settled(tail: &mut TailBound, world: &World) {
    for _ in 0..1_000_000 {
        if tail.step(&world.partitions, &world.flusher) {
            return;
        }
        std::thread::yield_now();
    }
    panic!("never settled");
}

fn unchecked_bytes(partition: &Partition) -> u64 {
    partition.with_open_log(|log| log.bytes_since_checkpoint()).unwrap()
}

#[test]
fn past_the_bound_the_longest_tails_are_synced_and_checkpointed() {
    for policy in POLICIES {
        let world = World::new(policy, i64::MAX);
        let mut tail = TailBound::new(10_000);
        world.append(0, 1, 9000);
        world.append(1, 1, 100);
        assert!(!tail.step(&world.partitions, &world.flusher));
        assert!(!tail.step(&world.partitions, &world.flusher), "below the bound nothing happens");
        world.append(0, 1, 9000);
        step_until_settled(&mut tail, &world);
        for index in 0..2 {
            world.partition(index).with_open_log(|log| log.checkpoint()).unwrap().unwrap();
        }
        assert_eq!(unchecked_bytes(&world.partition(0)), 0, "{policy:?}");
        assert!(unchecked_bytes(&world.partition(1)) > 0, "{policy:?}: a short tail waits for its time");
        world.partitions.save_checkpoints();
        let (points, _) = read_offsets(&*world.sim.disk, Path::new(LOG_DIR), RECOVERY_POINTS).unwrap();
        assert_eq!(points.into_values().collect::<Vec<Offset>>(), [2, 0, 0], "{policy:?}");
        let world = world.lose_power();
        assert_eq!((world.end(0), world.end(1)), (2, 0), "{policy:?}");
        assert_eq!(unchecked_bytes(&world.partition(0)), 0, "{policy:?}: nothing had to be read");
    }
}

#[tokio::test]
async fn what_only_the_journal_holds_counts_for_the_bound_too() {
    let world = World::new(FlushPolicy::Sync, i64::MAX);
    let mut tail = TailBound::new(3000);
    for _ in 0..40 {
        assert!(world.produce(0, -1).await);
    }
    let partition = world.partition(0);
    partition.with_open_log(|log| log.checkpoint()).unwrap().unwrap();
    // The first append was synced in its own file, which the journal needs; the others are in the journal alone.
    assert_eq!(partition.checkpoint().unwrap().1.recovery_point, 1);
    assert!(unchecked_bytes(&partition) > 3000 - 100, "{}", unchecked_bytes(&partition));
    for _ in 0..5 {
        assert!(world.produce(0, -1).await);
    }
    step_until_settled(&mut tail, &world);
    partition.with_open_log(|log| log.checkpoint()).unwrap().unwrap();
    assert_eq!((partition.checkpoint().unwrap().1.recovery_point, unchecked_bytes(&partition)), (45, 0));
    assert_eq!(world.lose_power().end(0), 45);
}

#[test]
fn a_failed_disk_is_not_asked_to_settle() {
    let world = World::new(FlushPolicy::Sync, i64::MAX);
    world.append(0, 1, 9000);
    world.partition(0).fail_disk(None, "broken");
    let mut tail = TailBound::new(10);
    for _ in 0..5 {
        assert!(!tail.step(&world.partitions, &world.flusher));
    }
    assert!(!world.flusher.is_settling());
}

#[test]
fn an_empty_partition_knows_the_epoch_it_is_led_in() {
    let world = World::new(FlushPolicy::Sync, i64::MAX);
    let epochs = |index: i32| -> Vec<(i32, Offset)> {
        let view = world.partition(index).view().unwrap();
        view.epochs.entries().iter().map(|entry| (entry.epoch, entry.start_offset)).collect()
    };
    assert_eq!(epochs(0), [(0, 0)]);
    world.partition(0).with_open_log(|log| log.checkpoint()).unwrap().unwrap();
    let file = Path::new(LOG_DIR).join("t-0").join("leader-epoch-checkpoint");
    assert_eq!(world.sim.disk.content(&file).unwrap(), b"0\n1\n0 0\n");
    world.append(1, 1, 10);
    world.partitions.apply(&image(1), true);
    // Open before, open with records, opened only now.
    assert_eq!((epochs(0), epochs(1), epochs(2)), (vec![(1, 0)], vec![(0, 0), (1, 1)], vec![(1, 0)]));
}
