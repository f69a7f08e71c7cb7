//! The log on the machine's own file system. With `BARNABAS_LOG_FILES_DIR` set, the files stay there, for Kafka's own tool to
//! look at: `DumpLogSegments --deep-iteration --index-sanity-check --files ...`.

mod log_support;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use barnabas::host::Host;
use barnabas::log::{FileCache, Log, LogEnv, OpenHow};
use barnabas::metadata::config::LogConfig;
use barnabas::records::Codec;
use log_support::*;

fn open(env: &LogEnv, dir: &Path, how: OpenHow) -> Log {
    let config = LogConfig { segment_bytes: 20_000, index_interval_bytes: 500, ..LogConfig::default() };
    Log::open(env, dir.to_owned(), identity(), Arc::new(config), how).unwrap().0
}

fn env() -> LogEnv {
    let host = Host::real();
    let files = Arc::new(FileCache::new(Arc::clone(&host.disk), 6));
    LogEnv { host, files }
}

/// A log with every kind of batch: codecs, sizes, producers, times that go back, epochs.
fn write_a_bit_of_everything(log: &mut Log) {
    let codecs = [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];
    log.assign_epoch(3);
    for at in 0..400i64 {
        let time = NOW + (at * 7919) % 1000;
        let values: Vec<String> =
            (0..1 + at % 7).map(|i| format!("value {at}.{i} {}", "x".repeat(at as usize % 50))).collect();
        let all: Vec<(i64, &str)> = values.iter().zip(time..).map(|(value, time)| (time, value.as_str())).collect();
        append_in(log, &timed(codecs[at as usize % 5], &all), 3 + (at / 100) as i32).unwrap();
        append_in(log, &sequenced(5 + at % 3, 0, (at / 3) as i32 * 2, 2), 3 + (at / 100) as i32).unwrap();
    }
}

#[test]
fn the_machines_own_disk_serves_as_well() {
    let kept = std::env::var_os("BARNABAS_LOG_FILES_DIR").map(PathBuf::from);
    let temporary = tempfile::tempdir().unwrap();
    let dir = kept.unwrap_or_else(|| temporary.path().to_owned()).join("topic-0");
    let mut log = open(&env(), &dir, OpenHow::default());
    write_a_bit_of_everything(&mut log);
    let all = read_all(&log.view(), 5000);
    assert!(log.segment_count() > 4);
    log.flush().unwrap();
    let recovery_point = log.checkpoint().unwrap();
    let epochs = log.epochs().clone();
    drop(log);
    let log = open(&env(), &dir, OpenHow { recovery_point, ..OpenHow::default() });
    assert_eq!(read_all(&log.view(), 5000), all);
    assert_eq!(log.epochs(), &epochs);
    log.close().unwrap();
    let log = open(&env(), &dir, OpenHow { clean_shutdown: true, ..OpenHow::default() });
    assert_eq!(read_all(&log.view(), 5000), all);
    assert_eq!(log.producers().count(), 3);
    log.close().unwrap();
}

/// With `BARNABAS_KAFKA_PARTITION_DIR` naming a copy of a partition directory that Apache Kafka wrote (4000 records, the active
/// segment's indexes still preallocated): all of it is read. Without it there is nothing to see.
#[test]
fn a_directory_of_apache_kafka_is_taken_over() {
    let Some(dir) = std::env::var_os("BARNABAS_KAFKA_PARTITION_DIR").map(PathBuf::from) else { return };
    let identity = barnabas::log::LogIdentity { topic_id: barnabas::base::TopicId::ZERO, ..identity() };
    let config = Arc::new(LogConfig::default());
    for _ in 0..2 {
        let (log, recovery) =
            Log::open(&env(), dir.clone(), identity.clone(), config.clone(), OpenHow::default()).unwrap();
        assert_eq!((recovery.truncated_bytes, log.log_end_offset()), (0, 4000));
        assert_eq!(read_all(&log.view(), 100_000).len(), 4000);
        for offset in (0..4000).rev().step_by(7) {
            assert!(log.view().read(offset, 1, 4000, true).unwrap().unwrap().first_offset <= offset);
        }
        assert_eq!(log.producers().count(), 1);
        let newest = log.view().max_timestamp(1 << 20).unwrap().unwrap();
        let found = log.view().offset_for_time(newest.timestamp, 1 << 20).unwrap().unwrap();
        assert_eq!(found, newest);
        log.close().unwrap();
    }
}

#[test]
#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "what the process holds open is seen from outside only")]
fn removed_files_of_a_retired_log_are_not_kept_open() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path().canonicalize().unwrap();
    let dir = root.join("topic-0");
    let held = || -> Vec<PathBuf> {
        let fds = std::fs::read_dir("/proc/self/fd").unwrap();
        let paths = fds.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
        paths.filter(|path| path.starts_with(&root)).collect()
    };
    let env = env();
    let mut log = open(&env, &dir, OpenHow::default());
    write_a_bit_of_everything(&mut log);
    let before_retention = log.view();
    read_all(&before_retention, 5000);
    let half = log.log_end_offset() / 2;
    log.delete_records_before(half).unwrap();
    assert!(!log.retain(NOW, half).unwrap().is_empty());
    log.remove_due(i64::MAX).unwrap();
    let deleted: Vec<PathBuf> = held().into_iter().filter(|path| path.to_string_lossy().contains("deleted")).collect();
    assert!(deleted.is_empty(), "{deleted:?}");
    let view = log.view();
    read_all(&view, 5000);
    assert!(!held().is_empty());
    log.retire();
    let retired = root.join("topic-0.x-delete");
    env.host.disk.rename(&dir, &retired).unwrap();
    env.host.disk.remove_dir_all(&retired).unwrap();
    assert!(view.read(view.log_end_offset - 1, 1000, i64::MAX, true).is_err());
    assert_eq!(held(), Vec::<PathBuf>::new());
}
