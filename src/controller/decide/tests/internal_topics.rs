use super::*;
use crate::controller::decide::elections::Event;
use crate::controller::decide::elections::after as partitions_after;
use crate::controller::decide::internal_topics::{InternalTopic, ensure_internal_topic, raise_internal_topic};
use crate::metadata::ConfigResource;
use crate::metadata::config::layers::DEFAULTS_ONLY;

fn wanted() -> InternalTopic {
    InternalTopic::transaction_state(4, 3, 1024 * 1024, 2)
}

fn made_on(count: BrokerId) -> Image {
    let image = cluster(count);
    after(&image, &ensure_internal_topic(&image, &wanted(), DEFAULTS_ONLY, topic_id(1), 0))
}

fn factors(image: &Image) -> Vec<usize> {
    image.topic("__transaction_state").unwrap().partitions.iter().map(|state| state.replicas.len()).collect()
}

fn min_isr(image: &Image) -> String {
    image.configs(&ConfigResource::topic("__transaction_state")).unwrap()["min.insync.replicas"].clone()
}

fn all_in_sync(image: &mut Image) {
    let topic = image.topic("__transaction_state").unwrap().clone();
    for (index, state) in topic.indexed() {
        let state =
            PartitionState { isr: state.replicas.clone(), adding: vec![], removing: vec![], ..(**state).clone() };
        apply(image, &[MetadataRecord::Partition { topic_id: topic.id, partition: index, state }]);
    }
}

#[test]
fn it_begins_with_what_there_is_and_grows_with_the_cluster() {
    let mut image = made_on(1);
    assert_eq!((factors(&image), min_isr(&image)), (vec![1; 4], "1".to_owned()));
    assert_eq!(raise_internal_topic(&image, &RULES, &wanted()).records, []);
    for id in [2, 3] {
        apply(&mut image, &[MetadataRecord::Broker(broker(id, None))]);
    }
    let decision = raise_internal_topic(&image, &RULES, &wanted());
    image = after(&image, &decision);
    assert_eq!(factors(&image), [3; 4]);
    let topic = image.topic("__transaction_state").unwrap();
    assert!(topic.partitions.iter().all(|state| state.leader == 1 && state.isr == [1] && state.adding == [2, 3]));
    let mut preferred: Vec<_> = topic.partitions.iter().map(|state| state.preferred_leader()).collect();
    preferred.sort_unstable();
    preferred.dedup();
    assert_eq!(preferred, [1, 2, 3], "leaders are spread");
    assert_eq!(raise_internal_topic(&image, &RULES, &wanted()).records, [], "one step at a time");
    all_in_sync(&mut image);
    let decision = raise_internal_topic(&image, &RULES, &wanted());
    assert_eq!(min_isr(&after(&image, &decision)), "2");
    assert_eq!(raise_internal_topic(&after(&image, &decision), &RULES, &wanted()).records, []);
}

#[test]
fn brokers_that_do_not_serve_are_not_counted() {
    let mut image = made_on(2);
    assert_eq!(factors(&image), [2; 4]);
    let third = BrokerRegistration { fenced: true, ..broker(3, None) };
    apply(&mut image, &[MetadataRecord::Broker(third)]);
    assert_eq!(raise_internal_topic(&image, &RULES, &wanted()).records, []);
    apply(&mut image, &[MetadataRecord::BrokerFenced { id: 3, fenced: false }]);
    let records = partitions_after(&image, &RULES, Event::Returned(3));
    assert_eq!(records, []);
    assert_eq!(raise_internal_topic(&image, &RULES, &wanted()).records.len(), 4);
}
