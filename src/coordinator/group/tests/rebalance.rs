//! From one generation to the next.

use super::bench::*;
use crate::base::ErrorCode;
use crate::coordinator::group::classic::Phase;
use crate::coordinator::group::words::*;

/// Members `a` (leader) and `b`, stable in generation 2.
fn pair() -> Bench {
    let (mut bench, a) = Bench::with_stable_member();
    let b = bench.join(newcomer("b"));
    let a_again = bench.join(member(&a));
    assert_eq!((bench.joined(a_again).generation, bench.joined(b).generation), (2, 2));
    let b = bench.sync(sync("b", 2, &[]));
    let a = bench.sync(sync("a", 2, &[("a", "part a"), ("b", "part b"), ("nobody", "x")]));
    assert_eq!((&*bench.synced(a).assignment, &*bench.synced(b).assignment), (&b"part a"[..], &b"part b"[..]));
    bench
}

#[test]
fn a_second_member_waits_for_the_first_which_learns_of_it_by_its_heartbeat() {
    let (mut bench, a) = Bench::with_stable_member();
    let b = bench.join(newcomer("b"));
    assert!(!bench.is_answered(b));
    assert_eq!(bench.heartbeat(&a, 1), ErrorCode::REBALANCE_IN_PROGRESS);
    let synced = bench.sync(sync(&a, 1, &[]));
    assert_eq!(bench.synced(synced).error, ErrorCode::REBALANCE_IN_PROGRESS);
    let again = bench.join(member(&a));
    let (first, second) = (bench.joined(again), bench.joined(b));
    assert_eq!((first.generation, &*first.leader, first.members.len()), (2, "a", 2));
    assert_eq!((second.generation, &*second.leader, second.members.len()), (2, "a", 0));
}

#[test]
fn the_protocol_with_most_votes_wins_and_the_longest_member_breaks_a_tie() {
    let mut bench = Bench::new();
    let with = |id: &str, names: &[&str]| Join { protocols: protocols(names), ..newcomer(id) };
    bench.config.initial_rebalance_delay_ms = 3_000;
    let a = bench.join(with("a", &["sticky", "range"]));
    let b = bench.join(with("b", &["range", "sticky"]));
    let c = bench.join(with("c", &["only-c", "range", "sticky"]));
    bench.pass(5_000);
    assert_eq!(bench.joined(a).protocol.as_deref(), Some("range"));
    assert_eq!((bench.joined(b).generation, bench.joined(c).generation), (1, 1));

    let mut bench = Bench::new();
    bench.config.initial_rebalance_delay_ms = 3_000;
    let a = bench.join(with("a", &["sticky", "range"]));
    bench.join(with("b", &["range", "sticky"]));
    bench.pass(5_000);
    assert_eq!(bench.joined(a).protocol.as_deref(), Some("sticky"));
}

#[test]
fn a_member_that_the_leader_forgets_gets_an_empty_assignment() {
    let mut bench = pair();
    let a = bench.join(member("a"));
    let b = bench.join(member("b"));
    assert_eq!((bench.joined(a).generation, bench.joined(b).generation), (3, 3));
    let a = bench.sync(sync("a", 3, &[("a", "all")]));
    let b = bench.sync(sync("b", 3, &[]));
    assert_eq!((&*bench.synced(a).assignment, &*bench.synced(b).assignment), (&b"all"[..], &b""[..]));
}

#[test]
fn a_follower_that_joins_again_unchanged_gets_the_present_generation() {
    let mut bench = pair();
    let b = bench.join(member("b"));
    let reply = bench.joined(b);
    assert_eq!((reply.generation, reply.members.len()), (2, 0));
    let b = bench.sync(sync("b", 2, &[]));
    assert_eq!(&*bench.synced(b).assignment, b"part b");
}

#[test]
fn a_follower_with_another_subscription_starts_a_new_generation() {
    let mut bench = pair();
    let changed = vec![Protocol { name: "range".into(), metadata: "other".into() }];
    let b = bench.join(Join { protocols: changed, ..member("b") });
    assert!(!bench.is_answered(b));
    assert_eq!(bench.heartbeat("a", 2), ErrorCode::REBALANCE_IN_PROGRESS);
}

#[test]
fn while_the_assignment_is_awaited_a_repeated_join_is_answered_again() {
    let mut bench = Bench::new();
    let first = bench.join(newcomer("a"));
    let second = bench.join(member("a"));
    assert_eq!(bench.joined(first), bench.joined(second));
}

#[test]
fn a_waiting_sync_is_told_when_the_group_rebalances_again() {
    let mut bench = pair();
    let a = bench.join(member("a"));
    let b = bench.join(member("b"));
    bench.joined(a);
    bench.joined(b);
    let b = bench.sync(sync("b", 3, &[]));
    let c = bench.join(newcomer("c"));
    assert_eq!(bench.synced(b).error, ErrorCode::REBALANCE_IN_PROGRESS);
    assert!(!bench.is_answered(c));
}

#[test]
fn a_second_join_of_the_same_member_takes_the_place_of_the_first() {
    let mut bench = pair();
    let first = bench.join(member("a"));
    let second = bench.join(member("a"));
    assert_eq!(bench.joined(first).error, ErrorCode::REBALANCE_IN_PROGRESS);
    bench.join(member("b"));
    assert_eq!(bench.joined(second).generation, 3);
}

#[test]
fn a_sync_is_checked_for_member_generation_and_protocol() {
    let (mut bench, a) = Bench::with_stable_member();
    let good = || Sync { protocol_type: Some("consumer".into()), protocol: Some("range".into()), ..sync(&a, 1, &[]) };
    for (wrong, code) in [
        (Sync { group: "none".into(), ..good() }, ErrorCode::UNKNOWN_MEMBER_ID),
        (Sync { member_id: "x".into(), ..good() }, ErrorCode::UNKNOWN_MEMBER_ID),
        (Sync { generation: 0, ..good() }, ErrorCode::ILLEGAL_GENERATION),
        (Sync { generation: 2, ..good() }, ErrorCode::ILLEGAL_GENERATION),
        (Sync { protocol_type: Some("connect".into()), ..good() }, ErrorCode::INCONSISTENT_GROUP_PROTOCOL),
        (Sync { protocol: Some("sticky".into()), ..good() }, ErrorCode::INCONSISTENT_GROUP_PROTOCOL),
        (good(), ErrorCode::NONE),
    ] {
        let reply_to = bench.sync(wrong);
        assert_eq!(bench.synced(reply_to).error, code);
    }
}

#[test]
fn heartbeats_are_checked_for_member_and_generation() {
    let (mut bench, a) = Bench::with_stable_member();
    assert_eq!(bench.heartbeat(&a, 1), ErrorCode::NONE);
    for generation in [-1, 0, 2] {
        assert_eq!(bench.heartbeat(&a, generation), ErrorCode::ILLEGAL_GENERATION);
    }
    assert_eq!(bench.heartbeat("x", 1), ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn the_last_to_leave_leaves_an_empty_group_one_generation_on() {
    let (mut bench, a) = Bench::with_stable_member();
    assert_eq!(bench.leave(&[(&a, None)]), [ErrorCode::NONE]);
    assert_eq!(bench.heartbeat(&a, 1), ErrorCode::UNKNOWN_MEMBER_ID);
    let metadata = bench.last_metadata();
    let metadata = metadata.map(|m| (m.generation, m.protocol_type, m.protocol, m.leader, m.members.len()));
    assert_eq!(metadata, Some((2, "consumer".into(), None, None, 0)));
    let joined = bench.join(newcomer("b"));
    assert_eq!(bench.joined(joined).generation, 3);
}

#[test]
fn each_of_those_who_leave_together_gets_its_code() {
    let (mut bench, a) = Bench::with_stable_member();
    let codes = bench.leave(&[(&a, None), ("nobody", None), (&a, None), ("", Some("none"))]);
    let unknown = ErrorCode::UNKNOWN_MEMBER_ID;
    assert_eq!(codes, [ErrorCode::NONE, unknown, unknown, unknown]);
}

#[test]
fn an_id_that_was_handed_out_can_be_given_back() {
    let mut bench = Bench::new();
    bench.join(Join { member_id_required: true, ..newcomer("a") });
    assert_eq!(bench.leave(&[("a", None)]), [ErrorCode::NONE]);
    let joined = bench.join(member("a"));
    assert_eq!(bench.joined(joined).error, ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn when_the_leader_leaves_whoever_waits_to_join_leads() {
    let (mut bench, a) = Bench::with_stable_member();
    let b = bench.join(newcomer("b"));
    bench.leave(&[(&a, None)]);
    let reply = bench.joined(b);
    assert_eq!((reply.generation, &*reply.leader, reply.members.len()), (2, "b", 1));
}

#[test]
fn the_settled_generation_is_what_the_log_tells() {
    let bench = pair();
    let metadata = bench.last_metadata();
    let told = metadata.map(|m| {
        let members: Vec<(String, String)> = m
            .members
            .iter()
            .map(|member| (member.member_id.to_string(), String::from_utf8_lossy(&member.assignment).into_owned()))
            .collect();
        (m.generation, m.protocol, m.leader, members)
    });
    let members = vec![("a".to_owned(), "part a".to_owned()), ("b".to_owned(), "part b".to_owned())];
    assert_eq!(told, Some((2, Some("range".into()), Some("a".into()), members)));
}

#[test]
fn an_assignment_that_cannot_be_written_can_be_brought_again() {
    let mut bench = Bench::new();
    let joined = bench.join(newcomer("a"));
    bench.joined(joined);
    bench.refuse_appends = true;
    let refused = bench.sync(sync("a", 1, &[("a", "all")]));
    assert_eq!(bench.synced(refused).error, ErrorCode::NOT_COORDINATOR);
    bench.refuse_appends = false;
    let synced = bench.sync(sync("a", 1, &[("a", "all")]));
    assert_eq!(&*bench.synced(synced).assignment, b"all");
}

#[test]
fn emptiness_that_cannot_be_written_is_written_a_little_later() {
    let (mut bench, a) = Bench::with_stable_member();
    bench.refuse_appends = true;
    assert_eq!(bench.leave(&[(&a, None)]), [ErrorCode::NONE]);
    bench.refuse_appends = false;
    bench.pass(1_000);
    assert_eq!(bench.machine.group(GROUP).map(|group| group.classic().phase()), Some(Phase::Empty));
    assert_eq!(bench.last_metadata().map(|metadata| metadata.generation), Some(2));
}
