use super::*;
use crate::base::ErrorCode;
use crate::controller::decide::elections::{self, Event};
use crate::controller::decide::give_up::{GiveUp, GiveUpOutcomes, OwnCopy, give_up};

fn asking(broker: BrokerId, short: bool) -> GiveUp {
    GiveUp { broker, broker_epoch: 1, copies: vec![OwnCopy { topic_id: topic_id(1), partition: 0, short }] }
}

fn given_up(image: &Image, asked: &GiveUp) -> (Image, Result<GiveUpOutcomes, ErrorCode>) {
    let decision = give_up(image, &RULES, asked);
    (after(image, &decision), decision.reply)
}

#[track_caller]
fn assert_refused(image: &Image, asked: &GiveUp) {
    let (same, reply) = given_up(image, asked);
    assert_eq!(reply, Ok(vec![Err(ErrorCode::ELIGIBLE_LEADERS_NOT_AVAILABLE)]));
    assert_eq!(state(&same), state(image), "and nothing changes");
}

#[test]
fn a_damaged_follower_leaves_the_set_and_is_not_eligible_either() {
    let image = replicated(3, 3);
    let (image, reply) = given_up(&image, &asking(2, false));
    assert_eq!((shown(&image), reply), (expect(1, &[1, 3], &[]), Ok(vec![Ok(1)])));
    assert_eq!(state(&image).leader_epoch, 0, "the leader goes on");
}

#[test]
fn one_that_nobody_counts_on_voids_what_was_proposed_before() {
    let mut image = replicated(3, 2);
    let next = PartitionState { isr: vec![1, 3], partition_epoch: 4, ..state(&image) };
    set_state(&mut image, next);
    let (image, reply) = given_up(&image, &asking(2, false));
    assert_eq!((shown(&image), state(&image).partition_epoch, reply), (expect(1, &[1, 3], &[]), 5, Ok(vec![Ok(5)])));
}

#[test]
fn an_eligible_replica_that_is_damaged_is_eligible_no_more() {
    let mut image = replicated(3, 3);
    let next = PartitionState { isr: vec![1], elr: vec![2, 3], ..state(&image) };
    set_state(&mut image, next);
    assert_eq!(shown(&given_up(&image, &asking(2, false)).0), expect(1, &[1], &[3]));
}

#[test]
fn a_damaged_leader_hands_over_to_another_in_sync_replica() {
    let (image, reply) = given_up(&replicated(3, 2), &asking(1, false));
    assert_eq!((shown(&image), reply), (expect(2, &[2, 3], &[]), Ok(vec![Ok(1)])));
    assert_eq!(state(&image).leader_epoch, 1);
}

#[test]
fn a_damaged_leader_hands_over_to_one_that_is_eligible_when_it_is_the_last_in_sync() {
    let mut image = replicated(3, 3);
    let next = PartitionState { isr: vec![1], elr: vec![3], ..state(&image) };
    set_state(&mut image, next);
    assert_eq!(shown(&given_up(&image, &asking(1, false)).0), expect(3, &[3], &[]));
}

#[test]
fn the_last_one_stays_whatever_the_topic_says_about_unclean_elections() {
    let mut image = replicated(3, 1);
    let next = PartitionState { isr: vec![1], ..state(&image) };
    set_state(&mut image, next);
    assert_refused(&image, &asking(1, false));
    apply(&mut image, &[topic_config("unclean.leader.election.enable", "true")]);
    assert_refused(&image, &asking(1, false));
}

/// It would cut the others to its end.
#[test]
fn the_last_one_does_not_lead_when_it_lacks_records_and_others_may_have_them() {
    let mut image = replicated(3, 1);
    let next = PartitionState { isr: vec![1], ..state(&image) };
    set_state(&mut image, next);
    let (mut image, reply) = given_up(&image, &asking(1, true));
    assert_eq!((shown(&image), reply.is_ok()), (expect(-1, &[], &[]), true));
    for id in 1..=3 {
        let returned = elections::after(&image, &RULES, Event::Returned(id));
        apply(&mut image, &returned);
    }
    assert_eq!(shown(&image), expect(-1, &[], &[]), "nobody leads by himself");
    let (asked, partitions) = (elections::Asked::Unclean, [("t".to_owned(), vec![0])]);
    let decision = elections::elect_leaders(&image, &RULES, asked, Some(&partitions));
    assert_eq!(shown(&after(&image, &decision)), expect(2, &[2], &[]), "the first that was not given up");
}

#[test]
fn the_only_replica_leads_with_what_is_left() {
    let image = replicated(1, 1);
    assert_refused(&image, &asking(1, true));
}

#[test]
fn whoever_is_given_up_leads_after_all_when_an_unclean_election_finds_no_other() {
    let mut image = replicated(2, 1);
    let next = PartitionState { isr: vec![1], ..state(&image) };
    set_state(&mut image, next);
    let (mut image, _) = given_up(&image, &asking(1, true));
    fence_broker(&mut image, 2);
    apply(&mut image, &[topic_config("unclean.leader.election.enable", "true")]);
    let decision = elections::elect_unclean(&image, &RULES);
    assert_eq!(shown(&after(&image, &decision)), expect(1, &[1], &[]));
}

#[test]
fn one_that_lacks_records_rather_leaves_the_partition_without_a_leader_until_others_are_back() {
    let mut image = replicated(3, 3);
    let next = PartitionState { isr: vec![1], elr: vec![2], ..state(&image) };
    set_state(&mut image, next);
    fence_broker(&mut image, 2);
    assert_refused(&image, &asking(1, false));
    let (image, reply) = given_up(&image, &asking(1, true));
    assert_eq!((shown(&image), reply.is_ok()), (expect(-1, &[2], &[]), true));
}

#[test]
fn an_older_life_of_the_broker_and_strangers_give_nothing_up() {
    let image = replicated(2, 1);
    let stale = GiveUp { broker_epoch: 0, ..asking(2, false) };
    assert_eq!(given_up(&image, &stale).1, Err(ErrorCode::STALE_BROKER_EPOCH));
    let mut image = image;
    apply(&mut image, &[MetadataRecord::Broker(broker(3, None))]);
    assert_eq!(given_up(&image, &asking(3, false)).1, Ok(vec![Err(ErrorCode::NOT_LEADER_OR_FOLLOWER)]));
}
