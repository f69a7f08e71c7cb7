use super::*;
use crate::base::ErrorCode;
use crate::controller::decide::TopicDefaults;
use crate::controller::decide::create_topics::{CreatedTopic, Creation, NewTopic, TopicOutcome, create_topics};
use crate::controller::decide::internal_topics::{InternalTopic, ensure_internal_topic};
use crate::metadata::ConfigResource;
use crate::metadata::config::layers::DEFAULTS_ONLY;

const DEFAULTS: TopicDefaults = TopicDefaults { partitions: 2, replication_factor: 1 };

fn create(image: &Image, topics: &[NewTopic]) -> Decision<Vec<TopicOutcome>> {
    let fresh_ids: Vec<_> = (0..topics.len()).map(|at| topic_id(100 + at as u128)).collect();
    let with = Creation { defaults: DEFAULTS, below: DEFAULTS_ONLY, fresh_ids: &fresh_ids, start: 0 };
    create_topics(image, topics, &with)
}

fn sized(name: &str, partitions: i32, replication_factor: i16) -> NewTopic {
    NewTopic { partitions, replication_factor, ..NewTopic::with_defaults(name) }
}

/// Partitions with their replicas.
type Assignments<'a> = &'a [(i32, &'a [BrokerId])];

fn assigned(assignments: Assignments<'_>) -> NewTopic {
    let assignments = assignments.iter().map(|(index, replicas)| (*index, replicas.to_vec())).collect();
    NewTopic { assignments, ..NewTopic::with_defaults("t") }
}

fn configured(configs: &[(&str, Option<&str>)]) -> NewTopic {
    let configs = configs.iter().map(|(name, value)| ((*name).into(), value.map(str::to_owned))).collect();
    NewTopic { configs, ..NewTopic::with_defaults("t") }
}

/// Code and message for the only topic of a request that makes nothing.
fn refusal(image: &Image, topic: NewTopic) -> (ErrorCode, String) {
    let decision = create(image, &[topic]);
    assert_eq!(decision.records, []);
    let refusal = decision.reply[0].result.clone().expect_err("refused");
    (refusal.code, refusal.message.unwrap_or_default())
}

#[test]
fn minus_one_means_the_brokers_defaults() {
    let decision = create(&cluster(1), &[sized("t", -1, -1)]);
    let record = MetadataRecord::Topic { id: topic_id(100), name: "t".into(), partitions: vec![on_one(); 2] };
    assert_eq!(decision.records, [record]);
    let created = CreatedTopic { id: topic_id(100), partitions: 2, replication_factor: 1, configs: Default::default() };
    assert_eq!(decision.reply, [TopicOutcome { name: "t".into(), result: Ok(created) }]);
}

#[test]
fn configs_become_records_behind_the_topic() {
    let decision = create(&cluster(1), &[configured(&[("retention.ms", Some("5")), ("retention.ms", Some("6"))])]);
    let config = MetadataRecord::Config {
        resource: ConfigResource::topic("t"),
        name: "retention.ms".into(),
        value: Some("6".into()),
    };
    assert_eq!(decision.records.len(), 2);
    assert_eq!(decision.records[1], config);
}

#[test]
fn impossible_counts_are_refused() {
    let image = cluster(1);
    let partitions = "Number of partitions was set to an invalid non-positive value.";
    let factor = "Replication factor must be larger than 0, or -1 to use the default value.";
    for count in [0, -2, i32::MIN] {
        assert_eq!(refusal(&image, sized("t", count, 1)), (ErrorCode::INVALID_PARTITIONS, partitions.into()));
    }
    for count in [0, -2, i16::MIN] {
        let expected = (ErrorCode::INVALID_REPLICATION_FACTOR, factor.into());
        assert_eq!(refusal(&image, sized("t", 1, count)), expected);
        assert_eq!(refusal(&image, sized("t", 0, count)), expected);
    }
}

#[test]
fn a_replication_factor_above_the_brokers_is_refused_with_the_numbers() {
    let (code, message) = refusal(&cluster(2), sized("t", 1, 3));
    assert_eq!(code, ErrorCode::INVALID_REPLICATION_FACTOR);
    assert!(message.contains("factor of 3") && message.contains("only 2 broker(s)"), "{message}");
}

#[test]
fn huge_requests_are_refused_whole() {
    let decision = create(&cluster(1), &[sized("a", i32::MAX, 1), sized("b", i32::MAX, 1), sized("c", 1, 1)]);
    assert_eq!(decision.records, []);
    let codes: Vec<_> = decision.reply.iter().map(|one| one.result.clone().unwrap_err().code).collect();
    assert_eq!(codes, [ErrorCode::POLICY_VIOLATION; 3]);
}

#[test]
fn assignments_by_hand_are_taken() {
    let decision = create(&cluster(3), &[assigned(&[(1, &[3, 1]), (0, &[1, 2])])]);
    let image = after(&cluster(3), &decision);
    let topic = image.topic("t").unwrap();
    let replicas: Vec<_> = topic.partitions.iter().map(|partition| partition.replicas.clone()).collect();
    assert_eq!(replicas, [vec![1, 2], vec![3, 1]]);
    assert_eq!((topic.partitions[1].leader, topic.partitions[1].directories[0]), (3, directory(3)));
}

#[test]
fn bad_assignments_are_refused() {
    let image = cluster(2);
    let cases: [(Assignments<'_>, &str); 8] = [
        (&[(0, &[7])], "includes broker 7, but no such broker is registered"),
        (&[(0, &[1, 7])], "includes broker 7, but no such broker is registered"),
        (&[(0, &[1, 1])], "the broker 1 more than once"),
        (&[(0, &[])], "an empty replica list"),
        (&[(0, &[1]), (2, &[1])], "consecutive 0-based"),
        (&[(1, &[1])], "consecutive 0-based"),
        (&[(0, &[1]), (0, &[1])], "multiple manual partition assignments for partition 0"),
        (&[(0, &[1]), (1, &[1, 2])], "2 replica(s), but this is not consistent with previous partitions, which have 1"),
    ];
    for (assignments, text) in cases {
        let (code, message) = refusal(&image, assigned(assignments));
        assert_eq!(code, ErrorCode::INVALID_REPLICA_ASSIGNMENT, "{assignments:?}");
        assert!(message.contains(text), "{message}");
    }
}

#[test]
fn assignments_go_without_counts() {
    for topic in [
        NewTopic { partitions: 1, ..assigned(&[(0, &[1])]) },
        NewTopic { replication_factor: 1, ..assigned(&[(0, &[1])]) },
    ] {
        assert_eq!(refusal(&cluster(1), topic).0, ErrorCode::INVALID_REQUEST);
    }
}

#[test]
fn names_are_checked_against_rules_and_topics() {
    let mut image = cluster(1);
    with_topic(&mut image, "a.b", 1, 1);
    let cases = [
        ("a.b", ErrorCode::TOPIC_ALREADY_EXISTS, "Topic 'a.b' already exists."),
        ("a_b", ErrorCode::INVALID_TOPIC_EXCEPTION, "Topic 'a_b' collides with existing topic: a.b"),
        ("a/b", ErrorCode::INVALID_TOPIC_EXCEPTION, ""),
        ("", ErrorCode::INVALID_TOPIC_EXCEPTION, ""),
        ("__cluster_metadata", ErrorCode::INVALID_REQUEST, ""),
    ];
    for (name, code, message) in cases {
        let got = refusal(&image, sized(name, 1, 1));
        assert_eq!(got.0, code, "{name}");
        assert!(message.is_empty() || got.1 == message, "{}", got.1);
    }
}

#[test]
fn a_name_given_twice_spoils_only_that_name() {
    let decision = create(&cluster(1), &[sized("twice", 1, 1), sized("once", 1, 1), sized("twice", 3, 1)]);
    let names: Vec<_> = decision.reply.iter().map(|one| (one.name.as_str(), one.result.is_ok())).collect();
    assert_eq!(names, [("twice", false), ("once", true)]);
    assert_eq!(decision.reply[0].result.clone().unwrap_err().code, ErrorCode::INVALID_REQUEST);
    assert_eq!(decision.records.len(), 1);
}

#[test]
fn two_new_names_that_collide_do_not_both_come() {
    let decision = create(&cluster(1), &[sized("x.y", 1, 1), sized("x_y", 1, 1)]);
    assert!(decision.reply[0].result.is_ok());
    assert_eq!(decision.reply[1].result.clone().unwrap_err().code, ErrorCode::INVALID_TOPIC_EXCEPTION);
}

#[test]
fn bad_configs_are_refused_by_name() {
    let image = cluster(1);
    for (configs, text) in [
        ([("no.such", Some("1"))], "no.such"),
        ([("retention.ms", Some("ten"))], "retention.ms"),
        ([("retention.ms", None)], "Null value not supported for topic configs: retention.ms"),
    ] {
        let (code, message) = refusal(&image, configured(&configs));
        assert_eq!(code, ErrorCode::INVALID_CONFIG);
        assert!(message.contains(text), "{message}");
    }
}

#[test]
fn an_internal_topic_takes_the_replication_there_is() {
    let wanted = InternalTopic::consumer_offsets(50, 3, 104_857_600);
    let decision = ensure_internal_topic(&cluster(1), &wanted, DEFAULTS_ONLY, topic_id(9), 0);
    let image = after(&cluster(1), &decision);
    let topic = image.topic("__consumer_offsets").unwrap();
    assert_eq!((topic.partition_count(), topic.replication_factor()), (50, 1));
    let configs = image.configs(&ConfigResource::topic("__consumer_offsets")).unwrap();
    assert_eq!(configs.get("cleanup.policy").map(String::as_str), Some("compact"));
    let again = ensure_internal_topic(&image, &wanted, DEFAULTS_ONLY, topic_id(10), 0);
    assert_eq!(again, Decision::unchanged(None));
}
