//! Members with an instance id (KIP-345).

use super::bench::*;
use crate::base::ErrorCode;
use crate::coordinator::group::words::*;

/// Static member `one`, id `a1`, alone and stable in generation 1.
fn alone() -> Bench {
    let mut bench = Bench::new();
    let joined = bench.join(static_newcomer("a1", "one"));
    assert_eq!(bench.joined(joined).generation, 1);
    let synced = bench.sync(sync("a1", 1, &[("a1", "all")]));
    bench.synced(synced);
    bench
}

/// Static members `one` (leader, `a1`) and `two` (`b1`), stable in generation 2.
fn pair() -> Bench {
    let mut bench = alone();
    let b = bench.join(static_newcomer("b1", "two"));
    let a = bench.join(Join { instance_id: Some("one".into()), ..member("a1") });
    assert_eq!((bench.joined(a).members.len(), bench.joined(b).generation), (2, 2));
    let a = bench.sync(sync("a1", 2, &[("a1", "a"), ("b1", "b")]));
    let b = bench.sync(sync("b1", 2, &[]));
    assert_eq!((&*bench.synced(a).assignment, &*bench.synced(b).assignment), (&b"a"[..], &b"b"[..]));
    bench
}

#[test]
fn a_static_newcomer_needs_no_second_join() {
    let mut bench = Bench::new();
    let joined = bench.join(Join { member_id_required: true, ..static_newcomer("a1", "one") });
    assert_eq!(bench.joined(joined).error, ErrorCode::NONE);
}

#[test]
fn a_leader_that_restarts_keeps_generation_and_assignment_and_need_not_assign() {
    let mut bench = alone();
    let joined = bench.join(static_newcomer("a2", "one"));
    let reply = bench.joined(joined);
    assert_eq!((reply.generation, &*reply.leader, reply.skip_assignment, reply.members.len()), (1, "a2", true, 1));
    let synced = bench.sync(sync("a2", 1, &[]));
    assert_eq!(&*bench.synced(synced).assignment, b"all");
    let recorded = bench.last_metadata();
    let recorded = recorded.map(|m| (m.leader, m.members.iter().map(|one| one.member_id.clone()).collect::<Vec<_>>()));
    assert_eq!(recorded, Some((Some("a2".into()), vec!["a2".into()])));
}

#[test]
fn before_v9_a_restarted_leader_is_shown_its_former_self_as_the_leader() {
    let mut bench = alone();
    let joined = bench.join(Join { skip_assignment_known: false, ..static_newcomer("a2", "one") });
    let reply = bench.joined(joined);
    assert_eq!((&*reply.leader, &*reply.member_id, reply.skip_assignment), ("a1", "a2", false));
    assert!(reply.members.is_empty());
}

#[test]
fn the_former_self_is_fenced_everywhere() {
    let mut bench = alone();
    let joined = bench.join(static_newcomer("a2", "one"));
    bench.joined(joined);
    let fenced = ErrorCode::FENCED_INSTANCE_ID;
    assert_eq!(bench.heartbeat_as("a1", Some("one"), 1), fenced);
    let synced = bench.sync(Sync { instance_id: Some("one".into()), ..sync("a1", 1, &[]) });
    assert_eq!(bench.synced(synced).error, fenced);
    let joined = bench.join(Join { instance_id: Some("one".into()), ..member("a1") });
    assert_eq!(bench.joined(joined).error, fenced);
    let former = MemberRef { member_id: "a1", instance_id: Some("one") };
    assert_eq!(bench.commit_as(GROUP, 1, former, true, 5), fenced);
    assert_eq!(bench.leave(&[("a1", Some("one"))]), [fenced]);
    assert_eq!(bench.heartbeat("a1", 1), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(bench.heartbeat_as("a2", Some("two"), 1), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(bench.heartbeat_as("", Some("one"), 1), fenced);
    assert_eq!(bench.heartbeat_as("a2", Some("one"), 1), ErrorCode::NONE);
}

#[test]
fn nobody_notices_a_follower_that_restarts() {
    let mut bench = pair();
    let joined = bench.join(static_newcomer("b2", "two"));
    let reply = bench.joined(joined);
    assert_eq!((reply.generation, &*reply.leader, reply.skip_assignment), (2, "a1", false));
    assert_eq!(bench.heartbeat("a1", 2), ErrorCode::NONE);
    let synced = bench.sync(sync("b2", 2, &[]));
    assert_eq!(&*bench.synced(synced).assignment, b"b");
}

#[test]
fn a_restart_with_a_protocol_that_changes_the_choice_rebalances() {
    let mut bench = alone();
    let joined = bench.join(Join { protocols: protocols(&["sticky", "range"]), ..static_newcomer("a2", "one") });
    assert_eq!((bench.joined(joined).generation, bench.heartbeat("a2", 2)), (2, ErrorCode::NONE));
}

#[test]
fn a_restart_while_the_group_prepares_takes_the_place_of_the_waiting_join() {
    let mut bench = pair();
    let waits = bench.join(Join { instance_id: Some("one".into()), ..member("a1") });
    let restarted = bench.join(static_newcomer("a2", "one"));
    assert_eq!(bench.joined(waits).error, ErrorCode::FENCED_INSTANCE_ID);
    let b = bench.join(Join { instance_id: Some("two".into()), ..member("b1") });
    assert_eq!((bench.joined(restarted).generation, &*bench.joined(b).leader), (3, "a2"));
}

#[test]
fn a_restart_while_the_assignment_is_awaited_rebalances() {
    let mut bench = Bench::new();
    let joined = bench.join(static_newcomer("a1", "one"));
    bench.joined(joined);
    let joined = bench.join(static_newcomer("a2", "one"));
    assert_eq!(bench.joined(joined).generation, 2);
}

#[test]
fn an_absent_static_member_is_kept_through_a_rebalance_until_its_session_ends() {
    let mut bench = pair();
    let c = bench.join(newcomer("c"));
    let a = bench.join(Join { instance_id: Some("one".into()), ..member("a1") });
    bench.pass(5_000);
    let reply = bench.joined(a);
    assert_eq!((reply.generation, reply.members.len()), (3, 3));
    bench.joined(c);
}

#[test]
fn an_administrator_removes_by_instance_id() {
    let mut bench = pair();
    let unknown = ErrorCode::UNKNOWN_MEMBER_ID;
    assert_eq!(bench.leave(&[("nobody", Some("two"))]), [ErrorCode::FENCED_INSTANCE_ID]);
    let codes = bench.leave(&[("", Some("two")), ("", Some("none")), ("nobody", None)]);
    assert_eq!(codes, [ErrorCode::NONE, unknown, unknown]);
    assert_eq!(bench.heartbeat("a1", 2), ErrorCode::REBALANCE_IN_PROGRESS);
}

#[test]
fn a_replacement_that_cannot_be_written_changes_nothing() {
    let mut bench = alone();
    bench.refuse_appends = true;
    let joined = bench.join(static_newcomer("a2", "one"));
    assert_eq!(bench.joined(joined).error, ErrorCode::NOT_COORDINATOR);
    assert_eq!(bench.heartbeat_as("a1", Some("one"), 1), ErrorCode::NONE);
}
