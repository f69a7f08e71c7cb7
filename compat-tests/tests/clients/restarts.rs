//! The process ends, well or badly, and comes back: nothing acknowledged is gone. Traps 29, 31, 46, 54 and 55 on one broker.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use compat_tests::clients::{
    CALL_MAX, Outgoing, Sender, admin, admin_options, commit, config, create_topic, read, read_topic, reader, send_all,
    unique, wait,
};
use compat_tests::members::{Member, SETTLE_MAX};
use compat_tests::{Broker, until};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::{Offset, TopicPartitionList};

/// How often the process is killed under load; BARNABAS_KILLS=50 is the acceptance.
fn kills() -> usize {
    std::env::var("BARNABAS_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(5)
}

fn commit_at(broker: &Broker, group: &str, topic: &str, offset: i64) {
    let consumer: BaseConsumer = config(broker, &[("group.id", group)]).create().expect("a consumer");
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, 0, Offset::Offset(offset)).expect("an offset");
    commit(&consumer, &list);
}

fn committed(broker: &Broker, group: &str, topic: &str) -> Offset {
    let consumer: BaseConsumer = config(broker, &[("group.id", group)]).create().expect("a consumer");
    let mut list = TopicPartitionList::new();
    list.add_partition(topic, 0);
    let offsets = consumer.committed_offsets(list, CALL_MAX).expect("committed");
    offsets.find_partition(topic, 0).expect("the partition").offset()
}

fn numbered(count: i32, partitions: i32) -> Vec<Outgoing> {
    (0..count).map(|n| Outgoing::to(n % partitions, n.to_string())).collect()
}

#[test]
fn topics_records_and_commits_outlive_a_clean_restart() {
    let Some(mut broker) = Broker::owned(&[]) else { return };
    let topic = create_topic(&broker, "kept", 3, &[("retention.ms", "7654321")]);
    send_all(&broker, &[("compression.type", "lz4")], &topic, &numbered(300, 3));
    commit_at(&broker, "kept-group", &topic, 42);
    let before = read_topic(&broker, &topic, 3);
    broker.stop_and_run();
    assert_eq!(read_topic(&broker, &topic, 3), before);
    assert_eq!(committed(&broker, "kept-group", &topic), Offset::Offset(42));
    let described =
        wait(admin(&broker).describe_configs([&rdkafka::admin::ResourceSpecifier::Topic(&topic)], &admin_options()));
    let value = described
        .expect("describe_configs")
        .remove(0)
        .expect("no error")
        .get("retention.ms")
        .and_then(|e| e.value.clone());
    assert_eq!(value.as_deref(), Some("7654321"));
    assert_eq!(send_all(&broker, &[], &topic, &[Outgoing::to(0, "next")]), [Ok((0, 100))]);
}

/// Trap 54: what `acks=all` acknowledged is there once, at the offset that was told, in order, after any number of crashes.
#[test]
fn acknowledged_records_are_there_once_and_in_order_after_kills() {
    let Some(mut broker) = Broker::owned(&[]) else { return };
    let topic = create_topic(&broker, "killed", 3, &[]);
    let settings = [
        ("enable.idempotence", "true"),
        ("batch.num.messages", "20"),
        ("linger.ms", "1"),
        ("retry.backoff.ms", "20"),
        ("retry.backoff.max.ms", "100"),
        ("reconnect.backoff.ms", "20"),
        ("reconnect.backoff.max.ms", "100"),
        ("delivery.timeout.ms", "300000"),
        ("queue.buffering.max.messages", "2000"),
    ];
    let sender = Sender::new(&broker, &settings);
    let mut sent = 0;
    for _ in 0..kills() {
        // Kill while the client's queue is full, so that requests are in flight.
        let goal = sender.delivered() + 1500;
        while sender.delivered() < goal {
            sender
                .send(&topic, sent, &Outgoing::to((sent % 3) as i32, sent.to_string()))
                .expect("the client takes the record");
            sent += 1;
        }
        broker.kill_and_run();
    }
    sender.flush();
    let deliveries = sender.deliveries();
    assert_eq!(deliveries.len(), sent);
    let read = read_topic(&broker, &topic, 3);
    let mut last = [-1i64; 3];
    let mut seen = BTreeSet::new();
    for record in &read {
        let number: usize = record.text().parse().expect("a number");
        assert!(seen.insert(number), "record {number} is there twice");
        assert_eq!(deliveries[&number], Ok((record.partition, record.offset)), "record {number}");
        let before = std::mem::replace(&mut last[record.partition as usize], number as i64);
        assert!(before < number as i64, "record {number} came after {before}");
    }
    let lost: Vec<_> = deliveries.iter().filter(|(number, d)| d.is_ok() && !seen.contains(number)).collect();
    assert!(lost.is_empty(), "acknowledged and gone: {lost:?}");
    assert!(deliveries.values().all(Result::is_ok), "an idempotent producer gets over every crash");
}

#[test]
fn acks_all_outlives_a_kill_right_after_the_answer() {
    let Some(mut broker) = Broker::owned(&[]) else { return };
    let topic = create_topic(&broker, "at-once", 1, &[]);
    for round in 0..5 {
        assert_eq!(send_all(&broker, &[("acks", "all")], &topic, &[Outgoing::to(0, "v")]), [Ok((0, round))]);
        broker.kill_and_run();
    }
    assert_eq!(read_topic(&broker, &topic, 1).len(), 5);
}

/// Trap 29: a commit is never forgotten, not even right after the crash.
#[test]
fn commits_outlive_kills_and_never_look_empty() {
    let Some(mut broker) = Broker::owned(&[]) else { return };
    let topic = create_topic(&broker, "commits", 1, &[]);
    for round in 1..4 {
        commit_at(&broker, "crash-group", &topic, round);
        broker.kill_and_run();
        assert_eq!(committed(&broker, "crash-group", &topic), Offset::Offset(round));
    }
}

/// Trap 31.
#[test]
fn a_deleted_group_stays_deleted_after_a_kill() {
    let Some(mut broker) = Broker::owned(&[]) else { return };
    let topic = create_topic(&broker, "deleted-group", 1, &[]);
    commit_at(&broker, "gone", &topic, 5);
    commit_at(&broker, "stays", &topic, 6);
    let results = wait(admin(&broker).delete_groups(&["gone"], &admin_options())).expect("delete_groups");
    assert!(results[0].is_ok(), "{results:?}");
    broker.kill_and_run();
    let look: BaseConsumer = config(&broker, &[]).create().expect("a consumer");
    let groups = look.fetch_group_list(None, CALL_MAX).expect("groups");
    let names: Vec<&str> = groups.groups().iter().map(|g| g.name()).collect();
    assert_eq!(names, ["stays"]);
    assert_eq!(committed(&broker, "gone", &topic), Offset::Invalid);
    assert_eq!(committed(&broker, "stays", &topic), Offset::Offset(6));
}

#[test]
fn a_deleted_topic_stays_deleted_after_a_kill() {
    let Some(mut broker) = Broker::owned(&[]) else { return };
    let topic = create_topic(&broker, "deleted", 1, &[]);
    send_all(&broker, &[], &topic, &numbered(10, 1));
    let results = wait(admin(&broker).delete_topics(&[&topic], &admin_options())).expect("delete_topics");
    assert!(results[0].is_ok(), "{results:?}");
    broker.kill_and_run();
    let look: BaseConsumer = config(&broker, &[]).create().expect("a consumer");
    let metadata = look.fetch_metadata(None, CALL_MAX).expect("metadata");
    assert!(metadata.topics().iter().all(|t| t.name() != topic));
}

#[test]
fn a_running_group_goes_on_after_a_kill() {
    let Some(mut broker) = Broker::owned(&[]) else { return };
    let topic = create_topic(&broker, "group-on", 2, &[]);
    let settings = [("reconnect.backoff.max.ms", "200")];
    let member = Member::join(env!("CARGO_BIN_EXE_group-member"), &broker, &unique("group-on"), &topic, &settings);
    until("an assignment", SETTLE_MAX, || (member.assigned().len() == 2).then_some(()));
    for round in 1..4 {
        send_all(&broker, &[], &topic, &[Outgoing::to(0, "a"), Outgoing::to(1, "b")]);
        until("the new records", SETTLE_MAX, || {
            let read: BTreeSet<(i32, i64)> = member.records().into_iter().collect();
            (read.len() == round * 2).then_some(())
        });
        broker.kill_and_run();
    }
}

/// The only segment of partition 0 of a topic.
fn file(broker: &Broker, topic: &str, ending: &str) -> PathBuf {
    broker.data().join(format!("{topic}-0")).join(format!("00000000000000000000.{ending}"))
}

/// Trap 55: whatever a crash left behind the last whole batch is cut off, and indexes are made again.
#[test]
fn a_damaged_tail_or_index_costs_nothing_that_was_whole() {
    let Some(mut broker) = Broker::owned(&[]) else { return };
    let topic = create_topic(&broker, "damaged", 1, &[]);
    let mut expected = 0i64;
    type Damage = fn(&Broker, &str);
    let damages: [(&str, Damage); 5] = [
        ("junk behind the last batch", |broker, topic| append(&file(broker, topic, "log"), &[0xa5; 777])),
        ("zeros behind the last batch", |broker, topic| append(&file(broker, topic, "log"), &[0; 4096])),
        ("the index deleted", |broker, topic| drop(fs::remove_file(file(broker, topic, "index")))),
        ("the index zeroed", |broker, topic| fs::write(file(broker, topic, "index"), [0; 8000]).expect("write")),
        ("the time index full of junk", |broker, topic| {
            fs::write(file(broker, topic, "timeindex"), [7; 1201]).expect("write")
        }),
    ];
    for (what, damage) in damages {
        send_all(&broker, &[], &topic, &numbered(200, 1));
        expected += 200;
        broker.kill();
        damage(&broker, &topic);
        broker.run();
        let offsets: Vec<i64> = read_topic(&broker, &topic, 1).iter().map(|r| r.offset).collect();
        assert_eq!(offsets, (0..expected).collect::<Vec<i64>>(), "{what}");
        assert_eq!(send_all(&broker, &[], &topic, &[Outgoing::to(0, "next")]), [Ok((0, expected))], "{what}");
        expected += 1;
    }
}

/// Trap 55: of a torn last batch either nothing is served or, where a synced copy of it exists elsewhere, all of it.
#[test]
fn a_torn_last_batch_is_cut_and_the_ones_before_are_served() {
    let Some(mut broker) = Broker::owned(&[]) else { return };
    let topic = create_topic(&broker, "torn", 1, &[]);
    for n in 0..10 {
        send_all(&broker, &[], &topic, &[Outgoing::to(0, n.to_string())]);
    }
    broker.kill();
    let log = file(&broker, &topic, "log");
    let whole = fs::metadata(&log).expect("the segment").len();
    fs::File::options().write(true).open(&log).expect("open").set_len(whole - 7).expect("cut");
    broker.run();
    let read: Vec<String> = read_topic(&broker, &topic, 1).iter().map(|r| r.text()).collect();
    let expected: Vec<String> = (0..10).map(|n| n.to_string()).collect();
    assert!(read == expected[..9] || read == expected, "{read:?}");
    assert_eq!(send_all(&broker, &[], &topic, &[Outgoing::to(0, "again")]), [Ok((0, read.len() as i64))]);
}

fn append(path: &PathBuf, bytes: &[u8]) {
    use std::io::Write;
    fs::File::options().append(true).open(path).expect("open").write_all(bytes).expect("write");
}

#[test]
fn sigterm_ends_the_process_soon_even_with_clients_waiting() {
    let Some(mut broker) = Broker::owned(&[]) else { return };
    let topic = create_topic(&broker, "stop", 1, &[]);
    let consumer = reader(
        &broker,
        &topic,
        1,
        Offset::Beginning,
        &[("fetch.wait.max.ms", "30000"), ("socket.timeout.ms", "60000")],
    );
    assert!(consumer.poll(Duration::from_millis(500)).is_none());
    send_all(&broker, &[], &topic, &[Outgoing::to(0, "v")]);
    assert_eq!(read(&consumer, 1).len(), 1);
    let took = broker.stop();
    assert!(took < Duration::from_secs(5), "{took:?}");
}
