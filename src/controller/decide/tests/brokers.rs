use super::registration::asking;
use super::*;
use crate::base::ErrorCode;
use crate::controller::decide::brokers::unregister_broker;
use crate::controller::decide::features::{Direction, FeatureUpdate, update_features};
use crate::controller::decide::producer_ids::allocate_producer_ids;
use crate::controller::decide::registration::register;
use crate::metadata::ConfigResource;

/// A cluster as its first broker makes it.
fn first_start() -> Image {
    after(&Image::empty(), &register(&Image::empty(), &RULES, &asking(1, 1), false))
}

#[test]
fn the_first_broker_makes_the_cluster() {
    let image = first_start();
    assert_eq!(&*image.cluster_id, "c");
    assert_eq!((image.feature("metadata.version"), image.feature("share.version")), (33, 2));
    assert_eq!(image.features().count(), 7);
    let defaults = image.configs(&ConfigResource::broker_default()).unwrap();
    assert_eq!(defaults.get("min.insync.replicas").map(String::as_str), Some("1"));
    assert!(image.is_live(1));
}

#[test]
fn a_restart_registers_with_a_greater_epoch_and_renews_leadership() {
    let mut image = first_start();
    with_topic(&mut image, "t", 1, 2);
    let decision = register(&image, &RULES, &asking(1, 2), false);
    let epoch = decision.reply.clone().expect("may register");
    assert!(epoch > image.broker(1).unwrap().epoch);
    let after = after(&image, &decision);
    assert_eq!(after.broker(1).unwrap().epoch, epoch);
    let epochs: Vec<_> = after.topic("t").unwrap().partitions.iter().map(|one| one.leader_epoch).collect();
    assert_eq!(epochs, [1, 1]);
}

#[test]
fn only_a_stopped_broker_can_be_unregistered() {
    let mut image = first_start();
    assert_eq!(unregister_broker(&image, &RULES, 77).reply.unwrap().code, ErrorCode::BROKER_ID_NOT_REGISTERED);
    assert_eq!(unregister_broker(&image, &RULES, 1).reply.unwrap().code, ErrorCode::INVALID_REQUEST);
    apply(&mut image, &[MetadataRecord::BrokerFenced { id: 1, fenced: true }]);
    let decision = unregister_broker(&image, &RULES, 1);
    assert_eq!((decision.reply, decision.records), (None, vec![MetadataRecord::BrokerRemoved { id: 1 }]));
}

#[test]
fn producer_ids_are_never_given_twice() {
    let mut image = Image::empty();
    let mut next = 0;
    for _ in 0..3 {
        let decision = allocate_producer_ids(&image, 1);
        let block = decision.reply.unwrap();
        assert_eq!(block.first, next);
        next = block.first + block.count;
        apply(&mut image, &decision.records);
    }
    apply(&mut image, &[MetadataRecord::ProducerIds { broker: 1, next: i64::MAX }]);
    assert_eq!(allocate_producer_ids(&image, 1), Decision::unchanged(None));
}

#[test]
fn feature_levels_move_together_or_not_at_all() {
    let image = first_start();
    let update = |name: &str, level, direction| FeatureUpdate { name: name.into(), level, direction };
    let up = Direction::Upgrade;
    for (bad, text) in [
        (update("nothing.version", 1, up), "does not support this feature"),
        (update("transaction.version", 99, up), "0-2"),
        (update("transaction.version", 1, up), "downgrade"),
        (update("metadata.version", 1, Direction::Downgrade), "7-33"),
        (update("metadata.version", 30, Direction::Downgrade), "cannot be lowered"),
    ] {
        let decision = update_features(&image, &[update("group.version", 0, Direction::Downgrade), bad]);
        assert_eq!(decision.records, []);
        let refusal = decision.reply.unwrap_err();
        assert_eq!(refusal.code, ErrorCode::INVALID_UPDATE_VERSION);
        assert!(refusal.message.unwrap().contains(text));
    }
    assert_eq!(update_features(&image, &[update("group.version", 1, up)]), Decision::unchanged(Ok(())));
    let lower = update_features(&image, &[update("transaction.version", 1, Direction::Downgrade)]);
    assert_eq!(lower.records, [MetadataRecord::Feature { name: "transaction.version".into(), level: 1 }]);
}
