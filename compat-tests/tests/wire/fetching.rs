//! Fetch: encodings, limits, waiting, sessions. Traps 3, 4, 5, 22, 22a, 24, 25, 57.

use std::time::{Duration, Instant};

use compat_tests::Broker;
use compat_tests::batch::{Batch, stored};
use compat_tests::wire::FETCH;

use crate::calls::{
    FETCH_SESSION_ID_NOT_FOUND, Fetch, FetchPartition, INVALID_FETCH_SESSION_EPOCH, NONE, OFFSET_OUT_OF_RANGE,
    UNKNOWN_TOPIC_OR_PARTITION, list_offset, metadata, produce, topic,
};

/// Versions these tests can speak; all are advertised.
const VERSIONS: std::ops::RangeInclusive<i16> = 4..=17;

/// Traps 3, 4 and 57: every version and isolation level, one partition with data, one empty, one out of range.
#[test]
fn every_version_encodes_data_nothing_and_errors_as_kafka_does() {
    let broker = Broker::start();
    let name = topic(&broker, "every-version", 3, &[]);
    let mut connection = broker.connect();
    let batch = Batch::of(["a", "b", "c"]);
    assert_eq!(produce(&mut connection, &name, 0, &batch), (NONE, 0));
    let id = metadata(&mut connection, &name).id;
    for version in VERSIONS {
        for isolation in [0, 1] {
            let partitions = [FetchPartition::from(0, 0), FetchPartition::from(1, 0), FetchPartition::from(2, 99)];
            let fetch = Fetch { isolation, rack: "rack1".into(), ..Fetch::of(version, &name, id, &partitions) };
            let answer = fetch.call(&mut connection);
            let what = format!("version {version} isolation {isolation}: {answer:?}");
            assert_eq!((answer.error, answer.session), (NONE, 0), "{what}");
            let [full, empty, out] = &answer.partitions[..] else { panic!("{what}") };
            assert_eq!((full.index, full.error, full.high_watermark, full.last_stable), (0, NONE, 3, 3), "{what}");
            assert_eq!(full.records.as_ref().map(Vec::len), Some(batch.bytes().len()), "{what}");
            assert_eq!((empty.index, empty.error, empty.high_watermark), (1, NONE, 0), "{what}");
            assert_eq!(empty.records.as_deref(), Some(&[][..]), "no records are zero bytes, never null: {what}");
            assert_eq!((out.index, out.error), (2, OFFSET_OUT_OF_RANGE), "{what}");
            assert_eq!(out.records.as_deref(), Some(&[][..]), "{what}");
            for partition in &answer.partitions {
                assert_eq!((partition.aborted, partition.preferred_replica), (0, -1), "{what}");
            }
            if version >= 5 {
                assert_eq!((full.log_start, empty.log_start), (0, 0), "{what}");
            }
        }
    }
}

/// Trap 5: the first batch comes whole, however small the limits.
#[test]
fn the_first_batch_comes_whole_whatever_the_limits() {
    let broker = Broker::start();
    let name = topic(&broker, "first-batch", 2, &[]);
    let mut connection = broker.connect();
    connection.greet();
    for partition in 0..2 {
        assert_eq!(produce(&mut connection, &name, partition, &Batch::of([vec![b'x'; 900_000]])), (NONE, 0));
    }
    for (max_bytes, partition_max) in [(1, 1), (1, 1 << 20), (1 << 20, 1), (0, 0)] {
        let limited = |index| FetchPartition { max_bytes: partition_max, ..FetchPartition::from(index, 0) };
        let fetch = Fetch { max_bytes, ..Fetch::of(11, &name, [0; 16], &[limited(0), limited(1)]) };
        let answer = fetch.call(&mut connection);
        let whole: Vec<usize> =
            answer.partitions.iter().map(|p| stored(p.records.as_deref().unwrap_or_default()).len()).collect();
        assert_eq!(whole.iter().sum::<usize>(), 1, "limits {max_bytes} and {partition_max}: {whole:?}");
    }
}

/// Trap 22a: base offset and leader epoch are stamped into what is stored, and the CRC still holds.
#[test]
fn stored_batches_carry_their_offset_and_epoch() {
    let broker = Broker::start();
    let name = topic(&broker, "stamped", 1, &[]);
    let mut connection = broker.connect();
    for (n, count) in [(0, 1), (1, 3), (4, 1)] {
        assert_eq!(produce(&mut connection, &name, 0, &Batch::of(vec!["v"; count])), (NONE, n));
    }
    let epoch = metadata(&mut connection, &name).partitions[0].leader_epoch;
    let answer = Fetch::of(11, &name, [0; 16], &[FetchPartition::from(0, 0)]).call(&mut connection);
    let batches = stored(answer.partitions[0].records.as_deref().expect("records"));
    let seen: Vec<_> = batches.iter().map(|b| (b.base_offset, b.last_offset, b.leader_epoch, b.crc_is_right)).collect();
    assert_eq!(seen, [(0, 0, epoch, true), (1, 3, epoch, true), (4, 4, epoch, true)]);
}

/// Trap 22: a fetch in the middle of a batch gives that batch; dense offsets; the end is one past the last record.
#[test]
fn a_fetch_inside_a_batch_gives_the_whole_batch() {
    let broker = Broker::start();
    let name = topic(&broker, "inside", 1, &[]);
    let mut connection = broker.connect();
    produce(&mut connection, &name, 0, &Batch::of(["a", "b", "c"]));
    produce(&mut connection, &name, 0, &Batch::of(["d", "e"]));
    for (offset, first, count) in [(0, 0, 2), (1, 0, 2), (2, 0, 2), (3, 3, 1), (4, 3, 1), (5, -1, 0)] {
        let answer = Fetch::of(11, &name, [0; 16], &[FetchPartition::from(0, offset)]).call(&mut connection);
        let batches = stored(answer.partitions[0].records.as_deref().expect("records"));
        assert_eq!((batches.first().map_or(-1, |b| b.base_offset), batches.len()), (first, count), "offset {offset}");
    }
    assert_eq!(list_offset(&mut connection, &name, 0, -1, -1).2, 5);
}

/// Trap 24: the wait ends with data, with an error, or with its time.
#[test]
fn a_fetch_waits_for_data_and_for_nothing_longer() {
    let broker = Broker::start();
    let name = topic(&broker, "wait", 2, &[]);
    let mut connection = broker.connect();
    let waiting =
        |wait_ms, partitions: &[FetchPartition]| Fetch { wait_ms, ..Fetch::of(11, &name, [0; 16], partitions) };
    let timed = |connection: &mut compat_tests::wire::Connection, fetch: &Fetch| {
        let began = Instant::now();
        let answer = fetch.call(connection);
        (began.elapsed(), answer)
    };

    let (took, answer) = timed(&mut connection, &waiting(700, &[FetchPartition::from(0, 0)]));
    assert!(took >= Duration::from_millis(690) && took < Duration::from_secs(3), "idle: {took:?}");
    assert_eq!(answer.partitions[0].error, NONE);

    let (took, answer) =
        timed(&mut connection, &waiting(8000, &[FetchPartition::from(0, 0), FetchPartition::from(1, 50)]));
    assert!(took < Duration::from_secs(2), "an offset out of range answers at once: {took:?}");
    assert_eq!(answer.partitions[1].error, OFFSET_OUT_OF_RANGE);

    let (took, answer) = timed(&mut connection, &waiting(8000, &[FetchPartition::from(77, 0)]));
    assert!(took < Duration::from_secs(2), "only an unknown partition answers at once: {took:?}");
    assert_eq!(answer.partitions[0].error, UNKNOWN_TOPIC_OR_PARTITION);

    let fetch = waiting(20_000, &[FetchPartition::from(0, 0), FetchPartition::from(1, 0)]);
    connection.send(FETCH, 11, &fetch.body());
    assert!(!connection.has_answer_within(Duration::from_millis(300)));
    let began = Instant::now();
    produce(&mut broker.connect(), &name, 1, &Batch::of(["wakes"]));
    let answer = fetch.read(connection.receive());
    assert!(began.elapsed() < Duration::from_secs(2), "data wakes the wait: {:?}", began.elapsed());
    assert_eq!(stored(answer.partitions[1].records.as_deref().expect("records")).len(), 1);
}

/// Trap 24: fewer bytes than asked for do not end the wait, enough do.
#[test]
fn min_bytes_counts_over_all_partitions() {
    let broker = Broker::start();
    let name = topic(&broker, "min-bytes", 2, &[]);
    let mut producing = broker.connect();
    let size = Batch::of([vec![b'x'; 1000]]).bytes().len() as i32;
    let fetch = Fetch {
        wait_ms: 20_000,
        min_bytes: size + 1,
        ..Fetch::of(11, &name, [0; 16], &[FetchPartition::from(0, 0), FetchPartition::from(1, 0)])
    };
    let mut connection = broker.connect();
    connection.send(FETCH, 11, &fetch.body());
    produce(&mut producing, &name, 0, &Batch::of([vec![b'x'; 1000]]));
    assert!(!connection.has_answer_within(Duration::from_millis(400)), "one batch is too little");
    produce(&mut producing, &name, 1, &Batch::of([vec![b'x'; 1000]]));
    assert!(connection.has_answer_within(Duration::from_secs(3)), "two are enough");
    let answer = fetch.read(connection.receive());
    assert!(answer.partitions.iter().all(|p| stored(p.records.as_deref().unwrap_or_default()).len() == 1));
}

/// A long wait holds up neither other connections nor later requests' work on the broker.
#[test]
fn a_hundred_waiting_fetches_do_not_slow_a_produce() {
    let broker = Broker::start();
    let name = topic(&broker, "hundred", 2, &[]);
    let fetch = Fetch { wait_ms: 10_000, ..Fetch::of(11, &name, [0; 16], &[FetchPartition::from(0, 0)]) };
    let mut waiting: Vec<_> = (0..100).map(|_| broker.connect()).collect();
    waiting.iter_mut().for_each(|c| c.send(FETCH, 11, &fetch.body()));
    let began = Instant::now();
    produce(&mut broker.connect(), &name, 1, &Batch::of(["elsewhere"]));
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    produce(&mut broker.connect(), &name, 0, &Batch::of(["wakes all"]));
    for connection in &mut waiting {
        assert_eq!(fetch.read(connection.receive()).partitions[0].high_watermark, 1);
    }
}

/// Trap 25: the walk of KIP-227.
#[test]
fn fetch_sessions_follow_the_walk() {
    let broker = Broker::start();
    let name = topic(&broker, "session", 2, &[]);
    let mut connection = broker.connect();
    produce(&mut connection, &name, 0, &Batch::of(["a"]));
    let both = [FetchPartition::from(0, 0), FetchPartition::from(1, 0)];
    let fetch = |session, partitions: &[FetchPartition]| {
        let mut fetch = Fetch { session, ..Fetch::of(11, &name, [0; 16], partitions) };
        fetch.topics.retain(|t| !t.partitions.is_empty());
        fetch
    };

    let first = fetch((0, 0), &both).call(&mut connection);
    assert_eq!((first.error, first.partitions.len()), (NONE, 2), "a new session gives data and every partition");
    let id = first.session;
    assert!(id > 0, "a session was granted");

    let unchanged = fetch((id, 1), &[FetchPartition::from(0, 1)]).call(&mut connection);
    assert_eq!(
        (unchanged.error, unchanged.session, unchanged.partitions.len()),
        (NONE, id, 0),
        "nothing new: {unchanged:?}"
    );

    produce(&mut connection, &name, 1, &Batch::of(["b"]));
    let changed = fetch((id, 2), &[]).call(&mut connection);
    let indexes: Vec<i32> = changed.partitions.iter().map(|p| p.index).collect();
    assert_eq!(indexes, [1], "only what changed");

    let wrong = fetch((id, 9), &[]).call(&mut connection);
    assert_eq!((wrong.error, wrong.partitions.len()), (INVALID_FETCH_SESSION_EPOCH, 0));

    let unknown = fetch((id ^ 0x5555, 1), &[]).call(&mut connection);
    assert_eq!((unknown.error, unknown.session, unknown.partitions.len()), (FETCH_SESSION_ID_NOT_FOUND, 0, 0));

    let closed = fetch((id, -1), &both).call(&mut connection);
    assert_eq!((closed.error, closed.session, closed.partitions.len()), (NONE, 0, 2), "closing it is a full fetch");
    let gone = fetch((id, 3), &[]).call(&mut connection);
    assert_eq!(gone.error, FETCH_SESSION_ID_NOT_FOUND);
}

/// Trap 25: a client that asks for a session each time and ignores it never gets less data, and costs no memory that stays.
#[test]
fn sessions_that_nobody_uses_are_bounded() {
    let Some(broker) = Broker::owned(&[]) else { return };
    let name = topic(&broker, "churn", 1, &[]);
    let mut connection = broker.connect();
    produce(&mut connection, &name, 0, &Batch::of(["a"]));
    let fetch = Fetch { session: (0, 0), ..Fetch::of(11, &name, [0; 16], &[FetchPartition::from(0, 0)]) };
    let ask = |connection: &mut compat_tests::wire::Connection, times: usize| {
        for _ in 0..times {
            let answer = fetch.call(connection);
            assert_eq!((answer.error, answer.partitions[0].error), (NONE, NONE));
            assert_eq!(stored(answer.partitions[0].records.as_deref().expect("records")).len(), 1);
        }
    };
    ask(&mut connection, 2000);
    let before = broker.resident_kib();
    ask(&mut connection, 10_000);
    let after = broker.resident_kib();
    assert!(after < before + 8 * 1024, "{before} KiB grew to {after} KiB");
}
