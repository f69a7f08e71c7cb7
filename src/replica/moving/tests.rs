//! Replicas that move between two directories: everything is read afterwards, whatever happens in the middle; and a directory that fails
//! takes only what lies in it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::worker::Outcome;
use crate::base::{Offset, TopicId, TopicPartition};
use crate::host::sim::{Crash, SimHost};
use crate::host::task::Worker;
use crate::host::{Disk, Workers};
use crate::log::{LogEnv, NewBatch};
use crate::metadata::config::LogConfig;
use crate::metadata::{Image, MetadataRecord, PartitionState};
use crate::records::{BatchBuilder, BatchHeader, Batches, Codec};
use crate::replica::flusher::{Rounds, targets};
use crate::replica::journal::{self, Journal};
use crate::replica::*;
use crate::telemetry::Telemetry;

mod lost;

const NODE: i32 = 1;
const A: Uuid = Uuid::from_u128(201);
const B: Uuid = Uuid::from_u128(202);
const DIRS: [(&str, Uuid); 2] = [("/a", A), ("/b", B)];

/// A node with the partition `t-0` and the directories `/a` and `/b`.
struct World {
    sim: SimHost,
    partitions: Arc<Partitions>,
    flusher: Arc<Flusher>,
    workers: Vec<Worker>,
    epoch: i32,
}

fn new_disk() -> SimHost {
    let sim = SimHost::new(3);
    for (dir, _) in DIRS {
        sim.disk.create_dir_all(Path::new(dir)).unwrap();
    }
    sim.disk.sync_dir(Path::new("/")).unwrap();
    sim
}

fn image(assigned: Option<Uuid>, epoch: i32) -> Image {
    let mut image = Image::empty();
    let directories = assigned.into_iter().collect();
    let state = PartitionState { leader_epoch: epoch, ..PartitionState::new(vec![NODE], directories) };
    let id = TopicId(Uuid::from_u128(7));
    image.apply(1, &MetadataRecord::Topic { id, name: "t".into(), partitions: vec![state] }).unwrap();
    image
}

fn name() -> TopicPartition {
    TopicPartition::new("t", 0)
}

fn batch(value: &str) -> Vec<u8> {
    let mut builder = BatchBuilder::new(Codec::None);
    builder.push(1_700_000_000_000, None, Some(value.as_bytes()), &[]);
    builder.finish(0, -1)
}

impl World {
    fn new() -> World {
        World::start(new_disk(), &[0, 1], Some(A), 0)
    }

    /// With these of the directories; the others cannot be used.
    fn start(sim: SimHost, usable: &[usize], assigned: Option<Uuid>, epoch: i32) -> World {
        let host = sim.host();
        let mut found = Vec::new();
        let mut journals = Vec::new();
        let mut missing: Vec<PathBuf> = Vec::new();
        for (at, (path, id)) in DIRS.into_iter().enumerate() {
            let path = PathBuf::from(path);
            if !usable.contains(&at) {
                missing.push(path);
                continue;
            }
            let checkpoints = Checkpoints::take(&*sim.disk, &path).unwrap();
            journal::recover(&*sim.disk, &path).unwrap();
            journals.push(Some(Journal::create(&*sim.disk, &path).unwrap()));
            found.push(FoundDir { path, id, checkpoints });
        }
        let first = found.remove(0);
        let telemetry = Telemetry::new(0);
        let (flusher, workers) = Flusher::start_on(Workers::Threads, journals, &host.clock, &telemetry).unwrap();
        let config: ConfigSource = Box::new(|_, _| LogConfig { segment_bytes: 1500, ..LogConfig::default() });
        let partitions = Arc::new(Partitions::new(
            LogEnv::new(host, 50),
            LogDirs::new(first, found, missing),
            ReplicaOptions::new(NODE, FlushPolicy::Sync, 30_000),
            config,
            telemetry,
        ));
        partitions.apply(&image(assigned, epoch), true);
        World { sim, partitions, flusher, workers, epoch }
    }

    fn assign(&self, assigned: Option<Uuid>) {
        self.partitions.apply(&image(assigned, self.epoch), false);
    }

    fn partition(&self) -> Arc<Partition> {
        self.partitions.partition("t", 0).unwrap()
    }

    /// Appends a record as Produce does. Whether it was acknowledged.
    async fn produce(&self, value: &str) -> bool {
        let partition = self.partition();
        let bytes = batch(value);
        let header = BatchHeader::parse(&bytes).unwrap();
        let Ok(appended) = partition.append(&NewBatch { header, bytes: &bytes }, true) else { return false };
        let wait = SyncWait::new(-1, FlushPolicy::Sync);
        wait.appended(&self.flusher, &partition, &appended);
        match wait.seal() {
            Some(unanswered) => unanswered.wait(Duration::from_secs(30)).await,
            None => true,
        }
    }

    async fn produce_many(&self, values: std::ops::Range<u32>) {
        for value in values {
            assert!(self.produce(&value.to_string()).await);
        }
    }

    fn values(&self) -> Vec<String> {
        let view = self.partition().view().unwrap();
        let (mut from, mut values) = (view.log_start_offset, Vec::new());
        while let Some(slice) = view.read(from, 1 << 20, view.log_end_offset, true).unwrap() {
            let mut bytes = vec![0; slice.len];
            slice.file.read_exact_at(&mut bytes, slice.position).unwrap();
            for batch in Batches::new(&bytes) {
                let (header, bytes) = batch.unwrap();
                assert!(crate::records::crc_is_valid(bytes));
                for record in &crate::records::records(bytes, 1 << 20).unwrap() {
                    let record = record.unwrap();
                    if record.offset >= view.log_start_offset {
                        values.push(String::from_utf8(record.value.unwrap().to_vec()).unwrap());
                    }
                }
                from = header.next_offset();
            }
        }
        values
    }

    fn order(&self, to: &str) -> Result<(), MoveRefused> {
        self.partitions.move_replica(&self.flusher, &name(), to)
    }

    /// Goes on with the move for as long as it goes.
    fn advance(&self) -> Outcome {
        loop {
            match self.partitions.advance(&self.partition()) {
                Outcome::Copied => {}
                outcome => return outcome,
            }
        }
    }

    /// Lets the controller agree with whatever it is told.
    fn agree(&self, assigned: &mut Option<Uuid>) {
        if let Some(claim) = self.partitions.claim_of(&self.partition()) {
            *assigned = Some(claim);
            self.assign(*assigned);
        }
    }

    fn entries(&self, dir: &str) -> Vec<String> {
        let entries = self.sim.disk.read_dir(Path::new(dir)).unwrap();
        entries.into_iter().filter(|entry| entry.is_dir).map(|entry| entry.name).collect()
    }

    async fn stop(self) -> SimHost {
        self.flusher.stop();
        for worker in self.workers {
            assert!(worker.ended().await);
        }
        self.sim
    }

    async fn crash(self, how: Crash) -> SimHost {
        self.sim.disk.crash(how);
        self.stop().await
    }
}

fn numbers(range: std::ops::Range<u32>) -> Vec<String> {
    range.map(|number| number.to_string()).collect()
}

#[tokio::test]
async fn a_replica_that_has_moved_is_read_and_written_as_before_and_survives_a_power_cut() {
    let world = World::new();
    world.produce_many(0..40).await;
    let before = world.partition().view().unwrap();
    assert_eq!(world.order("/b"), Ok(()));
    world.produce_many(40..60).await;
    assert_eq!(world.advance(), Outcome::Waits, "the controller has not been told");
    assert_eq!(world.partitions.claim_of(&world.partition()), Some(B));
    world.produce_many(60..70).await;
    world.assign(Some(B));
    assert_eq!(world.advance(), Outcome::Over);
    assert_eq!(world.partition().log_dir().path, Path::new("/b"));
    assert_eq!(world.partition().future(), None);
    assert_eq!(world.values(), numbers(0..70));
    world.produce_many(70..90).await;
    assert_eq!(world.entries("/b"), ["t-0"]);
    let left = world.entries("/a");
    assert!(left.len() == 1 && left[0].ends_with("-delete"), "{left:?}");
    let read = before.read(0, 10_000, before.log_end_offset, true).unwrap().expect("records");
    assert_eq!(read.first_offset, 0, "whoever was at the old files goes on reading them");
    drop((before, read));
    let world = World::start(world.crash(Crash::PowerLosesAll).await, &[0, 1], Some(B), 1);
    assert_eq!(world.values(), numbers(0..90));
    world.partitions.sweep_strays().unwrap();
    world.partitions.remove_doomed(|| false);
    assert_eq!(world.entries("/a"), Vec::<String>::new());
    world.stop().await;
}

#[tokio::test]
async fn a_sync_that_was_begun_before_a_move_and_ends_after_it_says_nothing_about_the_disk() {
    let world = World::new();
    let partition = world.partition();
    let ticket = AckTicket::new();
    let bytes = batch("0");
    let header = BatchHeader::parse(&bytes).unwrap();
    partition.append(&NewBatch { header, bytes: &bytes }, true).unwrap();
    partition.claim_synced(1, &ticket, 0);
    ticket.seal();
    let (targets, mark) = targets(&partition).expect("something to sync");
    assert_eq!(world.order("/b"), Ok(()));
    world.advance();
    world.assign(Some(B));
    assert_eq!(world.advance(), Outcome::Over);
    Rounds::new(0, None, world.sim.host().clock, Telemetry::new(0)).finish(&partition, &targets, mark);
    assert_eq!(world.partitions.dirs().failed_ids(), Vec::<Uuid>::new());
    ticket.clone().wait().await;
    assert_eq!(ticket.outcome(0), Ok(()));
    world.produce_many(1..4).await;
    assert_eq!(world.values(), numbers(0..4));
    world.stop().await;
}

/// The journal of the old directory is told of a piece only when the replica has moved.
#[tokio::test]
async fn what_the_new_directorys_journal_holds_is_synced_though_the_old_one_claimed_the_replica_late() {
    let world = World::new();
    let partition = world.partition();
    let append = |value: &str| {
        let bytes = batch(value);
        let header = BatchHeader::parse(&bytes).unwrap();
        partition.append(&NewBatch { header, bytes: &bytes }, true).unwrap();
    };
    let [mut old, mut new] = ["/a", "/b"].map(|dir| {
        let journal = Journal::create(&*world.sim.disk, Path::new(dir)).unwrap();
        Rounds::new(usize::from(dir == "/b"), Some(journal), world.sim.host().clock, Telemetry::new(0))
    });
    append("0");
    old.flush(std::slice::from_ref(&partition));
    append("1");
    let late = old.piece(&partition).expect("small, and behind what is synced");
    assert_eq!(world.order("/b"), Ok(()));
    world.advance();
    world.assign(Some(B));
    assert_eq!(world.advance(), Outcome::Over);
    old.note_journaled(late);
    for value in ["2", "3"] {
        append(value);
        new.flush(std::slice::from_ref(&partition));
    }
    assert!(new.sync_journaled());
    // From now on nothing needs that journal.
    world.sim.disk.remove_file(Path::new("/b/flush.journal")).unwrap();
    world.sim.disk.sync_dir(Path::new("/b")).unwrap();
    drop(partition);
    let world = World::start(world.crash(Crash::PowerLosesAll).await, &[0, 1], Some(B), 1);
    assert_eq!(world.values(), numbers(0..4));
    world.stop().await;
}

#[tokio::test]
async fn there_and_back_again_the_journals_keep_nothing_of_former_stays() {
    let world = World::new();
    let mut assigned = Some(A);
    for (round, to) in ["/b", "/a", "/b", "/a"].into_iter().enumerate() {
        let round = u32::try_from(round).unwrap();
        world.produce_many(round * 10..round * 10 + 10).await;
        assert_eq!(world.order(to), Ok(()));
        world.advance();
        world.agree(&mut assigned);
        assert_eq!(world.advance(), Outcome::Over);
    }
    world.produce_many(40..43).await;
    let world = World::start(world.crash(Crash::PowerLosesAll).await, &[0, 1], assigned, 1);
    assert_eq!(world.values(), numbers(0..43));
    world.stop().await;
}

#[tokio::test]
async fn a_crash_anywhere_in_a_move_loses_nothing_and_the_move_goes_on() {
    let (mut cut_short, mut finished) = (0, 0);
    for how in [Crash::Process, Crash::PowerLosesAll, Crash::PowerLosesSome] {
        for cut in 1..70 {
            let world = World::new();
            let mut assigned = Some(A);
            world.produce_many(0..25).await;
            world.sim.disk.cut_power_at(cut);
            let mut acked = 25;
            if world.order("/b").is_ok() {
                world.advance();
                world.agree(&mut assigned);
                if world.produce("25").await {
                    acked = 26;
                }
                world.advance();
            }
            let was_finished = world.partition().log_dir().path == Path::new("/b");
            (cut_short, finished) = (cut_short + u32::from(!was_finished), finished + u32::from(was_finished));
            let sim = world.crash(how).await;
            let world = World::start(sim, &[0, 1], assigned, 1);
            let at = format!("{how:?} at {cut}, assigned {assigned:?}");
            let values = world.values();
            assert!(values.len() >= acked && values == numbers(0..26)[..values.len()], "{at}: {values:?}");
            world.partitions.sweep_strays().unwrap();
            assert!(world.produce("next").await, "{at}");
            if world.order("/b").is_ok() {
                world.advance();
                world.agree(&mut assigned);
                assert_eq!(world.advance(), Outcome::Over, "{at}");
            }
            assert_eq!(world.partition().log_dir().path, Path::new("/b"), "{at}");
            assert_eq!(world.values().len(), values.len() + 1, "{at}");
            world.stop().await;
        }
    }
    assert!(cut_short > 30 && finished > 10, "{cut_short} were cut short, {finished} were finished");
}

#[tokio::test]
async fn what_is_cut_from_a_replica_is_cut_from_its_copy() {
    let world = World::new();
    world.produce_many(0..30).await;
    assert_eq!(world.order("/b"), Ok(()));
    assert_eq!(world.advance(), Outcome::Waits);
    let partition = world.partition();
    partition.with_log(|log| log.truncate_to(12)).unwrap().unwrap();
    partition.note_cut(12);
    // The next leader epoch writes other records there.
    world.partitions.apply(&image(Some(B), 5), false);
    world.produce_many(100..130).await;
    assert_eq!(world.advance(), Outcome::Over);
    let expected: Vec<String> = numbers(0..12).into_iter().chain(numbers(100..130)).collect();
    assert_eq!(world.values(), expected);
    assert_eq!(partition.view().unwrap().latest_epoch(), Some(5));
    world.stop().await;
}

#[tokio::test]
async fn a_copy_follows_the_start_of_its_replica() {
    let world = World::new();
    world.produce_many(0..30).await;
    assert_eq!(world.order("/b"), Ok(()));
    assert_eq!(world.advance(), Outcome::Waits);
    let partition = world.partition();
    partition.with_log(|log| log.delete_records_before(17)).unwrap().unwrap();
    world.assign(Some(B));
    assert_eq!(world.advance(), Outcome::Over);
    assert_eq!(world.values(), numbers(17..30));
    let world = World::start(world.crash(Crash::PowerLosesAll).await, &[0, 1], Some(B), 1);
    assert_eq!(world.values(), numbers(17..30), "what was deleted stays deleted");
    world.stop().await;
}

#[tokio::test]
async fn a_move_can_be_cancelled_and_begun_again() {
    let world = World::new();
    world.produce_many(0..30).await;
    assert_eq!(world.order("/b"), Ok(()));
    world.advance();
    world.assign(Some(B));
    assert_eq!(world.order("/a"), Ok(()), "stay");
    assert_eq!(world.partition().future(), None);
    assert_eq!(world.partitions.claim_of(&world.partition()), Some(A), "the controller is told so");
    assert_eq!(world.advance(), Outcome::Over);
    let left = world.entries("/b");
    assert!(left.iter().all(|name| name.ends_with("-delete")), "{left:?}");
    assert_eq!(world.order("/b"), Ok(()));
    assert_eq!(world.order("/b"), Ok(()), "asking twice is asking once");
    assert_eq!(world.advance(), Outcome::Over);
    assert_eq!(world.values(), numbers(0..30));
    world.stop().await;
}

#[tokio::test]
async fn orders_that_cannot_be_followed_say_why() {
    let world = World::new();
    assert_eq!(world.order("/none"), Err(MoveRefused::NoSuchDirectory("/none".into())));
    let order = |topic: &str, to| world.partitions.move_replica(&world.flusher, &TopicPartition::new(topic, 0), to);
    assert_eq!(order("unknown", "/none"), Err(MoveRefused::NoSuchDirectory("/none".into())));
    assert_eq!(order("unknown", "/b"), Err(MoveRefused::Unknown));
    assert_eq!(order(&"t".repeat(230), "/b"), Err(MoveRefused::NameTooLong));
    // The wish is kept for the day when the partition is made.
    let mut later = image(Some(A), 0);
    let partitions = vec![PartitionState::new(vec![NODE], vec![])];
    let id = TopicId(Uuid::from_u128(8));
    later.apply(2, &MetadataRecord::Topic { id, name: "unknown".into(), partitions }).unwrap();
    world.partitions.apply(&later, false);
    assert_eq!(world.partitions.partition("unknown", 0).unwrap().log_dir().path, Path::new("/b"));
    world.stop().await;
}

#[tokio::test]
async fn a_replica_without_records_moves_at_once() {
    let world = World::new();
    assert_eq!(world.order("/b"), Ok(()));
    assert_eq!(world.partition().log_dir().path, Path::new("/b"));
    assert_eq!(world.partitions.claim_of(&world.partition()), Some(B));
    world.produce_many(0..3).await;
    assert_eq!((world.entries("/a").len(), world.entries("/b")), (0, vec!["t-0".to_owned()]));
    world.stop().await;
}

#[tokio::test]
async fn a_directory_that_fails_takes_only_its_own_replicas() {
    let world = World::new();
    let mut both = image(Some(A), 0);
    let partitions = vec![PartitionState::new(vec![NODE], vec![B])];
    let id = TopicId(Uuid::from_u128(8));
    both.apply(2, &MetadataRecord::Topic { id, name: "u".into(), partitions }).unwrap();
    world.partitions.apply(&both, false);
    world.produce_many(0..5).await;
    let failures = world.partitions.dirs().failures();
    world.sim.disk.break_device(Path::new("/b"), true);
    let other = world.partitions.partition("u", 0).unwrap();
    assert!(matches!(other.view(), Err(PartitionError::Offline(_))));
    assert_eq!(*failures.borrow(), 1);
    assert_eq!(world.partitions.dirs().failed_ids(), [B]);
    assert_eq!(world.partitions.failure(), None);
    world.produce_many(5..8).await;
    assert_eq!(world.values(), numbers(0..8));
    assert!(matches!(world.order("/b"), Err(MoveRefused::Offline(_))));
    world.sim.disk.break_device(Path::new("/a"), true);
    assert!(!world.produce("8").await);
    world.partitions.note_failures();
    assert!(matches!(world.partition().view(), Err(PartitionError::Offline(_))), "nothing is read from it any more");
    assert!(world.partitions.failure().is_some());
    world.partitions.close(1).unwrap();
    world.sim.disk.break_device(Path::new("/a"), false);
    assert!(!world.sim.disk.exists(Path::new("/a/.kafka_cleanshutdown")));
    world.stop().await;
}

#[tokio::test]
async fn the_target_of_a_move_fails_and_the_replica_stays() {
    let world = World::new();
    world.produce_many(0..30).await;
    assert_eq!(world.order("/b"), Ok(()));
    assert_eq!(world.advance(), Outcome::Waits);
    world.assign(Some(B));
    world.produce_many(30..35).await;
    world.sim.disk.break_device(Path::new("/b"), true);
    while world.advance() != Outcome::Over {}
    assert_eq!(world.partitions.dirs().failed_ids(), [B]);
    assert_eq!(world.partitions.claim_of(&world.partition()), Some(A), "the controller is told");
    world.produce_many(35..40).await;
    assert_eq!(world.values(), numbers(0..40));
    world.stop().await;
}

#[tokio::test]
async fn nothing_is_made_anew_while_it_may_lie_in_a_directory_that_is_not_there() {
    let world = World::new();
    world.produce_many(0..5).await;
    let sim = world.crash(Crash::Process).await;
    let world = World::start(sim, &[1], Some(A), 1);
    world.partitions.sweep_strays().unwrap();
    assert!(world.partition().is_missing());
    assert!(matches!(world.partition().view(), Err(PartitionError::Offline(_))));
    assert!(!world.produce("x").await);
    assert_eq!(
        world.partitions.claim_of(&world.partition()),
        None,
        "the controller knows that the directory is not there"
    );
    assert_eq!(world.entries("/b"), Vec::<String>::new());
    world.partitions.close(1).unwrap();
    let world = World::start(world.stop().await, &[0, 1], Some(A), 2);
    assert_eq!(world.values(), numbers(0..5));
    world.stop().await;
}

fn copy_dir(sim: &SimHost, from: &str, to: &str) {
    sim.disk.create_dir_all(Path::new(to)).unwrap();
    for entry in sim.disk.read_dir(Path::new(from)).unwrap() {
        let content = sim.disk.content(&Path::new(from).join(&entry.name)).unwrap();
        let file = sim.disk.open(&Path::new(to).join(&entry.name), crate::host::OpenMode::Create).unwrap();
        file.write_all_at(&content, 0).unwrap();
    }
}

#[tokio::test]
async fn of_two_copies_the_one_counts_that_the_metadata_names_and_else_none() {
    for (assigned, expected) in [(A, Some("/a")), (B, Some("/b")), (Uuid::from_u128(999), None)] {
        let world = World::new();
        world.produce_many(0..5).await;
        let sim = world.stop().await;
        copy_dir(&sim, "/a/t-0", "/b/t-0");
        let world = World::start(sim, &[0, 1], Some(assigned), 1);
        world.partitions.sweep_strays().unwrap();
        let partition = world.partition();
        match expected {
            Some(dir) => {
                assert_eq!(partition.log_dir().path, Path::new(dir));
                assert_eq!(world.values(), numbers(0..5));
                let other = if dir == "/a" { "/b" } else { "/a" };
                assert!(world.entries(other)[0].ends_with("-stray"), "{:?}", world.entries(other));
            }
            None => {
                let Err(PartitionError::Offline(reason)) = partition.view() else { panic!("it is served") };
                assert!(reason.contains("/a/t-0 and /b/t-0"), "{reason}");
                assert_eq!((world.entries("/a"), world.entries("/b")), (vec!["t-0".into()], vec!["t-0".into()]));
            }
        }
        world.stop().await;
    }
}

#[tokio::test]
async fn a_deleted_partition_takes_its_copy_along() {
    let world = World::new();
    world.produce_many(0..30).await;
    assert_eq!(world.order("/b"), Ok(()));
    let partition = world.partition();
    let _ = world.partitions.advance(&partition);
    world.partitions.apply(&Image::empty(), false);
    assert_eq!(world.partitions.advance(&partition), Outcome::Over);
    world.partitions.remove_doomed(|| false);
    assert_eq!((world.entries("/a").len(), world.entries("/b").len()), (0, 0));
    let replicas: Vec<usize> = world.partitions.dirs().iter().map(|dir| world.partitions.replicas_in(dir)).collect();
    assert_eq!(replicas, [0, 0]);
    world.stop().await;
}

#[tokio::test]
async fn a_clean_stop_in_the_middle_of_a_move_is_clean_for_both_directories() {
    let world = World::new();
    world.produce_many(0..30).await;
    assert_eq!(world.order("/b"), Ok(()));
    assert_eq!(world.advance(), Outcome::Waits);
    world.partitions.close(9).unwrap();
    let end: Offset = 30;
    let world = World::start(world.stop().await, &[0, 1], Some(A), 1);
    assert_eq!(world.partition().future().map(|future| future.dir), Some(1));
    world.advance();
    assert_eq!(world.partition().future().map(|future| future.log_end_offset), Some(end));
    world.assign(Some(B));
    assert_eq!(world.advance(), Outcome::Over);
    assert_eq!(world.values(), numbers(0..30));
    world.stop().await;
}
