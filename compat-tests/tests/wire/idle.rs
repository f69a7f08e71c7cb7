//! Idle connections. Trap 52.

use std::time::{Duration, Instant};

use compat_tests::Broker;
use compat_tests::batch::Batch;
use compat_tests::clients::{Outgoing, Sender};
use compat_tests::wire::{FETCH, METADATA};

use crate::calls::{Fetch, FetchPartition, NONE, produce, topic};

const IDLE: [(&str, &str); 1] = [("connections.max.idle.ms", "2000")];

/// The broker closes what is idle; a request that waits is not idle.
#[test]
fn idle_connections_are_closed_and_waiting_ones_are_not() {
    let Some(broker) = Broker::owned(&IDLE) else { return };
    let name = topic(&broker, "idle", 1, &[]);
    let mut waiting = broker.connect();
    let fetch = Fetch { wait_ms: 6000, ..Fetch::of(11, &name, [0; 16], &[FetchPartition::from(0, 0)]) };
    waiting.send(FETCH, 11, &fetch.body());
    let mut idle = broker.connect();
    produce(&mut idle, &name, 0, &Batch::of(["a"]));
    let mut silent = broker.connect();
    let began = Instant::now();
    assert!(idle.is_closed_within(Duration::from_secs(8)), "used, then idle");
    assert!(began.elapsed() >= Duration::from_millis(1500), "not before its time: {:?}", began.elapsed());
    assert!(silent.is_closed_within(Duration::from_secs(8)), "never used");
    assert_eq!(fetch.read(waiting.receive()).partitions[0].error, NONE);
}

/// A connection that keeps talking lives on.
#[test]
fn a_busy_connection_outlives_the_idle_limit() {
    let Some(broker) = Broker::owned(&IDLE) else { return };
    let name = topic(&broker, "busy", 1, &[]);
    let mut connection = broker.connect();
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(4) {
        assert_eq!(produce(&mut connection, &name, 0, &Batch::of(["a"])).0, NONE);
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// A client whose connection was closed while it was idle delivers its next record without an error and soon.
#[test]
fn a_producer_delivers_after_being_idle() {
    let Some(broker) = Broker::owned(&IDLE) else { return };
    let name = topic(&broker, "idle-producer", 1, &[]);
    let sender = Sender::new(&broker, &[]);
    sender.send(&name, 0, &Outgoing::to(0, "first")).expect("the client takes the record");
    sender.flush();
    let mut probe = broker.connect();
    probe.call(METADATA, 8, &compat_tests::wire::Body::new().i32(0).bool(false).bool(false).bool(false));
    assert!(probe.is_closed_within(Duration::from_secs(8)), "by now the producer's connection is closed too");
    let began = Instant::now();
    sender.send(&name, 1, &Outgoing::to(0, "second")).expect("the client takes the record");
    sender.flush();
    assert_eq!(sender.deliveries().into_values().collect::<Vec<_>>(), [Ok((0, 0)), Ok((0, 1))]);
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}
