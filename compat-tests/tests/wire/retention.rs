//! Retention by time and by size. Trap 43.

use std::time::Duration;

use compat_tests::batch::Batch;
use compat_tests::wait::stays;
use compat_tests::wire::Connection;
use compat_tests::{Broker, until};

use crate::calls::{NONE, list_offset, produce, topic};

const DAY_MS: i64 = 86_400_000;
const EARLIEST: i64 = -2;
const INVALID_TIMESTAMP: i16 = 32;
/// Kafka itself looks for the first time 30 s after its start.
const RETENTION_MAX: Duration = Duration::from_secs(60);

fn broker() -> Option<Broker> {
    Broker::owned(&[("log.retention.check.interval.ms", "200")])
}

fn start_offset(connection: &mut Connection, topic: &str) -> i64 {
    list_offset(connection, topic, 0, -1, EARLIEST).2
}

fn now() -> i64 {
    Batch::of(["now"]).base_timestamp
}

/// A record older than the retention is accepted and goes soon; what is younger stays; offsets go on.
#[test]
fn old_records_go_and_young_ones_stay() {
    let Some(broker) = broker() else { return };
    let mut connection = broker.connect();
    let old = topic(&broker, "old", 1, &[("retention.ms", "604800000")]);
    let young = topic(&broker, "young", 1, &[("retention.ms", "604800000")]);
    let mixed = topic(&broker, "mixed", 1, &[("retention.ms", "604800000")]);
    let ago = |days: i64| Batch::of(["v"]).at(now() - days * DAY_MS);
    assert_eq!(produce(&mut connection, &old, 0, &ago(10)), (NONE, 0));
    assert_eq!(produce(&mut connection, &young, 0, &ago(6)), (NONE, 0));
    // Less than segment.ms, seven days, lies between the two, so that they share a segment.
    for batch in [ago(8), ago(3)] {
        assert_eq!(produce(&mut connection, &mixed, 0, &batch).0, NONE);
    }
    until("the old record is gone", RETENTION_MAX, || (start_offset(&mut connection, &old) == 1).then_some(()));
    assert_eq!(produce(&mut connection, &old, 0, &ago(0)), (NONE, 1), "offsets go on");
    assert!(
        stays(Duration::from_secs(1), || {
            [&young, &mixed].iter().all(|name| start_offset(&mut connection, name) == 0)
        }),
        "a segment lives as long as its youngest record"
    );
}

/// The limits on what a client may claim.
#[test]
fn timestamps_beyond_the_topics_limits_are_refused() {
    let broker = Broker::start();
    let mut connection = broker.connect();
    let limits = [("message.timestamp.before.max.ms", "3600000"), ("message.timestamp.after.max.ms", "3600000")];
    let limited = topic(&broker, "limited", 1, &limits);
    let at = |ms: i64| Batch::of(["v"]).at(now() + ms);
    assert_eq!(produce(&mut connection, &limited, 0, &at(-7_200_000)).0, INVALID_TIMESTAMP);
    assert_eq!(produce(&mut connection, &limited, 0, &at(7_200_000)).0, INVALID_TIMESTAMP);
    assert_eq!(produce(&mut connection, &limited, 0, &at(-60_000)), (NONE, 0));
    let open = topic(&broker, "open", 1, &[]);
    assert_eq!(produce(&mut connection, &open, 0, &at(-3650 * DAY_MS)), (NONE, 0), "as old as it likes");
    assert_eq!(
        produce(&mut connection, &open, 0, &at(3650 * DAY_MS)).0,
        INVALID_TIMESTAMP,
        "an hour ahead is Kafka's default limit"
    );
}

/// By size whole segments go, oldest first, and the newest bytes always stay.
#[test]
fn retention_by_size_keeps_the_newest_segments() {
    let Some(broker) = broker() else { return };
    let mut connection = broker.connect();
    connection.greet();
    let name = topic(
        &broker,
        "size",
        1,
        &[("segment.bytes", "1048576"), ("retention.bytes", "2097152"), ("file.delete.delay.ms", "100")],
    );
    for n in 0..60 {
        assert_eq!(produce(&mut connection, &name, 0, &Batch::of([vec![b'x'; 100_000]])), (NONE, n));
    }
    let start = until("old segments are gone", RETENTION_MAX, || {
        Some(start_offset(&mut connection, &name)).filter(|start| *start > 20)
    });
    assert!(start <= 60 - 2_097_152 / 100_100, "at least retention.bytes stay: log start {start}");
    let on_disk = || -> u64 {
        let files = std::fs::read_dir(broker.data().join(format!("{name}-0"))).expect("the partition's directory");
        files.filter_map(|f| f.ok()?.metadata().ok()).map(|m| m.len()).sum()
    };
    until("their files too", RETENTION_MAX, || (on_disk() < 24 << 20).then_some(()));
}
