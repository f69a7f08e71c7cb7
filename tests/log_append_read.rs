//! Appending to and reading from one partition's log, on the simulated machine.

mod log_support;

use barnabas::log::{AppendError, NewBatch, ReadError};
use barnabas::records::{BatchHeader, Batches, Codec, crc_is_valid};
use log_support::*;

#[test]
fn offsets_are_dense_and_what_was_written_is_read() {
    let bench = Bench::new(1);
    let mut log = bench.open();
    let one = append(&mut log, &batch(&["value 0", "value 1"])).unwrap();
    let two = append(&mut log, &batch(&["value 2"])).unwrap();
    assert_eq!((one.base_offset, one.last_offset, two.base_offset, two.last_offset), (0, 1, 2, 2));
    assert_eq!(values(&log), filled(0..3));
}

#[test]
fn base_offset_and_leader_epoch_are_stamped_into_the_stored_batch_and_nothing_else() {
    let bench = Bench::new(1);
    let mut log = bench.open();
    let sent = batch(&["a"]);
    append_in(&mut log, &sent, 7).unwrap();
    append_in(&mut log, &sent, 7).unwrap();
    let stored = bench.sim.disk.content(&bench.segment(0, "log")).unwrap();
    let batches: Vec<_> = Batches::new(&stored).map(Result::unwrap).collect();
    assert_eq!(batches.len(), 2);
    for (at, (header, bytes)) in batches.iter().enumerate() {
        assert_eq!((header.base_offset, header.partition_leader_epoch), (at as i64, 7));
        assert!(crc_is_valid(bytes));
        assert_eq!(&bytes[16..], &sent[16..]);
        assert_eq!(&bytes[8..12], &sent[8..12]);
    }
}

#[test]
fn several_batches_go_in_with_one_write() {
    let bench = Bench::new(1);
    let mut log = bench.open();
    let all = [batch(&["value 0"]), batch(&["value 1", "value 2"]), batch(&["value 3"])];
    let new: Vec<NewBatch<'_>> =
        all.iter().map(|bytes| NewBatch { header: BatchHeader::parse(bytes).unwrap(), bytes }).collect();
    let before = bench.sim.disk.write_count();
    let appended = log.append(&new, 0).unwrap();
    assert_eq!(bench.sim.disk.write_count() - before, 1);
    assert_eq!((appended.base_offset, appended.last_offset), (0, 3));
    assert_eq!(values(&log), filled(0..4));
}

#[test]
fn segments_roll_by_size_and_are_read_across() {
    let bench = Bench::new(1);
    let mut log = bench.open();
    fill(&mut log, 300);
    assert!(log.segment_count() > 4, "{}", log.segment_count());
    assert!(log.view().segments.iter().all(|segment| segment.bytes() <= 4096));
    for slice_bytes in [1, 100, 1000, 10_000] {
        assert_eq!(read_all(&log.view(), slice_bytes).len(), 300, "slices of {slice_bytes}");
    }
}

#[test]
fn segments_roll_by_the_records_own_time() {
    let mut bench = Bench::new(1);
    bench.config.segment_ms = 1000;
    let mut log = bench.open();
    for (at, expected) in [(5000, 1), (6000, 1), (6001, 2), (100, 2), (7002, 3)] {
        append(&mut log, &timed(Codec::None, &[(at, "x")])).unwrap();
        assert_eq!(log.segment_count(), expected, "after {at}");
    }
}

#[test]
fn without_timestamps_segments_roll_by_the_clock() {
    let mut bench = Bench::new(1);
    bench.config.segment_ms = 1000;
    let mut log = bench.open();
    append(&mut log, &timed(Codec::None, &[(-1, "x")])).unwrap();
    bench.sim.clock.advance_ms(1000);
    append(&mut log, &timed(Codec::None, &[(-1, "x")])).unwrap();
    assert_eq!(log.segment_count(), 1);
    bench.sim.clock.advance_ms(1);
    append(&mut log, &timed(Codec::None, &[(-1, "x")])).unwrap();
    assert_eq!(log.segment_count(), 2);
}

#[test]
fn a_full_index_rolls() {
    let mut bench = Bench::new(1);
    bench.config.segment_bytes = 1 << 20;
    bench.config.index_interval_bytes = 0;
    bench.config.segment_index_bytes = 10 * 8;
    let mut log = bench.open();
    fill(&mut log, 50);
    assert!(log.segment_count() >= 5, "{}", log.segment_count());
    assert_eq!(values(&log), filled(0..50));
}

#[test]
fn an_idle_segment_rolls_when_asked_and_due() {
    let mut bench = Bench::new(1);
    bench.config.segment_ms = 1000;
    let mut log = bench.open();
    assert!(!log.roll_if_due(NOW + 5000).unwrap(), "an empty one never does");
    fill(&mut log, 1);
    assert!(!log.roll_if_due(NOW + 1000).unwrap());
    assert!(log.roll_if_due(NOW + 1001).unwrap());
    assert_eq!((log.segment_count(), log.log_end_offset()), (2, 1));
    fill(&mut log, 1);
    assert_eq!(values(&log), filled(0..2));
}

#[test]
fn what_is_larger_than_a_segment_is_refused() {
    let bench = Bench::new(1);
    let mut log = bench.open();
    let large = batch(&[&"x".repeat(5000)]);
    assert!(matches!(append(&mut log, &large), Err(AppendError::TooLarge { max: 4096, .. })));
    fill(&mut log, 1);
    assert_eq!(values(&log), filled(0..1));
}

#[test]
fn reads_outside_the_log_are_out_of_range_and_at_its_end_empty() {
    let bench = Bench::new(1);
    let mut log = bench.open();
    fill(&mut log, 5);
    let view = log.view();
    assert!(view.read(5, 1000, i64::MAX, true).unwrap().is_none());
    for offset in [-1, 6, i64::MAX, i64::MIN] {
        let error = view.read(offset, 1000, i64::MAX, true).unwrap_err();
        assert!(matches!(error, ReadError::OffsetOutOfRange { start: 0, end: 5, .. }), "{offset}: {error}");
    }
}

#[test]
fn nothing_at_or_above_the_limit_is_read() {
    let bench = Bench::new(1);
    let mut log = bench.open();
    for _ in 0..20 {
        append(&mut log, &batch(&["a", "b", "c"])).unwrap();
    }
    let view = log.view();
    for up_to in 0..=60 {
        let whole = up_to / 3 * 3;
        for from in 0..=60 {
            let slice = view.read(from, 100_000, up_to, true).unwrap();
            let Some(slice) = slice else {
                assert!(from >= whole, "from {from} up to {up_to}");
                continue;
            };
            let mut bytes = vec![0; slice.len];
            slice.file.read_exact_at(&mut bytes, slice.position).unwrap();
            let last = Batches::new(&bytes).map(|found| found.unwrap().0.next_offset()).last();
            assert_eq!((slice.first_offset, last), (from / 3 * 3, Some(whole)), "from {from} up to {up_to}");
        }
    }
}

#[test]
fn a_limit_below_the_first_batch_gives_that_batch_or_nothing() {
    let bench = Bench::new(1);
    let mut log = bench.open();
    let bytes = batch(&["some record"]);
    append(&mut log, &bytes).unwrap();
    append(&mut log, &bytes).unwrap();
    let view = log.view();
    assert_eq!(view.read(0, 1, 2, true).unwrap().unwrap().len, bytes.len());
    assert!(view.read(0, bytes.len() - 1, 2, false).unwrap().is_none());
    assert_eq!(view.read(0, bytes.len(), 2, false).unwrap().unwrap().len, bytes.len());
    assert_eq!(view.read(0, bytes.len() + 5, 2, false).unwrap().unwrap().len, bytes.len() + 5);
    assert_eq!(view.read(0, 1 << 20, 2, false).unwrap().unwrap().len, 2 * bytes.len());
}

#[test]
fn an_old_view_goes_on_reading_what_it_showed() {
    let bench = Bench::new(1);
    let mut log = bench.open();
    fill(&mut log, 10);
    let old = log.view();
    fill(&mut log, 200);
    assert_eq!(read_all(&old, 500).len(), 10);
    assert_eq!(read_all(&log.published().load_full(), 500).len(), 210);
}

#[test]
fn a_follower_keeps_offsets_and_epochs_as_given() {
    let bench = Bench::new(1);
    let mut leader = bench.open();
    append_in(&mut leader, &batch(&["value 0", "value 1"]), 3).unwrap();
    append_in(&mut leader, &batch(&["value 2"]), 5).unwrap();
    let bytes = bench.sim.disk.content(&bench.segment(0, "log")).unwrap();
    let other = Bench::new(2);
    let mut follower = other.open();
    let headers: Vec<BatchHeader> = Batches::new(&bytes).map(|batch| batch.unwrap().0).collect();
    let short = follower.append_as_follower(&headers, &bytes[..100]);
    assert!(matches!(short, Err(AppendError::Malformed(_))), "{short:?}");
    follower.append_as_follower(&headers, &bytes).unwrap();
    assert_eq!(values(&follower), filled(0..3));
    assert_eq!(follower.epochs(), leader.epochs());
    let again = follower.append_as_follower(&headers, &bytes);
    assert!(matches!(again, Err(AppendError::UnexpectedOffset { got: 0, expected: 3 })), "{again:?}");
    assert!(matches!(follower.append_as_follower(&[], &[]), Err(AppendError::Malformed(_))));
}

#[test]
fn a_follower_takes_over_a_gap_only_where_the_topic_is_compacted() {
    for compact in [false, true] {
        let mut bench = Bench::new(1);
        bench.config.cleanup.compact = compact;
        let mut log = bench.open();
        fill(&mut log, 3);
        let mut bytes = batch(&["value 5"]);
        bytes[..8].copy_from_slice(&5_i64.to_be_bytes());
        let header = BatchHeader::parse(&bytes).unwrap();
        let taken = log.append_as_follower(&[header], &bytes);
        if compact {
            assert_eq!((taken.unwrap().base_offset, log.log_end_offset()), (5, 6));
        } else {
            assert!(matches!(taken, Err(AppendError::UnexpectedOffset { got: 5, expected: 3 })), "{taken:?}");
            assert_eq!(values(&log), filled(0..3));
        }
    }
}

#[test]
fn bytes_that_are_not_what_their_header_says_are_refused() {
    let bench = Bench::new(1);
    let mut log = bench.open();
    let bytes = batch(&["a"]);
    let header = BatchHeader::parse(&bytes).unwrap();
    let short = NewBatch { header, bytes: &bytes[..bytes.len() - 1] };
    assert!(matches!(log.append(&[short], 0), Err(AppendError::Malformed(_))));
    assert!(matches!(log.append(&[], 0), Err(AppendError::Malformed(_))));
    assert_eq!(log.log_end_offset(), 0);
}

#[test]
fn many_logs_share_few_descriptors() {
    let bench = Bench::new(1);
    let mut logs: Vec<_> = (0..50)
        .map(|at| {
            let dir = std::path::Path::new(LOG_DIR).join(format!("many-{at}"));
            let config = std::sync::Arc::new(bench.config.clone());
            barnabas::log::Log::open(&bench.env, dir, identity(), config, Default::default()).unwrap().0
        })
        .collect();
    for _ in 0..5 {
        for log in &mut logs {
            fill(log, 1);
        }
        assert!(bench.env.files.open_count() <= 8);
    }
    for log in &logs {
        assert_eq!(values(log), filled(0..5));
    }
}
