//! What the log's tests share: a simulated machine with one partition directory, and batches to put there.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use barnabas::base::{Offset, TopicId, TopicPartition};
use barnabas::host::sim::SimHost;
use barnabas::log::{AppendError, Appended, Log, LogEnv, LogError, LogIdentity, LogView, NewBatch, OpenHow, Recovery};
use barnabas::metadata::config::LogConfig;
use barnabas::records::{BatchBuilder, BatchHeader, Batches, Codec, crc_is_valid, records};

pub const LOG_DIR: &str = "/data";
pub const NOW: i64 = 1_700_000_000_000;

pub struct Bench {
    pub sim: SimHost,
    pub env: LogEnv,
    pub config: LogConfig,
}

impl Bench {
    pub fn new(seed: u64) -> Bench {
        let sim = SimHost::new(seed);
        sim.disk_create_dir(LOG_DIR);
        let env = LogEnv::new(sim.host(), 8);
        let config = LogConfig { segment_bytes: 4096, index_interval_bytes: 256, ..LogConfig::default() };
        Bench { sim, env, config }
    }

    pub fn dir(&self) -> PathBuf {
        Path::new(LOG_DIR).join("topic-0")
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.dir().join(name)
    }

    pub fn segment(&self, base: Offset, kind: &str) -> PathBuf {
        self.file(&format!("{base:020}.{kind}"))
    }

    pub fn try_open(&self, how: OpenHow) -> Result<(Log, Recovery), LogError> {
        Log::open(&self.env, self.dir(), identity(), Arc::new(self.config.clone()), how)
    }

    /// After a crash: nothing is known but the recovery point.
    pub fn open_from(&self, recovery_point: Offset) -> (Log, Recovery) {
        self.try_open(OpenHow { clean_shutdown: false, recovery_point, log_start_offset: None }).unwrap()
    }

    pub fn open(&self) -> Log {
        self.open_from(0).0
    }

    pub fn open_clean(&self) -> (Log, Recovery) {
        self.try_open(OpenHow { clean_shutdown: true, recovery_point: 0, log_start_offset: None }).unwrap()
    }

    /// The last batch of the segment's file, `batch`'s like, claims to stand 256 offsets further than it does.
    pub fn move_last_batch(&self, segment: &Path, batch: &[u8]) {
        let moved = |bytes: &mut Vec<u8>| {
            let at = bytes.len() - batch.len() + 6;
            bytes[at] += 1;
        };
        self.sim.disk.corrupt(segment, moved).unwrap();
    }

    /// The machine goes down; descriptors of its last life are dead.
    pub fn crash(&mut self, how: barnabas::host::sim::Crash) {
        self.sim.disk.crash(how);
        self.env = LogEnv::new(self.sim.host(), 8);
    }
}

trait CreateDir {
    fn disk_create_dir(&self, path: &str);
}

impl CreateDir for SimHost {
    fn disk_create_dir(&self, path: &str) {
        use barnabas::host::Disk;
        self.disk.create_dir_all(Path::new(path)).unwrap();
        self.disk.sync_dir(Path::new("/")).unwrap();
    }
}

pub fn identity() -> LogIdentity {
    LogIdentity {
        topic_partition: TopicPartition::new("topic", 0),
        topic_id: TopicId::from_bytes(*b"topic id 16 byte"),
    }
}

/// A batch of records `(timestamp, value)`.
pub fn timed(codec: Codec, all: &[(i64, &str)]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(codec);
    for (timestamp, value) in all {
        builder.push(*timestamp, Some(b"k"), Some(value.as_bytes()), &[]);
    }
    builder.finish(0, -1)
}

pub fn batch(values: &[&str]) -> Vec<u8> {
    let all: Vec<(i64, &str)> = values.iter().map(|value| (NOW, *value)).collect();
    timed(Codec::None, &all)
}

/// A batch of `count` records of an idempotent producer.
pub fn sequenced(producer_id: i64, epoch: i16, base_sequence: i32, count: usize) -> Vec<u8> {
    let mut builder = BatchBuilder::new(Codec::None).with_producer(producer_id, epoch, base_sequence);
    for at in 0..count {
        builder.push(NOW, None, Some(format!("{producer_id}/{epoch}/{base_sequence}+{at}").as_bytes()), &[]);
    }
    builder.finish(0, -1)
}

pub fn append(log: &mut Log, bytes: &[u8]) -> Result<Appended, AppendError> {
    append_in(log, bytes, 0)
}

pub fn append_in(log: &mut Log, bytes: &[u8], epoch: i32) -> Result<Appended, AppendError> {
    let header = BatchHeader::parse(bytes).unwrap();
    log.append(&[NewBatch { header, bytes }], epoch)
}

/// All records of a view as (offset, value), read slice by slice as a consumer would; every batch's CRC is checked.
pub fn read_all(view: &LogView, slice_bytes: usize) -> Vec<(Offset, String)> {
    let mut from = view.log_start_offset;
    let mut all = Vec::new();
    while let Some(slice) = view.read(from, slice_bytes, Offset::MAX, true).unwrap() {
        let mut bytes = vec![0; slice.len];
        slice.file.read_exact_at(&mut bytes, slice.position).unwrap();
        let before = from;
        for found in Batches::new(&bytes) {
            let (header, batch) = found.unwrap();
            assert!(crc_is_valid(batch), "CRC at {}", header.base_offset);
            for record in &records(batch, 1 << 20).unwrap() {
                let record = record.unwrap();
                if record.offset >= from {
                    all.push((record.offset, String::from_utf8_lossy(record.value.unwrap_or_default()).into_owned()));
                }
            }
            from = header.next_offset();
        }
        assert!(from > before, "no progress at {from}");
    }
    assert_eq!(from, view.log_end_offset);
    all
}

pub fn values(log: &Log) -> Vec<String> {
    let all = read_all(&log.view(), 1000);
    for ((offset, _), expected) in all.iter().zip(log.log_start_offset()..) {
        assert_eq!(*offset, expected, "offsets are dense");
    }
    assert_eq!(all.len() as Offset, log.log_end_offset() - log.log_start_offset());
    all.into_iter().map(|(_, value)| value).collect()
}

/// Fills `log` with `count` batches of one record called after their offsets.
pub fn fill(log: &mut Log, count: usize) {
    for _ in 0..count {
        let value = format!("value {}", log.log_end_offset());
        append(log, &batch(&[&value])).unwrap();
    }
}

pub fn filled(range: std::ops::Range<Offset>) -> Vec<String> {
    range.map(|offset| format!("value {offset}")).collect()
}
