use super::*;
use crate::base::ErrorCode;
use crate::controller::decide::elections::{Asked, balance_leaders, elect_leaders, elect_unclean};

fn asked(partitions: &[i32]) -> Vec<(String, Vec<i32>)> {
    vec![("t".to_owned(), partitions.to_vec())]
}

fn outcome(image: &Image, kind: Asked) -> (Image, Result<(), ErrorCode>) {
    let decision = elect_leaders(image, &RULES, kind, Some(&asked(&[0])));
    let outcome = decision.reply[0].1[0].1.clone().map_err(|refusal| refusal.code);
    (after(image, &decision), outcome)
}

fn led_by(image: &mut Image, leader: BrokerId) {
    let next = PartitionState { leader, ..state(image) };
    set_state(image, next);
}

#[test]
fn leadership_goes_to_the_preferred_replica_once() {
    let mut image = replicated(3, 2);
    assert_eq!(outcome(&image, Asked::Preferred).1, Err(ErrorCode::ELECTION_NOT_NEEDED));
    led_by(&mut image, 2);
    let (image, done) = outcome(&image, Asked::Preferred);
    assert_eq!((done, shown(&image).leader), (Ok(()), 1));
    let mut moved = image;
    led_by(&mut moved, 3);
    let twice = elect_leaders(&moved, &RULES, Asked::Preferred, Some(&asked(&[0, 0])));
    assert_eq!(twice.records.len(), 1);
    assert_eq!(twice.reply[0].1[1].1.clone().unwrap_err().code, ErrorCode::ELECTION_NOT_NEEDED);
}

#[test]
fn a_preferred_replica_that_is_fenced_or_behind_cannot_lead() {
    let mut fenced = replicated(3, 2);
    fence_broker(&mut fenced, 1);
    assert_eq!(outcome(&fenced, Asked::Preferred).1, Err(ErrorCode::PREFERRED_LEADER_NOT_AVAILABLE));
    let mut behind = replicated(3, 2);
    set_state(&mut behind, PartitionState { leader: 2, isr: vec![2, 3], ..state(&replicated(3, 2)) });
    assert_eq!(outcome(&behind, Asked::Preferred).1, Err(ErrorCode::PREFERRED_LEADER_NOT_AVAILABLE));
}

#[test]
fn an_unclean_election_takes_whoever_lives() {
    let mut image = replicated(3, 1);
    assert_eq!(outcome(&image, Asked::Unclean).1, Err(ErrorCode::ELECTION_NOT_NEEDED));
    let alone = PartitionState { isr: vec![1], ..state(&image) };
    set_state(&mut image, alone);
    fence_broker(&mut image, 1);
    assert_eq!(shown(&image), expect(-1, &[1], &[]));
    let (taken, done) = outcome(&image, Asked::Unclean);
    assert_eq!((done, shown(&taken), state(&taken).recovering), (Ok(()), expect(2, &[2], &[]), true));
    for id in [2, 3] {
        fence_broker(&mut image, id);
    }
    assert_eq!(outcome(&image, Asked::Unclean).1, Err(ErrorCode::ELIGIBLE_LEADERS_NOT_AVAILABLE));
}

#[test]
fn unknown_partitions_are_unknown() {
    let image = replicated(3, 2);
    let topics = vec![("t".to_owned(), vec![9]), ("none".to_owned(), vec![0])];
    let reply = elect_leaders(&image, &RULES, Asked::Preferred, Some(&topics)).reply;
    for (_, partitions) in reply {
        assert_eq!(partitions[0].1.clone().unwrap_err().code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    }
}

#[test]
fn asked_for_all_only_those_that_need_an_election_are_told() {
    let mut image = replicated(3, 2);
    assert_eq!(elect_leaders(&image, &RULES, Asked::Preferred, None).reply, [("t".to_owned(), vec![])]);
    led_by(&mut image, 2);
    let all = elect_leaders(&image, &RULES, Asked::Preferred, None);
    assert_eq!(all.reply, [("t".to_owned(), vec![(0, Ok(()))])]);
    assert_eq!(shown(&after(&image, &all)).leader, 1);
}

#[test]
fn balancing_moves_what_can_move() {
    let mut image = replicated(3, 2);
    assert_eq!(balance_leaders(&image, &RULES), Decision::unchanged(false));
    led_by(&mut image, 3);
    let decision = balance_leaders(&image, &RULES);
    assert_eq!((shown(&after(&image, &decision)).leader, decision.reply), (1, false));
    fence_broker(&mut image, 1);
    assert_eq!(balance_leaders(&image, &RULES), Decision::unchanged(false));
}

#[test]
fn unclean_leaders_come_by_themselves_only_where_the_topic_says_so() {
    let mut image = replicated(3, 1);
    set_state(&mut image, PartitionState { isr: vec![1], ..state(&replicated(3, 1)) });
    fence_broker(&mut image, 1);
    assert_eq!(elect_unclean(&image, &RULES).records, []);
    apply(&mut image, &[topic_config("unclean.leader.election.enable", "true")]);
    let decision = elect_unclean(&image, &RULES);
    assert_eq!(shown(&after(&image, &decision)), expect(2, &[2], &[]));
    let mut at_once = replicated(3, 1);
    set_state(&mut at_once, PartitionState { isr: vec![1], ..state(&replicated(3, 1)) });
    apply(&mut at_once, &[topic_config("unclean.leader.election.enable", "true")]);
    fence_broker(&mut at_once, 1);
    assert_eq!(shown(&at_once), expect(2, &[2], &[]));
}
