use super::*;
use crate::base::ErrorCode;
use crate::controller::decide::delete_topics::{TopicRef, delete_topics};

fn image() -> Image {
    let mut image = cluster(1);
    with_topic(&mut image, "f", 6, 1);
    with_topic(&mut image, "g", 7, 1);
    image
}

type Outcome = (Option<String>, TopicId, i16);

/// Each outcome as name, id and code, and the ids that go.
fn decide(topics: &[TopicRef]) -> (Vec<Outcome>, Vec<TopicId>) {
    let decision = delete_topics(&image(), topics);
    let code = |refusal: &Option<crate::controller::decide::Refusal>| refusal.as_ref().map_or(0, |one| one.code.code());
    let outcomes = decision.reply.iter().map(|one| (one.name.clone(), one.id, code(&one.refusal))).collect();
    let gone = decision.records.iter().map(|record| match record {
        MetadataRecord::TopicRemoved { id } => *id,
        other => panic!("unexpected {other:?}"),
    });
    (outcomes, gone.collect())
}

fn named(name: &str) -> Option<String> {
    Some(name.into())
}

#[test]
fn by_name_and_by_id() {
    let (outcomes, gone) = decide(&[TopicRef::named("f"), TopicRef::id(topic_id(7))]);
    assert_eq!(outcomes, [(named("f"), topic_id(6), 0), (named("g"), topic_id(7), 0)]);
    assert_eq!(gone, [topic_id(6), topic_id(7)]);
}

#[test]
fn what_is_not_there_is_unknown() {
    let (outcomes, gone) = decide(&[TopicRef::named("none"), TopicRef::named("a/b"), TopicRef::id(topic_id(99))]);
    let expected = [(named("a/b"), TopicId::ZERO, 3), (named("none"), TopicId::ZERO, 3), (None, topic_id(99), 100)];
    assert_eq!((outcomes.as_slice(), gone.len()), (expected.as_slice(), 0));
}

#[test]
fn a_name_and_an_id_in_one_item_or_neither_is_invalid() {
    let both = TopicRef { name: named("f"), id: topic_id(6) };
    let neither = TopicRef { name: None, id: TopicId::ZERO };
    let (outcomes, gone) = decide(&[both, neither]);
    assert_eq!(outcomes, [(named("f"), topic_id(6), 42), (None, TopicId::ZERO, 42)]);
    assert_eq!(gone, []);
}

#[test]
fn a_topic_named_twice_stays() {
    let id = topic_id(6);
    let invalid = ErrorCode::INVALID_REQUEST.code();
    let cases = [
        (vec![TopicRef::named("f"), TopicRef::named("f")], (named("f"), TopicId::ZERO, invalid)),
        (vec![TopicRef::id(id), TopicRef::id(id)], (None, id, invalid)),
        (vec![TopicRef::named("f"), TopicRef::id(id)], (named("f"), id, invalid)),
        (vec![TopicRef::id(id), TopicRef::named("f"), TopicRef::id(id)], (named("f"), id, invalid)),
    ];
    for (topics, expected) in cases {
        assert_eq!(decide(&topics), (vec![expected], vec![]), "{topics:?}");
    }
}

#[test]
fn a_removed_topic_takes_its_configs_along() {
    use crate::metadata::ConfigResource;
    let mut image = image();
    let resource = ConfigResource::topic("f");
    let config =
        MetadataRecord::Config { resource: resource.clone(), name: "retention.ms".into(), value: Some("1".into()) };
    apply(&mut image, &[config]);
    let image = after(&image, &delete_topics(&image, &[TopicRef::named("f")]));
    assert!(image.topic("f").is_none() && image.topic_by_id(topic_id(6)).is_none());
    assert_eq!(image.configs(&resource), None);
}
