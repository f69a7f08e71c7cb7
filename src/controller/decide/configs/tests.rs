//! Facts about changing configs: the answer and the exact records.

use super::*;
use crate::base::TopicId;
use crate::metadata::PartitionState;
use crate::metadata::config::layers::DEFAULTS_ONLY;

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const LOGGER: i8 = 8;
const CLIENT_METRICS: i8 = 16;
const GROUP: i8 = 32;

fn image() -> Image {
    let partition = PartitionState::new(vec![1], vec![]);
    let topic = |name: &str, id: u8| MetadataRecord::Topic {
        id: TopicId::from_bytes([id; 16]),
        name: name.to_owned(),
        partitions: vec![partition.clone()],
    };
    apply(&Image::empty(), &[topic("a", 1), topic("b", 2)])
}

fn apply(image: &Image, records: &[MetadataRecord]) -> Image {
    let mut image = image.clone();
    for record in records {
        image.apply(image.offset + 1, record).expect("records of a decision apply");
    }
    image
}

fn with() -> ConfigChange<'static> {
    ConfigChange { node_id: 1, below: DEFAULTS_ONLY, loggers: &["barnabas"] }
}

fn edits(kind: i8, name: &str, edits: &[(&str, i8, Option<&str>)]) -> ResourceEdits {
    let edit = |(name, op, value): &(&str, i8, Option<&str>)| Edit {
        name: (*name).to_owned(),
        op: EditOp::from_id(*op),
        value: value.map(str::to_owned),
    };
    ResourceEdits { kind, name: name.to_owned(), edits: edits.iter().map(edit).collect() }
}

fn values(kind: i8, name: &str, values: &[(&str, Option<&str>)]) -> ResourceValues {
    let value = |(name, value): &(&str, Option<&str>)| ((*name).to_owned(), value.map(str::to_owned));
    ResourceValues { kind, name: name.to_owned(), values: values.iter().map(value).collect() }
}

fn set(resource: ConfigResource, name: &str, value: Option<&str>) -> MetadataRecord {
    MetadataRecord::Config { resource, name: name.to_owned(), value: value.map(str::to_owned) }
}

fn codes(reply: &ConfigReply) -> Vec<i16> {
    reply
        .outcomes
        .iter()
        .map(|outcome| outcome.result.as_ref().map_or_else(|refusal| refusal.code.code(), |()| 0))
        .collect()
}

/// The code and the sentence that one edit is refused with.
fn refused(image: &Image, resource: ResourceEdits) -> (i16, String) {
    let decision = incremental_alter_configs(image, &[resource], &with());
    assert_eq!(decision.records, []);
    let refusal = decision.reply.outcomes[0].result.clone().expect_err("refused");
    (refusal.code.code(), refusal.message.unwrap_or_default())
}

/// What the edits make of a topic's configs.
fn edited(image: &Image, resource: ResourceEdits) -> Image {
    let decision = incremental_alter_configs(image, &[resource], &with());
    assert_eq!(codes(&decision.reply), [0]);
    apply(image, &decision.records)
}

fn value(image: &Image, name: &str) -> Option<String> {
    image.configs(&ConfigResource::topic("a"))?.get(name).cloned()
}

#[test]
fn edits_touch_only_what_they_name() {
    let image = edited(&image(), edits(TOPIC, "a", &[("segment.ms", 0, Some("1000")), ("retention.ms", 0, Some("7"))]));
    let decision = incremental_alter_configs(
        &image,
        &[edits(TOPIC, "a", &[("segment.ms", 1, None), ("flush.ms", 0, Some("5"))])],
        &with(),
    );
    let topic = ConfigResource::topic("a");
    assert_eq!(decision.records, [set(topic.clone(), "segment.ms", None), set(topic, "flush.ms", Some("5"))]);
    let image = apply(&image, &decision.records);
    assert_eq!(value(&image, "retention.ms").as_deref(), Some("7"));
    assert_eq!(value(&image, "segment.ms"), None);
}

#[test]
fn what_is_the_same_makes_no_record() {
    let image = edited(&image(), edits(TOPIC, "a", &[("segment.ms", 0, Some("1000"))]));
    let again =
        edits(TOPIC, "a", &[("segment.ms", 0, Some("1000")), ("no.such.key", 1, None), ("flush.ms", 1, Some("7"))]);
    let decision = incremental_alter_configs(&image, &[again], &with());
    assert_eq!((codes(&decision.reply), decision.records), (vec![0], vec![]));
}

#[test]
fn lists_grow_from_their_default_and_shrink_to_nothing() {
    let image = edited(&image(), edits(TOPIC, "a", &[("cleanup.policy", 2, Some("compact"))]));
    assert_eq!(value(&image, "cleanup.policy").as_deref(), Some("delete,compact"));
    let image = edited(&image, edits(TOPIC, "a", &[("cleanup.policy", 2, Some("compact"))]));
    assert_eq!(value(&image, "cleanup.policy").as_deref(), Some("delete,compact"));
    let image = edited(&image, edits(TOPIC, "a", &[("cleanup.policy", 3, Some("delete"))]));
    let image = edited(&image, edits(TOPIC, "a", &[("cleanup.policy", 3, Some("delete"))]));
    assert_eq!(value(&image, "cleanup.policy").as_deref(), Some("compact"));
    let key = "leader.replication.throttled.replicas";
    let image = edited(&image, edits(TOPIC, "a", &[(key, 2, Some("0:1"))]));
    let image = edited(&image, edits(TOPIC, "a", &[(key, 2, Some("1:1,2:1"))]));
    let image = edited(&image, edits(TOPIC, "a", &[(key, 3, Some("1:1"))]));
    assert_eq!(value(&image, key).as_deref(), Some("0:1,2:1"));
}

#[test]
fn refusals_of_topic_edits_carry_kafkas_codes_and_sentences() {
    let cases = [
        (("retention.ms", 2, Some("1")), 40, "Can't APPEND to key retention.ms because its type is not LIST."),
        (("retention.ms", 3, Some("1")), 40, "Can't SUBTRACT to key retention.ms because its type is not LIST."),
        (("retention.ms", 0, None), 42, "Null value not supported for : retention.ms"),
        (("cleanup.policy", 2, None), 42, "Null value not supported for : cleanup.policy"),
        (
            ("retention.ms", 0, Some("x")),
            40,
            "Invalid value x for configuration retention.ms: Not a number of type LONG",
        ),
        (("no.such.key", 0, Some("1")), 40, "Unknown topic config name: no.such.key"),
        (("cleanup.policy", 7, Some("x")), 42, "Unknown operations type 7"),
    ];
    for (edit, code, message) in cases {
        assert_eq!(refused(&image(), edits(TOPIC, "a", &[edit])), (code, message.to_owned()));
    }
}

#[test]
fn names_that_are_no_topics_are_refused() {
    let one = [("retention.ms", 0, Some("1"))];
    assert_eq!(refused(&image(), edits(TOPIC, "none", &one)), (3, "The topic 'none' does not exist.".to_owned()));
    assert_eq!(refused(&image(), edits(TOPIC, "", &one)), (42, "Default topic resources are not allowed.".to_owned()));
    assert_eq!(refused(&image(), edits(TOPIC, "a/b", &one)).0, 17);
    assert_eq!(refused(&image(), edits(TOPIC, "none", &[("bad", 0, Some("1"))])).0, 40);
}

#[test]
fn one_bad_key_spoils_its_resource_and_no_other() {
    let bad = edits(TOPIC, "a", &[("segment.ms", 0, Some("5000")), ("retention.ms", 0, Some("-5"))]);
    let good = edits(TOPIC, "b", &[("segment.ms", 0, Some("5000"))]);
    let decision = incremental_alter_configs(&image(), &[bad, good], &with());
    assert_eq!(codes(&decision.reply), [40, 0]);
    assert_eq!(decision.records, [set(ConfigResource::topic("b"), "segment.ms", Some("5000"))]);
}

#[test]
fn naming_a_key_or_a_resource_twice_is_refused() {
    let twice = edits(TOPIC, "a", &[("segment.ms", 0, Some("5000")), ("segment.ms", 1, None)]);
    assert_eq!(refused(&image(), twice), (42, "Error due to duplicate config keys".to_owned()));
    let one = edits(TOPIC, "a", &[("segment.ms", 0, Some("5000"))]);
    let decision = incremental_alter_configs(&image(), &[one.clone(), one], &with());
    assert_eq!((codes(&decision.reply), decision.records), (vec![42, 42], vec![]));
    let one = values(TOPIC, "a", &[("segment.ms", Some("5000"))]);
    assert_eq!(codes(&alter_configs(&image(), &[one.clone(), one], &with()).reply), [42, 42]);
}

#[test]
fn alter_configs_replaces_all_that_is_set() {
    let image = edited(&image(), edits(TOPIC, "a", &[("segment.ms", 0, Some("1000")), ("retention.ms", 0, Some("7"))]));
    let request = values(TOPIC, "a", &[("retention.ms", Some("604800000")), ("flush.ms", Some("5"))]);
    let decision = alter_configs(&image, &[request], &with());
    assert_eq!(codes(&decision.reply), [0]);
    let image = apply(&image, &decision.records);
    let left = image.configs(&ConfigResource::topic("a")).map(|values| (**values).clone());
    assert_eq!(
        left,
        Some(BTreeMap::from([("flush.ms".into(), "5".into()), ("retention.ms".into(), "604800000".into())]))
    );
    let decision = alter_configs(&image, &[values(TOPIC, "a", &[])], &with());
    assert_eq!(decision.records.len(), 2);
    assert_eq!(apply(&image, &decision.records).configs(&ConfigResource::topic("a")), None);
}

#[test]
fn alter_configs_refuses_what_it_should() {
    let cases = [
        (values(TOPIC, "a", &[("retention.ms", None)]), 42),
        (values(TOPIC, "a", &[("retention.ms", Some("x"))]), 40),
        (values(TOPIC, "none", &[]), 3),
        (values(0, "x", &[("a", Some("1"))]), 42),
        (values(3, "x", &[("a", Some("1"))]), 42),
        (values(BROKER, "77", &[("log.cleaner.threads", Some("1"))]), 42),
        (values(BROKER, "x", &[("log.cleaner.threads", Some("1"))]), 42),
        (values(LOGGER, "1", &[("root", Some("INFO"))]), 42),
        (values(GROUP, "", &[]), 42),
        (values(CLIENT_METRICS, "", &[]), 42),
    ];
    for (request, code) in cases {
        let decision = alter_configs(&image(), std::slice::from_ref(&request), &with());
        assert_eq!((codes(&decision.reply), decision.records), (vec![code], vec![]), "{request:?}");
    }
}

#[test]
fn brokers_are_configured_one_by_one_or_all_at_once() {
    let image = image();
    let all = edits(BROKER, "", &[("log.cleaner.backoff.ms", 0, Some("20000"))]);
    let one = edits(BROKER, "1", &[("log.cleaner.backoff.ms", 0, Some("30000"))]);
    let decision = incremental_alter_configs(&image, &[all, one], &with());
    assert_eq!(codes(&decision.reply), [0, 0]);
    let expected = [
        set(ConfigResource::broker_default(), "log.cleaner.backoff.ms", Some("20000")),
        set(ConfigResource::broker(1), "log.cleaner.backoff.ms", Some("30000")),
    ];
    assert_eq!(decision.records, expected);
}

#[test]
fn refusals_of_broker_edits_carry_kafkas_codes_and_sentences() {
    let cases = [
        ("1", ("node.id", 0, Some("5")), 42, "Cannot update these configs dynamically: [node.id]"),
        (
            "1",
            ("num.io.threads", 0, Some("0")),
            42,
            "Invalid value 0 for configuration num.io.threads: Value must be at least 1",
        ),
        (
            "1",
            ("num.io.threads", 2, Some("1")),
            40,
            "Config value append is not allowed for config key: num.io.threads",
        ),
        ("", ("no.such", 2, Some("1")), 40, "Unknown config name: no.such"),
        ("77", ("message.max.bytes", 0, Some("5")), 42, "Unexpected broker id, expected 1, but received 77"),
        ("x", ("message.max.bytes", 0, Some("5")), 42, "Node id must be an integer, but it is: x"),
    ];
    for (name, edit, code, message) in cases {
        assert_eq!(refused(&image(), edits(BROKER, name, &[edit])), (code, message.to_owned()));
    }
}

#[test]
fn in_sync_rules_are_fixed_where_eligible_leaders_are_kept() {
    let image = edited(&image(), edits(BROKER, "", &[("min.insync.replicas", 0, Some("1"))]));
    edited(&image, edits(BROKER, "", &[("min.insync.replicas", 1, None)]));
    let feature = MetadataRecord::Feature { name: "eligible.leader.replicas.version".into(), level: 1 };
    let image = apply(&image, &[feature]);
    let removed = refused(&image, edits(BROKER, "", &[("min.insync.replicas", 1, None)]));
    assert_eq!(removed, (40, "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.".to_owned()));
    let per_broker = refused(&image, edits(BROKER, "1", &[("min.insync.replicas", 0, Some("2"))]));
    assert_eq!(per_broker, (40, "Broker-level min.insync.replicas cannot be altered while ELR is enabled.".to_owned()));
    edited(&image, edits(BROKER, "", &[("min.insync.replicas", 0, Some("2"))]));
}

#[test]
fn groups_and_subscriptions_are_checked_by_their_own_rules() {
    let image = image();
    assert_eq!(refused(&image, edits(GROUP, "g", &[("consumer.session.timeout.ms", 0, Some("1"))])).0, 40);
    assert_eq!(refused(&image, edits(GROUP, "", &[("consumer.session.timeout.ms", 0, Some("50000"))])).0, 42);
    assert_eq!(refused(&image, edits(CLIENT_METRICS, "m", &[("interval.ms", 0, Some("50"))])).0, 42);
    assert_eq!(refused(&image, edits(CLIENT_METRICS, "m", &[("match", 0, Some("client_id"))])).0, 40);
    assert_eq!(refused(&image, edits(CLIENT_METRICS, "m", &[("match", 2, Some("client_id=a"))])).0, 40);
    let image = edited(&image, edits(GROUP, "g", &[("consumer.session.timeout.ms", 0, Some("50000"))]));
    assert!(image.configs(&ConfigResource::group("g")).is_some());
}

#[test]
fn log_levels_are_set_and_leave_no_record() {
    let request = edits(LOGGER, "1", &[("root", 0, Some("INFO")), ("barnabas", 1, None)]);
    let decision = incremental_alter_configs(&image(), &[request], &with());
    assert_eq!((codes(&decision.reply), decision.records), (vec![0], vec![]));
    let change =
        |logger: &str, level: Option<&str>| LogLevelChange { logger: logger.into(), level: level.map(str::to_owned) };
    assert_eq!(decision.reply.log_levels, [change("root", Some("INFO")), change("barnabas", None)]);
}

#[test]
fn refusals_of_log_levels_carry_kafkas_codes() {
    let cases = [
        ("1", ("root", 0, Some("LOUD")), 40),
        ("1", ("root", 0, Some("info")), 40),
        ("1", ("root", 2, Some("INFO")), 42),
        ("77", ("root", 0, Some("INFO")), 42),
        ("", ("root", 0, Some("INFO")), 42),
        ("1", ("no.such.logger.at.all", 0, Some("INFO")), 40),
        ("1", ("root", 1, None), 42),
        ("1", ("root", 0, None), 42),
        ("1", ("root", 9, Some("INFO")), 42),
    ];
    for (node, edit, code) in cases {
        assert_eq!(refused(&image(), edits(LOGGER, node, &[edit])).0, code, "{node} {edit:?}");
    }
}
