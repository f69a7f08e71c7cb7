//! What time does.

use super::bench::*;
use crate::base::ErrorCode;
use crate::coordinator::group::classic::Phase;
use crate::coordinator::group::words::*;

fn phase(bench: &Bench) -> Option<Phase> {
    bench.machine.group(GROUP).map(|group| group.classic().phase())
}

#[test]
fn a_silent_member_is_kept_until_its_session_time_is_over() {
    let (mut bench, a) = Bench::with_stable_member();
    bench.pass(9_000);
    assert_eq!(bench.heartbeat(&a, 1), ErrorCode::NONE);
    bench.pass(9_999);
    assert_eq!(phase(&bench), Some(Phase::Stable));
    bench.pass(1);
    assert_eq!((phase(&bench), bench.heartbeat(&a, 1)), (Some(Phase::Empty), ErrorCode::UNKNOWN_MEMBER_ID));
}

#[test]
fn a_commit_is_a_sign_of_life() {
    let (mut bench, a) = Bench::with_stable_member();
    bench.pass(9_000);
    assert_eq!(bench.commit(GROUP, 1, &a, 5), ErrorCode::NONE);
    bench.pass(9_000);
    assert_eq!(phase(&bench), Some(Phase::Stable));
}

#[test]
fn who_does_not_join_again_in_time_is_dropped_and_the_others_go_on() {
    let (mut bench, a) = Bench::with_stable_member();
    let b = bench.join(newcomer("b"));
    bench.pass(4_999);
    assert!(!bench.is_answered(b));
    bench.pass(1);
    let reply = bench.joined(b);
    assert_eq!((reply.generation, &*reply.leader, reply.members.len()), (2, "b", 1));
    assert_eq!(bench.heartbeat(&a, 2), ErrorCode::UNKNOWN_MEMBER_ID);
    let again = bench.join(member(&a));
    assert_eq!(bench.joined(again).error, ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn a_leader_that_does_not_sync_in_time_is_dropped() {
    let mut bench = Bench::new();
    let joined = bench.join(newcomer("a"));
    bench.joined(joined);
    bench.pass(4_999);
    assert_eq!(phase(&bench), Some(Phase::CompletingRebalance));
    bench.pass(1);
    assert_eq!((phase(&bench), bench.heartbeat("a", 1)), (Some(Phase::Empty), ErrorCode::UNKNOWN_MEMBER_ID));
}

#[test]
fn followers_wait_no_longer_for_a_leader_that_was_dropped() {
    let (mut bench, a) = Bench::with_stable_member();
    let b = bench.join(newcomer("b"));
    let again = bench.join(member(&a));
    bench.joined(again);
    bench.joined(b);
    let b = bench.sync(sync("b", 2, &[]));
    bench.pass(5_000);
    assert_eq!(bench.synced(b).error, ErrorCode::REBALANCE_IN_PROGRESS);
    let b = bench.join(member("b"));
    let reply = bench.joined(b);
    assert_eq!((reply.generation, &*reply.leader), (3, "b"));
}

#[test]
fn a_follower_that_never_asks_for_its_assignment_is_dropped() {
    let (mut bench, a) = Bench::with_stable_member();
    let b = bench.join(newcomer("b"));
    let again = bench.join(member(&a));
    bench.joined(again);
    bench.joined(b);
    let synced = bench.sync(sync(&a, 2, &[(&a, "all")]));
    bench.synced(synced);
    bench.pass(4_000);
    assert_eq!(bench.heartbeat(&a, 2), ErrorCode::NONE);
    bench.pass(1_000);
    assert_eq!(bench.heartbeat(&a, 2), ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(bench.heartbeat("b", 2), ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn whoever_waits_for_a_join_is_alive() {
    let (mut bench, a) = Bench::with_stable_member();
    let slow = Join { rebalance_timeout_ms: 60_000, ..newcomer("b") };
    bench.join(slow);
    let again = bench.join(Join { rebalance_timeout_ms: 60_000, ..member(&a) });
    bench.joined(again);
    // c keeps the group waiting for a and b, far beyond their session times; a waits, b does not come.
    let c = bench.join(newcomer("c"));
    let a_waits = bench.join(member(&a));
    bench.pass(30_000);
    assert_eq!(bench.joined(a_waits).members.len(), 2);
    assert_eq!(bench.joined(c).error, ErrorCode::NONE);
}

#[test]
fn a_newcomer_that_is_never_answered_is_given_up_after_five_minutes() {
    let (mut bench, a) = Bench::with_stable_member();
    bench.join(Join { rebalance_timeout_ms: 600_000, ..member(&a) });
    bench.sync(sync(&a, 2, &[(&a, "all")]));
    let b = bench.join(newcomer("b"));
    for _ in 0..60 {
        bench.pass(5_000);
        assert_eq!(bench.heartbeat(&a, 2), ErrorCode::REBALANCE_IN_PROGRESS);
    }
    assert_eq!(bench.joined(b).error, ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn ticks_too_many_do_nothing() {
    let (mut bench, a) = Bench::with_stable_member();
    for _ in 0..5 {
        bench.tick(&GROUP.into());
    }
    assert_eq!((phase(&bench), bench.heartbeat(&a, 1)), (Some(Phase::Stable), ErrorCode::NONE));
}

#[test]
fn after_a_failover_every_member_has_a_full_session_time() {
    let (mut bench, a) = Bench::with_stable_member();
    bench.pass(9_000);
    bench.fail_over();
    assert_eq!(bench.heartbeat(&a, 1), ErrorCode::NONE);
    bench.pass(9_000);
    assert_eq!(phase(&bench), Some(Phase::Stable));
    bench.pass(1_001);
    assert_eq!(phase(&bench), Some(Phase::Empty));
}

#[test]
fn after_a_failover_in_a_rebalance_the_group_is_at_its_last_settled_generation() {
    let (mut bench, a) = Bench::with_stable_member();
    bench.join(newcomer("b"));
    bench.fail_over();
    assert_eq!((phase(&bench), bench.heartbeat(&a, 1)), (Some(Phase::Stable), ErrorCode::NONE));
    assert_eq!(bench.heartbeat("b", 1), ErrorCode::UNKNOWN_MEMBER_ID);
    let synced = bench.sync(sync(&a, 1, &[]));
    assert_eq!(&*bench.synced(synced).assignment, b"all");
}

#[test]
fn a_group_that_is_over_its_size_when_loaded_rebalances() {
    let (mut bench, a) = Bench::with_stable_member();
    bench.config.size_max = 0;
    bench.fail_over();
    assert_eq!(bench.heartbeat(&a, 1), ErrorCode::REBALANCE_IN_PROGRESS);
}

#[test]
fn when_the_coordinator_moves_away_everybody_who_waits_is_told() {
    let (mut bench, _) = Bench::with_stable_member();
    let b = bench.join(newcomer("b"));
    let effects = bench.machine.note_unloaded();
    let refused = JoinReply::refused(ErrorCode::NOT_COORDINATOR, "".into());
    assert_eq!(effects.replies, [(b, Reply::Join(refused))]);
}
