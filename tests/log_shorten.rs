//! Retention, DeleteRecords, truncation: what goes, what stays, and what readers notice.

mod log_support;

use barnabas::host::sim::Crash;
use barnabas::host::{Disk, OpenMode};
use barnabas::log::{LogError, OpenHow, ReadError, Reason};
use barnabas::records::Codec;
use log_support::*;

const DAY: i64 = 86_400_000;

fn bench_with(retention_ms: Option<i64>, retention_bytes: Option<u64>) -> Bench {
    let mut bench = Bench::new(1);
    bench.config.retention_ms = retention_ms;
    bench.config.retention_bytes = retention_bytes;
    bench.config.segment_ms = 1000 * DAY;
    bench
}

fn files(bench: &Bench) -> Vec<String> {
    bench.sim.disk.read_dir(&bench.dir()).unwrap().into_iter().map(|entry| entry.name).collect()
}

#[test]
fn trap_43_a_segment_goes_when_its_newest_record_is_too_old() {
    let bench = bench_with(Some(7 * DAY), None);
    let mut log = bench.open();
    append(&mut log, &timed(Codec::None, &[(NOW - 10 * DAY, "old")])).unwrap();
    let deleted = log.retain(NOW, 1).unwrap();
    assert_eq!(deleted.iter().map(|segment| segment.reason).collect::<Vec<_>>(), [Reason::Time]);
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (1, 1));
    append(&mut log, &timed(Codec::None, &[(NOW - 10 * DAY, "old"), (NOW - DAY, "young")])).unwrap();
    assert_eq!(log.retain(NOW, 3).unwrap(), []);
    assert_eq!(values(&log), ["old", "young"]);
    let deleted = log.retain(NOW + 6 * DAY + 1, 3).unwrap();
    assert_eq!(deleted.len(), 1);
    assert_eq!(log.log_start_offset(), 3);
}

#[test]
fn trap_43_a_future_timestamp_keeps_its_segment_until_then() {
    let bench = bench_with(Some(7 * DAY), None);
    let mut log = bench.open();
    append(&mut log, &timed(Codec::None, &[(NOW + 3650 * DAY, "future")])).unwrap();
    assert_eq!(log.retain(NOW + 3650 * DAY, 1).unwrap(), []);
    assert_eq!(log.retain(NOW + 3658 * DAY, 1).unwrap().len(), 1);
}

#[test]
fn trap_43_without_timestamps_the_time_of_writing_counts() {
    let bench = bench_with(Some(7 * DAY), None);
    let mut log = bench.open();
    append(&mut log, &timed(Codec::None, &[(-1, "timeless")])).unwrap();
    assert_eq!(log.retain(NOW + 7 * DAY, 1).unwrap(), []);
    assert_eq!(log.retain(NOW + 7 * DAY + 1, 1).unwrap().len(), 1);
}

#[test]
fn size_retention_keeps_at_least_the_limit() {
    let bench = bench_with(None, Some(10_000));
    let mut log = bench.open();
    fill(&mut log, 400);
    let before = log.size_bytes();
    let deleted = log.retain(NOW, 400).unwrap();
    assert!(deleted.iter().all(|segment| segment.reason == Reason::Size && segment.bytes > 3000));
    assert!((10_000..10_000 + 4096).contains(&log.size_bytes()), "{} of {before}", log.size_bytes());
    assert_eq!(values(&log), filled(log.log_start_offset()..400));
}

#[test]
fn a_topic_that_only_compacts_keeps_everything() {
    let mut bench = bench_with(Some(1), Some(1));
    bench.config.cleanup.delete = false;
    let mut log = bench.open();
    fill(&mut log, 100);
    assert_eq!(log.retain(NOW + 100 * DAY, 100).unwrap(), []);
}

#[test]
fn nothing_above_the_high_watermark_goes() {
    let bench = bench_with(Some(1), None);
    let mut log = bench.open();
    fill(&mut log, 400);
    log.retain(NOW + DAY, 150).unwrap();
    assert!((100..=150).contains(&log.log_start_offset()), "{}", log.log_start_offset());
}

#[test]
fn deleted_segments_are_readable_by_who_holds_them_and_removed_later() {
    let mut bench = bench_with(Some(7 * DAY), None);
    bench.config.file_delete_delay_ms = 60_000;
    let mut log = bench.open();
    fill(&mut log, 200);
    let old = log.view();
    let slice = old.read(0, 1000, 200, true).unwrap().unwrap();
    assert!(!log.retain(NOW + 8 * DAY, 200).unwrap().is_empty());
    let mut bytes = vec![0; slice.len];
    slice.file.read_exact_at(&mut bytes, slice.position).unwrap();
    assert_eq!(read_all(&old, 1000).len(), 200, "renamed files open again under their new name");
    assert!(files(&bench).iter().any(|name| name.ends_with(".log.deleted")));
    let due = log.remove_due(NOW + 8 * DAY + 59_999).unwrap();
    assert_eq!(due, Some(NOW + 8 * DAY + 60_000));
    assert_eq!(log.remove_due(NOW + 8 * DAY + 60_000).unwrap(), None);
    assert!(!files(&bench).iter().any(|name| name.ends_with(".deleted")));
    let gone = old.read(0, 1000, 200, true);
    assert!(matches!(gone, Err(ReadError::OffsetOutOfRange { .. })), "{gone:?}");
}

#[test]
fn a_crash_before_the_removal_brings_no_segment_back() {
    let mut bench = bench_with(Some(7 * DAY), None);
    let mut log = bench.open();
    fill(&mut log, 200);
    log.flush().unwrap();
    log.retain(NOW + 8 * DAY, 200).unwrap();
    drop(log);
    bench.crash(Crash::Process);
    let log = bench.open();
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (200, 200));
    assert!(!files(&bench).iter().any(|name| name.ends_with(".deleted")));
}

#[test]
fn deleted_records_are_out_of_range_and_their_segments_go_with_the_next_retention() {
    let bench = bench_with(None, None);
    let mut log = bench.open();
    fill(&mut log, 400);
    assert_eq!(log.delete_records_before(250).unwrap(), 250);
    assert_eq!(log.delete_records_before(100).unwrap(), 250, "the start never moves back");
    assert!(matches!(log.delete_records_before(401), Err(LogError::OffsetOutOfRange { end: 400, .. })));
    assert!(matches!(log.view().read(249, 100, 400, true), Err(ReadError::OffsetOutOfRange { start: 250, .. })));
    assert_eq!(values(&log), filled(250..400));
    let deleted = log.retain(NOW, 400).unwrap();
    assert!(!deleted.is_empty() && deleted.iter().all(|segment| segment.reason == Reason::LogStart));
    assert_eq!(log.log_start_offset(), 250);
    assert_eq!(values(&log), filled(250..400));
    log.close().unwrap();
    let how = OpenHow { clean_shutdown: true, recovery_point: 400, log_start_offset: Some(250) };
    let (mut log, _) = bench.try_open(how).unwrap();
    assert_eq!(values(&log), filled(250..400));
    log.delete_records_before(400).unwrap();
    assert!(log.view().read(400, 100, 400, true).unwrap().is_none());
    fill(&mut log, 1);
    assert_eq!(values(&log), filled(400..401));
}

#[test]
fn the_middle_of_a_batch_can_be_the_start_and_the_batch_is_served_whole() {
    let bench = bench_with(None, None);
    let mut log = bench.open();
    append(&mut log, &batch(&["a", "b", "c", "d"])).unwrap();
    log.delete_records_before(2).unwrap();
    assert_eq!(log.view().read(2, 1000, 4, true).unwrap().unwrap().first_offset, 0);
    assert_eq!(values(&log), ["c", "d"]);
}

#[test]
fn truncation_takes_the_end_away_everywhere() {
    for to in [399, 350, 200, 101, 50, 1] {
        let bench = bench_with(None, None);
        let mut log = bench.open();
        fill(&mut log, 400);
        log.truncate_to(to).unwrap();
        assert_eq!(values(&log), filled(0..to), "to {to}");
        let end = log.view().epoch_end_offset(0);
        assert_eq!(end, (0, to));
        fill(&mut log, 150);
        assert_eq!(values(&log), filled(0..to + 150), "to {to}");
        log.close().unwrap();
        assert_eq!(values(&bench.open_clean().0), filled(0..to + 150), "to {to}");
    }
}

#[test]
fn truncation_inside_a_batch_takes_the_whole_batch() {
    let bench = bench_with(None, None);
    let mut log = bench.open();
    append(&mut log, &batch(&["a", "b"])).unwrap();
    append(&mut log, &batch(&["c", "d", "e"])).unwrap();
    log.truncate_to(4).unwrap();
    assert_eq!(log.log_end_offset(), 2);
    assert_eq!(values(&log), ["a", "b"]);
    log.truncate_to(7).unwrap();
    assert_eq!(log.log_end_offset(), 2);
}

#[test]
fn truncation_inside_the_batch_that_the_log_starts_in_leaves_an_empty_log() {
    let bench = bench_with(None, None);
    let mut log = bench.open();
    append(&mut log, &batch(&["a", "b"])).unwrap();
    append(&mut log, &batch(&["c", "d", "e"])).unwrap();
    log.delete_records_before(3).unwrap();
    assert_eq!(log.end_when_cut_at(4).unwrap(), 2);
    log.truncate_to(4).unwrap();
    assert_eq!((log.log_start_offset(), log.log_end_offset(), log.latest_epoch()), (2, 2, None));
    append(&mut log, &batch(&["x"])).unwrap();
    assert_eq!(values(&log), ["x"]);
}

/// A log of `count` records of which the last one stands 256 offsets further than it should, as compaction may leave it.
fn with_a_gap_before_the_last(count: usize) -> Bench {
    let mut bench = bench_with(None, None);
    bench.config.cleanup.compact = true;
    let mut log = bench.open();
    fill(&mut log, count);
    let last = bench.segment(log.view().segments.last().unwrap().base_offset(), "log");
    log.close().unwrap();
    bench.move_last_batch(&last, &batch(&[&format!("value {}", count - 1)]));
    bench.crash(Crash::Process);
    bench
}

#[test]
fn truncation_in_a_gap_ends_the_log_where_its_last_batch_does() {
    let first_of_second = {
        let mut log = bench_with(None, None).open();
        fill(&mut log, 150);
        log.view().segments[1].base_offset() as usize
    };
    for count in [1, 2, 30, 150, first_of_second, first_of_second + 1, first_of_second + 2] {
        for gap_in in [0, 100, 256] {
            let bench = with_a_gap_before_the_last(count);
            let (mut log, _) = bench.open_clean();
            let end = count as i64 - 1;
            assert_eq!(log.log_end_offset(), end + 1 + 256, "{count}");
            assert_eq!(log.end_when_cut_at(end + gap_in).unwrap(), end, "{count} {gap_in}");
            log.truncate_to(end + gap_in).unwrap();
            assert_eq!((log.log_start_offset(), log.log_end_offset()), (0, end), "{count} {gap_in}");
            fill(&mut log, 200);
            assert_eq!(values(&log), filled(0..end + 200), "{count} {gap_in}");
            log.close().unwrap();
            assert_eq!(values(&bench.open_clean().0), filled(0..end + 200), "{count} {gap_in}");
        }
    }
}

#[test]
fn truncation_takes_epochs_and_the_flushed_offset_back() {
    let bench = bench_with(None, None);
    let mut log = bench.open();
    for epoch in 0..5 {
        for _ in 0..20 {
            append_in(&mut log, &batch(&["x"]), epoch * 2).unwrap();
        }
    }
    log.flush().unwrap();
    log.checkpoint().unwrap();
    log.truncate_to(50).unwrap();
    assert_eq!((log.latest_epoch(), log.flushed_offset(), log.recovery_point()), (Some(4), 50, 50));
    assert_eq!(log.epoch_end_offset(4), (4, 50));
    assert_eq!(log.epoch_end_offset(1), (0, 20));
    log.truncate_to(40).unwrap();
    assert_eq!(log.latest_epoch(), Some(2));
}

#[test]
fn times_are_right_after_truncation() {
    let mut bench = bench_with(None, None);
    bench.config.segment_bytes = 1 << 20;
    let mut log = bench.open();
    for at in 0..300 {
        append(&mut log, &timed(Codec::None, &[(1000 + at, "x")])).unwrap();
    }
    log.truncate_to(100).unwrap();
    let view = log.view();
    assert_eq!(view.max_timestamp(1000).unwrap().unwrap().timestamp, 1099);
    assert_eq!(view.offset_for_time(1100, 1000).unwrap(), None);
    assert_eq!(view.offset_for_time(1050, 1000).unwrap().unwrap().offset, 50);
    append(&mut log, &timed(Codec::None, &[(5000, "x")])).unwrap();
    assert_eq!(log.view().offset_for_time(1100, 1000).unwrap().unwrap().offset, 100);
}

#[test]
fn a_log_that_starts_anew_elsewhere_has_nothing_of_the_old_one() {
    let bench = bench_with(None, None);
    let mut log = bench.open();
    fill(&mut log, 200);
    log.flush().unwrap();
    log.truncate_fully_and_start_at(1000).unwrap();
    assert_eq!((log.log_start_offset(), log.log_end_offset(), log.size_bytes()), (1000, 1000, 0));
    assert_eq!(log.latest_epoch(), None);
    fill(&mut log, 10);
    log.close().unwrap();
    let (log, _) = bench.open_clean();
    assert_eq!(values(&log), filled(1000..1010));
}

/// Batches of many small records, so that few bytes lead far.
fn append_dense(log: &mut barnabas::log::Log, batches: usize) {
    for _ in 0..batches {
        append(log, &batch(&["dense"; 40])).unwrap();
    }
}

#[test]
fn a_segment_that_was_cut_away_does_not_come_back_with_a_power_cut() {
    let mut bench = bench_with(None, None);
    let mut log = bench.open();
    fill(&mut log, 150);
    log.flush().unwrap();
    log.close().unwrap();
    let (mut log, _) = bench.open_clean();
    let old = log.view().segments.last().unwrap().base_offset();
    let first_end = log.view().segments[1].base_offset();
    log.truncate_to(first_end - 30).unwrap();
    append_dense(&mut log, 3);
    assert!(log.log_end_offset() > old && log.segment_count() == 1, "it grows past the old segment in the first one");
    log.flush().unwrap();
    let (end, expected) = (log.log_end_offset(), values(&log));
    drop(log);
    bench.crash(Crash::PowerLosesAll);
    let (log, _) = bench.open_from(first_end - 30);
    assert_eq!((log.log_end_offset(), values(&log)), (end, expected));
}

/// A log of two segments, cut before the end of the first one, and gone on in a new segment that begins at the cut.
fn cut_and_rolled(bench: &mut Bench) -> (barnabas::log::Log, i64) {
    let mut log = bench.open();
    fill(&mut log, 150);
    log.flush().unwrap();
    log.checkpoint().unwrap();
    let cut = log.view().segments[1].base_offset() - 1;
    log.truncate_to(cut).unwrap();
    append_dense(&mut log, 1);
    assert_eq!(log.view().segments[1].base_offset(), cut, "the first segment had no room for it");
    (log, cut)
}

#[test]
fn the_end_of_a_segment_that_was_cut_does_not_come_back_when_the_log_has_gone_on_in_another_one() {
    let mut bench = bench_with(None, None);
    let (mut log, cut) = cut_and_rolled(&mut bench);
    log.flush().unwrap();
    let expected = values(&log);
    drop(log);
    bench.crash(Crash::PowerLosesAll);
    // What the checkpoint says by then lies behind the cut.
    let (log, _) = bench.open_from(cut + 1);
    assert_eq!(values(&log), expected);
}

#[test]
fn the_end_of_a_segment_that_came_back_before_the_cut_was_synced_is_cut_again() {
    let mut bench = bench_with(None, None);
    let (log, cut) = cut_and_rolled(&mut bench);
    let expected = values(&log);
    drop(log);
    // The system has written the new segment and the names by itself, and not what was cut.
    let path = bench.segment(cut, "log");
    bench.sim.disk.open(&path, OpenMode::ReadWrite).unwrap().sync_data().unwrap();
    bench.sim.disk.sync_dir(&bench.dir()).unwrap();
    bench.crash(Crash::PowerLosesAll);
    let (log, _) = bench.open_from(cut);
    assert_eq!(values(&log), expected);
    drop(log);
    bench.crash(Crash::PowerLosesAll);
    let (log, _) = bench.open_from(cut + 1);
    assert_eq!(values(&log), expected, "it was synced by that start");
}

#[test]
fn damage_in_front_of_the_recovery_point_does_not_keep_a_log_shut() {
    let mut bench = bench_with(None, None);
    let mut log = bench.open();
    fill(&mut log, 150);
    log.flush().unwrap();
    let second = log.view().segments[1].base_offset();
    drop(log);
    bench.crash(Crash::Process);
    bench.sim.disk.corrupt(&bench.segment(0, "log"), |bytes| bytes[8..12].fill(0xff)).unwrap();
    bench.sim.disk.remove_file(&bench.segment(0, "index")).ok();
    assert_eq!(bench.open_from(second).0.log_end_offset(), 150);
}

#[test]
fn a_cut_is_synced_by_the_next_flush_also_when_nothing_was_appended() {
    let mut bench = bench_with(None, None);
    let mut log = bench.open();
    fill(&mut log, 150);
    log.flush().unwrap();
    log.truncate_to(20).unwrap();
    log.flush().unwrap();
    drop(log);
    bench.crash(Crash::PowerLosesAll);
    let (log, _) = bench.open_from(20);
    assert_eq!(values(&log), filled(0..20));
}

#[test]
fn a_snapshot_that_was_cut_away_does_not_come_back_with_a_power_cut() {
    let mut bench = bench_with(None, None);
    let mut log = bench.open();
    append(&mut log, &sequenced(7, 0, 0, 1)).unwrap();
    append(&mut log, &sequenced(7, 0, 1, 1)).unwrap();
    log.flush().unwrap();
    log.checkpoint().unwrap();
    // The system wrote it back long ago.
    let snapshot = bench.segment(2, "snapshot");
    bench.sim.disk.open(&snapshot, OpenMode::ReadWrite).unwrap().sync_data().unwrap();
    bench.sim.disk.sync_dir(&bench.dir()).unwrap();
    log.truncate_to(1).unwrap();
    append(&mut log, &batch(&["other"])).unwrap();
    append(&mut log, &batch(&["more"])).unwrap();
    log.flush().unwrap();
    drop(log);
    bench.crash(Crash::PowerLosesAll);
    let (mut log, _) = bench.open_from(1);
    assert_eq!(log.log_end_offset(), 3);
    let again = append(&mut log, &sequenced(7, 0, 1, 1)).unwrap();
    assert_eq!((again.base_offset, again.duplicate), (3, false), "it is not in the log");
}

/// What the machine lacks for a moment ends a cut in the middle.
#[test]
fn a_cut_that_was_interrupted_is_finished_before_anything_is_appended() {
    for retried in [false, true] {
        for to in [3, 1] {
            let bench = bench_with(None, None);
            let mut log = bench.open();
            for sequence in 0..5 {
                append(&mut log, &sequenced(7, 0, sequence, 1)).unwrap();
            }
            log.flush().unwrap();
            bench.sim.disk.run_out_of_descriptors(true);
            assert!(log.truncate_to(to).is_err_and(|error| error.is_passing()));
            assert!(append(&mut log, &sequenced(7, 0, 5, 1)).is_err());
            bench.sim.disk.run_out_of_descriptors(false);
            if retried {
                log.truncate_to(to).unwrap();
            }
            let end = log.log_end_offset();
            assert_eq!(log.view().log_end_offset, end);
            let appended = append(&mut log, &sequenced(7, 0, end as i32, 1)).unwrap();
            assert_eq!((appended.base_offset, appended.duplicate), (end, false), "retried: {retried}, to {to}");
            assert_eq!(values(&log).len() as i64, end + 1);
            log.close().unwrap();
            assert_eq!(values(&bench.open_clean().0).len() as i64, end + 1);
        }
    }
}

#[test]
fn a_new_beginning_that_was_interrupted_is_finished_before_anything_is_appended() {
    let bench = bench_with(None, None);
    let mut log = bench.open();
    fill(&mut log, 150);
    log.flush().unwrap();
    bench.sim.disk.run_out_of_descriptors(true);
    assert!(log.truncate_fully_and_start_at(1000).is_err_and(|error| error.is_passing()));
    assert!(append(&mut log, &batch(&["x"])).is_err());
    bench.sim.disk.run_out_of_descriptors(false);
    if log.log_end_offset() != 1000 {
        log.truncate_fully_and_start_at(1000).unwrap();
    }
    fill(&mut log, 10);
    log.close().unwrap();
    let (log, _) = bench.open_clean();
    assert_eq!(values(&log), filled(1000..1010));
}

#[test]
fn an_epoch_that_was_cut_away_is_not_believed_of_what_came_in_its_place() {
    let mut bench = bench_with(None, None);
    let mut log = bench.open();
    for (epoch, batches) in [(0, 5), (3, 5)] {
        for _ in 0..batches {
            append_in(&mut log, &batch(&["x"]), epoch).unwrap();
        }
    }
    log.flush().unwrap();
    log.checkpoint().unwrap();
    log.truncate_to(5).unwrap();
    for epoch in [2, 2, 2, 4] {
        append_in(&mut log, &batch(&["y"]), epoch).unwrap();
    }
    log.flush().unwrap();
    let expected = log.epochs().clone();
    drop(log);
    bench.crash(Crash::PowerLosesAll);
    let (log, _) = bench.open_from(5);
    assert_eq!((log.log_end_offset(), log.epochs()), (9, &expected));
}
