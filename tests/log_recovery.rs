//! Damaged directories: what is found, what is rebuilt, what it costs. Trap 55, promises A7, A9, A10, A11.

mod log_support;

use barnabas::host::Disk;
use barnabas::host::sim::Crash;
use barnabas::log::{AppendError, LogError, OpenHow};
use log_support::*;
use proptest::prelude::*;

/// A log of 400 records in several segments, flushed and left by a crash.
fn crashed() -> Bench {
    let mut bench = Bench::new(1);
    let mut log = bench.open();
    log.assign_epoch(0);
    fill(&mut log, 400);
    log.flush().unwrap();
    log.checkpoint().unwrap();
    drop(log);
    bench.crash(Crash::Process);
    bench
}

/// The same, closed in order.
fn closed() -> Bench {
    let mut bench = Bench::new(1);
    let mut log = bench.open();
    log.assign_epoch(0);
    fill(&mut log, 400);
    log.close().unwrap();
    bench.crash(Crash::Process);
    bench
}

fn last_segment(bench: &Bench) -> i64 {
    let names = bench.sim.disk.read_dir(&bench.dir()).unwrap();
    let bases = names.iter().filter_map(|entry| entry.name.strip_suffix(".log")?.parse::<i64>().ok());
    bases.max().unwrap()
}

#[test]
fn trap_55_junk_at_the_end_is_cut_off() {
    for junk in [&b"x"[..], &[0; 4096], &[0xff; 300], &batch(&["torn"])[..70], &batch(&["whole but misplaced"])] {
        let bench = crashed();
        let last = bench.segment(last_segment(&bench), "log");
        bench.sim.disk.corrupt(&last, |bytes| bytes.extend_from_slice(junk)).unwrap();
        for recovery_point in [0, 200, 399, 400] {
            let (log, recovery) = bench.open_from(recovery_point);
            assert_eq!(values(&log), filled(0..400));
            let truncated = if recovery_point == 0 { junk.len() as u64 } else { 0 };
            assert_eq!(recovery.truncated_bytes, truncated, "from {recovery_point}");
        }
    }
}

#[test]
fn trap_55_a_torn_last_batch_is_cut_off_and_the_log_goes_on_behind_the_one_before() {
    for cut in 1..100 {
        let bench = crashed();
        let last = bench.segment(last_segment(&bench), "log");
        bench.sim.disk.corrupt(&last, |bytes| bytes.truncate(bytes.len() - cut)).unwrap();
        let (mut log, _) = bench.open_from(390);
        let end = log.log_end_offset();
        assert!((398..400).contains(&end), "{end} after {cut}");
        assert_eq!(values(&log), filled(0..end));
        fill(&mut log, 3);
        assert_eq!(values(&log), filled(0..end + 3));
    }
}

#[test]
fn a11_a_flipped_bit_in_the_unsynced_tail_ends_the_log_before_its_batch() {
    let whole = crashed();
    let base = last_segment(&whole);
    let len = whole.sim.disk.content(&whole.segment(base, "log")).unwrap().len();
    let batch_bytes = batch(&["value 399"]).len();
    for at in len - 2 * batch_bytes..len {
        let bench = crashed();
        bench.sim.disk.corrupt(&bench.segment(base, "log"), |bytes| bytes[at] ^= 0x10).unwrap();
        let (log, _) = bench.open_from(395);
        let place = at - (len - 2 * batch_bytes);
        let damaged = 398 + (place / batch_bytes) as i64;
        // The leader epoch is not covered by the CRC, as in Kafka.
        let in_epoch = (12..16).contains(&(place % batch_bytes));
        assert_eq!(log.log_end_offset(), if in_epoch { 400 } else { damaged }, "bit {at}");
    }
}

/// The leader epoch is not in the CRC's cover either; but epochs never go back.
#[test]
fn a_flipped_bit_in_a_batchs_epoch_does_not_change_what_is_known_of_epochs() {
    for (flipped, byte, bit) in
        [(150, 12, 0x80), (150, 15, 1), (150, 14, 1), (50, 15, 1), (199, 12, 0x80), (198, 15, 1)]
    {
        let mut bench = Bench::new(1);
        bench.config.segment_bytes = 1 << 20;
        let mut log = bench.open();
        let mut positions = vec![0];
        for (offset, epoch) in (0..200).map(|offset| (offset, i32::from(offset >= 100))) {
            let batch = batch(&[&format!("value {offset}")]);
            append_in(&mut log, &batch, epoch).unwrap();
            positions.push(positions[positions.len() - 1] + batch.len());
        }
        log.flush().unwrap();
        drop(log);
        bench.crash(Crash::Process);
        let at = positions[flipped] + byte;
        bench.sim.disk.corrupt(&bench.segment(0, "log"), |bytes| bytes[at] ^= bit).unwrap();
        let (log, _) = bench.open_from(0);
        assert_eq!(values(&log), filled(0..200));
        let known: Vec<(i32, i64)> =
            log.epochs().entries().iter().map(|entry| (entry.epoch, entry.start_offset)).collect();
        assert_eq!(known, [(0, 0), (1, 100)], "batch {flipped}, byte {byte}");
    }
}

/// The base offset is not in the CRC's cover; but a log that is not compacted has no gaps.
#[test]
fn a_flipped_bit_in_the_last_batchs_base_offset_ends_the_log_before_it_also_after_a_clean_stop() {
    let whole = closed();
    let last = whole.segment(last_segment(&whole), "log");
    let len = whole.sim.disk.content(&last).unwrap().len();
    let batch_bytes = batch(&["value 399"]).len();
    for (bit, recovery_point) in (0..64).flat_map(|bit| [(bit, 400), (bit, i64::MAX)]) {
        let bench = closed();
        let at = len - batch_bytes + bit / 8;
        bench.sim.disk.corrupt(&last, |bytes| bytes[at] ^= 0x80 >> (bit % 8)).unwrap();
        let how = OpenHow { clean_shutdown: true, recovery_point, log_start_offset: None };
        let (mut log, _) = bench.try_open(how).unwrap();
        assert_eq!(log.log_end_offset(), 399, "bit {bit}");
        assert_eq!(values(&log), filled(0..399), "bit {bit}");
        fill(&mut log, 3);
        assert_eq!(values(&log), filled(0..402), "bit {bit}");
    }
}

/// What a header claims of its last offset is in the CRC's cover, which is looked at when the log seems longer than it was.
#[test]
fn a_log_that_is_longer_than_when_it_was_closed_is_not_trusted() {
    let whole = closed();
    let last = whole.segment(last_segment(&whole), "log");
    let len = whole.sim.disk.content(&last).unwrap().len();
    let batch_bytes = batch(&["value 399"]).len();
    for byte in 23..27 {
        let bench = closed();
        bench.sim.disk.corrupt(&last, |bytes| bytes[len - batch_bytes + byte] ^= 1).unwrap();
        let how = OpenHow { clean_shutdown: true, recovery_point: 400, log_start_offset: None };
        let (log, recovery) = bench.try_open(how).unwrap();
        assert_eq!((log.log_end_offset(), recovery.truncated_bytes), (399, batch_bytes as u64), "byte {byte}");
    }
}

#[test]
fn a_log_that_is_compacted_may_have_a_gap_before_its_last_batch() {
    let mut bench = closed();
    bench.config.cleanup.compact = true;
    let last = bench.segment(last_segment(&bench), "log");
    bench.move_last_batch(&last, &batch(&["value 399"]));
    assert_eq!(bench.open_clean().0.log_end_offset(), 400 + 256);
}

#[test]
fn trap_55_recovery_costs_the_tail_not_the_data() {
    let mut bench = Bench::new(1);
    bench.config.segment_bytes = 1 << 20;
    bench.config.index_interval_bytes = 4096;
    let mut log = bench.open();
    fill(&mut log, 20_000);
    log.flush().unwrap();
    let recovery_point = log.checkpoint().unwrap();
    fill(&mut log, 100);
    log.flush().unwrap();
    let bytes = log.size_bytes();
    drop(log);
    bench.crash(Crash::Process);
    let (log, recovery) = bench.open_from(recovery_point);
    assert_eq!(log.log_end_offset(), 20_100);
    assert!(bytes > 1_500_000 && recovery.bytes_checked < 20_000, "{} of {bytes}", recovery.bytes_checked);
    assert!((100..200).contains(&recovery.batches_checked), "{}", recovery.batches_checked);
}

#[test]
fn trap_55_indexes_that_are_gone_zeroed_or_wrong_are_made_anew() {
    type Damage = (&'static str, fn(&mut Vec<u8>));
    let damages: [Damage; 6] = [
        ("emptied", |bytes| bytes.clear()),
        ("zeroed", |bytes| bytes.fill(0)),
        ("preallocated", |bytes| bytes.resize(bytes.len() + 8 * 12 * 100, 0)),
        ("noise", |bytes| bytes.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at * 37 + 11) as u8)),
        ("cut inside an entry", |bytes| bytes.truncate(bytes.len() / 2 + 1)),
        ("one bit", |bytes| {
            let at = bytes.len() / 2;
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1;
            }
        }),
    ];
    for (name, damage) in damages {
        for kinds in [&["index"][..], &["timeindex"], &["index", "timeindex"]] {
            for clean in [true, false] {
                let bench = if clean { closed() } else { crashed() };
                for entry in bench.sim.disk.read_dir(&bench.dir()).unwrap() {
                    if kinds.iter().any(|kind| entry.name.ends_with(&format!(".{kind}"))) {
                        bench.sim.disk.corrupt(&bench.file(&entry.name), damage).unwrap();
                    }
                }
                let log = if clean { bench.open_clean().0 } else { bench.open_from(300).0 };
                assert_eq!(values(&log), filled(0..400), "{name} {kinds:?}");
                for offset in (0..400).rev() {
                    let slice = log.view().read(offset, 10, 400, true).unwrap().unwrap();
                    assert_eq!(slice.first_offset, offset, "{name} {kinds:?}");
                }
            }
        }
    }
}

#[test]
fn deleted_indexes_are_made_anew_once_and_then_used() {
    let mut bench = Bench::new(1);
    bench.config.segment_bytes = 200_000;
    bench.config.index_interval_bytes = 1000;
    let mut log = bench.open();
    fill(&mut log, 10_000);
    let bases: Vec<i64> = log.view().segments.iter().map(|segment| segment.base_offset()).collect();
    log.close().unwrap();
    let whole: Vec<_> =
        bases.iter().map(|base| bench.sim.disk.content(&bench.segment(*base, "index")).unwrap()).collect();
    for base in &bases {
        bench.sim.disk.remove_file(&bench.segment(*base, "index")).unwrap();
        bench.sim.disk.remove_file(&bench.segment(*base, "timeindex")).unwrap();
    }
    let (log, _) = bench.open_clean();
    for offset in [0, bases[1] - 1, 5_000, 9_999, 3, 7_777] {
        assert_eq!(log.view().read(offset, 10, 10_000, true).unwrap().unwrap().first_offset, offset);
    }
    let rebuilt = bench.sim.disk.content(&bench.segment(bases[0], "index")).unwrap();
    assert_eq!(rebuilt, whole[0]);
}

#[test]
fn a_damaged_or_lost_epoch_file_is_read_off_the_batches() {
    for damage in 0..3 {
        let mut bench = Bench::new(1);
        let mut log = bench.open();
        for (epoch, count) in [(0, 30), (4, 100), (5, 50)] {
            log.assign_epoch(epoch);
            for _ in 0..count {
                let value = format!("value {}", log.log_end_offset());
                append_in(&mut log, &batch(&[&value]), epoch).unwrap();
            }
        }
        let epochs = log.epochs().clone();
        log.close().unwrap();
        let path = bench.file("leader-epoch-checkpoint");
        match damage {
            0 => bench.sim.disk.corrupt(&path, |bytes| bytes.clear()).unwrap(),
            1 => bench.sim.disk.corrupt(&path, |bytes| bytes[0] = b'7').unwrap(),
            _ => bench.sim.disk.remove_file(&path).unwrap(),
        }
        bench.crash(Crash::Process);
        let (log, recovery) = bench.open_clean();
        assert_eq!(log.epochs(), &epochs);
        assert_eq!(log.epoch_end_offset(4), (4, 130));
        assert_eq!(recovery.rebuilt.len(), usize::from(damage < 2));
        log.close().unwrap();
        assert_eq!(bench.open_clean().0.epochs(), &epochs);
    }
}

#[test]
fn bytes_since_the_checkpoint_are_those_that_a_recovery_reads() {
    let mut bench = Bench::new(1);
    let mut log = bench.open();
    fill(&mut log, 20);
    let first = log.size_bytes();
    assert_eq!(log.bytes_since_checkpoint(), first);
    log.checkpoint().unwrap();
    assert_eq!(log.bytes_since_checkpoint(), first, "nothing was synced before");
    log.flush().unwrap();
    fill(&mut log, 10);
    let recovery_point = log.checkpoint().unwrap();
    let tail = log.size_bytes() - first;
    assert_eq!((recovery_point, log.bytes_since_checkpoint()), (20, tail));
    drop(log);
    bench.crash(Crash::Process);
    let (mut log, recovery) = bench.open_from(recovery_point);
    assert!(recovery.bytes_checked >= tail && recovery.bytes_checked < tail + 1000, "{recovery:?} of {tail}");
    assert_eq!(log.bytes_since_checkpoint(), recovery.bytes_checked, "the next recovery would read them again");
    log.checkpoint().unwrap();
    assert_eq!(log.bytes_since_checkpoint(), 0);
    log.truncate_to(5).unwrap();
    log.flush().unwrap();
    log.checkpoint().unwrap();
    assert_eq!(log.bytes_since_checkpoint(), 0);
}

#[test]
fn only_an_epoch_with_records_is_saved_again() {
    let mut bench = Bench::new(1);
    let saved = |bench: &Bench| {
        let content = bench.sim.disk.content(&bench.file("leader-epoch-checkpoint")).unwrap();
        String::from_utf8(content).unwrap()
    };
    let mut log = bench.open();
    log.assign_epoch(3);
    log.close().unwrap();
    assert_eq!(saved(&bench), "0\n1\n3 0\n", "the first one is, so that an empty log has its epoch");
    let (mut log, _) = bench.open_clean();
    log.assign_epoch(4);
    assert_eq!(log.latest_epoch(), Some(4));
    log.checkpoint().unwrap();
    assert_eq!(saved(&bench), "0\n1\n3 0\n");
    append_in(&mut log, &batch(&["a"]), 4).unwrap();
    log.checkpoint().unwrap();
    assert_eq!(saved(&bench), "0\n1\n4 0\n");
    log.assign_epoch(5);
    log.close().unwrap();
    assert_eq!(saved(&bench), "0\n1\n4 0\n");
    bench.crash(Crash::Process);
    let (mut log, _) = bench.open_clean();
    log.assign_epoch(6);
    assert_eq!(log.epoch_end_offset(5), (4, 1));
}

#[test]
fn a_segment_that_is_broken_in_the_middle_of_the_unsynced_part_ends_the_log() {
    let bench = crashed();
    let second = bench.open().view().segments[1].base_offset();
    bench.sim.disk.corrupt(&bench.segment(second, "log"), |bytes| bytes[500] ^= 1).unwrap();
    let (log, recovery) = bench.open_from(0);
    let end = log.log_end_offset();
    assert!(end > second && end < second + 10, "{end}");
    assert_eq!(values(&log), filled(0..end));
    assert!(recovery.segments_removed > 3);
    let names = bench.sim.disk.read_dir(&bench.dir()).unwrap();
    assert_eq!(names.iter().filter(|entry| entry.name.ends_with(".log")).count(), 2);
}

#[test]
fn a_segment_ends_where_the_next_one_begins() {
    let bench = crashed();
    let second = bench.open().view().segments[1].base_offset();
    let overlap = bench.sim.disk.content(&bench.segment(second, "log")).unwrap();
    bench.sim.disk.corrupt(&bench.segment(0, "log"), |bytes| bytes.extend_from_slice(&overlap[..500])).unwrap();
    let (log, recovery) = bench.open_from(0);
    assert_eq!((recovery.truncated_bytes, recovery.segments_removed), (500, 0));
    assert_eq!(values(&log), filled(0..400));
}

#[test]
fn leftovers_and_strangers_do_no_harm() {
    let bench = closed();
    for name in [
        "00000000000000000000.log.deleted",
        "00000000000000000000.index.deleted",
        "00000000000000000500.index",
        "00000000000000000500.timeindex",
        "00000000000000000100.log.cleaned",
        "00000000000000000999.snapshot",
        "00000000000000000007.snapshot.tmp",
        "README",
    ] {
        let file = bench.sim.disk.open(&bench.file(name), barnabas::host::OpenMode::Create).unwrap();
        file.write_all_at(b"stuff", 0).unwrap();
    }
    let (log, _) = bench.open_clean();
    assert_eq!(values(&log), filled(0..400));
    let names: Vec<_> = bench.sim.disk.read_dir(&bench.dir()).unwrap().into_iter().map(|entry| entry.name).collect();
    assert!(!names.iter().any(|name| name.contains("500.") || name.contains("deleted") || name.contains("tmp")));
    assert!(!names.iter().any(|name| name.contains("cleaned") || name.contains("999.")), "{names:?}");
    assert!(names.contains(&"README".to_owned()));
}

#[test]
fn b9_the_directory_of_another_topic_is_refused() {
    let bench = closed();
    bench.sim.disk.corrupt(&bench.file("partition.metadata"), |bytes| bytes[25] = b'Z').unwrap();
    let refused = bench.try_open(OpenHow::default()).err().unwrap();
    assert!(matches!(refused, LogError::InconsistentTopicId { .. }), "{refused}");
}

#[test]
fn a_lost_log_goes_on_at_its_start_offset() {
    let bench = Bench::new(1);
    bench.sim.disk.create_dir_all(&bench.dir()).unwrap();
    let how = OpenHow { log_start_offset: Some(500), ..OpenHow::default() };
    let (mut log, _) = bench.try_open(how).unwrap();
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (500, 500));
    fill(&mut log, 3);
    assert_eq!(values(&log), filled(500..503));
}

#[test]
fn a_directory_that_is_not_there_starts_from_nothing_whatever_is_remembered_of_its_name() {
    let bench = Bench::new(1);
    let how = OpenHow { log_start_offset: Some(500), recovery_point: 700, ..OpenHow::default() };
    let (log, _) = bench.try_open(how).unwrap();
    assert_eq!((log.log_start_offset(), log.log_end_offset(), log.recovery_point()), (0, 0, 0));
}

#[test]
fn offsets_behind_the_logs_end_are_not_believed() {
    for clean_shutdown in [false, true] {
        let bench = closed();
        let all = values(&bench.open());
        let end = all.len() as i64;
        let how = OpenHow { log_start_offset: Some(end + 1), recovery_point: end + 1, clean_shutdown };
        let (log, recovery) = bench.try_open(how).unwrap();
        assert_eq!((log.log_start_offset(), log.log_end_offset()), (0, end));
        assert_eq!(values(&log), all, "nothing is lost");
        assert_eq!(recovery.rebuilt.len(), if clean_shutdown { 1 } else { 2 }, "{recovery:?}");
        assert_eq!(recovery.batches_checked > 0, !clean_shutdown, "everything was read");
    }
}

#[test]
fn a9_a_failed_sync_is_told_and_its_data_is_not_called_durable() {
    let mut bench = Bench::new(1);
    let mut log = bench.open();
    fill(&mut log, 10);
    log.flush().unwrap();
    fill(&mut log, 10);
    bench.sim.disk.fail_sync_at(1);
    assert!(matches!(log.flush(), Err(LogError::Storage { action: "sync", .. })));
    assert_eq!(log.flushed_offset(), 10);
    drop(log);
    bench.crash(Crash::PowerLosesAll);
    assert_eq!(values(&bench.open()), filled(0..10));
}

#[test]
fn a10_a_full_disk_refuses_whole_batches_and_heals_by_itself() {
    let mut bench = Bench::new(1);
    let mut log = bench.open();
    fill(&mut log, 150);
    log.flush().unwrap();
    let used = bench.sim.disk.used_bytes();
    bench.sim.disk.set_capacity_bytes(used + 200);
    let mut refused = 0;
    while refused < 3 {
        let value = format!("value {}", log.log_end_offset());
        match append(&mut log, &batch(&[&value])) {
            Ok(_) => {}
            Err(AppendError::Storage(error)) => {
                assert!(error.is_disk_full(), "{error}");
                refused += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    let end = log.log_end_offset();
    assert_eq!(values(&log), filled(0..end), "reads go on and see no partial batch");
    log.flush().unwrap();
    bench.sim.disk.set_capacity_bytes(u64::MAX);
    fill(&mut log, 100);
    assert_eq!(values(&log), filled(0..end + 100));
    log.flush().unwrap();
    bench.crash(Crash::PowerLosesAll);
    assert_eq!(values(&bench.open()), filled(0..end + 100));
}

#[test]
fn a10_retention_makes_room_on_a_full_disk() {
    let mut bench = Bench::new(1);
    bench.config.retention_bytes = Some(5000);
    bench.config.file_delete_delay_ms = 0;
    let mut log = bench.open();
    fill(&mut log, 150);
    bench.sim.disk.set_capacity_bytes(bench.sim.disk.used_bytes());
    assert!(append(&mut log, &batch(&["no room"])).is_err());
    assert!(!log.retain(NOW, 150).unwrap().is_empty());
    log.remove_due(NOW).unwrap();
    fill(&mut log, 1);
    assert_eq!(values(&log), filled(log.log_start_offset()..151));
}

#[test]
fn opening_twice_in_a_row_changes_nothing() {
    let bench = crashed();
    drop(bench.open());
    let before: Vec<_> = bench.sim.disk.read_dir(&bench.dir()).unwrap();
    drop(bench.open());
    assert_eq!(bench.sim.disk.read_dir(&bench.dir()).unwrap(), before);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever bytes the last segment holds: what is served is a prefix, recovery is idempotent, and the log goes on.
    #[test]
    fn any_damage_leaves_a_prefix(edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), cut in any::<prop::sample::Index>()) {
        let bench = crashed();
        let path = bench.segment(last_segment(&bench), "log");
        bench.sim.disk.corrupt(&path, |bytes| {
            for (at, value) in edits {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            let len = bytes.len() / 2 + cut.index(bytes.len() / 2 + 1);
            bytes.truncate(len);
        }).unwrap();
        let (log, _) = bench.open_from(0);
        let end = log.log_end_offset();
        prop_assert_eq!(values(&log), filled(0..end));
        drop(log);
        let (mut log, recovery) = bench.open_from(0);
        prop_assert_eq!((recovery.truncated_bytes, log.log_end_offset()), (0, end));
        fill(&mut log, 5);
        prop_assert_eq!(values(&log), filled(0..end + 5));
    }

    /// Whatever happens to any file of the directory: no panic, and with nothing trusted a prefix is served.
    #[test]
    fn any_damage_to_any_file_is_survived(
        damages in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 1..6),
        clean in any::<bool>(),
        recovery_point in prop_oneof![Just(0), 0..130i64],
    ) {
        let mut bench = Bench::new(1);
        bench.config.segment_bytes = 3000;
        let mut log = bench.open();
        fill(&mut log, 60);
        log.flush().unwrap();
        log.checkpoint().unwrap();
        for sequence in 0..20 {
            append(&mut log, &sequenced(3, 0, sequence * 3, 3)).unwrap();
        }
        let before = read_all(&log.view(), 5000);
        log.close().unwrap();
        let names: Vec<String> = bench.sim.disk.read_dir(&bench.dir()).unwrap().into_iter().map(|entry| entry.name).collect();
        for (name, at, value) in damages {
            let name = &names[name.index(names.len())];
            if name == "partition.metadata" {
                continue;
            }
            bench.sim.disk.corrupt(&bench.file(name), |bytes| {
                if bytes.is_empty() {
                    return;
                }
                let at = at.index(bytes.len());
                match value {
                    0..60 => bytes.truncate(at),
                    60..120 => bytes[at..].fill(0),
                    120..150 => bytes.extend_from_within(at..),
                    value => bytes[at] = value,
                }
            }).unwrap();
        }
        let opened = bench.try_open(OpenHow { clean_shutdown: clean, recovery_point, log_start_offset: None });
        let Ok((mut log, _)) = opened else { return Ok(()) };
        if !clean && recovery_point == 0 {
            let found = read_all(&log.view(), 700);
            prop_assert_eq!(&found[..], &before[..found.len()]);
            fill(&mut log, 2);
            prop_assert_eq!(read_all(&log.view(), 700).len(), found.len() + 2);
        }
        let view = log.view();
        for from in view.log_start_offset..view.log_end_offset.min(200) {
            // A base offset is outside the CRC's cover: where it is trusted, damage may look like a gap.
            if let Ok(Some(slice)) = view.read(from, 100, i64::MAX, true) {
                prop_assert!(slice.first_offset <= from || clean || recovery_point > 0);
            }
        }
        let _ = view.offset_for_time(NOW, 1 << 20);
        let _ = view.max_timestamp(1 << 20);
        let _ = log.truncate_to(30);
        let _ = log.close();
    }
}
