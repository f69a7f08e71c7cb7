//! What the operator sees: the metrics page of a broker that clients have used, against the dashboard, the alert rules and the facts.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::time::Duration;

use compat_tests::clients::{Outgoing, config, create_topic, read, send_all, unique};
use compat_tests::{Broker, until};
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::{Offset, TopicPartitionList};

const PATIENCE: Duration = Duration::from_secs(10);

fn get(broker: &Broker, path: &str) -> String {
    let mut stream = TcpStream::connect(broker.http()).expect("http.listener");
    write!(stream, "GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n").expect("the request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    body.to_owned()
}

/// Every line of the page by its name and labels.
fn scrape(broker: &Broker) -> BTreeMap<String, f64> {
    let page = get(broker, "/metrics");
    let sample = |line: &str| {
        let (series, value) = line.rsplit_once(' ').expect("a value");
        (series.to_owned(), value.parse().expect("a number"))
    };
    page.lines().filter(|line| !line.starts_with('#') && line.contains(' ')).map(sample).collect()
}

fn value(broker: &Broker, series: &str) -> f64 {
    scrape(broker).get(series).copied().unwrap_or(f64::NAN)
}

/// A broker that has seen producing, consuming in a group that then left, a failure and a refusal.
struct Used {
    broker: Broker,
    topic: String,
    group: String,
}

fn used() -> Option<Used> {
    let broker = Broker::owned(&[])?;
    let topic = create_topic(&broker, "metrics", 2, &[]);
    let group = unique("metrics");
    let records: Vec<Outgoing> = (0..100).map(|number| Outgoing::to(number % 2, number.to_string())).collect();
    assert!(send_all(&broker, &[], &topic, &records).iter().all(Result::is_ok));
    let settings = [("group.id", &*group), ("enable.auto.commit", "false"), ("auto.offset.reset", "earliest")];
    let consumer: BaseConsumer = config(&broker, &settings).create().expect("a consumer");
    consumer.subscribe(&[&topic]).expect("subscribe");
    read(&consumer, 100);
    let mut committed = TopicPartitionList::new();
    committed.add_partition_offset(&topic, 0, Offset::Offset(50)).expect("an offset");
    committed.add_partition_offset(&topic, 1, Offset::Offset(20)).expect("an offset");
    consumer.commit(&committed, CommitMode::Sync).expect("commit");
    drop(consumer);
    let mut stranger = TcpStream::connect(broker.socket_address()).expect("connect");
    stranger.write_all(b"\x7f\xff\xff\xffGET").expect("garbage");
    stranger.shutdown(Shutdown::Write).expect("shutdown");
    assert_eq!(stranger.read(&mut [0; 16]).expect("closed"), 0);
    Some(Used { broker, topic, group })
}

#[test]
fn the_figures_are_the_facts() {
    let Some(Used { broker, topic, group }) = used() else { return };
    for (series, expected) in [
        (format!("kafka_server_brokertopicmetrics_messagesin_total{{topic=\"{topic}\"}}"), 100.0),
        (format!("kafka_log_log_logendoffset{{topic=\"{topic}\",partition=\"1\"}}"), 50.0),
        (format!("kafka_log_log_logstartoffset{{topic=\"{topic}\",partition=\"1\"}}"), 0.0),
        (format!("kafka_topic_partition_current_offset{{topic=\"{topic}\",partition=\"0\"}}"), 50.0),
        (format!("kafka_topic_partitions{{topic=\"{topic}\"}}"), 2.0),
        (
            format!(
                "kafka_consumergroup_current_offset{{consumergroup=\"{group}\",topic=\"{topic}\",partition=\"1\"}}"
            ),
            20.0,
        ),
        (format!("kafka_consumergroup_lag{{consumergroup=\"{group}\",topic=\"{topic}\",partition=\"0\"}}"), 0.0),
        (format!("kafka_consumergroup_lag{{consumergroup=\"{group}\",topic=\"{topic}\",partition=\"1\"}}"), 30.0),
        (format!("kafka_consumergroup_lag_sum{{consumergroup=\"{group}\",topic=\"{topic}\"}}"), 30.0),
        ("barnabas_refused_total{reason=\"frame_too_large\"}".to_owned(), 1.0),
        ("kafka_server_kafkaserver_brokerstate".to_owned(), 3.0),
        ("kafka_brokers".to_owned(), 1.0),
    ] {
        assert_eq!(value(&broker, &series), expected, "{series}");
    }
    // The group is empty once the member's leave has arrived, and its lag is still there.
    let members = format!("kafka_consumergroup_members{{consumergroup=\"{group}\"}}");
    until("an empty group", PATIENCE, || (value(&broker, &members) == 0.0).then_some(()));
    let page = scrape(&broker);
    let bytes_in = page[&format!("kafka_server_brokertopicmetrics_bytesin_total{{topic=\"{topic}\"}}")];
    let bytes_out = page[&format!("kafka_server_brokertopicmetrics_bytesout_total{{topic=\"{topic}\"}}")];
    let sizes = |partition| page[&format!("kafka_log_log_size{{topic=\"{topic}\",partition=\"{partition}\"}}")];
    assert_eq!(sizes(0) + sizes(1), bytes_in, "what came in is what is there");
    assert!(bytes_out >= bytes_in, "each batch went out once at least");
    let library = page.keys().find(|series| series.starts_with("barnabas_client_connections_total{"));
    assert!(library.is_some_and(|series| series.contains("software_name=\"librdkafka\"")), "{library:?}");
}

#[test]
fn dashboard_and_alerts_name_only_what_a_running_broker_shows() {
    let Some(Used { broker, .. }) = used() else { return };
    let names: BTreeSet<String> =
        scrape(&broker).into_keys().map(|series| series.split('{').next().unwrap_or_default().to_owned()).collect();
    for file in ["dashboard.json", "alerts.yml"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../grafana").join(file);
        let text = std::fs::read_to_string(path).expect("grafana/");
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let ours = words.filter(|word| ["kafka_", "barnabas_", "process_"].iter().any(|ours| word.starts_with(ours)));
        let missing: BTreeSet<&str> = ours.filter(|word| !names.contains(*word)).collect();
        assert!(missing.is_empty(), "{file} names what is not on the page: {missing:?}");
    }
}

#[test]
fn probes_say_that_it_lives_and_is_ready() {
    let Some(broker) = Broker::owned(&[]) else { return };
    assert_eq!(get(&broker, "/livez"), "ok\n");
    until("ready", PATIENCE, || broker.readiness().ok());
    assert_eq!(get(&broker, "/readyz"), "ready\n");
}

#[test]
fn a_refusal_leaves_a_line_that_names_the_peer_and_the_reason() {
    let Some(Used { broker, .. }) = used() else { return };
    let log = broker.log();
    let line = log.lines().find(|line| line.contains("barnabas::refused")).expect("a refusal line");
    for part in ["peer=127.0.0.1:", "reason=\"frame_too_large\"", "2147483647"] {
        assert!(line.contains(part), "{part} is missing in: {line}");
    }
}
