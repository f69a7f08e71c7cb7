//! Damage of every kind is found where it is, told of once, and cut there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::damage::{Damage, DamageWalk};
use super::names::LOG;
use super::partition_log::Log;
use crate::base::{Offset, TopicId, TopicPartition};
use crate::host::sim::SimHost;
use crate::log::{LogEnv, LogIdentity, NewBatch, OpenHow};
use crate::metadata::config::LogConfig;
use crate::records::{BatchBuilder, BatchHeader, Codec};

const RECORDS: Offset = 40;

/// A log of several segments with one record a batch.
fn log(sim: &SimHost) -> Log {
    log_of(sim, 1)
}

fn open(sim: &SimHost, how: OpenHow) -> Log {
    let env = LogEnv::new(sim.host(), 8);
    let identity = LogIdentity { topic_partition: TopicPartition::new("t", 0), topic_id: TopicId::from_bytes([1; 16]) };
    let config = LogConfig { segment_bytes: 800, index_interval_bytes: 200, ..LogConfig::default() };
    Log::open(&env, "/t-0".into(), identity, Arc::new(config), how).unwrap().0
}

/// After a clean stop.
fn reopened(sim: &SimHost) -> Log {
    open(sim, OpenHow { clean_shutdown: true, recovery_point: RECORDS, log_start_offset: None })
}

fn log_of(sim: &SimHost, records_per_batch: usize) -> Log {
    let mut log = open(sim, OpenHow::default());
    for number in 0..RECORDS {
        let mut builder = BatchBuilder::new(Codec::None);
        for _ in 0..records_per_batch {
            builder.push(1, None, Some(format!("value {number}").as_bytes()), &[]);
        }
        let bytes = builder.finish(0, -1);
        let header = BatchHeader::parse(&bytes).unwrap();
        log.append(&[NewBatch { header, bytes: &bytes }], 1).unwrap();
    }
    assert!(log.segment_count() > 3);
    log
}

fn walk(sim: &SimHost, log: &Log, from: Offset, up_to: Offset, step: u64) -> (Vec<Damage>, u64) {
    let mut walk = DamageWalk::new(sim.host().disk, log.view(), from, up_to);
    let (mut found, mut bytes) = (Vec::new(), 0);
    loop {
        let looked = walk.step(step).unwrap();
        found.extend(looked.damage);
        bytes += looked.bytes;
        if looked.done {
            return (found, bytes);
        }
    }
}

fn place(log: &Log, offset: Offset) -> (PathBuf, u64) {
    let view = log.view();
    let (at, place) = view.find(offset).unwrap().unwrap();
    (view.segments[at].path(LOG), place.position)
}

fn flip(sim: &SimHost, path: &Path, at: u64) {
    sim.disk.corrupt(path, |bytes| bytes[at as usize] ^= 1).unwrap();
}

#[test]
fn a_sound_log_is_read_whole_in_steps_of_any_size() {
    let sim = SimHost::new(1);
    let log = log(&sim);
    for step in [1, 100, 1000, u64::MAX] {
        let (found, bytes) = walk(&sim, &log, 0, Offset::MAX, step);
        assert_eq!(found, []);
        assert_eq!(bytes, log.size_bytes(), "in steps of {step}");
    }
    let (_, some) = walk(&sim, &log, 10, 20, 100);
    assert!(some > 0 && some < log.size_bytes() / 2, "{some}");
}

#[test]
fn a_flipped_bit_is_found_at_its_batch_wherever_it_is() {
    for offset in [0, 1, 9, 17, 20, 25, RECORDS - 1] {
        for byte in [0, 3, 6, 7, 8, 11, 12, 15, 16, 17, 21, 23, 60, 61, 68] {
            let sim = SimHost::new(1);
            let log = log(&sim);
            let (path, position) = place(&log, offset);
            flip(&sim, &path, position + byte);
            let (found, _) = walk(&sim, &log, 0, Offset::MAX, 300);
            let first = found.first().unwrap_or_else(|| panic!("byte {byte} of batch {offset} was not found"));
            assert_eq!((first.offset, first.position), (offset, position), "byte {byte}");
            assert!(log.confirms(first).unwrap(), "byte {byte} of batch {offset}");
        }
    }
}

#[test]
fn behind_a_damaged_record_the_walk_goes_on_and_behind_a_damaged_length_with_the_next_segment() {
    let sim = SimHost::new(1);
    let log = log(&sim);
    let places = [2, 4, 6, 7, 30].map(|offset| place(&log, offset));
    for ((path, position), byte) in places.iter().zip([61, 61, 9, 61, 61]) {
        flip(&sim, path, position + byte);
    }
    let offsets: Vec<Offset> =
        walk(&sim, &log, 0, Offset::MAX, 300).0.into_iter().map(|damage| damage.offset).collect();
    assert_eq!(offsets, [2, 4, 6, 30], "7 lies in the shadow of 6");
}

/// A log with records of three offsets missing before the last one, and perhaps a new segment there.
fn log_with_a_gap(sim: &SimHost, is_rolled: bool) -> Log {
    let mut log = log(sim);
    let mut config = LogConfig::clone(log.config());
    config.cleanup.compact = true;
    log.set_config(Arc::new(config.clone()));
    if is_rolled {
        log.roll(0).unwrap();
    }
    let mut builder = BatchBuilder::new(Codec::None);
    builder.push(1, None, Some(b"behind the gap"), &[]);
    let bytes = builder.finish(RECORDS + 3, 1);
    log.append_as_follower(&[BatchHeader::parse(&bytes).unwrap()], &bytes).unwrap();
    assert_eq!(walk(sim, &log, 0, Offset::MAX, 300).0, [], "compaction leaves gaps");
    config.cleanup.compact = false;
    log.set_config(Arc::new(config));
    log
}

#[test]
fn a_gap_is_damage_where_nothing_is_compacted() {
    for is_rolled in [false, true] {
        for from in [0, RECORDS - 1, RECORDS, RECORDS + 1] {
            let sim = SimHost::new(1);
            let mut log = log_with_a_gap(&sim, is_rolled);
            let found = walk(&sim, &log, from, Offset::MAX, 300).0;
            assert_eq!(found.iter().map(|damage| damage.offset).collect::<Vec<_>>(), [RECORDS], "{from}");
            assert!(log.confirms(&found[0]).unwrap());
            log.cut_damage(&found[0]).unwrap();
            assert_eq!(log.log_end_offset(), RECORDS);
            assert_eq!(walk(&sim, &log, 0, Offset::MAX, 300).0, []);
            assert!(!log.confirms(&found[0]).unwrap());
        }
    }
}

#[test]
fn a_segment_without_its_last_batches_is_damaged_where_it_ends() {
    let sim = SimHost::new(1);
    let mut log = log(&sim);
    let second = log.view().segments[1].base_offset();
    let (path, position) = place(&log, second - 2);
    log.close().unwrap();
    sim.disk.corrupt(&path, |bytes| bytes.truncate(position as usize)).unwrap();
    log = reopened(&sim);
    let found = walk(&sim, &log, 0, Offset::MAX, 300).0;
    assert_eq!(found.iter().map(|damage| damage.offset).collect::<Vec<_>>(), [second - 2]);
    assert!(log.confirms(&found[0]).unwrap());
    log.cut_damage(&found[0]).unwrap();
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (0, second - 2));
    assert_eq!(walk(&sim, &log, 0, Offset::MAX, 300).0, []);
}

#[test]
fn an_epoch_table_that_contradicts_all_batches_is_told_of_once() {
    let sim = SimHost::new(1);
    log(&sim).close().unwrap();
    sim.disk.corrupt(Path::new("/t-0/leader-epoch-checkpoint"), |bytes| bytes[4] = b'0').unwrap();
    let log = reopened(&sim);
    assert_eq!(log.epochs().epoch_at(0), Some(0));
    let found = walk(&sim, &log, 0, Offset::MAX, u64::MAX).0;
    assert_eq!(found.iter().map(|damage| damage.offset).collect::<Vec<_>>(), [0]);
    assert!(log.confirms(&found[0]).unwrap());
}

#[test]
fn a_file_that_is_shorter_than_it_was_is_damaged_where_it_ends() {
    let sim = SimHost::new(1);
    let log = log(&sim);
    let (path, position) = place(&log, 5);
    sim.disk.corrupt(&path, |bytes| bytes.truncate(position as usize + 20)).unwrap();
    let (found, _) = walk(&sim, &log, 0, Offset::MAX, u64::MAX);
    assert_eq!(found.iter().map(|damage| damage.offset).collect::<Vec<_>>(), [5]);
}

#[test]
fn what_was_repaired_or_cut_meanwhile_is_not_confirmed() {
    let sim = SimHost::new(1);
    let mut log = log(&sim);
    let (path, position) = place(&log, 20);
    flip(&sim, &path, position + 61);
    let damage = walk(&sim, &log, 0, Offset::MAX, u64::MAX).0.remove(0);
    flip(&sim, &path, position + 61);
    assert!(!log.confirms(&damage).unwrap());
    flip(&sim, &path, position + 61);
    log.truncate_to(20).unwrap();
    assert!(!log.confirms(&damage).unwrap());
}

/// A log of batches of ten records, four of them in the first segment, that starts inside of one.
fn log_that_starts_at(sim: &SimHost, start: Offset) -> Log {
    let mut log = log_of(sim, 10);
    assert_eq!(log.view().segments[1].base_offset(), 30, "three batches in a segment");
    log.delete_records_before(start).unwrap();
    log
}

#[test]
fn damage_in_the_batch_that_the_log_starts_in_is_found_and_leaves_an_empty_log_that_starts_there() {
    for start in [5, 15, 29, 35] {
        for byte in [3, 7, 9, 17, 61, 68] {
            let sim = SimHost::new(1);
            let mut log = log_that_starts_at(&sim, start);
            let (path, position) = place(&log, start);
            flip(&sim, &path, position + byte);
            let (found, _) = walk(&sim, &log, 0, Offset::MAX, 300);
            let found: Vec<_> = found.into_iter().filter(|damage| log.confirms(damage).unwrap()).collect();
            let first = found.first().unwrap_or_else(|| panic!("byte {byte} of the batch with {start} was not found"));
            assert_eq!((first.offset, first.position), (start / 10 * 10, position), "byte {byte}, {start}");
            log.cut_damage(first).unwrap();
            assert_eq!((log.log_start_offset(), log.log_end_offset()), (start, start), "byte {byte}");
            assert_eq!(walk(&sim, &log, 0, Offset::MAX, 300).0, []);
        }
    }
}

#[test]
fn damage_is_confirmed_until_the_log_starts_behind_it() {
    let sim = SimHost::new(1);
    let mut log = log_that_starts_at(&sim, 11);
    let (path, position) = place(&log, 11);
    flip(&sim, &path, position + 61);
    let damage = walk(&sim, &log, 0, Offset::MAX, 300).0.remove(0);
    for (start, is_confirmed) in [(11, true), (12, true), (19, true), (20, false), (25, false)] {
        log.delete_records_before(start).unwrap();
        assert_eq!(log.confirms(&damage).unwrap(), is_confirmed, "at {start}");
    }
}

#[test]
fn a_damaged_log_is_cut_at_the_damage_and_goes_on_there() {
    for (offset, byte) in [(0, 61), (3, 9), (9, 61), (20, 0), (20, 9), (RECORDS - 1, 61)] {
        let sim = SimHost::new(1);
        let mut log = log(&sim);
        let (path, position) = place(&log, offset);
        flip(&sim, &path, position + byte);
        let damage = walk(&sim, &log, 0, Offset::MAX, u64::MAX).0.remove(0);
        log.cut_damage(&damage).unwrap();
        assert_eq!((log.log_start_offset(), log.log_end_offset()), (0, offset), "byte {byte} of {offset}");
        assert_eq!(walk(&sim, &log, 0, Offset::MAX, u64::MAX).0, []);
        let mut builder = BatchBuilder::new(Codec::None);
        builder.push(1, None, Some(b"again"), &[]);
        let bytes = builder.finish(0, -1);
        let header = BatchHeader::parse(&bytes).unwrap();
        let appended = log.append(&[NewBatch { header, bytes: &bytes }], 1).unwrap();
        assert_eq!(appended.base_offset, offset);
        assert_eq!(walk(&sim, &log, 0, Offset::MAX, u64::MAX).0, []);
    }
}
