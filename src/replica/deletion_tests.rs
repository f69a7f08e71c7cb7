//! What is left of a deleted topic: nothing that a new topic of its name could meet, no descriptor, no trouble for the disk; and that
//! what the machine lacks for a moment passes with that moment.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use uuid::Uuid;

use super::durability_tests::{LOG_DIR, World, image_of, image_on};
use super::flusher::{Rounds, targets};
use super::partition::Slot;
use super::*;
use crate::base::{Offset, TopicId};
use crate::host::disk::read_file;
use crate::host::sim::{Crash, SimHost};
use crate::host::{Disk, OpenMode};
use crate::log::checkpoints::{CLEAN_SHUTDOWN, HIGH_WATERMARKS, LOG_START_OFFSETS, RECOVERY_POINTS};
use crate::log::{AppendError, NewBatch, stray_dir_name};
use crate::metadata::Image;
use crate::records::{BatchBuilder, BatchHeader, Codec};
use crate::telemetry::Telemetry;

pub(super) fn new_world() -> World {
    World::new(FlushPolicy::Sync, i64::MAX)
}

impl World {
    /// The process dies, and a new one finds the given metadata.
    fn die(self, image: &Image) -> World {
        self.flusher.stop();
        self.thread.join().unwrap();
        self.sim.disk.crash(Crash::Process);
        World::find(self.sim, image)
    }

    fn find(sim: SimHost, image: &Image) -> World {
        let world = World::start_with(sim, FlushPolicy::Sync, i64::MAX, image);
        world.partitions.sweep_strays().unwrap();
        world
    }

    fn span(&self) -> (Offset, Offset) {
        let view = self.partition(0).view().unwrap();
        (view.log_start_offset, view.log_end_offset)
    }

    fn text(&self, name: &str) -> String {
        let file = read_file(&*self.sim.disk, &Path::new(LOG_DIR).join(name));
        file.map(|content| String::from_utf8(content).unwrap()).unwrap_or_default()
    }

    /// Whether a checkpoint file says something of `t-0` that a new log would not say.
    fn is_remembered(&self) -> bool {
        [RECOVERY_POINTS, LOG_START_OFFSETS, HIGH_WATERMARKS]
            .iter()
            .any(|name| self.text(name).lines().any(|line| line.starts_with("t 0 ") && line != "t 0 0"))
    }

    fn dirs(&self) -> Vec<String> {
        let entries = self.sim.disk.read_dir(Path::new(LOG_DIR)).unwrap();
        entries.into_iter().filter(|entry| entry.is_dir).map(|entry| entry.name).collect()
    }

    /// Records, some of them deleted, and a checkpoint that says so.
    async fn write_and_checkpoint(&self) {
        for _ in 0..10 {
            assert!(self.produce(0, -1).await);
        }
        let partition = self.partition(0);
        partition.with_log(|log| log.delete_records_before(9)).unwrap().unwrap();
        partition.with_log(|log| log.checkpoint()).unwrap().unwrap();
        self.partitions.save_checkpoints();
        assert!(self.is_remembered());
    }
}

fn stray(topic_id: u128) -> String {
    stray_dir_name("t-0", &TopicId(Uuid::from_u128(topic_id)).to_string())
}

#[tokio::test]
async fn a_partition_of_other_nodes_is_known_and_not_here() {
    let world = new_world();
    world.partitions.apply(&image_on(1, 1, vec![2]), false);
    let topic = world.partitions.topic("t").unwrap();
    assert!(topic.partition(0).is_none());
    assert!(topic.has(0));
    assert!(!topic.has(9_999) && !topic.has(-1));
}

#[tokio::test]
async fn a_partition_that_is_deleted_in_the_middle_of_its_sync_says_nothing_about_the_disk() {
    let world = World::new(FlushPolicy::Sync, i64::MAX);
    let partition = world.partition(0);
    let host = world.sim.host();
    let rounds = Rounds::new(0, None, host.clock.clone(), Telemetry::new(0));
    for begun in [false, true] {
        let world = World::new(FlushPolicy::Sync, i64::MAX);
        let partition = world.partition(0);
        world.append(0, 1, 10);
        let ticket = AckTicket::new();
        partition.claim_synced(1, &ticket, 0);
        ticket.seal();
        let begin = || targets(&partition).expect("something to sync");
        let collected = begun.then(begin);
        world.partitions.apply(&Image::empty(), false);
        match collected {
            Some((targets, mark)) => rounds.finish(&partition, &targets, mark),
            None => assert!(targets(&partition).is_none()),
        }
        ticket.clone().wait().await;
        assert_eq!(ticket.outcome(0), Err(AckFailure::NotLeader));
        assert_eq!(world.partitions.failure(), None);
        world.partitions.apply(&image_of(1, 0), false);
        assert!(world.produce(0, -1).await, "a new topic of the name is served");
        let batch = BatchBuilder::new(Codec::None).finish(0, -1);
        let header = BatchHeader::parse(&batch).unwrap();
        let refused = partition.append(&NewBatch { header, bytes: &batch }, false);
        assert!(matches!(refused, Err(PartitionError::NotLeader)), "{refused:?}");
    }
    // While it is in service, the same error is one of the disk.
    world.append(0, 1, 10);
    let (targets, mark) = targets(&partition).expect("something to sync");
    world.sim.disk.rename(&partition.dir(), Path::new("/data/moved")).unwrap();
    rounds.finish(&partition, &targets, mark);
    assert!(world.partitions.failure().is_some());
}

#[tokio::test]
async fn a_topic_that_is_made_again_remembers_nothing_of_its_namesake() {
    let world = new_world();
    world.write_and_checkpoint().await;
    world.partitions.apply(&Image::empty(), false);
    assert!(!world.is_remembered(), "before the name can be used again");
    world.partitions.apply(&image_of(2, 0), false);
    for _ in 0..12 {
        assert!(world.produce(0, -1).await);
    }
    assert_eq!(world.span(), (0, 12));
    let world = world.die(&image_of(2, 0));
    assert_eq!(world.span(), (0, 12));
}

#[tokio::test]
async fn a_topic_that_is_deleted_and_made_again_in_one_image_remembers_nothing_either() {
    let world = new_world();
    world.write_and_checkpoint().await;
    world.partitions.apply(&image_of(2, 0), false);
    assert!(!world.is_remembered());
    assert!(world.produce(0, -1).await);
    let world = world.die(&image_of(2, 0));
    assert_eq!(world.span(), (0, 1));
}

#[tokio::test]
async fn a_replica_that_moves_away_and_comes_back_remembers_nothing() {
    let world = new_world();
    world.partitions.apply(&image_on(1, 1, vec![1, 2]), false);
    let partition = world.partition(0);
    world.append(0, 1, 10);
    world.flusher.request(&partition);
    partition.high_watermark.store(1, Ordering::SeqCst);
    world.partitions.save_high_watermarks();
    assert!(world.is_remembered());
    world.partitions.apply(&image_on(1, 2, vec![2]), false);
    assert!(!world.is_remembered(), "before it can come back");
    assert!(partition.is_retired());
    world.partitions.apply(&image_on(1, 3, vec![1, 2]), false);
    assert_eq!(world.span(), (0, 0));
}

#[tokio::test]
async fn what_the_checkpoints_say_of_a_topic_that_was_deleted_while_the_node_was_down_is_forgotten_at_the_start() {
    let world = new_world();
    world.write_and_checkpoint().await;
    let world = world.die(&Image::empty());
    assert!(!world.is_remembered());
    assert_eq!(world.dirs(), [stray(1)]);
    world.partitions.apply(&image_of(2, 0), false);
    assert!(world.produce(0, -1).await);
    assert_eq!(world.span(), (0, 1));
}

#[tokio::test]
async fn the_directory_of_another_topic_id_is_set_aside_and_its_checkpoints_with_it() {
    let world = new_world();
    world.write_and_checkpoint().await;
    // Deleted and made again, and killed before anything of it took effect.
    let world = world.die(&image_of(2, 0));
    assert!(!world.is_remembered());
    assert!(world.produce(0, -1).await);
    assert_eq!(world.span(), (0, 1));
    assert_eq!(world.dirs(), ["t-0".to_owned(), stray(1)]);
}

#[tokio::test]
async fn a_partition_without_directory_starts_from_nothing() {
    let world = new_world();
    for name in [RECOVERY_POINTS, LOG_START_OFFSETS] {
        let file = world.sim.disk.open(&Path::new(LOG_DIR).join(name), OpenMode::Truncate).unwrap();
        file.write_all_at(b"0\n1\nt 0 900\n", 0).unwrap();
    }
    let world = world.die(&image_of(1, 0));
    assert!(!world.is_remembered());
    assert!(world.produce(0, -1).await);
    assert_eq!(world.span(), (0, 1));
}

#[tokio::test]
async fn strays_of_one_name_do_not_meet_and_one_that_cannot_be_set_aside_stops_nothing() {
    let mut world = new_world();
    for _ in 0..3 {
        assert!(world.produce(0, -1).await);
        world = world.die(&Image::empty());
        world.partitions.apply(&image_of(1, 0), false);
    }
    let dirs = world.dirs();
    assert_eq!(dirs.len(), 3, "{dirs:?}");
    assert!(dirs.contains(&stray(1)) && dirs.iter().all(|dir| dir.ends_with("-stray")), "{dirs:?}");
    assert!(world.produce(0, -1).await);
    world.sim.disk.fail_renames(true);
    world.flusher.stop();
    let world = World::start_with(world.sim, FlushPolicy::Sync, i64::MAX, &Image::empty());
    world.partitions.sweep_strays().unwrap();
    assert!(world.dirs().contains(&"t-0".to_owned()));
}

#[tokio::test]
async fn a_directory_that_could_not_be_renamed_at_the_deletion_is_set_aside_when_its_name_is_used_again() {
    let world = new_world();
    assert!(world.produce(0, -1).await);
    world.sim.disk.fail_renames(true);
    world.partitions.apply(&image_of(2, 0), false);
    for _ in 0..2 {
        let refused = world.partition(0).view().err();
        assert!(matches!(refused, Some(PartitionError::Append(AppendError::Storage(_)))), "{refused:?}");
    }
    world.sim.disk.fail_renames(false);
    assert!(world.produce(0, -1).await);
    assert_eq!((world.span(), world.dirs()), ((0, 1), vec!["t-0".to_owned(), stray(1)]));
}

#[tokio::test]
async fn an_offline_partition_keeps_its_checkpoint_and_the_stop_is_not_called_clean() {
    let world = new_world();
    world.write_and_checkpoint().await;
    let world = world.die(&image_of(1, 0));
    let partition = world.partition(0);
    {
        let mut slot = partition.slot.lock();
        let Slot::Unopened(checkpointed) = *slot else { panic!("nobody has opened it") };
        *slot = Slot::Offline("it cannot be opened".into(), checkpointed);
    }
    assert!(partition.view().is_err());
    world.partitions.save_checkpoints();
    assert!(world.is_remembered());
    world.partitions.close(1).unwrap();
    assert!(world.is_remembered());
    assert!(!world.sim.disk.exists(&Path::new(LOG_DIR).join(CLEAN_SHUTDOWN)));
}

#[tokio::test]
async fn a_directory_that_does_not_say_whose_it_is_belongs_to_the_topic_of_its_name() {
    let metadata = Path::new(LOG_DIR).join("t-0/partition.metadata");
    for damage in [b"".as_slice(), &[0; 43], b"version: 0\ntopic_id: junk", b"version: 7\n", &[255; 500]] {
        let world = new_world();
        world.write_and_checkpoint().await;
        let whole = read_file(&*world.sim.disk, &metadata).unwrap();
        world.sim.disk.corrupt(&metadata, |bytes| *bytes = damage.to_vec()).unwrap();
        let world = world.die(&image_of(1, 0));
        assert_eq!(world.span(), (9, 10), "{damage:?}");
        assert_eq!(read_file(&*world.sim.disk, &metadata).unwrap(), whole, "it is written again");
        assert_eq!(world.dirs(), ["t-0"]);
    }
}

#[tokio::test]
async fn descriptors_that_are_missing_for_a_moment_cost_that_moments_requests_only() {
    let world = new_world();
    world.sim.disk.run_out_of_descriptors(true);
    for _ in 0..2 {
        assert!(matches!(world.partition(0).view(), Err(PartitionError::Append(AppendError::Storage(_)))));
    }
    world.sim.disk.run_out_of_descriptors(false);
    assert_eq!(world.span(), (0, 0));
    // While the directories' sync is collected, and while it is done.
    world.sim.disk.run_out_of_descriptors(true);
    assert!(!world.produce(0, -1).await);
    world.sim.disk.run_out_of_descriptors(false);
    let rounds = Rounds::new(0, None, world.sim.host().clock.clone(), Telemetry::new(0));
    let partition = world.partition(0);
    let (targets, mark) = targets(&partition).expect("something to sync");
    world.sim.disk.run_out_of_descriptors(true);
    rounds.finish(&partition, &targets, mark);
    assert!(!partition.is_durable(1));
    world.sim.disk.run_out_of_descriptors(false);
    assert_eq!(world.partitions.failure(), None);
    assert!(world.produce(0, -1).await);
    world.sim.disk.crash(Crash::PowerLosesAll);
    let world = World::find(world.sim, &image_of(1, 0));
    assert_eq!(world.span(), (0, 2));
}

#[tokio::test]
async fn a_deleted_partition_gives_its_descriptors_back_whoever_holds_on_to_it() {
    let world = new_world();
    for _ in 0..2 {
        assert!(world.produce(0, -1).await);
    }
    let partition = world.partition(0);
    let view = partition.view().unwrap();
    assert!(world.env.files.open_count() > 0);
    world.partitions.apply(&Image::empty(), false);
    assert_eq!(world.env.files.open_count(), 0);
    // Also when its name is somebody else's by now.
    world.partitions.apply(&image_of(2, 0), false);
    assert!(world.produce(0, -1).await);
    assert!(view.read(0, 1000, 2, true).is_err());
    assert!(matches!(partition.view(), Err(PartitionError::NotLeader)));
}

#[test]
fn directories_are_removed_in_batches_and_not_while_the_node_stops() {
    let world = new_world();
    let dirs: Vec<PathBuf> = (0..150).map(|at| Path::new(LOG_DIR).join(format!("old-{at}.x-delete"))).collect();
    dirs.iter().for_each(|dir| world.sim.disk.create_dir_all(dir).unwrap());
    world.partitions.sweep_strays().unwrap();
    assert!(!world.partitions.remove_doomed(|| true));
    assert_eq!(world.dirs().len(), 150);
    let world = World::find(world.sim, &image_of(1, 0));
    assert!(world.partitions.remove_doomed(|| false));
    assert!((1..150).contains(&world.dirs().len()));
    while world.partitions.remove_doomed(|| false) {}
    assert!(world.dirs().is_empty());
}
