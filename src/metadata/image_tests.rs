//! Facts about the image: cheap with many partitions, found by name and id, and harmless to replay.

use uuid::Uuid;

use super::*;
use crate::base::TopicId;

fn id(number: u128) -> TopicId {
    TopicId(Uuid::from_u128(number))
}

fn topic(number: u128, name: &str, partitions: usize) -> MetadataRecord {
    let partitions = vec![PartitionState::new(vec![1], vec![]); partitions];
    MetadataRecord::Topic { id: id(number), name: name.into(), partitions }
}

fn apply(image: &mut Image, record: &MetadataRecord) {
    image.apply(image.offset + 1, record).unwrap();
}

#[test]
fn an_image_of_many_topics_is_cheap_to_clone_and_to_change() {
    let mut image = Image::empty();
    for number in 0..10_000 {
        apply(&mut image, &topic(number, &format!("t{number:05}"), 1));
    }
    assert_eq!((image.topic_count(), image.partition_count()), (10_000, 10_000));
    let before = image.clone();
    apply(&mut image, &MetadataRecord::TopicRemoved { id: id(5000) });
    assert_eq!((before.topic_count(), image.topic_count()), (10_000, 9_999));
    // What did not change is shared, not copied.
    let (old, new) = (before.topic("t00001").unwrap(), image.topic("t00001").unwrap());
    assert!(std::sync::Arc::ptr_eq(old, new));
    assert_eq!(before.topics_by_id().diff(image.topics_by_id()).count(), 1);
}

#[test]
fn topics_are_found_by_name_and_id_and_listed_in_order() {
    let mut image = Image::empty();
    for (number, name) in [(1, "b"), (2, "a"), (3, "c")] {
        apply(&mut image, &topic(number, name, 2));
    }
    assert_eq!(image.topic("a").unwrap().id, id(2));
    assert_eq!(&*image.topic_by_id(id(3)).unwrap().name, "c");
    assert!(image.topic("d").is_none() && image.topic_by_id(id(9)).is_none());
    let names = |topics: &mut dyn Iterator<Item = &std::sync::Arc<Topic>>| -> Vec<String> {
        topics.map(|topic| topic.name.to_string()).collect()
    };
    assert_eq!(names(&mut image.topics()), ["a", "b", "c"]);
    assert_eq!(names(&mut image.topics_from("aa")), ["b", "c"]);
}

#[test]
fn a_topic_made_again_has_another_id_and_no_configs() {
    let mut image = Image::empty();
    let resource = ConfigResource::topic("t");
    apply(&mut image, &topic(1, "t", 1));
    let config = |value: Option<&str>| MetadataRecord::Config {
        resource: resource.clone(),
        name: "retention.ms".into(),
        value: value.map(str::to_owned),
    };
    apply(&mut image, &config(Some("1")));
    assert_eq!(image.configs(&resource).unwrap().len(), 1);
    apply(&mut image, &MetadataRecord::TopicRemoved { id: id(1) });
    apply(&mut image, &topic(2, "t", 1));
    assert!(image.configs(&resource).is_none() && image.topic_by_id(id(1)).is_none());
    assert_eq!(image.topic("t").unwrap().id, id(2));
    apply(&mut image, &config(Some("1")));
    apply(&mut image, &config(None));
    assert_eq!(image.configs(&resource), None);
}

#[test]
fn records_about_what_is_gone_change_nothing() {
    let mut image = Image::empty();
    let state = PartitionState::new(vec![1], vec![]);
    for record in [
        MetadataRecord::TopicRemoved { id: id(1) },
        MetadataRecord::Partition { topic_id: id(1), partition: 0, state: state.clone() },
        MetadataRecord::PartitionsAdded { topic_id: id(1), first: 0, partitions: vec![state.clone()] },
        MetadataRecord::BrokerFenced { id: 1, fenced: true },
        MetadataRecord::BrokerRemoved { id: 1 },
    ] {
        apply(&mut image, &record);
        assert_eq!((image.topic_count(), image.brokers().count(), image.partition_count()), (0, 0, 0));
    }
    apply(&mut image, &topic(1, "t", 1));
    for partition in [-1, 1, i32::MAX] {
        apply(&mut image, &MetadataRecord::Partition { topic_id: id(1), partition, state: state.clone() });
    }
    assert_eq!(image.partition_count(), 1);
}

#[test]
fn a_log_that_contradicts_the_image_is_refused() {
    let mut image = Image::empty();
    apply(&mut image, &topic(1, "t", 1));
    apply(&mut image, &MetadataRecord::Cluster { cluster_id: "a".into() });
    let gap = MetadataRecord::PartitionsAdded { topic_id: id(1), first: 5, partitions: vec![] };
    for record in [topic(2, "t", 1), gap, MetadataRecord::Cluster { cluster_id: "b".into() }] {
        assert!(image.clone().apply(3, &record).is_err(), "{record:?}");
    }
}

#[test]
fn names_that_collide_are_found() {
    let mut image = Image::empty();
    apply(&mut image, &topic(1, "a.b_c", 1));
    assert_eq!(image.colliding_topic("a_b.c").map(|name| &**name), Some("a.b_c"));
    assert_eq!(image.colliding_topic("a-b.c"), None);
    apply(&mut image, &MetadataRecord::TopicRemoved { id: id(1) });
    assert_eq!(image.colliding_topic("a_b.c"), None);
}

#[test]
fn a_directory_is_noted_for_the_replica_that_has_it() {
    let mut image = Image::empty();
    let partitions = vec![PartitionState::new(vec![1, 2], vec![])];
    apply(&mut image, &MetadataRecord::Topic { id: id(1), name: "t".into(), partitions });
    let directory = Uuid::from_u128(5);
    let record = |broker| MetadataRecord::ReplicaDirectory { topic_id: id(1), partition: 0, broker, directory };
    apply(&mut image, &record(2));
    apply(&mut image, &record(9));
    assert_eq!(image.partition("t", 0).unwrap().directories, [Uuid::nil(), directory]);
    assert_eq!(image.partition("t", 0).unwrap().directory_of(2), Some(directory));
}
