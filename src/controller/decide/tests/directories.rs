//! Brokers with several log directories (KIP-858): what one that is gone takes along, and what comes back with it.

use super::registration::asking;
use super::*;
use crate::base::ErrorCode;
use crate::controller::decide::directories::{DirectoryAssignment, assign_directories};
use crate::controller::decide::registration::{Registration, register};

const OTHER: Uuid = Uuid::from_u128(777);

/// Broker 1 alone with two directories, and topic `t` with a partition in each.
fn alone() -> Image {
    let mut image = cluster(1);
    let partitions = vec![on_one(), PartitionState::new(vec![1], vec![OTHER])];
    let mut two = broker(1, None);
    two.directories.push(OTHER);
    apply(
        &mut image,
        &[
            MetadataRecord::Cluster { cluster_id: "c".into() },
            MetadataRecord::Broker(two),
            MetadataRecord::Topic { id: topic_id(1), name: "t".into(), partitions },
        ],
    );
    image
}

fn restarted(image: &Image, incarnation: u128, directories: &[Uuid]) -> Image {
    let asked = asking(1, incarnation);
    let broker = BrokerRegistration { directories: directories.to_vec(), ..asked.broker };
    let decision = register(image, &RULES, &Registration { broker, ..asked }, false);
    assert!(decision.reply.is_ok());
    after(image, &decision)
}

fn leaders(image: &Image) -> Vec<BrokerId> {
    (0..2).map(|partition| image.partition("t", partition).expect("topic t").leader).collect()
}

fn assign(image: &Image, directory: Uuid, partition: i32) -> (Image, ErrorCode) {
    let epoch = image.broker(1).expect("broker 1").epoch;
    let asked = DirectoryAssignment { directory, topics: vec![(topic_id(1), vec![partition])] };
    let decision = assign_directories(image, &RULES, 1, epoch, &[asked]);
    let outcome = decision.reply.as_ref().expect("an answer")[0].1[0].1[0].1;
    (after(image, &decision), outcome)
}

#[test]
fn a_broker_that_comes_back_without_a_directory_leads_only_what_lies_in_the_others() {
    let image = restarted(&alone(), 2, &[directory(1)]);
    assert_eq!(leaders(&image), [1, -1]);
    let image = restarted(&image, 3, &[directory(1), OTHER]);
    assert_eq!(leaders(&image), [1, 1], "the disk is mounted again");
}

#[test]
fn a_replica_that_is_made_in_another_directory_can_be_led_there() {
    let image = restarted(&alone(), 2, &[directory(1)]);
    let (image, outcome) = assign(&image, directory(1), 1);
    assert_eq!(outcome, ErrorCode::NONE);
    assert_eq!(leaders(&image), [1, 1]);
    assert_eq!(image.partition("t", 1).unwrap().directory_of(1), Some(directory(1)));
}

#[test]
fn a_move_between_directories_changes_nothing_but_the_directory() {
    let image = alone();
    let (moved, outcome) = assign(&image, OTHER, 0);
    assert_eq!(outcome, ErrorCode::NONE);
    let expected = PartitionState { directories: vec![OTHER], ..(**image.partition("t", 0).unwrap()).clone() };
    let state = moved.partition("t", 0).unwrap();
    assert_eq!((state.leader, state.leader_epoch, &state.directories), (1, expected.leader_epoch, &vec![OTHER]));
}

#[test]
fn a_replica_in_a_directory_that_failed_is_not_led() {
    let image = alone();
    let (lost, outcome) = assign(&image, Uuid::from_u128(1), 0);
    assert_eq!(outcome, ErrorCode::NONE);
    assert_eq!(leaders(&lost), [-1, 1]);
}

/// A topic of three copies whose broker 1 comes back with another directory than the one its copy was in.
fn replaced(isr: Vec<BrokerId>, elr: Vec<BrokerId>) -> Image {
    let mut image = replicated(3, 2);
    let leader = isr.iter().copied().find(|id| *id != 1).unwrap_or(crate::base::ids::NO_BROKER);
    let directories = vec![OTHER, directory(2), directory(3)];
    let next = PartitionState { leader, isr, elr, directories, ..state(&image) };
    set_state(&mut image, next);
    image
}

#[test]
fn a_copy_that_is_made_anew_in_another_directory_is_not_eligible_any_more() {
    let (image, outcome) = assign(&replaced(vec![3], vec![1]), directory(1), 0);
    assert_eq!(outcome, ErrorCode::NONE);
    let now = state(&image);
    assert_eq!((now.leader, &now.isr[..], &now.elr[..]), (3, &[3][..], &[][..]));
    assert_eq!(now.directory_of(1), Some(directory(1)));
}

#[test]
fn a_copy_that_is_in_sync_again_stays_when_its_new_directory_is_told() {
    let (image, _) = assign(&replaced(vec![3, 1], vec![]), directory(1), 0);
    assert_eq!(&state(&image).isr[..], &[3, 1]);
}

#[test]
fn a_copy_that_moves_between_directories_that_are_there_stays_eligible() {
    let mut image = replaced(vec![3], vec![1]);
    let two = BrokerRegistration { directories: vec![directory(1), OTHER], ..(**image.broker(1).expect("it")).clone() };
    apply(&mut image, &[MetadataRecord::Broker(two)]);
    let (image, _) = assign(&image, directory(1), 0);
    assert_eq!(&state(&image).elr[..], &[1]);
}
