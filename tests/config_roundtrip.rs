//! What a describe shows can be sent back (traps 13 and 14): tools copy topics and groups that way.

use std::collections::BTreeMap;

use barnabas::base::TopicId;
use barnabas::controller::decide::configs::{
    ConfigChange, Edit, EditOp, ResourceEdits, ResourceValues, alter_configs, incremental_alter_configs,
};
use barnabas::metadata::config::describe::{self, Entry};
use barnabas::metadata::config::layers::DEFAULTS_ONLY;
use barnabas::metadata::config::{LogConfig, group, topic};
use barnabas::metadata::{ConfigResource, Image, MetadataRecord, PartitionState};

const TOPIC: i8 = 2;
const GROUP: i8 = 32;

fn image() -> Image {
    let mut image = Image::empty();
    let topic = MetadataRecord::Topic {
        id: TopicId::from_bytes([1; 16]),
        name: "a".into(),
        partitions: vec![PartitionState::new(vec![1], vec![])],
    };
    apply(&mut image, &[topic]);
    image
}

fn apply(image: &mut Image, records: &[MetadataRecord]) {
    for record in records {
        image.apply(image.offset + 1, record).expect("applies");
    }
}

fn with() -> ConfigChange<'static> {
    ConfigChange { node_id: 1, below: DEFAULTS_ONLY, loggers: &[] }
}

/// Sends everything described back with both APIs.
fn send_back(image: &mut Image, kind: i8, name: &str, entries: &[Entry]) {
    let edit = |entry: &Entry| Edit { name: entry.name.clone(), op: EditOp::Set, value: entry.value.clone() };
    let edits = ResourceEdits { kind, name: name.into(), edits: entries.iter().map(edit).collect() };
    let decision = incremental_alter_configs(image, &[edits], &with());
    assert_eq!(decision.reply.outcomes[0].result, Ok(()));
    apply(image, &decision.records);
    let values = entries.iter().map(|entry| (entry.name.clone(), entry.value.clone())).collect();
    let decision = alter_configs(image, &[ResourceValues { kind, name: name.into(), values }], &with());
    assert_eq!((decision.reply.outcomes[0].result.clone(), decision.records), (Ok(()), vec![]));
}

#[test]
fn a_described_topic_can_be_sent_back_unchanged() {
    let mut image = image();
    send_back(&mut image, TOPIC, "a", &describe::topic(&(), &DEFAULTS_ONLY));
    let set = image.configs(&ConfigResource::topic("a")).expect("set").clone();
    assert_eq!(LogConfig::effective(&*set, &DEFAULTS_ONLY), LogConfig::default());
}

#[test]
fn a_described_group_can_be_sent_back_unchanged() {
    let mut image = image();
    send_back(&mut image, GROUP, "g", &describe::group(&(), &DEFAULTS_ONLY));
    let set = image.configs(&ConfigResource::group("g")).expect("set").clone();
    for key in group::GROUP_KEYS {
        let inherited = group::effective_value(key.name, &(), &DEFAULTS_ONLY);
        assert_eq!(group::effective_value(key.name, &*set, &DEFAULTS_ONLY), inherited, "{}", key.name);
    }
}

#[test]
fn every_topic_config_is_there_under_kafkas_name_and_with_a_value() {
    let entries: BTreeMap<String, Option<String>> =
        describe::topic(&(), &DEFAULTS_ONLY).into_iter().map(|entry| (entry.name, entry.value)).collect();
    for key in topic::TOPIC_KEYS.iter().filter(|key| !key.internal) {
        assert_eq!(entries.get(key.name).cloned().flatten().as_deref(), key.default, "{}", key.name);
    }
    assert_eq!(entries.len(), 37);
}
