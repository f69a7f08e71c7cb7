//! Admin calls: topics, partitions, configs, records, groups.

use std::collections::BTreeMap;

use compat_tests::clients::{
    CALL_MAX, Outgoing, admin, admin_options, commit, config, create_topic, read_topic, reader, send_all, unique, wait,
};
use compat_tests::{Broker, until};
use rdkafka::admin::{AlterConfig, ConfigSource, NewPartitions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::types::RDKafkaErrorCode as Code;
use rdkafka::{Offset, TopicPartitionList};

type Outcome = Result<(), Code>;

fn outcome(results: Vec<Result<String, (String, Code)>>) -> Vec<Outcome> {
    results.into_iter().map(|one| one.map(|_| ()).map_err(|(_, code)| code)).collect()
}

fn create(broker: &Broker, topics: &[NewTopic<'_>], validate_only: bool) -> Vec<Outcome> {
    let options = admin_options().validate_only(validate_only);
    outcome(wait(admin(broker).create_topics(topics, &options)).expect("create_topics"))
}

fn delete(broker: &Broker, names: &[&str]) -> Vec<Outcome> {
    outcome(wait(admin(broker).delete_topics(names, &admin_options())).expect("delete_topics"))
}

fn partitions(broker: &Broker, topic: &str) -> usize {
    let consumer: BaseConsumer = config(broker, &[("allow.auto.create.topics", "false")]).create().expect("a consumer");
    let metadata = consumer.fetch_metadata(Some(topic), CALL_MAX).expect("metadata");
    metadata.topics()[0].partitions().len()
}

fn resize(broker: &Broker, topic: &str, count: usize) -> Outcome {
    let request = [NewPartitions::new(topic, count)];
    outcome(wait(admin(broker).create_partitions(&request, &admin_options())).expect("create_partitions")).remove(0)
}

/// Gives a topic more partitions and waits until they show.
pub fn grow(broker: &Broker, topic: &str, count: usize) {
    assert_eq!(resize(broker, topic, count), Ok(()));
    until("the new partitions", CALL_MAX, || (partitions(broker, topic) == count).then_some(()));
}

/// Every config of a resource with its value and source.
fn configs(broker: &Broker, resource: &ResourceSpecifier<'_>) -> BTreeMap<String, (Option<String>, ConfigSource)> {
    let described = wait(admin(broker).describe_configs([resource], &admin_options())).expect("describe_configs");
    let resource = described.into_iter().next().expect("one resource").expect("no error");
    resource.entries.into_iter().map(|e| (e.name, (e.value, e.source))).collect()
}

#[test]
fn topics_are_created_listed_and_deleted() {
    let broker = Broker::start();
    let (one, two) = (unique("one"), unique("two"));
    let wanted =
        [NewTopic::new(&one, 1, TopicReplication::Fixed(1)), NewTopic::new(&two, 7, TopicReplication::Fixed(1))];
    assert_eq!(create(&broker, &wanted, false), [Ok(()), Ok(())]);
    until("both topics", CALL_MAX, || (partitions(&broker, &one) == 1 && partitions(&broker, &two) == 7).then_some(()));
    assert_eq!(create(&broker, &wanted, false), [Err(Code::TopicAlreadyExists), Err(Code::TopicAlreadyExists)]);
    assert_eq!(delete(&broker, &[&one, "never-there"]), [Ok(()), Err(Code::UnknownTopicOrPartition)]);
    let names = || {
        let consumer: BaseConsumer = config(&broker, &[]).create().expect("a consumer");
        let metadata = consumer.fetch_metadata(None, CALL_MAX).expect("metadata");
        metadata.topics().iter().map(|t| t.name().to_string()).collect::<Vec<_>>()
    };
    until("one gone, two there", CALL_MAX, || (!names().contains(&one) && names().contains(&two)).then_some(()));
}

/// Trap 16.
#[test]
fn a_bad_topic_is_refused_beside_good_ones() {
    let broker = Broker::start();
    let long = "n".repeat(250);
    let good = unique("good");
    let dotted = unique("a.b");
    let underscored = dotted.replace("a.b", "a_b");
    assert_eq!(create(&broker, &[NewTopic::new(&dotted, 1, TopicReplication::Fixed(1))], false), [Ok(())]);
    let wanted: Vec<(&str, i32, i32, Outcome)> = vec![
        (&good, 1, 1, Ok(())),
        ("no/slash", 1, 1, Err(Code::InvalidTopic)),
        ("..", 1, 1, Err(Code::InvalidTopic)),
        (&long, 1, 1, Err(Code::InvalidTopic)),
        (&underscored, 1, 1, Err(Code::InvalidTopic)),
        ("too-many-copies", 1, 2, Err(Code::InvalidReplicationFactor)),
    ];
    let topics: Vec<NewTopic<'_>> = wanted
        .iter()
        .map(|(name, count, copies, _)| NewTopic::new(name, *count, TopicReplication::Fixed(*copies)))
        .collect();
    let expected: Vec<Outcome> = wanted.into_iter().map(|w| w.3).collect();
    assert_eq!(create(&broker, &topics, true), expected, "validate only");
    assert_eq!(create(&broker, &topics, false), expected);
}

#[test]
fn validate_only_creates_nothing() {
    let broker = Broker::start();
    let name = unique("validated");
    let topic = [NewTopic::new(&name, 3, TopicReplication::Fixed(1))];
    assert_eq!(create(&broker, &topic, true), [Ok(())]);
    assert_eq!(create(&broker, &topic, false), [Ok(())], "it was not there yet");
}

#[test]
fn a_topic_deleted_and_created_again_starts_empty() {
    let broker = Broker::start();
    let topic = create_topic(&broker, "again", 1, &[]);
    send_all(&broker, &[], &topic, &[Outgoing::value("old"), Outgoing::value("older")]);
    assert_eq!(delete(&broker, &[&topic]), [Ok(())]);
    until("created again", CALL_MAX, || {
        create(&broker, &[NewTopic::new(&topic, 1, TopicReplication::Fixed(1))], false)[0].ok()
    });
    let deliveries = send_all(&broker, &[], &topic, &[Outgoing::to(0, "new")]);
    assert_eq!(deliveries, [Ok((0, 0))]);
    assert_eq!(read_topic(&broker, &topic, 1)[0].text(), "new");
}

#[test]
fn partitions_grow_but_never_shrink() {
    let broker = Broker::start();
    let topic = create_topic(&broker, "grow", 2, &[]);
    send_all(&broker, &[], &topic, &[Outgoing::to(1, "kept")]);
    grow(&broker, &topic, 5);
    assert_eq!(resize(&broker, &topic, 5), Err(Code::InvalidPartitions));
    assert_eq!(resize(&broker, &topic, 4), Err(Code::InvalidPartitions));
    assert_eq!(resize(&broker, &unique("absent"), 4), Err(Code::UnknownTopicOrPartition));
    assert_eq!(send_all(&broker, &[], &topic, &[Outgoing::to(4, "new")]), [Ok((4, 0))]);
    let read: Vec<String> = read_topic(&broker, &topic, 5).iter().map(|r| r.text()).collect();
    assert_eq!(read, ["kept", "new"]);
}

/// Trap 13: the full set, with Kafka's names.
#[test]
fn a_topic_describes_all_its_configs() {
    let broker = Broker::start();
    let topic = create_topic(&broker, "described", 1, &[("retention.ms", "123456")]);
    let all = configs(&broker, &ResourceSpecifier::Topic(&topic));
    assert_eq!(all["retention.ms"], (Some("123456".into()), ConfigSource::DynamicTopic));
    assert_eq!(all["cleanup.policy"], (Some("delete".into()), ConfigSource::Default));
    for name in [
        "segment.bytes",
        "min.insync.replicas",
        "max.message.bytes",
        "message.timestamp.type",
        "compression.type",
        "flush.messages",
    ] {
        assert!(all.contains_key(name), "{name}");
    }
    assert!(all.len() >= 30, "{} configs", all.len());
}

/// Trap 13: what tools look for in a broker.
#[test]
fn a_broker_describes_the_configs_that_tools_ask_for() {
    let broker = Broker::start();
    let consumer: BaseConsumer = config(&broker, &[]).create().expect("a consumer");
    let id = consumer.fetch_metadata(None, CALL_MAX).expect("metadata").brokers()[0].id();
    let all = configs(&broker, &ResourceSpecifier::Broker(id));
    for name in
        ["num.partitions", "default.replication.factor", "log.retention.ms", "log.retention.bytes", "message.max.bytes"]
    {
        assert!(all.contains_key(name), "{name}");
    }
    for name in
        ["auto.create.topics.enable", "offsets.retention.minutes", "offsets.topic.num.partitions", "log.cleanup.policy"]
    {
        assert!(all.contains_key(name), "{name}");
    }
}

#[test]
fn altered_configs_show_and_take_effect() {
    let broker = Broker::start();
    let topic = create_topic(&broker, "altered", 1, &[("retention.ms", "5000000")]);
    let alter = |name: &str, value: &str| {
        let change = AlterConfig::new(ResourceSpecifier::Topic(&topic)).set(name, value);
        // This client drops the error of a single resource, so the tests look at what became of the topic.
        wait(admin(&broker).alter_configs([&change], &admin_options())).expect("alter_configs");
    };
    alter("max.message.bytes", "1000");
    until("the new limit", CALL_MAX, || {
        let all = configs(&broker, &ResourceSpecifier::Topic(&topic));
        (all["max.message.bytes"] == (Some("1000".into()), ConfigSource::DynamicTopic)).then_some(())
    });
    // AlterConfigs replaces the whole set: what it does not name goes back to its default.
    assert_eq!(configs(&broker, &ResourceSpecifier::Topic(&topic))["retention.ms"].1, ConfigSource::Default);
    assert_eq!(send_all(&broker, &[], &topic, &[Outgoing::value(vec![0; 2000])]), [Err(Code::MessageSizeTooLarge)]);
    let before = configs(&broker, &ResourceSpecifier::Topic(&topic));
    alter("no.such.config", "1");
    alter("retention.ms", "soon");
    assert_eq!(configs(&broker, &ResourceSpecifier::Topic(&topic)), before, "a refused change changes nothing");
}

/// Trap 14: what was described is accepted back.
#[test]
fn described_topic_configs_can_be_sent_back() {
    let broker = Broker::start();
    let topic = create_topic(&broker, "round-trip", 1, &[]);
    let before = configs(&broker, &ResourceSpecifier::Topic(&topic));
    let change =
        before.iter().fold(AlterConfig::new(ResourceSpecifier::Topic(&topic)), |change, (name, (value, _))| {
            change.set(name, value.as_deref().unwrap_or_default())
        });
    let results = wait(admin(&broker).alter_configs([&change], &admin_options())).expect("alter_configs");
    assert_eq!(results.len(), 1);
    until("the same values", CALL_MAX, || {
        let after = configs(&broker, &ResourceSpecifier::Topic(&topic));
        before.iter().all(|(name, (value, _))| after[name].0 == *value).then_some(())
    });
}

#[test]
fn deleted_records_are_gone_and_bad_requests_say_why() {
    let broker = Broker::start();
    let topic = create_topic(&broker, "records", 2, &[]);
    send_all(&broker, &[], &topic, &(0..10).map(|n| Outgoing::to(0, n.to_string())).collect::<Vec<_>>());
    let delete = |partition: i32, offset: Offset| {
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&topic, partition, offset).expect("an offset");
        let result = wait(admin(&broker).delete_records(&list, &admin_options())).expect("delete_records");
        let element = result.find_partition(&topic, partition).expect("the partition");
        element.error().map(|()| element.offset()).map_err(|e| e.rdkafka_error_code())
    };
    assert_eq!(delete(0, Offset::Offset(4)), Ok(Offset::Offset(4)));
    assert_eq!(delete(0, Offset::Offset(2)), Ok(Offset::Offset(4)), "already further");
    assert_eq!(delete(0, Offset::Offset(11)), Err(Some(Code::OffsetOutOfRange)));
    assert_eq!(delete(0, Offset::End), Ok(Offset::Offset(10)));
    assert_eq!(delete(1, Offset::End), Ok(Offset::Offset(0)));
    assert!(read_topic(&broker, &topic, 2).is_empty());
}

/// Trap 31, without the crash: a group is listed, refuses deletion while it has members, and can then be deleted.
#[test]
fn groups_are_listed_and_deleted_once_they_are_empty() {
    let broker = Broker::start();
    let topic = create_topic(&broker, "group-admin", 1, &[]);
    let group = unique("group-admin");
    let consumer: BaseConsumer =
        config(&broker, &[("group.id", &group), ("client.id", "lister")]).create().expect("a consumer");
    consumer.subscribe(&[&topic]).expect("subscribe");
    until("an assignment", CALL_MAX, || {
        let _ = consumer.poll(std::time::Duration::from_millis(50));
        (consumer.assignment().ok()?.count() == 1).then_some(())
    });
    let mut offsets = TopicPartitionList::new();
    offsets.add_partition_offset(&topic, 0, Offset::Offset(0)).expect("an offset");
    commit(&consumer, &offsets);
    let look = reader(&broker, &topic, 1, Offset::Beginning, &[]);
    let state = |name: &str| {
        let list = look.fetch_group_list(Some(name), CALL_MAX).expect("groups");

        list.groups().iter().find(|g| g.name() == name).map(|g| {
            (
                g.state().to_string(),
                g.protocol_type().to_string(),
                g.members().iter().map(|m| m.client_id().to_string()).collect::<Vec<_>>(),
            )
        })
    };
    assert_eq!(state(&group), Some(("Stable".into(), "consumer".into(), vec!["lister".into()])));
    let delete = |name: &str| {
        outcome(wait(admin(&broker).delete_groups(&[name], &admin_options())).expect("delete_groups")).remove(0)
    };
    assert_eq!(delete(&group), Err(Code::NonEmptyGroup));
    drop(consumer);
    until("an empty group", CALL_MAX, || (state(&group)?.0 == "Empty").then_some(()));
    assert_eq!(delete(&group), Ok(()));
    assert_eq!(delete(&group), Err(Code::GroupIdNotFound));
    assert!(state(&group).is_none_or(|(state, _, _)| state == "Dead"));
}

#[test]
fn the_cluster_has_an_id_and_a_controller_that_does_not_change() {
    let broker = Broker::start();
    let ids: Vec<Option<String>> = (0..2)
        .map(|_| {
            let consumer: BaseConsumer = config(&broker, &[]).create().expect("a consumer");
            consumer.fetch_metadata(None, CALL_MAX).expect("metadata");
            consumer.client().fetch_cluster_id(CALL_MAX)
        })
        .collect();
    assert!(ids[0].as_ref().is_some_and(|id| id.len() == 22), "{ids:?}");
    assert_eq!(ids[0], ids[1]);
}
