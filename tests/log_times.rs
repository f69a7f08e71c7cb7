//! Offsets by time, per record (trap 10, ListOffsets).

mod log_support;

use barnabas::base::Offset;
use barnabas::log::{Log, LogView, TimedOffset};
use barnabas::records::{BatchBuilder, Codec};
use log_support::*;
use proptest::prelude::*;

const DECOMPRESSED_MAX: usize = 1 << 20;

fn at(view: &LogView, target: i64) -> Option<(i64, Offset)> {
    view.offset_for_time(target, DECOMPRESSED_MAX).unwrap().map(|found| (found.timestamp, found.offset))
}

fn max(log: &Log) -> Option<(i64, Offset)> {
    log.view().max_timestamp(DECOMPRESSED_MAX).unwrap().map(|found| (found.timestamp, found.offset))
}

fn put(log: &mut Log, codec: Codec, times: &[i64]) {
    let all: Vec<(i64, &str)> = times.iter().map(|time| (*time, "v")).collect();
    append(log, &timed(codec, &all)).unwrap();
}

#[test]
fn the_first_record_in_offset_order_whose_time_is_not_before_it() {
    let bench = Bench::new(1);
    let mut log = bench.open();
    put(&mut log, Codec::Gzip, &[1000, 3000, 2000]);
    put(&mut log, Codec::None, &[1500, 2500]);
    put(&mut log, Codec::Lz4, &[3000, 3000, 500]);
    let view = log.view();
    for (target, expected) in [
        (0, Some((1000, 0))),
        (1000, Some((1000, 0))),
        (1001, Some((3000, 1))),
        (3000, Some((3000, 1))),
        (3001, None),
        (i64::MAX, None),
    ] {
        assert_eq!(at(&view, target), expected, "at {target}");
    }
    assert_eq!(max(&log), Some((3000, 1)));
}

#[test]
fn times_that_go_back_from_batch_to_batch() {
    let bench = Bench::new(1);
    let mut log = bench.open();
    put(&mut log, Codec::None, &[100, 300]);
    put(&mut log, Codec::Zstd, &[200]);
    put(&mut log, Codec::Snappy, &[50, 400, 350]);
    let view = log.view();
    for (target, expected) in [
        (60, Some((100, 0))),
        (150, Some((300, 1))),
        (300, Some((300, 1))),
        (301, Some((400, 4))),
        (400, Some((400, 4))),
        (401, None),
    ] {
        assert_eq!(at(&view, target), expected, "at {target}");
    }
    assert_eq!(max(&log), Some((400, 4)));
}

#[test]
fn with_append_time_the_first_offset_of_the_batch_is_the_answer() {
    let bench = Bench::new(1);
    let mut log = bench.open();
    let mut builder = BatchBuilder::new(Codec::Gzip).with_append_time(NOW);
    builder.push(1, None, None, &[]).push(2, None, None, &[]);
    let appended = append(&mut log, &builder.finish(0, -1)).unwrap();
    assert_eq!(appended.log_append_time, Some(NOW));
    assert_eq!((at(&log.view(), 4), max(&log)), (Some((NOW, 0)), Some((NOW, 0))));
    assert_eq!(at(&log.view(), NOW + 1), None);
}

#[test]
fn an_empty_log_and_one_without_timestamps_have_no_times() {
    let bench = Bench::new(1);
    let mut log = bench.open();
    assert_eq!((at(&log.view(), 0), max(&log)), (None, None));
    put(&mut log, Codec::None, &[-1, -1]);
    assert_eq!((at(&log.view(), 0), max(&log)), (None, None));
    log.close().unwrap();
    let (log, _) = bench.open_clean();
    assert_eq!((at(&log.view(), 0), max(&log)), (None, None));
}

#[test]
fn deleted_records_are_not_found_by_time() {
    let bench = Bench::new(1);
    let mut log = bench.open();
    put(&mut log, Codec::None, &[1000, 1001, 1002, 1003]);
    put(&mut log, Codec::Lz4, &[1004, 1005]);
    log.delete_records_before(2).unwrap();
    assert_eq!(at(&log.view(), 0), Some((1002, 2)));
    assert_eq!(at(&log.view(), 1003), Some((1003, 3)));
    log.delete_records_before(5).unwrap();
    assert_eq!(at(&log.view(), 0), Some((1005, 5)));
}

#[test]
fn the_answer_carries_the_batchs_leader_epoch() {
    let bench = Bench::new(1);
    let mut log = bench.open();
    append_in(&mut log, &timed(Codec::None, &[(10, "a")]), 2).unwrap();
    append_in(&mut log, &timed(Codec::None, &[(20, "b")]), 6).unwrap();
    let found = log.view().offset_for_time(11, DECOMPRESSED_MAX).unwrap();
    assert_eq!(found, Some(TimedOffset { timestamp: 20, offset: 1, leader_epoch: 6 }));
}

/// What the answer must be, by looking at every record.
fn expected(times: &[i64], from: Offset, target: i64) -> Option<(i64, Offset)> {
    let all = times.iter().copied().zip(0..);
    all.filter(|(_, offset)| *offset >= from).find(|(time, _)| *time >= target)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_times_in_any_batches_are_found_as_a_full_scan_finds_them(
        batches in prop::collection::vec((prop::collection::vec(0i64..60, 1..5), 0i16..5), 1..120),
        from in any::<prop::sample::Index>(),
        restart in any::<bool>(),
    ) {
        let mut bench = Bench::new(1);
        bench.config.segment_bytes = 2000;
        bench.config.index_interval_bytes = 150;
        let mut log = bench.open();
        for (times, codec) in &batches {
            put(&mut log, Codec::from_id(*codec).unwrap(), times);
        }
        let times: Vec<i64> = batches.iter().flat_map(|(times, _)| times.iter().copied()).collect();
        let from = from.index(times.len()) as Offset;
        if restart {
            log.close().unwrap();
            log = bench.open_clean().0;
        }
        let highest = times.iter().copied().max().unwrap();
        prop_assert_eq!(max(&log), expected(&times, 0, highest));
        log.delete_records_before(from).unwrap();
        for target in 0..=60 {
            prop_assert_eq!(at(&log.view(), target), expected(&times, from, target), "at {}", target);
        }
    }
}
