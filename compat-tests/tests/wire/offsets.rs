//! ListOffsets. Traps 10 and 12.

use compat_tests::Broker;
use compat_tests::batch::Batch;
use compat_tests::wire::{Body, Connection, LIST_OFFSETS};

use crate::calls::{NONE, list_offset, produce, topic};

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;

/// ListOffsets v7 of partition 0: error, timestamp, offset.
fn by_time_v7(connection: &mut Connection, topic: &str, time: i64) -> (i16, i64, i64) {
    let body = Body::new().i32(-1).i8(0).compact_array(1).compact_string(topic).compact_array(1);
    let mut answer = connection.call(LIST_OFFSETS, 7, &body.i32(0).i32(-1).i64(time).tags().tags().tags());
    answer.i32();
    let mut topics = answer.compact_array(|r| {
        r.compact_string();
        let partitions = r.compact_array(|r| {
            r.i32();
            let result = (r.i16(), r.i64(), r.i64());
            r.i32();
            r.tags();
            result
        });
        r.tags();
        partitions
    });
    answer.tags();
    answer.end();
    topics.remove(0).remove(0)
}

/// Trap 10: a miss is offset -1 and timestamp -1 without an error.
#[test]
fn a_time_that_nothing_matches_is_minus_one_twice() {
    let broker = Broker::start();
    let name = topic(&broker, "no-match", 1, &[]);
    let mut connection = broker.connect();
    let miss = (NONE, -1, -1);
    let find = |connection: &mut Connection, time| {
        let (error, timestamp, offset, _) = list_offset(connection, &name, 0, -1, time);
        (error, timestamp, offset)
    };
    assert_eq!(find(&mut connection, 5), miss, "an empty topic");
    assert_eq!(find(&mut connection, EARLIEST), (NONE, -1, 0));
    assert_eq!(find(&mut connection, LATEST), (NONE, -1, 0));
    assert_eq!(by_time_v7(&mut connection, &name, MAX_TIMESTAMP), miss);
    produce(&mut connection, &name, 0, &Batch::of(["a"]).at(1_700_000_000_000));
    produce(&mut connection, &name, 0, &Batch::of(["b"]).at(1_700_000_000_500));
    produce(&mut connection, &name, 0, &Batch::of(["c"]).at(1_700_000_000_100));
    assert_eq!(find(&mut connection, 1_700_000_000_501), miss, "later than all records");
    assert_eq!(find(&mut connection, 1_700_000_000_001), (NONE, 1_700_000_000_500, 1));
    assert_eq!(find(&mut connection, 0), (NONE, 1_700_000_000_000, 0));
    assert_eq!(by_time_v7(&mut connection, &name, MAX_TIMESTAMP), (NONE, 1_700_000_000_500, 1));
}

/// Trap 12, as far as it goes without transactions: both isolation levels see the same end.
#[test]
fn both_isolation_levels_agree_when_no_transaction_is_open() {
    let broker = Broker::start();
    let name = topic(&broker, "isolation", 1, &[]);
    let mut connection = broker.connect();
    produce(&mut connection, &name, 0, &Batch::of(["a", "b"]));
    for isolation in [0, 1] {
        assert_eq!(list_offset(&mut connection, &name, isolation, -1, LATEST).2, 2);
        assert_eq!(list_offset(&mut connection, &name, isolation, -1, EARLIEST).2, 0);
    }
}
