//! Readers without the lock beside a writer, on the machine's own disk.

mod log_support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use barnabas::base::Offset;
use barnabas::host::Host;
use barnabas::log::{Log, LogEnv, OpenHow};
use barnabas::metadata::config::LogConfig;
use barnabas::records::Batches;
use log_support::*;

#[test]
fn readers_see_whole_batches_in_order_while_the_log_grows_rolls_and_retains() {
    let temporary = tempfile::tempdir().unwrap();
    let env = LogEnv::new(Host::real(), 3);
    let config = LogConfig {
        segment_bytes: 3000,
        index_interval_bytes: 200,
        retention_bytes: Some(9000),
        file_delete_delay_ms: 0,
        ..LogConfig::default()
    };
    let dir = temporary.path().join("topic-0");
    let (mut log, _) = Log::open(&env, dir, identity(), Arc::new(config), OpenHow::default()).unwrap();
    let published = log.published();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reader in 0..2 {
            let (published, done) = (&published, &done);
            scope.spawn(move || {
                let mut from: Offset = 0;
                let mut read = 0;
                while !done.load(Ordering::Acquire) || from < published.load().log_end_offset {
                    let view = published.load_full();
                    from = from.max(view.log_start_offset);
                    let Ok(Some(slice)) = view.read(from, 400, Offset::MAX, true) else { continue };
                    let mut bytes = vec![0; slice.len];
                    slice.file.read_exact_at(&mut bytes, slice.position).unwrap();
                    assert!(slice.first_offset <= from && from < slice.first_offset + 2);
                    for batch in Batches::new(&bytes) {
                        let (header, _) = batch.unwrap();
                        assert!(header.next_offset() > from && header.base_offset <= from);
                        from = header.next_offset();
                        read += 1;
                    }
                }
                assert!(read > 10, "reader {reader} read {read}");
            });
        }
        for at in 0..3000 {
            append(&mut log, &batch(&["a", "b"])).unwrap();
            if at % 50 == 0 {
                log.flush().unwrap();
                log.checkpoint().unwrap();
                log.retain(NOW, log.log_end_offset()).unwrap();
                log.remove_due(NOW).unwrap();
            }
        }
        done.store(true, Ordering::Release);
    });
    assert!(env.files.open_count() <= 3);
    log.close().unwrap();
}
