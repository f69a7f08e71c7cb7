//! Bytes change on the disk of a running node: its copy leaves the in-sync set and is fetched again, whether it followed or led, and
//! readers find what was written.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use compat_tests::clients::{Incoming, Outgoing, create_replicated, read, reader, send_all};
use compat_tests::cluster::READY_MAX;
use compat_tests::{Cluster, until};
use rdkafka::Offset;

/// Of twenty KiB, so that there are several segments of a MiB.
const RECORDS: usize = 300;

/// The scrubber goes round and round.
const SETTINGS: [(&str, &str); 3] = [
    ("log.scrub.interval.ms", "300"),
    ("log.scrub.bytes.per.second", "1000000000"),
    ("log.flush.offset.checkpoint.interval.ms", "500"),
];

/// A node's segments of the partition, oldest first.
fn segments(cluster: &Cluster, id: i32, topic: &str) -> Vec<PathBuf> {
    let dir = cluster.node(id).data().join(format!("{topic}-0"));
    let entries = fs::read_dir(dir).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let mut logs: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|ext| ext == "log")).collect();
    logs.sort();
    logs
}

/// Everything that the node has of the partition. Segments may begin at other places than elsewhere.
fn dump(cluster: &Cluster, id: i32, topic: &str) -> Vec<u8> {
    segments(cluster, id, topic).iter().flat_map(|path| fs::read(path).unwrap_or_default()).collect()
}

/// Flips a bit in the middle of a segment.
fn flip(cluster: &Cluster, id: i32, topic: &str, segment: usize) {
    let logs = segments(cluster, id, topic);
    assert!(logs.len() > segment + 1, "a closed segment: {logs:?}");
    let file: File = OpenOptions::new().read(true).write(true).open(&logs[segment]).expect("the segment");
    let at = file.metadata().expect("its size").len() / 2;
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("a byte");
    byte[0] ^= 1;
    file.write_all_at(&byte, at).expect("another one");
}

fn values(from: usize) -> Vec<String> {
    (from..from + RECORDS).map(|number| format!("{number} {}", "x".repeat(20 << 10))).collect()
}

fn write(cluster: &Cluster, topic: &str, from: usize) {
    let records: Vec<Outgoing> = values(from).into_iter().map(|value| Outgoing::to(0, value)).collect();
    for delivery in send_all(cluster, &[("enable.idempotence", "true")], topic, &records) {
        delivery.expect("acknowledged");
    }
}

#[track_caller]
fn await_rebuilt(cluster: &Cluster, id: i32, topic: &str, before: &[u8]) {
    until("the damaged copy is whole again", READY_MAX, || {
        (dump(cluster, id, topic).get(..before.len()) == Some(before)).then_some(())
    });
    cluster.await_full_isr(topic);
    let log = cluster.node(id).log();
    assert!(log.contains("is not what was written"), "its log says so:\n{log}");
}

#[test]
fn damaged_copies_are_rebuilt_while_everything_goes_on() {
    let cluster = Cluster::start(&SETTINGS);
    let configs = [("min.insync.replicas", "2"), ("segment.bytes", "1048576")];
    let topic = create_replicated(&cluster, "damaged", 1, 3, &configs);
    write(&cluster, &topic, 0);
    cluster.await_full_isr(&topic);
    let leader = cluster.leader(&topic, 0);
    let follower = cluster.ids().find(|id| *id != leader).expect("another node");
    let before = dump(&cluster, leader, &topic);
    until("the copies are the same", READY_MAX, || (dump(&cluster, follower, &topic) == before).then_some(()));

    flip(&cluster, follower, &topic, 1);
    await_rebuilt(&cluster, follower, &topic, &before);
    assert_eq!(cluster.leader(&topic, 0), leader, "it went on leading");

    write(&cluster, &topic, RECORDS);
    let before = dump(&cluster, leader, &topic);
    flip(&cluster, leader, &topic, 2);
    await_rebuilt(&cluster, leader, &topic, &before);
    assert_ne!(cluster.leader(&topic, 0), leader, "another one leads");

    let consumer = reader(&cluster, &topic, 1, Offset::Beginning, &[("check.crcs", "true")]);
    let found: Vec<String> = read(&consumer, 2 * RECORDS).iter().map(Incoming::text).collect();
    let written: Vec<String> = [0, RECORDS].into_iter().flat_map(values).collect();
    assert!(found == written, "readers find what was written");
}

/// The partition's directory is taken away while all are stopped: whoever was stopped last would lead, with nothing.
#[test]
fn a_copy_that_was_taken_away_does_not_lead_those_that_are_whole() {
    let mut cluster = Cluster::start(&[]);
    let topic = create_replicated(&cluster, "taken", 1, 3, &[("min.insync.replicas", "2")]);
    write(&cluster, &topic, 0);
    cluster.await_full_isr(&topic);
    let last = cluster.leader(&topic, 0);
    let others: Vec<i32> = cluster.ids().filter(|id| *id != last).collect();
    for id in others.iter().chain([&last]) {
        cluster.node_mut(*id).stop();
    }
    let taken = cluster.node(last).data().join(format!("{topic}-0"));
    fs::remove_dir_all(taken).expect("the copy");

    for id in [last, others[0], others[1]] {
        cluster.node_mut(id).spawn();
    }
    cluster.await_ready();
    cluster.await_full_isr(&topic);
    let consumer = reader(&cluster, &topic, 1, Offset::Beginning, &[("check.crcs", "true")]);
    let found: Vec<String> = read(&consumer, RECORDS).iter().map(Incoming::text).collect();
    assert!(found == values(0), "nothing is lost");
    let log = cluster.node(last).log();
    assert!(log.contains("shorter than it was when it was closed"), "its log says so:\n{log}");
}
