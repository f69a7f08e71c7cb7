//! Who may join.

use super::bench::*;
use crate::base::ErrorCode;
use crate::coordinator::group::classic::Phase;
use crate::coordinator::group::config::PENDING_JOINS_MAX;
use crate::coordinator::group::words::*;

fn refusal(bench: &mut Bench, join: Join) -> (ErrorCode, String) {
    let reply_to = bench.join(join);
    let reply = bench.joined(reply_to);
    assert_eq!(reply.generation, -1);
    assert!(reply.members.is_empty());
    (reply.error, reply.member_id.to_string())
}

#[test]
fn the_first_member_leads_generation_1() {
    let mut bench = Bench::new();
    let joined = bench.join(newcomer("a"));
    let reply = bench.joined(joined);
    assert_eq!((reply.error, reply.generation, &*reply.leader, &*reply.member_id), (ErrorCode::NONE, 1, "a", "a"));
    assert_eq!((reply.protocol.as_deref(), reply.protocol_type.as_deref()), (Some("range"), Some("consumer")));
    assert_eq!(reply.members.len(), 1);
}

#[test]
fn a_newcomer_of_v4_is_sent_away_with_an_id_and_comes_back_with_it() {
    let mut bench = Bench::new();
    let first = Join { member_id_required: true, ..newcomer("a") };
    assert_eq!(refusal(&mut bench, first), (ErrorCode::MEMBER_ID_REQUIRED, "a".to_owned()));
    assert_eq!(bench.heartbeat("a", 0), ErrorCode::UNKNOWN_MEMBER_ID);
    let synced = bench.sync(sync("a", 0, &[]));
    assert_eq!(bench.synced(synced).error, ErrorCode::UNKNOWN_MEMBER_ID);
    let joined = bench.join(member("a"));
    assert_eq!(bench.joined(joined).generation, 1);
}

#[test]
fn an_id_that_was_handed_out_is_forgotten_after_the_session_time() {
    let mut bench = Bench::new();
    refusal(&mut bench, Join { member_id_required: true, ..newcomer("a") });
    bench.pass(10_001);
    assert_eq!(refusal(&mut bench, member("a")), (ErrorCode::UNKNOWN_MEMBER_ID, "a".to_owned()));
}

#[test]
fn an_id_that_was_handed_out_belongs_to_a_member_without_an_instance_id() {
    let mut bench = Bench::new();
    refusal(&mut bench, Join { member_id_required: true, ..newcomer("a") });
    let with_instance = Join { instance_id: Some("one".into()), ..member("a") };
    assert_eq!(refusal(&mut bench, with_instance), (ErrorCode::UNKNOWN_MEMBER_ID, "a".to_owned()));
}

#[test]
fn an_id_that_nobody_has_is_refused_and_makes_no_group() {
    let mut bench = Bench::new();
    assert_eq!(refusal(&mut bench, member("x")), (ErrorCode::UNKNOWN_MEMBER_ID, "x".to_owned()));
    assert!(bench.machine.group(GROUP).is_none() && bench.log.is_empty());
}

#[test]
fn a_session_timeout_out_of_bounds_is_refused() {
    for session_timeout_ms in [5_999, 0, -1, 1_800_001] {
        let mut bench = Bench::new();
        let join = Join { session_timeout_ms, ..newcomer("a") };
        assert_eq!(refusal(&mut bench, join), (ErrorCode::INVALID_SESSION_TIMEOUT, String::new()));
        assert!(bench.machine.group(GROUP).is_none());
    }
}

#[test]
fn no_protocols_or_no_type_is_refused_and_leaves_an_empty_group() {
    for join in [Join { protocols: Vec::new(), ..newcomer("a") }, Join { protocol_type: "".into(), ..newcomer("a") }] {
        let mut bench = Bench::new();
        assert_eq!(refusal(&mut bench, join), (ErrorCode::INCONSISTENT_GROUP_PROTOCOL, String::new()));
        assert_eq!(bench.machine.group(GROUP).map(|group| group.classic().phase()), Some(Phase::Empty));
        assert_eq!(bench.log.len(), 1);
    }
}

#[test]
fn another_type_or_no_common_protocol_is_refused_and_disturbs_nobody() {
    let (mut bench, a) = Bench::with_stable_member();
    for join in [
        Join { protocol_type: "connect".into(), ..newcomer("b") },
        Join { protocols: protocols(&["other"]), ..newcomer("b") },
        Join { protocols: Vec::new(), ..newcomer("b") },
    ] {
        assert_eq!(refusal(&mut bench, join).0, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        assert_eq!(bench.heartbeat(&a, 1), ErrorCode::NONE);
    }
}

#[test]
fn a_full_group_takes_no_more() {
    let (mut bench, a) = Bench::with_stable_member();
    bench.config.size_max = 1;
    assert_eq!(refusal(&mut bench, newcomer("b")), (ErrorCode::GROUP_MAX_SIZE_REACHED, String::new()));
    let again = bench.join(member(&a));
    assert_eq!(bench.joined(again).generation, 2);
}

#[test]
fn a_group_that_was_made_smaller_keeps_the_first_to_come_back() {
    let (mut bench, a) = Bench::with_stable_member();
    let b = bench.join(newcomer("b"));
    bench.config.size_max = 1;
    let reply_to = bench.join(member(&a));
    assert_eq!(bench.joined(reply_to).error, ErrorCode::GROUP_MAX_SIZE_REACHED);
    assert_eq!(bench.joined(b).generation, 2);
    assert_eq!(bench.heartbeat(&a, 2), ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn the_first_generation_waits_for_more_members() {
    let mut bench = Bench::new();
    bench.config.initial_rebalance_delay_ms = 3_000;
    let a = bench.join(newcomer("a"));
    bench.pass(2_000);
    let b = bench.join(newcomer("b"));
    bench.pass(1_500);
    assert!(!bench.is_answered(a), "b put it off, to 5 s at the most");
    bench.pass(1_600);
    assert_eq!(bench.joined(a).members.len(), 2);
    assert_eq!(bench.joined(b).generation, 1);
}

#[test]
fn the_first_generation_comes_after_one_delay_when_nobody_else_does() {
    let mut bench = Bench::new();
    bench.config.initial_rebalance_delay_ms = 3_000;
    let a = bench.join(newcomer("a"));
    bench.pass(2_999);
    assert!(!bench.is_answered(a));
    bench.pass(1);
    assert_eq!(bench.joined(a).generation, 1);
}

#[test]
fn a_new_group_is_in_the_log_at_once() {
    let mut bench = Bench::new();
    bench.join(Join { member_id_required: true, ..newcomer("a") });
    let metadata = bench.last_metadata().map(|m| (m.generation, m.protocol_type.to_string(), m.members.len()));
    assert_eq!(metadata, Some((0, String::new(), 0)));
}

#[test]
fn a_join_that_cannot_be_written_is_refused_and_changes_nothing() {
    let mut bench = Bench::new();
    bench.refuse_appends = true;
    assert_eq!(refusal(&mut bench, newcomer("a")).0, ErrorCode::NOT_COORDINATOR);
    assert!(bench.machine.group(GROUP).is_none());
}

#[test]
fn ids_are_not_handed_out_without_end() {
    let mut bench = Bench::new();
    for number in 0..PENDING_JOINS_MAX {
        let join = Join { member_id_required: true, ..newcomer(&number.to_string()) };
        assert_eq!(refusal(&mut bench, join).0, ErrorCode::MEMBER_ID_REQUIRED);
    }
    let one_more = || Join { member_id_required: true, ..newcomer("one more") };
    assert_eq!(refusal(&mut bench, one_more()).0, ErrorCode::GROUP_MAX_SIZE_REACHED);
    bench.pass(10_001);
    assert_eq!(refusal(&mut bench, one_more()).0, ErrorCode::MEMBER_ID_REQUIRED);
}
