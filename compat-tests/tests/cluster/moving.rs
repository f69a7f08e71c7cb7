//! Copies are made on other nodes, whatever became of the partition before.

use compat_tests::Cluster;
use compat_tests::clients::{Outgoing, Sender, admin, admin_options, create_replicated, read_topic, wait};
use compat_tests::cluster::READY_MAX;
use compat_tests::until;
use compat_tests::wire::{ALTER_PARTITION_REASSIGNMENTS, Body};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::{Offset, TopicPartitionList};

/// Of a batch.
const RECORDS: usize = 100;

/// A client that sends what it has when it is told to.
const IN_BATCHES: [(&str, &str); 3] = [("linger.ms", "10000"), ("enable.idempotence", "true"), ("acks", "all")];

fn write_batches(cluster: &Cluster, topic: &str, batches: std::ops::Range<usize>) {
    for batch in batches {
        let sender = Sender::new(cluster, &IN_BATCHES);
        for number in batch * RECORDS..(batch + 1) * RECORDS {
            let record = Outgoing::to(0, format!("value {number}"));
            sender.send(topic, number, &record).expect("the client takes the record");
        }
        sender.flush();
        assert!(sender.deliveries().values().all(Result::is_ok));
    }
}

fn delete_before(cluster: &Cluster, topic: &str, offset: i64) {
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, 0, Offset::Offset(offset)).expect("an offset");
    let result = wait(admin(cluster).delete_records(&list, &admin_options())).expect("delete_records");
    let element = result.find_partition(topic, 0).expect("the partition");
    assert_eq!((element.error(), element.offset()), (Ok(()), Offset::Offset(offset)));
}

/// The first is the preferred leader.
fn reassign(cluster: &Cluster, topic: &str, replicas: &[i32]) {
    let partition = Body::new().i32(0).compact_array(u32::try_from(replicas.len()).expect("few"));
    let partition = replicas.iter().fold(partition, |body, id| body.i32(*id)).tags();
    let body = Body::new().i32(20_000).compact_array(1).compact_string(topic).compact_array(1);
    let body = body.raw(&partition.0).tags().tags();
    let mut connection = cluster.node(1).connect();
    let mut answer = connection.call(ALTER_PARTITION_REASSIGNMENTS, 0, &body);
    let (_throttle, error, message) = (answer.i32(), answer.i16(), answer.compact_string());
    assert_eq!((error, message), (0, None));
}

#[track_caller]
fn await_replicas(cluster: &Cluster, topic: &str, replicas: &[i32]) {
    until("the new replicas, all of them in sync", READY_MAX, || {
        let metadata = cluster.metadata(topic)?;
        let partition = metadata.topics().first()?.partitions().first()?;
        let mut isr = partition.isr().to_vec();
        let mut wanted = replicas.to_vec();
        isr.sort_unstable();
        wanted.sort_unstable();
        (partition.replicas() == replicas && isr == wanted).then_some(())
    });
}

fn earliest(cluster: &Cluster, topic: &str) -> (i64, i64) {
    let consumer: BaseConsumer = compat_tests::clients::config(cluster, &[]).create().expect("a consumer");
    consumer.fetch_watermarks(topic, 0, READY_MAX).expect("the offsets")
}

#[test]
fn a_partition_whose_log_starts_inside_a_batch_moves_to_other_nodes() {
    let cluster = Cluster::start(&[]);
    let topic = create_replicated(&cluster, "purged", 1, 1, &[]);
    let first = cluster.leader(&topic, 0);
    write_batches(&cluster, &topic, 0..5);
    delete_before(&cluster, &topic, 250);
    let before = read_topic(&cluster, &topic, 1);
    assert_eq!((before.len(), before[0].offset), (250, 250));

    let others: Vec<i32> = cluster.ids().filter(|id| *id != first).collect();
    let all: Vec<i32> = others.iter().copied().chain([first]).collect();
    reassign(&cluster, &topic, &all);
    await_replicas(&cluster, &topic, &all);
    reassign(&cluster, &topic, &others);
    await_replicas(&cluster, &topic, &others);
    until("another leader", READY_MAX, || (cluster.leader(&topic, 0) != first).then_some(()));
    assert_eq!(earliest(&cluster, &topic), (250, 500));
    assert!(read_topic(&cluster, &topic, 1) == before, "readers find the same");

    write_batches(&cluster, &topic, 5..6);
    delete_before(&cluster, &topic, 333);
    let offsets: Vec<i64> = read_topic(&cluster, &topic, 1).iter().map(|one| one.offset).collect();
    assert_eq!(offsets, (333..600).collect::<Vec<_>>());
}
