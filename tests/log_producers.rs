//! Idempotent producers (KIP-98): traps 21, promise C1.

mod log_support;

use barnabas::host::sim::Crash;
use barnabas::host::{Disk, OpenMode};
use barnabas::log::{AppendError, Log};
use log_support::*;

fn base(log: &mut Log, bytes: &[u8]) -> (i64, bool) {
    let appended = append(log, bytes).unwrap();
    (appended.base_offset, appended.duplicate)
}

fn assert_out_of_order(log: &mut Log, bytes: &[u8]) {
    let end = log.log_end_offset();
    assert!(matches!(append(log, bytes), Err(AppendError::OutOfOrderSequence { .. })));
    assert_eq!(log.log_end_offset(), end);
}

#[test]
fn trap_21_each_of_the_last_five_is_acknowledged_again_with_its_first_offset() {
    let bench = Bench::new(1);
    let mut log = bench.open();
    for sequence in 0..7 {
        assert_eq!(base(&mut log, &sequenced(1, 0, sequence, 1)), (sequence.into(), false));
    }
    for sequence in [6, 5, 4, 3, 2] {
        assert_eq!(base(&mut log, &sequenced(1, 0, sequence, 1)), (sequence.into(), true));
    }
    for sequence in [1, 0, 8, 100] {
        assert_out_of_order(&mut log, &sequenced(1, 0, sequence, 1));
    }
    assert_eq!(base(&mut log, &sequenced(1, 0, 7, 1)), (7, false));
}

#[test]
fn a_batch_that_overlaps_what_is_written_is_out_of_order() {
    let bench = Bench::new(1);
    let mut log = bench.open();
    base(&mut log, &sequenced(1, 0, 0, 3));
    assert_out_of_order(&mut log, &sequenced(1, 0, 2, 2));
    assert_out_of_order(&mut log, &sequenced(1, 0, 1, 2));
    assert_eq!(base(&mut log, &sequenced(1, 0, 3, 1)), (3, false));
}

#[test]
fn a_new_epoch_begins_at_zero_and_fences_the_old_one() {
    let bench = Bench::new(1);
    let mut log = bench.open();
    base(&mut log, &sequenced(1, 0, 0, 1));
    assert_out_of_order(&mut log, &sequenced(1, 1, 3, 1));
    assert_eq!(base(&mut log, &sequenced(1, 1, 0, 1)), (1, false));
    for sequence in [0, 1] {
        let refused = append(&mut log, &sequenced(1, 0, sequence, 1));
        assert!(matches!(refused, Err(AppendError::InvalidProducerEpoch { got: 0, current: 1, .. })));
    }
}

#[test]
fn an_unknown_producer_may_not_begin_before_every_epoch() {
    let bench = Bench::new(1);
    let mut log = bench.open();
    let refused = append(&mut log, &sequenced(9, -3, 0, 1));
    assert!(matches!(refused, Err(AppendError::InvalidProducerEpoch { got: -3, current: -1, .. })));
    assert_eq!(log.log_end_offset(), 0);
}

#[test]
fn an_unknown_producer_may_begin_anywhere_and_sequences_wrap() {
    let bench = Bench::new(1);
    let mut log = bench.open();
    assert_eq!(base(&mut log, &sequenced(9, 0, i32::MAX - 1, 2)), (0, false));
    assert_eq!(base(&mut log, &sequenced(9, 0, 0, 1)), (2, false));
    assert_eq!(base(&mut log, &sequenced(8, 0, i32::MAX, 2)), (3, false));
    assert_eq!(base(&mut log, &sequenced(8, 0, 1, 1)), (5, false));
    assert_eq!(base(&mut log, &sequenced(8, 0, i32::MAX, 2)), (3, true));
    assert_eq!(base(&mut log, &sequenced(9, 0, i32::MAX - 1, 2)), (0, true));
    assert_out_of_order(&mut log, &sequenced(9, 0, 0, 2));
}

#[test]
fn batches_of_one_append_follow_each_other() {
    use barnabas::log::NewBatch;
    use barnabas::records::BatchHeader;
    let bench = Bench::new(1);
    let mut log = bench.open();
    let all = [sequenced(1, 0, 0, 2), batch(&["plain"]), sequenced(1, 0, 2, 1), sequenced(1, 0, 4, 1)];
    let new: Vec<NewBatch<'_>> =
        all.iter().map(|bytes| NewBatch { header: BatchHeader::parse(bytes).unwrap(), bytes }).collect();
    assert!(matches!(log.append(&new, 0), Err(AppendError::OutOfOrderSequence { got: 4, current: 2, .. })));
    assert_eq!(log.append(&new[..3], 0).unwrap().last_offset, 3);
    assert!(log.append(&new[..3], 0).unwrap().duplicate);
}

fn producers_after(restart: impl FnOnce(&mut Bench, Log) -> Log) {
    let mut bench = Bench::new(1);
    let mut log = bench.open();
    for sequence in 0..8 {
        for producer in [1, 2] {
            base(&mut log, &sequenced(producer, 3, sequence * 2, 2));
        }
    }
    let mut log = restart(&mut bench, log);
    for sequence in 3..8 {
        for producer in [1, 2] {
            let first = i64::from(sequence) * 4 + (producer - 1) * 2;
            let sent = sequenced(producer, 3, sequence * 2, 2);
            assert_eq!(base(&mut log, &sent), (first, true), "sequence {sequence}");
        }
    }
    assert_out_of_order(&mut log, &sequenced(1, 3, 4, 2));
    assert_out_of_order(&mut log, &sequenced(1, 3, 17, 1));
    assert_eq!(base(&mut log, &sequenced(1, 3, 16, 1)), (32, false));
    assert_eq!(log.log_end_offset(), 33);
}

#[test]
fn trap_21_all_five_are_known_after_a_clean_restart() {
    producers_after(|bench, log| {
        log.close().unwrap();
        bench.open_clean().0
    });
}

#[test]
fn trap_21_all_five_are_known_after_a_crash() {
    producers_after(|bench, mut log| {
        log.flush().unwrap();
        bench.crash(Crash::PowerLosesAll);
        bench.open()
    });
}

#[test]
fn trap_21_all_five_are_known_after_a_crash_behind_a_checkpoint() {
    producers_after(|bench, mut log| {
        log.flush().unwrap();
        let recovery_point = log.checkpoint().unwrap();
        assert_eq!(recovery_point, 32);
        bench.crash(Crash::Process);
        bench.open_from(recovery_point).0
    });
}

/// Five batches of one producer, with `between` after each; all five are sent again after a restart, the oldest first.
fn all_five_are_known(mut bench: Bench, between: impl Fn(&mut Log), restart: impl FnOnce(&mut Bench, Log) -> Log) {
    let mut log = bench.open();
    let mut firsts = Vec::new();
    for sequence in 0..7 {
        firsts.push(base(&mut log, &sequenced(1, 3, sequence * 2, 2)).0);
        between(&mut log);
    }
    let mut log = restart(&mut bench, log);
    for (sequence, first) in (0..7).zip(firsts).skip(2) {
        assert_eq!(base(&mut log, &sequenced(1, 3, sequence * 2, 2)), (first, true), "sequence {sequence}");
    }
    assert_out_of_order(&mut log, &sequenced(1, 3, 2, 2));
    assert!(!base(&mut log, &sequenced(1, 3, 14, 2)).1);
}

/// Others write as much as this behind each batch of a producer: 300 KiB, or a segment with little in it.
fn much(log: &mut Log) {
    append(log, &batch(&["x".repeat(300 << 10).as_str()])).unwrap();
}

fn a_segment(log: &mut Log) {
    append(log, &batch(&["x".repeat(3 << 10).as_str()])).unwrap();
    append(log, &batch(&["x".repeat(2 << 10).as_str()])).unwrap();
}

fn wide() -> Bench {
    let mut bench = Bench::new(1);
    bench.config.segment_bytes = 1 << 20;
    bench
}

#[test]
fn trap_21_all_five_are_known_after_a_restart_however_far_apart_they_stand() {
    for (bench, between) in [(wide as fn() -> Bench, much as fn(&mut Log)), (|| Bench::new(1), a_segment)] {
        all_five_are_known(bench(), between, |bench, log| {
            log.close().unwrap();
            bench.open_clean().0
        });
        all_five_are_known(bench(), between, |bench, mut log| {
            log.flush().unwrap();
            let recovery_point = log.checkpoint().unwrap();
            bench.crash(Crash::PowerLosesAll);
            bench.open_from(recovery_point).0
        });
        all_five_are_known(bench(), between, |bench, mut log| {
            log.flush().unwrap();
            bench.crash(Crash::Process);
            bench.open()
        });
    }
}

#[test]
fn all_five_are_known_after_a_cut_however_far_apart_they_stand() {
    all_five_are_known(Bench::new(1), a_segment, |_, mut log| {
        let end = log.log_end_offset();
        a_segment(&mut log);
        log.truncate_to(end).unwrap();
        log
    });
}

/// Kafka's snapshot holds a producer's last batch alone.
#[test]
fn all_five_are_known_by_a_snapshot_of_kafkas_where_they_stand_close_before_it() {
    all_five_are_known(Bench::new(1), a_segment, |bench, log| {
        let snapshot = bench.segment(log.log_end_offset(), "snapshot");
        log.close().unwrap();
        bench.sim.disk.corrupt(&snapshot, as_kafka_would_write_it).unwrap();
        bench.open_clean().0
    });
}

/// Of a snapshot with one producer, the last entry.
fn as_kafka_would_write_it(snapshot: &mut Vec<u8>) {
    const CRC: std::ops::Range<usize> = 2..6;
    const COUNT: std::ops::Range<usize> = 6..10;
    const ENTRY_BYTES: usize = 46;
    snapshot.drain(COUNT.end..snapshot.len() - ENTRY_BYTES);
    snapshot[COUNT].copy_from_slice(&1u32.to_be_bytes());
    let crc = crc_fast::crc32_iscsi(&snapshot[CRC.end..]);
    snapshot[CRC].copy_from_slice(&crc.to_be_bytes());
}

#[test]
fn a_damaged_or_lost_snapshot_loses_nothing_that_is_in_the_log() {
    for damage in 0..3 {
        producers_after(|bench, log| {
            log.close().unwrap();
            let snapshot = bench.segment(32, "snapshot");
            match damage {
                0 => bench.sim.disk.corrupt(&snapshot, |bytes| bytes[20] ^= 4).unwrap(),
                1 => bench.sim.disk.corrupt(&snapshot, |bytes| bytes.truncate(11)).unwrap(),
                _ => bench.sim.disk.remove_file(&snapshot).unwrap(),
            }
            bench.open_clean().0
        });
    }
}

#[test]
fn producer_state_outlives_the_records() {
    let mut bench = Bench::new(1);
    bench.config.retention_ms = Some(1000);
    let mut log = bench.open();
    base(&mut log, &sequenced(1, 0, 0, 5));
    bench.sim.clock.advance_ms(2000);
    assert_eq!(log.retain(NOW + 2000, 5).unwrap().len(), 1);
    assert_eq!(log.log_start_offset(), 5);
    log.close().unwrap();
    let (mut log, _) = bench.open_clean();
    assert_eq!(base(&mut log, &sequenced(1, 0, 0, 5)), (0, true));
    assert_out_of_order(&mut log, &sequenced(1, 0, 0, 1));
    assert_eq!(base(&mut log, &sequenced(1, 0, 5, 1)), (5, false));
}

/// Between an older snapshot and the log's first segment there were batches that nobody can read any more: what it says is not true now.
#[test]
fn a_snapshot_from_before_the_log_begins_is_not_believed() {
    let mut bench = Bench::new(1);
    bench.config.retention_ms = Some(1000);
    let mut log = bench.open();
    base(&mut log, &sequenced(1, 0, 0, 1));
    log.flush().unwrap();
    log.checkpoint().unwrap();
    for sequence in 1..5 {
        base(&mut log, &sequenced(1, 0, sequence, 1));
    }
    bench.sim.clock.advance_ms(2000);
    assert_eq!(log.retain(NOW + 2000, 5).unwrap().len(), 1);
    log.close().unwrap();
    bench.sim.disk.remove_file(&bench.segment(5, "snapshot")).unwrap();
    assert!(bench.sim.disk.exists(&bench.segment(1, "snapshot")));
    let (mut log, _) = bench.open_clean();
    assert_eq!(base(&mut log, &sequenced(1, 0, 5, 1)), (5, false));
}

#[test]
fn truncation_takes_producer_state_back() {
    let bench = Bench::new(1);
    let mut log = bench.open();
    for sequence in 0..6 {
        base(&mut log, &sequenced(1, 0, sequence, 1));
    }
    log.truncate_to(4).unwrap();
    assert_eq!(base(&mut log, &sequenced(1, 0, 3, 1)), (3, true));
    assert_eq!(base(&mut log, &sequenced(1, 0, 4, 1)), (4, false));
    log.truncate_fully_and_start_at(100).unwrap();
    assert_eq!(log.producers().count(), 0);
    assert_eq!(base(&mut log, &sequenced(1, 0, 77, 1)), (100, false));
}

#[test]
fn silent_producers_expire() {
    let bench = Bench::new(1);
    let mut log = bench.open();
    base(&mut log, &sequenced(1, 0, 0, 1));
    bench.sim.clock.advance_ms(500);
    base(&mut log, &sequenced(2, 0, 0, 1));
    assert_eq!(log.expire_producers(NOW + 1000, 1000), 0);
    assert_eq!(log.expire_producers(NOW + 1001, 1000), 1);
    assert_eq!(log.producers().map(|entry| entry.producer_id).collect::<Vec<_>>(), [2]);
}

#[test]
fn describe_producers_sees_the_last_sequence() {
    let bench = Bench::new(1);
    let mut log = bench.open();
    base(&mut log, &sequenced(1, 4, 0, 3));
    let entry = log.producers().next().unwrap().clone();
    assert_eq!((entry.producer_id, entry.epoch, entry.last_sequence()), (1, 4, 2));
    assert_eq!((entry.last_timestamp, entry.coordinator_epoch, entry.current_txn_first_offset), (NOW, -1, None));
}

/// A snapshot that a cut took away, and that the power cut behind it brings back, says nothing about what was written in its place.
#[test]
fn a_snapshot_from_before_a_cut_is_not_believed_after_the_power_was_cut() {
    for seed in 0..100 {
        let mut bench = Bench::new(seed);
        let mut log = bench.open();
        for sequence in 0..6 {
            base(&mut log, &sequenced(1, 0, sequence, 1));
        }
        log.flush().unwrap();
        log.checkpoint().unwrap();
        // In its own time the system writes everything back.
        let snapshot = bench.sim.disk.open(&bench.segment(6, "snapshot"), OpenMode::ReadWrite).unwrap();
        snapshot.sync_data().unwrap();
        bench.sim.disk.sync_dir(&bench.dir()).unwrap();
        // The checkpoint files are lowered before a log is cut.
        log.truncate_to(3).unwrap();
        for sequence in 0..5 {
            base(&mut log, &sequenced(2, 0, sequence, 1));
        }
        bench.crash(Crash::PowerLosesSome);
        let (mut log, _) = bench.open_from(3);
        let end = log.log_end_offset();
        assert!(log.producers().all(|entry| entry.last_offset().is_none_or(|last| last < end)));
        let known =
            |id: i64| log.producers().find(|entry| entry.producer_id == id).map_or(-1, |entry| entry.last_sequence());
        let (one, two) = (known(1), known(2));
        let (mut of_one, mut of_two) = (-1, -1);
        for value in values(&log) {
            let (id, sequence) = value.split_once("/0/").unwrap();
            let sequence: i32 = sequence.split_once('+').unwrap().0.parse().unwrap();
            *(if id == "1" { &mut of_one } else { &mut of_two }) = sequence;
        }
        assert_eq!((one, two), (of_one, of_two), "seed {seed}, end {end}");
        base(&mut log, &sequenced(1, 0, of_one + 1, 1));
    }
}
