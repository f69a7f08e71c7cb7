//! Copies that are gone from disks that are there, or with disks that were replaced: what is made in their place must not pass for them.

use super::*;
use crate::base::ids::NO_BROKER;

const GONE: Uuid = Uuid::from_u128(299);

/// The partition has two more replicas; this one counts as in sync in a directory that is not there.
fn replicated(leader: i32) -> Image {
    let mut image = Image::empty();
    let directories = vec![GONE, Uuid::nil(), Uuid::nil()];
    let state = PartitionState { leader, isr: vec![NODE], ..PartitionState::new(vec![NODE, 2, 3], directories) };
    let id = TopicId(Uuid::from_u128(7));
    image.apply(1, &MetadataRecord::Topic { id, name: "t".into(), partitions: vec![state] }).unwrap();
    image
}

#[tokio::test]
async fn the_place_of_a_copy_that_is_made_anew_is_told_only_when_another_leads() {
    let world = World::start(new_disk(), &[0, 1], Some(GONE), 0);
    assert!(world.partitions.claim_of(&world.partition()).is_some(), "the only replica is made anew");
    world.partitions.apply(&replicated(NO_BROKER), false);
    assert_eq!(world.partitions.claim_of(&world.partition()), None, "it would be elected");
    world.partitions.apply(&replicated(2), false);
    assert!(world.partitions.claim_of(&world.partition()).is_some());
    world.stop().await;
}

#[tokio::test]
async fn a_copy_that_was_moved_by_hand_is_told_at_once() {
    let world = World::new();
    world.produce_many(0..3).await;
    world.partitions.apply(&replicated(NO_BROKER), false);
    assert_eq!(world.partitions.claim_of(&world.partition()), Some(A));
    world.stop().await;
}

#[tokio::test]
async fn a_copy_whose_directory_was_taken_away_after_a_clean_stop_is_short_and_does_not_lead() {
    let world = World::new();
    world.produce_many(0..30).await;
    world.partitions.close(9).unwrap();
    let sim = world.stop().await;
    sim.disk.remove_dir_all(Path::new("/a/t-0")).unwrap();
    let world = World::start(sim, &[0, 1], Some(A), 1);
    let mut image = replicated(NODE);
    let topic = TopicId(Uuid::from_u128(7));
    let state = PartitionState { directories: vec![A], ..PartitionState::new(vec![NODE, 2, 3], vec![]) };
    image.apply(2, &MetadataRecord::Partition { topic_id: topic, partition: 0, state }).unwrap();
    world.partitions.apply(&image, true);
    assert!(!world.produce("31").await, "others have what it lacks");
    assert!(!world.partition().is_leader());
    world.stop().await;
}

/// A directory of the name that is another topic's was deleted with it, or is set aside: nothing is missing then.
#[tokio::test]
async fn a_copy_that_has_nothing_after_an_unclean_stop_is_as_new() {
    let world = World::new();
    world.produce_many(0..30).await;
    let sim = world.crash(Crash::Process).await;
    sim.disk.remove_dir_all(Path::new("/a/t-0")).unwrap();
    let world = World::start(sim, &[0, 1], Some(A), 1);
    assert!(world.produce("31").await);
    world.stop().await;
}
