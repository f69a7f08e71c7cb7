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
