//! Nodes are killed while an idempotent producer sends with acks=all: every acknowledged record is there once, at the offset it was told.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use compat_tests::Cluster;
use compat_tests::clients::{Incoming, Outgoing, Sender, create_replicated, read_topic};

const PARTITIONS: i32 = 3;

/// How often a node is killed; BARNABAS_KILLS sets it.
fn kills() -> usize {
    std::env::var("BARNABAS_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(3)
}

const PATIENT: [(&str, &str); 8] = [
    ("enable.idempotence", "true"),
    ("batch.num.messages", "20"),
    ("linger.ms", "1"),
    ("retry.backoff.ms", "20"),
    ("retry.backoff.max.ms", "100"),
    ("reconnect.backoff.ms", "20"),
    ("reconnect.backoff.max.ms", "100"),
    ("delivery.timeout.ms", "300000"),
];

/// Sends a little for a while.
fn send_for(sender: &Sender, topic: &str, sent: &mut usize, time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        for _ in 0..10 {
            let partition = i32::try_from(*sent).expect("a number") % PARTITIONS;
            sender.send(topic, *sent, &Outgoing::to(partition, sent.to_string())).expect("the client takes the record");
            *sent += 1;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[track_caller]
fn assert_nothing_lost(cluster: &Cluster, sender: &Sender, topic: &str, sent: usize) {
    sender.flush();
    let deliveries = sender.deliveries();
    assert_eq!(deliveries.len(), sent, "a report for each record");
    let found: BTreeMap<(i32, i64), String> = read_topic(cluster, topic, PARTITIONS)
        .iter()
        .map(|one: &Incoming| ((one.partition, one.offset), one.text()))
        .collect();
    let mut failed = 0;
    for (number, delivery) in &deliveries {
        match delivery {
            Ok(place) => assert_eq!(found.get(place), Some(&number.to_string()), "record {number} at {place:?}"),
            Err(_) => failed += 1,
        }
    }
    assert_eq!(failed, 0, "records that were given up");
    assert_eq!(found.len(), sent, "each record once");
}

#[test]
fn killing_leaders_loses_nothing() {
    let mut cluster = Cluster::start(&[]);
    let topic = create_replicated(&cluster, "leaders", PARTITIONS, 3, &[("min.insync.replicas", "2")]);
    let sender = Sender::new(&cluster, &PATIENT);
    let mut sent = 0;
    for round in 0..kills() {
        send_for(&sender, &topic, &mut sent, Duration::from_millis(500));
        let leader = cluster.leader(&topic, i32::try_from(round).expect("small") % PARTITIONS);
        cluster.node_mut(leader).kill();
        send_for(&sender, &topic, &mut sent, Duration::from_millis(1500));
        cluster.run(leader);
        cluster.await_full_isr(&topic);
    }
    assert_nothing_lost(&cluster, &sender, &topic, sent);
}

#[test]
fn killing_all_nodes_at_once_loses_nothing() {
    let mut cluster = Cluster::start(&[]);
    let topic = create_replicated(&cluster, "all", PARTITIONS, 3, &[("min.insync.replicas", "2")]);
    let sender = Sender::new(&cluster, &PATIENT);
    let mut sent = 0;
    send_for(&sender, &topic, &mut sent, Duration::from_secs(1));
    for id in cluster.ids() {
        cluster.node_mut(id).kill();
    }
    for id in cluster.ids() {
        cluster.node_mut(id).spawn();
    }
    cluster.await_ready();
    send_for(&sender, &topic, &mut sent, Duration::from_secs(1));
    cluster.await_full_isr(&topic);
    assert_nothing_lost(&cluster, &sender, &topic, sent);
}
