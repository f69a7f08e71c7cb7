//! A partition directory after anything may have happened to it: segments, indexes, snapshot, epochs and topic id of arbitrary bytes,
//! or a sound log with arbitrary damage. Opening must not panic, must serve only whole batches with dense offsets, must say the same
//! when it is done twice, and the log must go on.
//!
//! The first byte chooses how the directory was left; the second how the rest is used.

#![no_main]

use std::path::Path;
use std::sync::Arc;

use barnabas::base::{Offset, TopicId, TopicPartition};
use barnabas::host::sim::SimHost;
use barnabas::host::{Disk, OpenMode};
use barnabas::log::{Log, LogEnv, LogIdentity, NewBatch, OpenHow};
use barnabas::metadata::config::LogConfig;
use barnabas::records::{BatchBuilder, BatchHeader, Batches, Codec, crc_is_valid};
use libfuzzer_sys::fuzz_target;

const DIR: &str = "/data/t-0";

const FILES: [&str; 7] = [
    "00000000000000000000.log",
    "00000000000000000000.index",
    "00000000000000000000.timeindex",
    "00000000000000000020.log",
    "00000000000000000020.snapshot",
    "leader-epoch-checkpoint",
    "00000000000000000020.index",
];

fuzz_target!(|input: &[u8]| {
    let Some((&[how, mode], rest)) = input.split_first_chunk::<2>() else { return };
    let sim = SimHost::new(1);
    sim.disk.create_dir_all(Path::new(DIR)).unwrap();
    let env = LogEnv::new(sim.host(), 4);
    let how = OpenHow {
        clean_shutdown: how & 1 != 0,
        recovery_point: Offset::from(if how & 4 != 0 { how >> 3 } else { 0 }),
        log_start_offset: (how & 2 != 0).then_some(Offset::from(how >> 4)),
    };
    if mode & 1 == 0 { write_files(&sim, rest) } else { damage_a_sound_log(&env, &sim, rest) }
    // What was on the device already is not checked again: damage there may show, but must not hurt.
    let is_checked = !how.clean_shutdown && how.recovery_point == 0;
    let Some(first) = open(&env, how) else { return };
    let whole = read_all(&first, !is_checked);
    drop(first);
    if !is_checked {
        return;
    }
    let mut second = open(&env, how).expect("it opened before");
    assert_eq!(read_all(&second, false), whole, "recovery is idempotent");
    append(&mut second, 3);
    assert_eq!(read_all(&second, false).len(), whole.len() + 3);
});

fn open(env: &LogEnv, how: OpenHow) -> Option<Log> {
    let identity = LogIdentity { topic_partition: TopicPartition::new("t", 0), topic_id: TopicId::from_bytes([7; 16]) };
    let config = LogConfig { segment_bytes: 2000, index_interval_bytes: 100, ..LogConfig::default() };
    Log::open(env, DIR.into(), identity, Arc::new(config), how).ok().map(|(log, _)| log)
}

fn put(sim: &SimHost, name: &str, bytes: &[u8]) {
    let file = sim.disk.open(&Path::new(DIR).join(name), OpenMode::Truncate).unwrap();
    file.write_all_at(bytes, 0).unwrap();
}

/// Each file: one byte for its name, two for its length, then its bytes.
fn write_files(sim: &SimHost, mut rest: &[u8]) {
    while let Some((&[name, high, low], tail)) = rest.split_first_chunk::<3>() {
        let len = usize::from(u16::from_be_bytes([high, low])).min(tail.len());
        let (bytes, tail) = tail.split_at(len);
        put(sim, FILES[usize::from(name) % FILES.len()], bytes);
        rest = tail;
    }
}

/// Each damage: one byte for the file, two for the place, one for what is done there.
fn damage_a_sound_log(env: &LogEnv, sim: &SimHost, mut rest: &[u8]) {
    let mut log = open(env, OpenHow::default()).unwrap();
    append(&mut log, 40);
    log.close().unwrap();
    let names: Vec<String> = sim.disk.read_dir(Path::new(DIR)).unwrap().into_iter().map(|entry| entry.name).collect();
    while let Some((&[name, high, low, value], tail)) = rest.split_first_chunk::<4>() {
        let name = &names[usize::from(name) % names.len()];
        if name != "partition.metadata" {
            let at = usize::from(u16::from_be_bytes([high, low]));
            sim.disk.corrupt(&Path::new(DIR).join(name), |bytes| damage(bytes, at, value)).unwrap();
        }
        rest = tail;
    }
}

fn damage(bytes: &mut Vec<u8>, at: usize, value: u8) {
    if bytes.is_empty() {
        return;
    }
    let at = at % bytes.len();
    match value {
        0 => bytes.truncate(at),
        1 => bytes[at..].fill(0),
        2 => bytes.extend_from_within(at..),
        value => bytes[at] = value,
    }
}

fn append(log: &mut Log, count: usize) {
    for _ in 0..count {
        let end = log.log_end_offset();
        let mut builder = BatchBuilder::new(Codec::None).with_producer(1000 + end, 0, 0);
        builder.push(1000 + end, None, Some(b"value"), &[]);
        let bytes = builder.finish(0, 0);
        let header = BatchHeader::parse(&bytes).unwrap();
        log.append(&[NewBatch { header, bytes: &bytes }], 0).unwrap();
    }
}

/// The base offsets of all batches, each found by its own offset as well as behind the one before it.
fn read_all(log: &Log, may_be_damaged: bool) -> Vec<Offset> {
    let view = log.view();
    let mut from = view.log_start_offset;
    let mut found = Vec::new();
    loop {
        let slice = match view.read(from, 500, Offset::MAX, true) {
            Ok(Some(slice)) => slice,
            Ok(None) => break,
            Err(error) if may_be_damaged => {
                let _ = error.to_string();
                break;
            }
            Err(error) => panic!("at {from}: {error}"),
        };
        let mut bytes = vec![0; slice.len];
        slice.file.read_exact_at(&mut bytes, slice.position).unwrap();
        let before = from;
        for batch in Batches::new(&bytes) {
            let Ok((header, batch)) = batch else { break };
            assert!(may_be_damaged || header.last_offset() < from || crc_is_valid(batch));
            if header.next_offset() > from {
                found.push(header.base_offset);
                from = header.next_offset();
            }
        }
        if from == before {
            assert!(may_be_damaged, "no progress at {from}");
            break;
        }
    }
    let _ = view.offset_for_time(1010, 1 << 20);
    let _ = view.max_timestamp(1 << 20);
    found
}
