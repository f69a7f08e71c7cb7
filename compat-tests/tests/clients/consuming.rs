//! Consumers: commit and resume, seek, times, watermarks, reset policies, limits.

use std::time::{Duration, Instant};

use compat_tests::clients::{
    CALL_MAX, Outgoing, admin, admin_options, commit, config, create_topic, read, read_topic, reader, send_all, unique,
    wait,
};
use compat_tests::{Broker, until};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaErrorCode as Code;
use rdkafka::{Offset, TopicPartitionList};

fn numbers(range: std::ops::Range<i64>) -> Vec<Outgoing> {
    range.map(|n| Outgoing::to(0, n.to_string())).collect()
}

fn filled(broker: &Broker, tag: &str, count: i64) -> String {
    let topic = create_topic(broker, tag, 1, &[]);
    let deliveries = send_all(broker, &[], &topic, &numbers(0..count));
    assert!(deliveries.iter().all(Result::is_ok));
    topic
}

fn in_group(broker: &Broker, group: &str, topic: &str, settings: &[(&str, &str)]) -> BaseConsumer {
    let mut config =
        config(broker, &[("group.id", group), ("enable.auto.commit", "false"), ("auto.offset.reset", "earliest")]);
    for (key, value) in settings {
        config.set(*key, *value);
    }
    let consumer: BaseConsumer = config.create().expect("a consumer");
    consumer.subscribe(&[topic]).expect("subscribe");
    consumer
}

fn at(topic: &str, offset: Offset) -> TopicPartitionList {
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, 0, offset).expect("an offset");
    list
}

fn offset_of(list: &TopicPartitionList, topic: &str) -> Offset {
    list.find_partition(topic, 0).expect("the partition").offset()
}

#[test]
fn a_group_resumes_where_it_committed() {
    let broker = Broker::start();
    let topic = filled(&broker, "resume", 100);
    let group = unique("resume");
    for start in [0, 10, 20] {
        let consumer = in_group(&broker, &group, &topic, &[]);
        let records = read(&consumer, 10);
        assert_eq!(records[0].offset, start);
        commit(&consumer, &at(&topic, Offset::Offset(start + 10)));
    }
}

#[test]
fn automatic_commits_happen_when_a_consumer_closes() {
    let broker = Broker::start();
    let topic = filled(&broker, "auto-commit", 50);
    let group = unique("auto-commit");
    // Offsets are stored by hand, since this client reads on while it closes.
    let consumer =
        in_group(&broker, &group, &topic, &[("enable.auto.commit", "true"), ("enable.auto.offset.store", "false")]);
    assert_eq!(read(&consumer, 20).len(), 20);
    consumer.store_offset(&topic, 0, 19).expect("store_offset");
    drop(consumer);
    let consumer = in_group(&broker, &group, &topic, &[]);
    assert_eq!(read(&consumer, 1)[0].offset, 20);
}

#[test]
fn committed_offsets_carry_their_metadata_and_unknown_ones_are_invalid() {
    let broker = Broker::start();
    let topic = create_topic(&broker, "committed", 2, &[]);
    let consumer: BaseConsumer = config(&broker, &[("group.id", &unique("committed"))]).create().expect("a consumer");
    let mut list = TopicPartitionList::new();
    let mut element = list.add_partition(&topic, 0);
    element.set_offset(Offset::Offset(7)).expect("an offset");
    element.set_metadata("a note");
    commit(&consumer, &list);
    let mut asked = TopicPartitionList::new();
    asked.add_partition_range(&topic, 0, 1);
    let committed = consumer.committed_offsets(asked, CALL_MAX).expect("committed");
    let known = committed.find_partition(&topic, 0).expect("partition 0");
    assert_eq!((known.offset(), known.metadata()), (Offset::Offset(7), "a note"));
    assert_eq!(committed.find_partition(&topic, 1).expect("partition 1").offset(), Offset::Invalid);
}

/// Trap 34, the client's side: a consumer that only assigns may commit too, with and without an instance id.
#[test]
fn a_consumer_without_membership_commits() {
    let broker = Broker::start();
    let topic = filled(&broker, "assign-only", 10);
    for settings in [vec![], vec![("group.instance.id", "i1")]] {
        let group = unique("assign-only");
        let mut all = vec![("group.id", group.as_str())];
        all.extend(settings);
        let consumer = reader(&broker, &topic, 1, Offset::Beginning, &all);
        assert_eq!(read(&consumer, 5).len(), 5);
        commit(&consumer, &at(&topic, Offset::Offset(5)));
        let committed = consumer.committed_offsets(at(&topic, Offset::Invalid), CALL_MAX).expect("committed");
        assert_eq!(offset_of(&committed, &topic), Offset::Offset(5));
    }
}

#[test]
fn seeking_goes_back_forward_and_to_both_ends() {
    let broker = Broker::start();
    let topic = filled(&broker, "seek", 100);
    let consumer = reader(&broker, &topic, 1, Offset::Beginning, &[]);
    assert_eq!(read(&consumer, 1)[0].offset, 0);
    for (to, expected) in
        [(Offset::Offset(90), 90), (Offset::Offset(5), 5), (Offset::Beginning, 0), (Offset::OffsetTail(3), 97)]
    {
        consumer.seek(&topic, 0, to, CALL_MAX).expect("seek");
        assert_eq!(read(&consumer, 1)[0].offset, expected, "{to:?}");
    }
}

#[test]
fn offsets_for_times_finds_the_first_record_not_older() {
    let broker = Broker::start();
    let topic = create_topic(&broker, "times", 1, &[]);
    let base = 1_700_000_000_000;
    let sent: Vec<Outgoing> =
        (0..50).map(|n| Outgoing { timestamp: Some(base + n * 10), ..Outgoing::to(0, "v") }).collect();
    send_all(&broker, &[("linger.ms", "20")], &topic, &sent);
    let consumer = reader(&broker, &topic, 1, Offset::Beginning, &[]);
    let find = |time: i64| {
        let found = consumer.offsets_for_times(at(&topic, Offset::Offset(time)), CALL_MAX).expect("offsets_for_times");
        offset_of(&found, &topic)
    };
    assert_eq!(find(0), Offset::Offset(0));
    assert_eq!(find(base), Offset::Offset(0));
    assert_eq!(find(base + 1), Offset::Offset(1));
    assert_eq!(find(base + 250), Offset::Offset(25));
    assert_eq!(find(base + 490), Offset::Offset(49));
    // Trap 10: nothing that new.
    assert_eq!(find(base + 491), Offset::End);
}

/// Trap 10: no record at all.
#[test]
fn offsets_for_times_of_an_empty_topic_is_the_end() {
    let broker = Broker::start();
    let topic = create_topic(&broker, "no-times", 1, &[]);
    let consumer = reader(&broker, &topic, 1, Offset::Beginning, &[]);
    let found = consumer.offsets_for_times(at(&topic, Offset::Offset(5)), CALL_MAX).expect("offsets_for_times");
    assert_eq!(offset_of(&found, &topic), Offset::End);
}

/// Trap 22: the end is one past the last record, the start moves with deleted records.
#[test]
fn watermarks_follow_produced_and_deleted_records() {
    let broker = Broker::start();
    let topic = filled(&broker, "watermarks", 100);
    let consumer = reader(&broker, &topic, 1, Offset::Beginning, &[]);
    assert_eq!(consumer.fetch_watermarks(&topic, 0, CALL_MAX).expect("watermarks"), (0, 100));
    let results =
        wait(admin(&broker).delete_records(&at(&topic, Offset::Offset(40)), &admin_options())).expect("delete_records");
    assert_eq!(offset_of(&results, &topic), Offset::Offset(40));
    assert_eq!(consumer.fetch_watermarks(&topic, 0, CALL_MAX).expect("watermarks"), (40, 100));
    let offsets: Vec<i64> = read_topic(&broker, &topic, 1).iter().map(|r| r.offset).collect();
    assert_eq!(offsets, (40..100).collect::<Vec<i64>>());
}

#[test]
fn an_offset_out_of_range_obeys_the_reset_policy() {
    let broker = Broker::start();
    let topic = filled(&broker, "reset", 20);
    let from = |policy| reader(&broker, &topic, 1, Offset::Offset(1000), &[("auto.offset.reset", policy)]);
    assert_eq!(read(&from("earliest"), 1)[0].offset, 0);
    let failing = from("error");
    let error = until("an error event", CALL_MAX, || failing.poll(Duration::from_millis(100))?.err());
    assert_eq!(error.rdkafka_error_code(), Some(Code::AutoOffsetReset), "{error}");
    let latest = from("latest");
    assert!(latest.poll(Duration::from_secs(1)).is_none());
    send_all(&broker, &[], &topic, &numbers(20..21));
    assert_eq!(read(&latest, 1)[0].offset, 20);
}

#[test]
fn the_end_of_a_partition_is_told_once_it_is_reached() {
    let broker = Broker::start();
    for count in [0, 3] {
        let topic = filled(&broker, "eof", count);
        let consumer = reader(&broker, &topic, 1, Offset::Beginning, &[("enable.partition.eof", "true")]);
        let mut seen = 0;
        until("the end of the partition", CALL_MAX, || match consumer.poll(Duration::from_millis(100))? {
            Ok(_) => {
                seen += 1;
                None
            }
            Err(KafkaError::PartitionEOF(0)) => Some(()),
            Err(error) => panic!("{error}"),
        });
        assert_eq!(seen, count);
    }
}

/// Trap 24, the client's side: data that arrives during a long wait ends it.
#[test]
fn a_waiting_consumer_gets_a_record_at_once() {
    let broker = Broker::start();
    let topic = create_topic(&broker, "wake", 1, &[]);
    let consumer = reader(
        &broker,
        &topic,
        1,
        Offset::Beginning,
        &[("fetch.wait.max.ms", "10000"), ("socket.timeout.ms", "30000")],
    );
    assert!(consumer.poll(Duration::from_secs(1)).is_none());
    let began = Instant::now();
    send_all(&broker, &[], &topic, &numbers(0..1));
    assert_eq!(read(&consumer, 1)[0].offset, 0);
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}

/// Trap 5, the client's side: one record bigger than every limit still comes.
#[test]
fn small_fetch_limits_never_block_a_big_record() {
    let broker = Broker::start();
    let topic = create_topic(&broker, "limits", 2, &[]);
    let sent = [
        Outgoing::to(0, vec![1; 900_000]),
        Outgoing::to(1, vec![2; 900_000]),
        Outgoing::to(0, "small"),
        Outgoing::to(1, "small"),
    ];
    send_all(&broker, &[], &topic, &sent);
    let limits = [
        ("fetch.message.max.bytes", "1000"),
        ("fetch.max.bytes", "2000"),
        ("message.max.bytes", "1000"),
        ("receive.message.max.bytes", "2000000"),
    ];
    let consumer = reader(&broker, &topic, 2, Offset::Beginning, &limits);
    let mut sizes: Vec<usize> = read(&consumer, 4).iter().map(|r| r.value.as_ref().map_or(0, Vec::len)).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [5, 5, 900_000, 900_000]);
}

#[test]
fn a_paused_partition_is_silent_until_resumed() {
    let broker = Broker::start();
    let topic = create_topic(&broker, "pause", 2, &[]);
    let consumer = reader(&broker, &topic, 2, Offset::Beginning, &[]);
    let mut paused = TopicPartitionList::new();
    paused.add_partition(&topic, 0);
    consumer.pause(&paused).expect("pause");
    send_all(&broker, &[], &topic, &[Outgoing::to(0, "paused"), Outgoing::to(1, "running")]);
    assert_eq!(read(&consumer, 1)[0].text(), "running");
    assert!(consumer.poll(Duration::from_millis(500)).is_none());
    consumer.resume(&paused).expect("resume");
    assert_eq!(read(&consumer, 1)[0].text(), "paused");
}

#[test]
fn position_follows_what_was_read() {
    let broker = Broker::start();
    let topic = filled(&broker, "position", 10);
    let consumer = reader(&broker, &topic, 1, Offset::Beginning, &[]);
    read(&consumer, 10);
    assert_eq!(offset_of(&consumer.position().expect("position"), &topic), Offset::Offset(10));
}
