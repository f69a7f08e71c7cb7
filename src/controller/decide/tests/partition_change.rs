//! KIP-966 and KIP-497, fact by fact.

use super::*;
use crate::controller::decide::partition_change::{Change, Election};
use crate::controller::decide::rules::TopicRules;

fn rules(min_isr: usize) -> TopicRules {
    TopicRules { min_isr, unclean_elections: false, keeps_eligible: true }
}

fn three() -> PartitionState {
    PartitionState::new(vec![1, 2, 3], vec![])
}

fn anybody(_: BrokerId) -> bool {
    true
}

#[test]
fn a_change_to_what_is_changes_nothing() {
    assert_eq!(Change::of(&three(), rules(2), &anybody).build(), None);
}

#[test]
fn a_leader_that_leaves_is_followed_by_the_next_in_sync_replica_under_a_new_epoch() {
    let state = three();
    let others = |id| id != 1;
    let new = Change::of(&state, rules(2), &others).without(1).build().unwrap();
    assert_eq!((new.leader, new.leader_epoch, new.partition_epoch), (2, 1, 1));
    assert_eq!((new.isr, new.elr), (vec![2, 3], vec![]));
}

#[test]
fn a_follower_that_leaves_changes_the_partition_epoch_only() {
    let new = Change::of(&three(), rules(2), &anybody).without(3).build().unwrap();
    assert_eq!((new.leader, new.leader_epoch, new.partition_epoch), (1, 0, 1));
}

#[test]
fn below_the_minimum_those_that_leave_stay_eligible_until_it_is_reached_again() {
    let state = PartitionState { isr: vec![1, 2], ..three() };
    let below = Change::of(&state, rules(2), &anybody).without(2).build().unwrap();
    assert_eq!((below.isr.clone(), below.elr.clone()), (vec![1], vec![2]));
    let mut change = Change::of(&below, rules(2), &anybody);
    change.isr = vec![1, 3];
    let again = change.build().unwrap();
    assert_eq!((again.isr, again.elr), (vec![1, 3], vec![]));
}

#[test]
fn without_anybody_in_sync_an_eligible_replica_leads_alone() {
    let state = PartitionState { isr: vec![1], elr: vec![2, 3], ..three() };
    let others = |id| id == 3;
    let new = Change::of(&state, rules(2), &others).without(1).build().unwrap();
    assert_eq!((new.leader, new.isr, new.elr, new.recovering), (3, vec![3], vec![1, 2], false));
}

#[test]
fn the_last_member_is_kept_while_nobody_leads_and_leads_again_when_it_is_back() {
    let nobody = |_| false;
    let gone = Change::of(&three(), rules(2), &nobody).without(1).without(2).without(3).build().unwrap();
    assert_eq!((gone.leader, gone.isr.clone(), gone.elr.clone()), (-1, vec![1], vec![2, 3]));
    assert_eq!(gone.last_known_elr, [1]);
    assert_eq!(Change::of(&gone, rules(2), &nobody).build(), None);
    for back in [1, 3] {
        let only = move |id| id == back;
        let new = Change::of(&gone, rules(2), &only).build().unwrap();
        assert_eq!((new.leader, new.isr, new.leader_epoch), (back, vec![back], 2));
        assert!(new.last_known_elr.is_empty());
    }
}

#[test]
fn a_replica_that_lost_data_is_not_eligible_unless_nobody_else_is() {
    let nobody = |_| false;
    let state = PartitionState { isr: vec![1], elr: vec![2], leader: -1, ..three() };
    let without_first = Change::of(&state, rules(2), &nobody).distrusting(1).build().unwrap();
    assert_eq!((without_first.isr.clone(), without_first.elr.clone()), (vec![2], vec![]));
    assert_eq!(Change::of(&without_first, rules(2), &nobody).distrusting(2).build(), None);
}

#[test]
fn an_unclean_leader_is_alone_and_recovering() {
    let state = PartitionState { isr: vec![1], ..three() };
    let only_third = |id| id == 3;
    let strict = Change::of(&state, rules(1), &only_third).without(1).build().unwrap();
    assert_eq!((strict.leader, strict.isr), (-1, vec![1]));
    let change = Change::of(&state, TopicRules { unclean_elections: true, ..rules(1) }, &only_third);
    let unclean = change.without(1).build().unwrap();
    assert_eq!((unclean.leader, unclean.isr, unclean.elr, unclean.recovering), (3, vec![3], vec![], true));
}

#[test]
fn preferred_elections_move_leadership_and_others_do_not() {
    let state = PartitionState { leader: 2, ..three() };
    assert_eq!(Change::of(&state, rules(2), &anybody).build(), None);
    let new = Change::of(&state, rules(2), &anybody).electing(Election::Preferred).build().unwrap();
    assert_eq!((new.leader, new.leader_epoch), (1, 1));
    let out_of_sync = PartitionState { isr: vec![2, 3], ..state };
    assert_eq!(Change::of(&out_of_sync, rules(2), &anybody).electing(Election::Preferred).build(), None);
}

#[test]
fn a_reassignment_is_done_when_all_new_replicas_are_in_sync() {
    let state =
        PartitionState { replicas: vec![4, 5, 1, 2, 3], adding: vec![4, 5], removing: vec![1, 2, 3], ..three() };
    let with = |isr: &[BrokerId]| {
        let mut change = Change::of(&state, rules(1), &anybody);
        change.isr = isr.to_vec();
        change.build().unwrap()
    };
    let half = with(&[1, 2, 3, 4]);
    assert!(half.is_reassigning());
    let done = with(&[1, 2, 3, 4, 5]);
    assert_eq!((done.replicas, done.isr, done.leader, done.leader_epoch), (vec![4, 5], vec![4, 5], 4, 1));
    assert!(done.adding.is_empty() && done.removing.is_empty());
}

#[test]
fn a_reassignment_to_fewer_replicas_waits_for_those_that_stay() {
    let state = PartitionState { replicas: vec![2, 3, 1], removing: vec![1], isr: vec![1, 2], ..three() };
    assert_eq!(Change::of(&state, rules(1), &anybody).build(), None);
    let mut change = Change::of(&state, rules(1), &anybody);
    change.isr = vec![1, 2, 3];
    assert_eq!(change.build().unwrap().replicas, [2, 3]);
}

#[test]
fn a_lower_minimum_ends_what_eligible_replicas_were_eligible_for() {
    use crate::controller::decide::eligible::consequences;
    let mut image = replicated(3, 3);
    set_state(&mut image, PartitionState { isr: vec![1, 2], elr: vec![3], ..state(&replicated(3, 3)) });
    let lower = [topic_config("min.insync.replicas", "2")];
    let still = [topic_config("retention.ms", "1")];
    assert_eq!(consequences(&image, &RULES, &still), []);
    assert_eq!(consequences(&image, &RULES, &lower), [], "the minimum is what it was");
    apply(&mut image, &lower);
    let cleared = consequences(&image, &RULES, &lower);
    apply(&mut image, &cleared);
    assert_eq!(shown(&image), expect(1, &[1, 2], &[]));
}

#[test]
fn without_the_feature_nobody_is_eligible() {
    use crate::controller::decide::eligible::consequences;
    let mut image = replicated(3, 3);
    set_state(&mut image, PartitionState { isr: vec![1, 2], elr: vec![3], ..state(&replicated(3, 3)) });
    let off = [MetadataRecord::Feature { name: "eligible.leader.replicas.version".into(), level: 0 }];
    apply(&mut image, &off);
    let cleared = consequences(&image, &RULES, &off);
    apply(&mut image, &cleared);
    assert_eq!(shown(&image), expect(1, &[1, 2], &[]));
}
