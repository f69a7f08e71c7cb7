//! Producers: every codec and acks level, order, sizes, nulls, headers and timestamps.

use compat_tests::clients::{CALL_MAX, Incoming, Outgoing, Sender, create_topic, read_topic, reader, send_all, unique};
use compat_tests::{Broker, until};
use rdkafka::consumer::Consumer;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::types::RDKafkaErrorCode as Code;
use rdkafka::{Offset, Timestamp};

const CODECS: [&str; 5] = ["none", "gzip", "snappy", "lz4", "zstd"];

fn numbered(count: usize) -> Vec<Outgoing> {
    (0..count)
        .map(|n| Outgoing {
            key: Some(format!("k{n}").into()),
            ..Outgoing::value(format!("value {n} {}", "x".repeat(n % 50)))
        })
        .collect()
}

fn values(records: &[Incoming]) -> Vec<Vec<u8>> {
    records.iter().map(|r| r.value.clone().unwrap_or_default()).collect()
}

fn sent_values(records: &[Outgoing]) -> Vec<Vec<u8>> {
    records.iter().map(|r| r.value.clone().unwrap_or_default()).collect()
}

#[test]
fn every_codec_comes_back_byte_for_byte_at_every_acks_level() {
    let broker = Broker::start();
    for codec in CODECS {
        for acks in ["0", "1", "all"] {
            let topic = create_topic(&broker, &format!("{codec}-{acks}"), 1, &[]);
            let sent = numbered(300);
            let settings = [("compression.type", codec), ("acks", acks), ("linger.ms", "20")];
            let deliveries = send_all(&broker, &settings, &topic, &sent);
            assert!(deliveries.iter().all(Result::is_ok), "{codec} acks={acks}: {deliveries:?}");
            let look = reader(&broker, &topic, 1, Offset::Beginning, &[]);
            until("all records in the log (acks=0 answers nothing)", CALL_MAX, || {
                (look.fetch_watermarks(&topic, 0, CALL_MAX).ok()? == (0, 300)).then_some(())
            });
            let read = read_topic(&broker, &topic, 1);
            assert_eq!(values(&read), sent_values(&sent), "{codec} acks={acks}");
        }
    }
}

#[test]
fn a_topic_that_asks_for_its_own_codec_gives_back_the_same_records() {
    let broker = Broker::start();
    for stored in ["uncompressed", "gzip", "snappy", "lz4", "zstd"] {
        let topic = create_topic(&broker, stored, 1, &[("compression.type", stored)]);
        let sent = numbered(200);
        for codec in ["none", "lz4", "gzip"] {
            let deliveries = send_all(&broker, &[("compression.type", codec), ("linger.ms", "20")], &topic, &sent);
            assert!(deliveries.iter().all(Result::is_ok), "{codec} into {stored}: {deliveries:?}");
        }
        let all = read_topic(&broker, &topic, 1);
        assert_eq!(values(&all), [sent_values(&sent), sent_values(&sent), sent_values(&sent)].concat(), "{stored}");
    }
}

#[test]
fn delivery_reports_name_the_offset_where_the_record_is() {
    let broker = Broker::start();
    let topic = create_topic(&broker, "reports", 3, &[]);
    let sent: Vec<Outgoing> = (0..600).map(|n| Outgoing::to(n % 3, format!("{n}"))).collect();
    let deliveries = send_all(&broker, &[("acks", "all")], &topic, &sent);
    let read = read_topic(&broker, &topic, 3);
    assert_eq!(read.len(), 600);
    for record in read {
        let number: usize = record.text().parse().expect("a number");
        assert_eq!(deliveries[number], Ok((record.partition, record.offset)), "record {number}");
    }
}

#[test]
fn an_idempotent_producer_keeps_order_in_each_partition() {
    let broker = Broker::start();
    let topic = create_topic(&broker, "idempotent", 3, &[]);
    let sent: Vec<Outgoing> = (0..6000).map(|n| Outgoing::to(n % 3, format!("{n:05}"))).collect();
    let settings = [("enable.idempotence", "true"), ("batch.num.messages", "50"), ("linger.ms", "1")];
    let deliveries = send_all(&broker, &settings, &topic, &sent);
    assert!(deliveries.iter().all(Result::is_ok));
    let read = read_topic(&broker, &topic, 3);
    for partition in 0..3 {
        let got: Vec<String> = read.iter().filter(|r| r.partition == partition).map(Incoming::text).collect();
        let expected: Vec<String> = (0..6000).filter(|n| n % 3 == partition).map(|n| format!("{n:05}")).collect();
        assert_eq!(got, expected, "partition {partition}");
    }
}

#[test]
fn two_producers_into_one_partition_leave_dense_offsets() {
    let broker = Broker::start();
    let topic = create_topic(&broker, "two", 1, &[]);
    let senders = [Sender::new(&broker, &[]), Sender::new(&broker, &[("enable.idempotence", "true")])];
    for n in 0..1000 {
        senders[n % 2].send(&topic, n, &Outgoing::value(format!("{n}"))).expect("the client takes the record");
    }
    senders.iter().for_each(Sender::flush);
    let offsets: Vec<i64> = read_topic(&broker, &topic, 1).iter().map(|r| r.offset).collect();
    assert_eq!(offsets, (0..1000).collect::<Vec<i64>>());
}

#[test]
fn a_record_near_the_default_limit_passes_and_one_above_is_refused() {
    let broker = Broker::start();
    let topic = create_topic(&broker, "big", 1, &[]);
    let client = [("message.max.bytes", "8000000")];
    let sent =
        [Outgoing::value(vec![b'a'; 1_000_000]), Outgoing::value(vec![b'b'; 1_100_000]), Outgoing::value("after")];
    let mut deliveries = Vec::new();
    for one in &sent {
        deliveries.extend(send_all(&broker, &client, &topic, std::slice::from_ref(one)));
    }
    assert_eq!(deliveries, [Ok((0, 0)), Err(Code::MessageSizeTooLarge), Ok((0, 1))]);
    let read = read_topic(&broker, &topic, 1);
    assert_eq!(values(&read), [vec![b'a'; 1_000_000], b"after".to_vec()]);
}

#[test]
fn a_topic_may_raise_the_limit_and_consumers_still_get_the_record() {
    let broker = Broker::start();
    let topic = create_topic(&broker, "bigger", 1, &[("max.message.bytes", "6000000")]);
    let sent = [Outgoing::value(vec![b'c'; 5_000_000]), Outgoing::value("after")];
    let deliveries = send_all(&broker, &[("message.max.bytes", "8000000")], &topic, &sent);
    assert_eq!(deliveries, [Ok((0, 0)), Ok((0, 1))]);
    assert_eq!(values(&read_topic(&broker, &topic, 1)), sent_values(&sent));
}

#[test]
fn null_and_empty_keys_and_values_stay_apart() {
    let broker = Broker::start();
    let topic = create_topic(&broker, "nulls", 1, &[]);
    let choices = [None, Some(vec![]), Some(b"x".to_vec())];
    let mut sent = Vec::new();
    for key in &choices {
        for value in &choices {
            sent.push(Outgoing { key: key.clone(), value: value.clone(), ..Outgoing::default() });
        }
    }
    send_all(&broker, &[("linger.ms", "20")], &topic, &sent);
    let read: Vec<_> = read_topic(&broker, &topic, 1).into_iter().map(|r| (r.key, r.value)).collect();
    assert_eq!(read, sent.into_iter().map(|r| (r.key, r.value)).collect::<Vec<_>>());
}

#[test]
fn headers_keep_order_repeats_nulls_and_bytes() {
    let broker = Broker::start();
    let topic = create_topic(&broker, "headers", 1, &[]);
    let wanted: Vec<(&str, Option<&[u8]>)> = vec![
        ("a", Some(b"1")),
        ("a", Some(b"2")),
        ("b", None),
        ("", Some(b"")),
        ("c", Some(&[0, 255, 128])),
        ("a", Some(b"3")),
    ];
    let headers =
        wanted.iter().fold(OwnedHeaders::new(), |all, (key, value)| all.insert(Header { key, value: *value }));
    let sent = [Outgoing { headers: Some(headers), ..Outgoing::value("v") }];
    for codec in CODECS {
        send_all(&broker, &[("compression.type", codec)], &topic, &sent);
    }
    let read = read_topic(&broker, &topic, 1);
    assert_eq!(read.len(), CODECS.len());
    for record in read {
        let got: Vec<(&str, Option<&[u8]>)> = record.headers.iter().map(|(k, v)| (k.as_str(), v.as_deref())).collect();
        assert_eq!(got, wanted);
    }
}

#[test]
fn the_clients_timestamp_is_kept_and_log_append_time_replaces_it() {
    let broker = Broker::start();
    let given = create_topic(&broker, "create-time", 1, &[]);
    let appended = create_topic(&broker, "append-time", 1, &[("message.timestamp.type", "LogAppendTime")]);
    let stamped = [Outgoing { timestamp: Some(1_700_000_000_123), ..Outgoing::value("v") }];
    for codec in ["none", "zstd"] {
        send_all(&broker, &[("compression.type", codec)], &given, &stamped);
        send_all(&broker, &[("compression.type", codec)], &appended, &stamped);
    }
    for record in read_topic(&broker, &given, 1) {
        assert_eq!(record.timestamp, Timestamp::CreateTime(1_700_000_000_123));
    }
    for record in read_topic(&broker, &appended, 1) {
        match record.timestamp {
            Timestamp::LogAppendTime(ms) => assert!(ms > 1_700_000_000_123, "{ms}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_compacted_topic_refuses_records_without_a_key() {
    let broker = Broker::start();
    let topic = create_topic(&broker, "compacted", 1, &[("cleanup.policy", "compact")]);
    let sent = [Outgoing::value("no key"), Outgoing { key: Some(b"k".to_vec()), ..Outgoing::value("keyed") }];
    let deliveries: Vec<_> =
        sent.iter().flat_map(|one| send_all(&broker, &[], &topic, std::slice::from_ref(one))).collect();
    assert_eq!(deliveries, [Err(Code::InvalidRecord), Ok((0, 0))]);
}

/// Trap 17: auto-created by the first produce, usable at once.
#[test]
fn producing_to_an_unknown_topic_creates_it_with_the_default_partitions() {
    let Some(broker) = Broker::owned(&[]) else { return };
    for round in 0..10 {
        let topic = unique(&format!("auto-{round}"));
        let deliveries = send_all(
            &broker,
            &[("topic.metadata.refresh.fast.interval.ms", "20")],
            &topic,
            &[Outgoing::to(0, "first")],
        );
        assert_eq!(deliveries, [Ok((0, 0))]);
        assert_eq!(read_topic(&broker, &topic, 4)[0].text(), "first");
    }
}

/// Trap 17: created, then used at once and only once.
#[test]
fn a_topic_takes_records_right_after_it_was_created() {
    let broker = Broker::start();
    for _ in 0..30 {
        let topic = create_topic(&broker, "at-once", 2, &[]);
        let deliveries = send_all(&broker, &[("retries", "0")], &topic, &[Outgoing::to(1, "first")]);
        assert_eq!(deliveries, [Ok((1, 0))]);
    }
}
