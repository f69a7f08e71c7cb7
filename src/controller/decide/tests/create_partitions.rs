use super::*;
use crate::base::ErrorCode;
use crate::controller::decide::create_partitions::{MorePartitions, create_partitions};

fn image() -> Image {
    let mut image = cluster(2);
    with_topic(&mut image, "a", 1, 3);
    image
}

fn more(name: &str, count: i32, assignments: Option<&[&[BrokerId]]>) -> MorePartitions {
    let assignments = assignments.map(|all| all.iter().map(|one| one.to_vec()).collect());
    MorePartitions { name: name.into(), count, assignments }
}

fn refusal(topics: &[MorePartitions]) -> (ErrorCode, Option<String>) {
    let decision = create_partitions(&image(), topics, 0);
    assert_eq!(decision.records, []);
    let refusal = decision.reply[0].refusal.clone().expect("refused");
    (refusal.code, refusal.message)
}

#[test]
fn added_partitions_follow_the_existing_ones() {
    let decision = create_partitions(&image(), &[more("a", 5, Some(&[&[2], &[1]]))], 0);
    let partitions = vec![PartitionState::new(vec![2], vec![directory(2)]), on_one()];
    let expected = MetadataRecord::PartitionsAdded { topic_id: topic_id(1), first: 3, partitions };
    assert_eq!(decision.records, [expected]);
    assert_eq!(decision.reply[0].refusal, None);
    assert_eq!(after(&image(), &decision).topic("a").unwrap().partition_count(), 5);
}

#[test]
fn without_assignments_the_topics_replication_factor_is_kept() {
    let decision = create_partitions(&image(), &[more("a", 7, None)], 0);
    let image = after(&image(), &decision);
    assert!(image.topic("a").unwrap().partitions.iter().all(|partition| partition.replicas.len() == 1));
}

#[test]
fn a_count_that_is_no_increase_is_refused() {
    for (count, text) in
        [(3, "Topic already has 3 partition(s)."), (2, "not be an increase"), (0, "0 would not"), (-1, "-1 would")]
    {
        let (code, message) = refusal(&[more("a", count, None)]);
        assert_eq!(code, ErrorCode::INVALID_PARTITIONS);
        assert!(message.unwrap().contains(text));
    }
    assert_eq!(refusal(&[more("a", i32::MAX, None)]).0, ErrorCode::POLICY_VIOLATION);
}

#[test]
fn unknown_topics_are_unknown_without_a_message() {
    assert_eq!(refusal(&[more("none", 5, None)]), (ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, None));
    assert_eq!(refusal(&[more("a/b", 5, None)]), (ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, None));
}

#[test]
fn a_name_given_twice_is_answered_once() {
    let decision = create_partitions(&image(), &[more("a", 4, None), more("a", 5, None)], 0);
    assert_eq!((decision.records.len(), decision.reply.len()), (0, 1));
    assert_eq!(decision.reply[0].refusal.clone().unwrap().code, ErrorCode::INVALID_REQUEST);
}

#[test]
fn bad_assignments_are_refused() {
    let cases: [&[&[BrokerId]]; 6] = [&[], &[&[1], &[1]], &[&[7]], &[&[1, 1]], &[&[]], &[&[1, 2]]];
    for assignments in cases {
        let (code, _) = refusal(&[more("a", 4, Some(assignments))]);
        assert_eq!(code, ErrorCode::INVALID_REPLICA_ASSIGNMENT, "{assignments:?}");
    }
}
