//! A follower's log, cut: what is said of it while that goes wrong, or while another one is cutting it.

use std::path::Path;
use std::sync::atomic::Ordering;

use super::deletion_tests::new_world;
use super::durability_tests::{LOG_DIR, World, image_on};
use super::follower::Repair;
use super::partition_follow::Files;
use super::*;
use crate::base::{Offset, TopicPartition};
use crate::host::sim::Crash;
use crate::log::checkpoints::{LOG_START_OFFSETS, RECOVERY_POINTS, read_offsets};
use crate::records::{BatchBuilder, Codec};

const SAYS: LeaderSays = LeaderSays { high_watermark: 10, log_start_offset: 0 };

/// One record a batch, as a leader of epoch 0 would send them.
fn records(offsets: std::ops::Range<i64>) -> bytes::Bytes {
    let batch = |offset| {
        let mut builder = BatchBuilder::new(Codec::None);
        builder.push(1_700_000_000_000, None, Some(b"value"), &[]);
        builder.finish(offset, 0)
    };
    offsets.flat_map(batch).collect::<Vec<u8>>().into()
}

/// Follows node 2 in epoch 1, with ten synced records of epoch 0.
fn following() -> World {
    let world = new_world();
    world.partitions.apply(&image_on(1, 1, vec![2, 1]), true);
    let partition = world.partition(0);
    partition.append_as_follower(files(&world), 1, &records(0..10), SAYS).unwrap();
    let ticket = AckTicket::new();
    partition.claim_synced(10, &ticket, 0);
    world.flusher.request(&partition);
    while ticket.outcome(0).is_err() {
        std::thread::yield_now();
    }
    assert!(partition.is_durable(10));
    world
}

impl World {
    /// The next life of the node, which follows the same leader.
    fn crash_and_follow(self, how: Crash) -> World {
        self.sim.disk.crash(how);
        self.flusher.stop();
        self.thread.join().unwrap();
        World::start_with(self.sim, FlushPolicy::Sync, i64::MAX, &image_on(1, 1, vec![2, 1]))
    }

    fn stop(self) {
        self.flusher.stop();
        self.thread.join().unwrap();
    }
}

fn files(world: &World) -> Files<'_> {
    Files { flusher: &world.flusher, partitions: &world.partitions }
}

/// What the checkpoint files say of `t-0`: its recovery point, and its log's start where that is not 0.
fn checkpointed(world: &World) -> (Option<Offset>, Option<Offset>) {
    let read = |name| {
        let (offsets, _) = read_offsets(&*world.sim.disk, Path::new(LOG_DIR), name).unwrap();
        offsets.get(&TopicPartition::new("t", 0)).copied()
    };
    (read(RECOVERY_POINTS), read(LOG_START_OFFSETS))
}

#[test]
fn a_cut_that_was_interrupted_takes_back_what_was_said_of_the_device() {
    let world = following();
    let partition = world.partition(0);
    world.sim.disk.run_out_of_descriptors(true);
    assert!(partition.cut_to_divergence(files(&world), 1, 0, 5).is_err());
    world.sim.disk.run_out_of_descriptors(false);
    let end = partition.with_log(|log| log.log_end_offset()).unwrap();
    assert_eq!(end, 5, "the cut itself was done");
    assert!(!partition.is_durable(6), "nothing is there");
    assert_eq!(partition.high_watermark(), 5);
    assert!(partition.append_as_follower(files(&world), 1, &records(5..8), SAYS).is_ok());
    assert!(!partition.is_durable(6), "it was not synced");
}

#[test]
fn a_log_is_cut_only_when_the_checkpoint_files_say_no_more_than_what_is_left() {
    let world = following();
    let partition = world.partition(0);
    partition.with_log(|log| log.delete_records_before(7).and_then(|_| log.checkpoint())).unwrap().unwrap();
    world.partitions.save_checkpoints();
    assert_eq!(checkpointed(&world), (Some(10), Some(7)));
    world.sim.disk.set_capacity_bytes(world.sim.disk.used_bytes());
    let refused = partition.cut_to_divergence(files(&world), 1, 0, 5);
    assert!(matches!(refused, Err(FollowError::Checkpoints)), "{refused:?}");
    let span = || partition.with_log(|log| (log.log_start_offset(), log.log_end_offset())).unwrap();
    assert_eq!(span(), (7, 10), "nothing was cut");
    world.sim.disk.set_capacity_bytes(u64::MAX);
    partition.cut_to_divergence(files(&world), 1, 0, 5).unwrap();
    assert_eq!((span(), checkpointed(&world)), ((5, 5), (Some(5), Some(5))));
    partition.append_as_follower(files(&world), 1, &records(5..8), SAYS).unwrap();
    partition.with_log(|log| log.flush().and_then(|()| log.checkpoint())).unwrap().unwrap();
    world.partitions.save_checkpoints();
    assert_eq!(checkpointed(&world).0, Some(8), "it moves on afterwards");
}

#[test]
fn who_waits_for_the_device_behind_a_cut_is_told_and_holds_nobody_up() {
    let world = following();
    let partition = world.partition(0);
    partition.append_as_follower(files(&world), 1, &records(10..12), SAYS).unwrap();
    let (cut, kept) = (AckTicket::new(), AckTicket::new());
    partition.claim_synced(12, &cut, 0);
    partition.cut_to_divergence(files(&world), 1, 0, 5).unwrap();
    assert_eq!(cut.outcome(0), Err(AckFailure::NotLeader));
    assert!(cut.seal(), "it has reported");
    let late = AckTicket::new();
    partition.claim_synced(12, &late, 0);
    partition.append_as_follower(files(&world), 1, &records(5..8), SAYS).unwrap();
    partition.claim_synced(8, &kept, 0);
    world.flusher.request(&partition);
    while kept.outcome(0).is_err() {
        std::thread::yield_now();
    }
    assert!(late.outcome(0).is_err(), "this one waits for more");
}

#[test]
fn a_log_is_not_cut_while_the_journal_may_write_again_what_is_cut() {
    let world = following();
    let partition = world.partition(0);
    partition.append_as_follower(files(&world), 1, &records(10..12), SAYS).unwrap();
    let journaled = AckTicket::new();
    partition.claim_synced(12, &journaled, 0);
    world.flusher.request(&partition);
    while journaled.outcome(0).is_err() {
        std::thread::yield_now();
    }
    // The partition's own file is synced, the journal's next beginning is not.
    world.sim.disk.fail_sync_at(2);
    assert!(matches!(partition.cut_to_divergence(files(&world), 1, 0, 5), Err(FollowError::Journal)));
    assert_eq!(world.sim.disk.failed_syncs(), 1);
    assert!(world.partitions.failure().is_some(), "the directory has failed");
    assert!(!world.flusher.empty_journal(partition.log_dir()), "it still holds what it held");
    assert!(partition.cut_to_divergence(files(&world), 1, 0, 5).is_err());
    let world = world.crash_and_follow(Crash::PowerLosesAll);
    let partition = world.partition(0);
    assert_eq!(partition.view().unwrap().log_end_offset, 12, "nothing was cut");
    partition.cut_to_divergence(files(&world), 1, 0, 5).unwrap();
    world.stop();
}

#[test]
fn while_somebody_cuts_the_log_another_one_that_is_done_does_not_open_the_journal_again() {
    let world = following();
    let partition = world.partition(0);
    let other = partition.with_log(|_| partition.begin_cut(3)).unwrap();
    partition.cut_to_divergence(files(&world), 1, 0, 5).unwrap();
    assert_eq!(partition.unjournaled.load(Ordering::SeqCst), 1);
    assert_eq!(partition.checkpoint().unwrap().1.high_watermark, 3, "nothing is said of what it is about to cut");
    drop(other);
    assert_eq!(partition.unjournaled.load(Ordering::SeqCst), 0);
    assert_eq!(partition.checkpoint().unwrap().1.high_watermark, 5);
}

#[test]
fn a_broken_header_in_the_way_of_a_cut_damages_one_copy_and_no_directory() {
    let world = following();
    let partition = world.partition(0);
    // So many that where the first ones lie is no longer remembered.
    partition.append_as_follower(files(&world), 1, &records(10..110), SAYS).unwrap();
    let at = 3 * records(0..1).len();
    let magic = 16;
    let path = format!("{LOG_DIR}/t-0/{:020}.log", 0);
    world.sim.disk.corrupt(Path::new(&path), |bytes| bytes[at + magic] ^= 0x40).unwrap();
    assert!(!partition.cut_to_divergence(files(&world), 1, 0, 7).unwrap(), "it is asked for again, after a pause");
    assert!(world.partitions.failure().is_none(), "the disk is as good as ever");
    assert_eq!(partition.damage().map(|damage| damage.offset), Some(3));
    assert_eq!(
        partition.position(1).unwrap().fetch_offset,
        3,
        "the leader hears how far it goes, and then it is rebuilt"
    );
    assert_eq!(world.end(0), 110, "nothing is cut while somebody may count on it");
    // Another one in front of that, which is in the way of another cut.
    world.sim.disk.corrupt(Path::new(&path), |bytes| bytes[at / 3 + magic] ^= 0x40).unwrap();
    assert!(!partition.cut_to_divergence(files(&world), 1, 0, 2).unwrap());
    assert_eq!(partition.damage().map(|damage| damage.offset), Some(1), "or the same would be asked for ever");
    world.stop();
}

/// A batch of one record of epoch `epoch`.
fn record_of(offset: i64, epoch: i32) -> bytes::Bytes {
    let mut builder = BatchBuilder::new(Codec::None);
    builder.push(1_700_000_000_000, None, Some(b"value"), &[]);
    builder.finish(offset, epoch).into()
}

#[test]
fn a_gap_in_what_the_leader_sends_is_not_taken_over_where_nothing_is_compacted() {
    for compact in [false, true] {
        let world = following();
        let partition = world.partition(0);
        let mut config = crate::metadata::config::LogConfig::clone(&partition.config());
        config.cleanup.compact = compact;
        partition.set_config(std::sync::Arc::new(config));
        let sent = [records(10..11), records(12..14)].concat();
        let taken = partition.append_as_follower(files(&world), 1, &sent, SAYS);
        let end = partition.with_log(|log| log.log_end_offset()).unwrap();
        if compact {
            assert_eq!((taken.unwrap(), end), (14, 14));
        } else {
            assert!(matches!(taken, Err(FollowError::Misfit { offset: 12, .. })), "{taken:?}");
            assert_eq!(end, 11, "what is before the gap was taken");
        }
        world.stop();
    }
}

#[test]
fn answers_that_cannot_be_used_are_told_of_once_in_a_while_and_make_the_leader_look() {
    let world = following();
    let partition = world.partition(0);
    let concerns = &world.partitions.common().concerns;
    concerns.take();
    let (mut told, mut suspected) = (0, 0);
    for _ in 0..120 {
        told += u32::from(partition.note_bad_answer());
        suspected += concerns.take().len();
    }
    assert_eq!((told, suspected), (3, 13));
    partition.append_as_follower(files(&world), 1, &records(10..12), SAYS).unwrap();
    assert!(partition.note_bad_answer(), "that is another place");
    world.stop();
}

/// A bit of the leader epoch of the last batch has flipped, which is in no checksum's cover.
#[test]
fn a_copy_that_claims_a_later_epoch_than_its_leaders_is_cut_where_that_begins_and_goes_on() {
    let world = following();
    let partition = world.partition(0);
    let bytes = record_of(10, 1 << 30);
    let header = crate::records::BatchHeader::parse(&bytes).unwrap();
    partition.with_log(|log| log.append_as_follower(&[header], &bytes)).unwrap().unwrap();
    assert_eq!(partition.prepare_to_follow(files(&world), 1).unwrap(), Some(Repair::DropFrom(10)));
    let position = partition.position(1).unwrap();
    assert_eq!((position.fetch_offset, position.last_epoch), (10, 0));
    assert_eq!(partition.prepare_to_follow(files(&world), 1).unwrap(), None);
    partition.append_as_follower(files(&world), 1, &records(10..12), SAYS).unwrap();
    world.stop();
}

/// Ten records a batch, as a leader of epoch 0 would send them.
fn tens(batches: std::ops::Range<i64>) -> bytes::Bytes {
    let batch = |at: i64| {
        let mut builder = BatchBuilder::new(Codec::None);
        for _ in 0..10 {
            builder.push(1_700_000_000_000, None, Some(b"value"), &[]);
        }
        builder.finish(at * 10, 0)
    };
    batches.flat_map(batch).collect::<Vec<u8>>().into()
}

#[test]
fn the_leaders_start_may_move_again_while_a_copy_begins_inside_a_batch() {
    let world = new_world();
    world.partitions.apply(&image_on(1, 1, vec![2, 1]), true);
    let partition = world.partition(0);
    let span = || partition.with_log(|log| (log.log_start_offset(), log.log_end_offset())).unwrap();
    let restart = |at| partition.restart_if_out_of_range(files(&world), 1, at).unwrap();
    let append = |batches, log_start_offset| {
        let says = LeaderSays { high_watermark: 50, log_start_offset };
        partition.append_as_follower(files(&world), 1, &tens(batches), says)
    };
    assert_eq!(restart(25), Some(Repair::RestartAt(25)));
    assert_eq!(append(2..3, 38).unwrap(), 30);
    assert_eq!((span(), partition.high_watermark()), ((30, 30), 30), "nothing is left of that batch");
    assert_eq!(restart(38), Some(Repair::RestartAt(38)));
    assert_eq!(append(3..5, 38).unwrap(), 50);
    assert_eq!((span(), partition.high_watermark()), ((38, 50), 50));
    assert!(append(4..5, 38).is_err(), "a log with records takes nothing twice");
    assert_eq!(span(), (38, 50));
}

#[test]
fn a_copy_that_begins_inside_a_batch_says_no_more_in_its_checkpoints_than_it_has() {
    let world = following();
    let partition = world.partition(0);
    let restarted = partition.restart_if_out_of_range(files(&world), 1, 25).unwrap();
    assert_eq!(restarted, Some(Repair::RestartAt(25)));
    partition.with_log(|log| log.flush().and_then(|()| log.checkpoint())).unwrap().unwrap();
    world.partitions.save_checkpoints();
    assert_eq!(checkpointed(&world), (Some(25), Some(25)));
    world.sim.disk.set_capacity_bytes(world.sim.disk.used_bytes());
    let says = LeaderSays { high_watermark: 50, log_start_offset: 25 };
    let refused = partition.append_as_follower(files(&world), 1, &tens(2..3), says);
    assert!(matches!(refused, Err(FollowError::Checkpoints)), "{refused:?}");
    world.sim.disk.set_capacity_bytes(u64::MAX);
    partition.append_as_follower(files(&world), 1, &tens(2..5), says).unwrap();
    assert_eq!(checkpointed(&world), (Some(20), Some(20)));
    assert!(!partition.is_durable(21), "it was not synced");
    partition.with_log(|log| log.flush().and_then(|()| log.checkpoint())).unwrap().unwrap();
    world.partitions.save_checkpoints();
    assert_eq!(checkpointed(&world), (Some(50), Some(25)));
}

#[test]
fn the_power_may_go_at_any_write_while_a_copy_begins_inside_a_batch() {
    let says = LeaderSays { high_watermark: 50, log_start_offset: 25 };
    let follow = |world: &World| -> Result<Offset, FollowError> {
        let partition = world.partition(0);
        partition.restart_if_out_of_range(files(world), 1, 25)?;
        partition.append_as_follower(files(world), 1, &tens(2..5), says)
    };
    let mut cut = 0;
    let mut done = false;
    while !done {
        cut += 1;
        let world = following();
        world.sim.disk.cut_power_at(cut);
        done = follow(&world).is_ok();
        let world = world.crash_and_follow(Crash::PowerLosesSome);
        let partition = world.partition(0);
        let span = || partition.with_log(|log| (log.log_start_offset(), log.log_end_offset())).unwrap();
        if span().1 < 50 {
            follow(&world).unwrap();
        } else {
            partition.append_as_follower(files(&world), 1, &[], says).unwrap();
        }
        assert_eq!(span(), (25, 50), "at write {cut}");
        let view = partition.view().unwrap();
        let slice = view.read(25, 1 << 20, 50, true).unwrap().unwrap();
        let mut bytes = vec![0; slice.len];
        slice.file.read_exact_at(&mut bytes, slice.position).unwrap();
        assert_eq!(bytes, tens(2..5), "at write {cut}");
        world.stop();
    }
    assert!(cut > 5, "{cut}");
}
