use super::*;
use crate::base::ErrorCode;
use crate::controller::decide::alter_partition::{AlterPartition, NO_BROKER_EPOCH, NewIsr, alter_partition};

fn isr(members: &[BrokerId]) -> NewIsr {
    NewIsr {
        partition: 0,
        leader_epoch: 0,
        partition_epoch: 0,
        isr: members.iter().map(|id| (*id, 1)).collect(),
        recovering: false,
    }
}

fn asking(new: NewIsr) -> AlterPartition {
    AlterPartition { broker: 1, broker_epoch: 1, topics: vec![(topic_id(1), vec![new])] }
}

fn outcome(image: &Image, asked: &AlterPartition) -> (Image, Result<PartitionState, ErrorCode>) {
    let decision = alter_partition(image, &RULES, asked);
    let mut topics = decision.reply.clone().expect("not stale");
    let (_, outcome) = topics.remove(0).1.remove(0);
    (after(image, &decision), outcome)
}

fn code(image: &Image, asked: &AlterPartition) -> ErrorCode {
    let (after, outcome) = outcome(image, asked);
    assert_eq!(state(&after), state(image));
    outcome.unwrap_err()
}

#[test]
fn a_leader_shrinks_and_expands_its_set() {
    let (image, answer) = outcome(&replicated(3, 2), &asking(isr(&[1, 2])));
    assert_eq!(answer.unwrap(), state(&image));
    assert_eq!((shown(&image), state(&image).partition_epoch), (expect(1, &[1, 2], &[]), 1));
    let back = NewIsr { partition_epoch: 1, ..isr(&[1, 2, 3]) };
    let (image, _) = outcome(&image, &asking(back));
    assert_eq!((shown(&image), state(&image).leader_epoch), (expect(1, &[1, 2, 3], &[]), 0));
}

#[test]
fn what_is_asked_twice_is_refused_the_second_time() {
    let mut twice = asking(isr(&[1, 2]));
    twice.topics[0].1.push(isr(&[1, 3]));
    let decision = alter_partition(&replicated(3, 2), &RULES, &twice);
    assert_eq!(decision.records.len(), 1);
    assert_eq!(decision.reply.unwrap()[0].1[1].1, Err(ErrorCode::INVALID_UPDATE_VERSION));
}

#[test]
fn a_stale_broker_is_refused_whole() {
    for bad in
        [AlterPartition { broker_epoch: 0, ..asking(isr(&[1])) }, AlterPartition { broker: 9, ..asking(isr(&[1])) }]
    {
        let decision = alter_partition(&replicated(3, 2), &RULES, &bad);
        assert_eq!(decision, Decision::unchanged(Err(ErrorCode::STALE_BROKER_EPOCH)));
    }
}

#[test]
fn unknown_topics_and_partitions_are_told_apart() {
    let image = replicated(3, 2);
    let mut unknown = asking(isr(&[1]));
    unknown.topics[0].0 = topic_id(9);
    assert_eq!(code(&image, &unknown), ErrorCode::UNKNOWN_TOPIC_ID);
    let missing = asking(NewIsr { partition: 7, ..isr(&[1]) });
    assert_eq!(code(&image, &missing), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
}

#[test]
fn epochs_must_be_the_newest() {
    let mut image = replicated(3, 2);
    let newer = PartitionState { leader_epoch: 5, partition_epoch: 8, ..state(&image) };
    set_state(&mut image, newer);
    let with = |leader_epoch, partition_epoch| asking(NewIsr { leader_epoch, partition_epoch, ..isr(&[1]) });
    assert_eq!(code(&image, &with(6, 8)), ErrorCode::NOT_CONTROLLER);
    assert_eq!(code(&image, &with(5, 9)), ErrorCode::NOT_CONTROLLER);
    assert_eq!(code(&image, &with(4, 8)), ErrorCode::FENCED_LEADER_EPOCH);
    assert_eq!(code(&image, &with(5, 7)), ErrorCode::INVALID_UPDATE_VERSION);
    assert!(outcome(&image, &with(5, 8)).1.is_ok());
}

#[test]
fn only_the_leader_asks_and_only_for_a_set_of_replicas_with_itself() {
    let image = replicated(3, 2);
    let follower = AlterPartition { broker: 2, ..asking(isr(&[1, 2])) };
    assert_eq!(code(&image, &follower), ErrorCode::INVALID_REQUEST);
    for members in [&[][..], &[2, 3], &[1, 1], &[1, 9]] {
        assert_eq!(code(&image, &asking(isr(members))), ErrorCode::INVALID_REQUEST, "{members:?}");
    }
}

#[test]
fn members_must_be_alive_under_the_epoch_that_the_leader_saw() {
    let mut image = replicated(3, 2);
    let alone = PartitionState { isr: vec![1], ..state(&image) };
    set_state(&mut image, alone);
    let with = |epoch| asking(NewIsr { isr: vec![(1, 1), (2, epoch)], ..isr(&[]) });
    assert_eq!(code(&image, &with(7)), ErrorCode::INELIGIBLE_REPLICA);
    assert!(outcome(&image, &with(NO_BROKER_EPOCH)).1.is_ok());
    let mut fenced = image.clone();
    apply(&mut fenced, &[MetadataRecord::BrokerFenced { id: 2, fenced: true }]);
    assert_eq!(code(&fenced, &with(1)), ErrorCode::INELIGIBLE_REPLICA);
    let stopping = BrokerRegistration { in_controlled_shutdown: true, ..broker(2, None) };
    apply(&mut image, &[MetadataRecord::Broker(stopping)]);
    assert_eq!(code(&image, &with(1)), ErrorCode::INELIGIBLE_REPLICA);
}

#[test]
fn recovery_ends_but_does_not_begin_here_and_is_done_alone() {
    let mut image = replicated(3, 2);
    let recovering = NewIsr { recovering: true, ..isr(&[1]) };
    assert_eq!(code(&image, &asking(recovering.clone())), ErrorCode::INVALID_REQUEST);
    let alone = PartitionState { isr: vec![1], recovering: true, ..state(&image) };
    set_state(&mut image, alone);
    assert_eq!(code(&image, &asking(NewIsr { recovering: true, ..isr(&[1, 2]) })), ErrorCode::INVALID_REQUEST);
    assert!(outcome(&image, &asking(recovering)).1.unwrap().recovering);
    assert!(!outcome(&image, &asking(isr(&[1]))).1.unwrap().recovering);
}

#[test]
fn a_leader_that_its_own_request_replaces_is_told() {
    let mut image = replicated(3, 2);
    let moving = PartitionState {
        replicas: vec![2, 3, 1],
        adding: vec![3],
        removing: vec![1],
        isr: vec![1, 2],
        directories: vec![directory(2), directory(3), directory(1)],
        ..state(&image)
    };
    set_state(&mut image, moving);
    let (image, answer) = outcome(&image, &asking(isr(&[1, 2, 3])));
    assert_eq!(answer, Err(ErrorCode::NEW_LEADER_ELECTED));
    assert_eq!((shown(&image), state(&image).replicas), (expect(2, &[2, 3], &[]), vec![2, 3]));
}
