//! Produce: retries of an idempotent producer, acks, pipelining, batches that lie. Trap 21.

use compat_tests::Broker;
use compat_tests::batch::Batch;
use compat_tests::clients::unique;
use compat_tests::wire::{Body, Connection, PRODUCE};

use crate::calls::{
    CORRUPT_MESSAGE, INVALID_RECORD, NONE, OUT_OF_ORDER_SEQUENCE, UNKNOWN_TOPIC_OR_PARTITION, create_topic,
    list_offset, produce, produce_body, produced, producer_id, topic,
};

const INVALID_REQUIRED_ACKS: i16 = 21;

fn end(connection: &mut Connection, topic: &str) -> i64 {
    list_offset(connection, topic, 0, -1, -1).2
}

/// Trap 21: a retry of any of the last five batches is acknowledged with the offset it got the first time.
#[test]
fn a_retry_within_the_last_five_batches_gets_its_first_offset() {
    let broker = Broker::start();
    let name = topic(&broker, "retry", 1, &[]);
    let mut connection = broker.connect();
    let (id, epoch) = producer_id(&mut connection);
    let batch = |n: i32| Batch::of([format!("{n}-a"), format!("{n}-b")]).from_producer(id, epoch, n * 2);
    for n in 0..5 {
        connection.send(PRODUCE, 7, &produce_body(&name, 0, -1, &batch(n).bytes()));
    }
    for n in 0..5 {
        assert_eq!(produced(connection.receive()), (NONE, n * 2));
    }
    for n in [0, 2, 4, 3, 1] {
        assert_eq!(produce(&mut connection, &name, 0, &batch(n)), (NONE, i64::from(n * 2)), "batch {n} again");
    }
    assert_eq!(end(&mut connection, &name), 10);
    assert_eq!(produce(&mut connection, &name, 0, &batch(6)).0, OUT_OF_ORDER_SEQUENCE, "a gap");
    for n in 5..8 {
        assert_eq!(produce(&mut connection, &name, 0, &batch(n)), (NONE, i64::from(n * 2)));
    }
    assert_eq!(produce(&mut connection, &name, 0, &batch(1)).0, OUT_OF_ORDER_SEQUENCE, "older than five batches");
    assert_eq!(end(&mut connection, &name), 16);
}

/// Trap 21: the last batch is known after a crash and after a clean restart; the next sequence goes on.
#[test]
fn a_retry_after_a_restart_is_still_known() {
    let Some(mut broker) = Broker::owned(&[]) else { return };
    let name = topic(&broker, "retry-restart", 1, &[]);
    let (id, epoch) = producer_id(&mut broker.connect());
    let batch = |n: i32| Batch::of([format!("{n}")]).from_producer(id, epoch, n);
    for n in 0..6 {
        assert_eq!(produce(&mut broker.connect(), &name, 0, &batch(n)), (NONE, i64::from(n)));
        if n % 2 == 0 {
            broker.kill_and_run();
        } else {
            broker.stop_and_run();
        }
        assert_eq!(produce(&mut broker.connect(), &name, 0, &batch(n)), (NONE, i64::from(n)), "batch {n} again");
    }
    assert_eq!(produce(&mut broker.connect(), &name, 0, &batch(8)).0, OUT_OF_ORDER_SEQUENCE);
    assert_eq!(end(&mut broker.connect(), &name), 6);
}

/// A producer sends batches 0, 1 and 2 at once, and the broker comes to know the partition between 0 and 1.
#[test]
fn what_is_behind_a_batch_that_was_turned_away_is_turned_away() {
    let Some(broker) = Broker::owned(&[]) else { return };
    let mut connection = broker.connect();
    let (id, epoch) = producer_id(&mut connection);
    let batch = |n: i32| Batch::of([format!("{n}")]).from_producer(id, epoch, n);
    let (stranger, known) = (unique("stranger"), unique("known"));
    for name in [&stranger, &known] {
        assert_eq!(produce(&mut connection, name, 0, &batch(0)).0, UNKNOWN_TOPIC_OR_PARTITION);
        create_topic(&broker, name, 1, &[]);
    }
    for n in [1, 2] {
        let code = produce(&mut connection, &stranger, 0, &batch(n)).0;
        assert_eq!(code, UNKNOWN_TOPIC_OR_PARTITION, "the first of a producer that nobody knows, as 0 never could be");
    }
    assert_eq!(end(&mut connection, &stranger), 0);
    for n in 0..3 {
        assert_eq!(produce(&mut connection, &stranger, 0, &batch(n)), (NONE, i64::from(n)));
    }
    // Batch 0 arrived by another way: at the leader before this one.
    assert_eq!(produce(&mut broker.connect(), &known, 0, &batch(0)), (NONE, 0));
    assert_eq!(
        produce(&mut broker.connect(), &known, 0, &batch(2)).0,
        OUT_OF_ORDER_SEQUENCE,
        "nothing was turned away"
    );
    assert_eq!(
        produce(&mut connection, &known, 0, &batch(2)).0,
        UNKNOWN_TOPIC_OR_PARTITION,
        "batch 1 is still to come"
    );
    for n in 0..3 {
        assert_eq!(produce(&mut connection, &known, 0, &batch(n)), (NONE, i64::from(n)));
    }
    assert_eq!(produce(&mut connection, &known, 0, &batch(4)).0, OUT_OF_ORDER_SEQUENCE, "a gap of the producer's own");
}

/// Producer ids are never given out twice, not even after a crash.
#[test]
fn producer_ids_are_new_after_a_crash() {
    let Some(mut broker) = Broker::owned(&[]) else { return };
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..4 {
        let mut connection = broker.connect();
        for _ in 0..10 {
            let (id, _) = producer_id(&mut connection);
            assert!(seen.insert(id), "producer id {id} was given twice");
        }
        broker.kill_and_run();
    }
}

#[test]
fn acks_0_has_no_answer_and_the_next_request_has() {
    let broker = Broker::start();
    let name = topic(&broker, "acks-0", 1, &[]);
    let mut connection = broker.connect();
    let silent = produce_body(&name, 0, 0, &Batch::of(["a"]).bytes());
    connection.send_bytes(&compat_tests::wire::framed(&compat_tests::wire::request(PRODUCE, 7, 1000, &silent)));
    assert_eq!(produce(&mut connection, &name, 0, &Batch::of(["b"])), (NONE, 1));
}

#[test]
fn acks_other_than_0_1_and_all_are_refused() {
    let broker = Broker::start();
    let name = topic(&broker, "acks", 1, &[]);
    let mut connection = broker.connect();
    for acks in [2, -2, i16::MAX] {
        let answer = connection.call(PRODUCE, 7, &produce_body(&name, 0, acks, &Batch::of(["a"]).bytes()));
        assert_eq!(produced(answer).0, INVALID_REQUIRED_ACKS, "acks {acks}");
    }
    assert_eq!(end(&mut connection, &name), 0);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let broker = Broker::start();
    let name = topic(&broker, "pipelined", 1, &[]);
    let mut connection = broker.connect();
    for n in 0..200 {
        let acks = if n % 3 == 0 { 1 } else { -1 };
        connection.send(PRODUCE, 7, &produce_body(&name, 0, acks, &Batch::of([format!("{n}")]).bytes()));
    }
    for n in 0..200 {
        assert_eq!(produced(connection.receive()), (NONE, n));
    }
}

#[test]
fn one_bad_partition_does_not_harm_the_others_of_its_request() {
    let broker = Broker::start();
    let name = topic(&broker, "mixed", 1, &[]);
    let mut connection = broker.connect();
    let good = Batch::of(["a"]).bytes();
    let mut broken = good.clone();
    *broken.last_mut().expect("bytes") ^= 1;
    let body = Body::new()
        .null_string()
        .i16(-1)
        .i32(10_000)
        .i32(1)
        .string(&name)
        .i32(2)
        .i32(0)
        .bytes(&good)
        .i32(5)
        .bytes(&broken);
    let mut answer = connection.call(PRODUCE, 7, &body);
    let results = answer.array(|r| {
        r.string();
        r.array(|r| {
            let result = (r.i32(), r.i16());
            r.i64();
            r.i64();
            r.i64();
            result
        })
    });
    assert_eq!(results, [[(0, NONE), (5, UNKNOWN_TOPIC_OR_PARTITION)]]);
    assert_eq!(end(&mut connection, &name), 1);
}

#[test]
fn batches_that_lie_are_refused_and_nothing_is_stored() {
    let broker = Broker::start();
    let name = topic(&broker, "lies", 1, &[]);
    let mut connection = broker.connect();
    let good = Batch::of(["a", "b", "c"]);
    let count = |n| Batch { claimed_count: Some(n), ..good.clone() };
    let mut flipped = good.bytes();
    *flipped.last_mut().expect("bytes") ^= 1;
    let control = Batch { attributes: 0x20, ..good.clone() };
    let cases: Vec<(&str, Vec<u8>, &[i16])> = vec![
        ("a flipped bit", flipped, &[CORRUPT_MESSAGE]),
        ("fewer records than there are", count(2).bytes(), &[INVALID_RECORD]),
        ("more records than there are", count(4).bytes(), &[INVALID_RECORD]),
        ("no records", count(0).bytes(), &[INVALID_RECORD]),
        ("a negative number of records", count(-1).bytes(), &[INVALID_RECORD]),
        ("two billion records", count(i32::MAX).bytes(), &[INVALID_RECORD]),
        ("a control batch", control.bytes(), &[INVALID_RECORD]),
        ("two batches in one", [good.bytes(), good.bytes()].concat(), &[INVALID_RECORD]),
    ];
    for (what, bytes, codes) in cases {
        let (error, offset) = produced(connection.call(PRODUCE, 7, &produce_body(&name, 0, -1, &bytes)));
        assert!(codes.contains(&error), "{what}: error {error}, expected one of {codes:?}");
        assert_eq!(offset, -1, "{what}");
    }
    assert_eq!(end(&mut connection, &name), 0);
    assert_eq!(produce(&mut connection, &name, 0, &good), (NONE, 0));
}
