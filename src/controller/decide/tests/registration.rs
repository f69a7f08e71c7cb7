use super::*;
use crate::base::ErrorCode;
use crate::controller::decide::features::{Direction, FeatureUpdate, supported_features, update_features};
use crate::controller::decide::registration::{Registration, register};

pub(super) fn asking(id: BrokerId, incarnation: u128) -> Registration {
    let broker = BrokerRegistration {
        incarnation: Uuid::from_u128(incarnation),
        features: supported_features(),
        ..broker(id, None)
    };
    Registration {
        cluster_id: "c".into(),
        fresh_cluster_id: String::new(),
        broker,
        previous_epoch: None,
        remembered: Vec::new(),
    }
}

fn registered(image: &Image, asked: &Registration) -> (Image, i64) {
    let decision = register(image, &RULES, asked, false);
    (after(image, &decision), decision.reply.expect("may register"))
}

fn refused(image: &Image, asked: &Registration, other_is_alive: bool) -> ErrorCode {
    let decision = register(image, &RULES, asked, other_is_alive);
    assert_eq!(decision.records, []);
    decision.reply.unwrap_err().code
}

#[test]
fn the_first_one_makes_the_cluster_and_serves_at_once() {
    let (image, epoch) = registered(&Image::empty(), &asking(1, 1));
    assert_eq!((&*image.cluster_id, image.feature("metadata.version")), ("c", 33));
    assert!(image.is_active(1));
    assert_eq!(image.broker(1).unwrap().epoch, epoch);
}

#[test]
fn a_new_cluster_keeps_the_in_sync_minimum_that_its_first_controller_was_started_with() {
    let set = std::collections::BTreeMap::from([("min.insync.replicas".to_owned(), "2".to_owned())]);
    let decision = register(&Image::empty(), &Rules { node_id: 1, fixed: &set }, &asking(1, 1), false);
    let image = after(&Image::empty(), &decision);
    let defaults = image.configs(&crate::metadata::ConfigResource::broker_default()).expect("is set");
    assert_eq!(defaults.get("min.insync.replicas").map(String::as_str), Some("2"));
}

#[test]
fn a_node_that_never_was_in_a_cluster_joins_the_one_there_is() {
    let nameless = |id| Registration { cluster_id: String::new(), fresh_cluster_id: "fresh".into(), ..asking(id, 1) };
    let (image, _) = registered(&Image::empty(), &nameless(1));
    assert_eq!(&*image.cluster_id, "fresh");
    let (image, _) = registered(&image, &nameless(2));
    assert_eq!(&*image.cluster_id, "fresh");
}

#[test]
fn the_epoch_is_the_offset_of_the_registration_and_grows() {
    let image = replicated(3, 2);
    let decision = register(&image, &RULES, &asking(2, 9), false);
    let epoch = decision.reply.clone().unwrap();
    let at = decision.records.iter().position(|record| matches!(record, MetadataRecord::Broker(_))).unwrap();
    assert_eq!(epoch, image.offset + 1 + i64::try_from(at).unwrap());
    let image = after(&image, &decision);
    assert!(image.broker(2).unwrap().fenced);
    let (_, later) = registered(&image, &asking(2, 10));
    assert!(later > epoch);
}

#[test]
fn the_same_process_keeps_its_epoch_and_its_standing() {
    let (image, epoch) = registered(&replicated(3, 2), &asking(2, 9));
    let again = register(&image, &RULES, &asking(2, 9), true);
    assert_eq!((again.records.as_slice(), again.reply), (&[][..], Ok(epoch)));
    let mut moved = asking(2, 9);
    moved.broker.rack = Some("r".into());
    let (image, same) = registered(&image, &moved);
    assert_eq!((same, image.broker(2).unwrap().rack.as_deref()), (epoch, Some("r")));
    assert!(image.broker(2).unwrap().fenced);
}

#[test]
fn another_cluster_a_living_twin_and_bad_directories_are_refused() {
    let image = replicated(3, 2);
    let other = Registration { cluster_id: "d".into(), ..asking(2, 9) };
    assert_eq!(refused(&image, &other, false), ErrorCode::INCONSISTENT_CLUSTER_ID);
    assert_eq!(refused(&image, &asking(2, 9), true), ErrorCode::DUPLICATE_BROKER_REGISTRATION);
    for directories in [vec![], vec![Uuid::nil()], vec![directory(2), directory(2)], vec![directory(1)]] {
        let mut asked = asking(2, 9);
        asked.broker.directories = directories;
        assert_eq!(refused(&image, &asked, false), ErrorCode::INVALID_REGISTRATION);
    }
}

#[test]
fn a_clean_restart_stays_eligible_and_an_unclean_one_does_not() {
    let image = replicated(3, 3);
    let clean = Registration { previous_epoch: Some(1), ..asking(2, 9) };
    assert_eq!(shown(&registered(&image, &clean).0), expect(1, &[1, 3], &[2]));
    for previous_epoch in [None, Some(0)] {
        let unclean = Registration { previous_epoch, ..asking(2, 9) };
        assert_eq!(shown(&registered(&image, &unclean).0), expect(1, &[1, 3], &[]));
    }
}

#[test]
fn when_all_restart_uncleanly_the_last_one_keeps_the_partition() {
    let mut image = replicated(3, 2);
    for id in 1..=3 {
        image = registered(&image, &asking(id, 9)).0;
    }
    assert_eq!(shown(&image), expect(-1, &[3], &[]));
    for id in 1..=3 {
        let records = crate::controller::decide::elections::after(
            &image,
            &RULES,
            crate::controller::decide::elections::Event::Returned(id),
        );
        assert_eq!(records.len(), usize::from(id == 3), "{id}");
    }
}

#[test]
fn whoever_is_alone_serves_at_once_and_begins_new_epochs() {
    let mut image = Image::empty();
    let (first, _) = registered(&image, &asking(1, 1));
    image = first;
    with_topic(&mut image, "t", 1, 1);
    let (again, _) = registered(&image, &asking(1, 2));
    assert!(again.is_active(1));
    assert_eq!((state(&again).leader, state(&again).leader_epoch), (1, 1));
    fence_broker(&mut image, 1);
    assert_eq!(shown(&image).leader, -1);
    let (again, _) = registered(&image, &asking(1, 2));
    assert_eq!((state(&again).leader, state(&again).leader_epoch), (1, 2));
}

#[test]
fn a_broker_that_lacks_a_feature_is_kept_out_and_one_that_is_in_keeps_levels_down() {
    let (image, _) = registered(&Image::empty(), &asking(1, 1));
    let mut old = asking(2, 1);
    old.broker.features.retain(|feature| feature.name != "share.version");
    assert_eq!(refused(&image, &old, false), ErrorCode::UNSUPPORTED_VERSION);
    let down = FeatureUpdate { name: "share.version".into(), level: 0, direction: Direction::Downgrade };
    let image = after(&image, &update_features(&image, &[down]));
    let (image, _) = registered(&image, &old);
    let up = FeatureUpdate { name: "share.version".into(), level: 1, direction: Direction::Upgrade };
    let refusal = update_features(&image, &[up]).reply.unwrap_err();
    assert!(refusal.message.unwrap().contains("Broker 2 does not support this feature"));
}

#[test]
fn directories_that_do_not_remember_the_last_life_are_kept_out() {
    let (image, _) = registered(&replicated(3, 2), &asking(2, 9));
    let remembering = |lives: &[u128]| Registration {
        remembered: lives.iter().map(|life| Uuid::from_u128(*life)).collect(),
        ..asking(2, 10)
    };
    assert_eq!(refused(&image, &remembering(&[7, 8]), false), ErrorCode::STALE_BROKER_EPOCH);
    registered(&image, &remembering(&[8, 9]));
    registered(&image, &remembering(&[]));
    let again = Registration { remembered: vec![Uuid::from_u128(8)], ..asking(2, 9) };
    registered(&image, &again);
}
