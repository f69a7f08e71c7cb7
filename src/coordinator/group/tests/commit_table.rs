//! State of the group x generation x member id -> code of an OffsetCommit.

use super::bench::*;
use crate::base::ErrorCode;
use crate::coordinator::group::words::*;

const NONE: ErrorCode = ErrorCode::NONE;
const GENERATION: ErrorCode = ErrorCode::ILLEGAL_GENERATION;
const MEMBER: ErrorCode = ErrorCode::UNKNOWN_MEMBER_ID;
const REBALANCE: ErrorCode = ErrorCode::REBALANCE_IN_PROGRESS;
const NOT_FOUND: ErrorCode = ErrorCode::GROUP_ID_NOT_FOUND;

fn no_group() -> Bench {
    Bench::new()
}

fn simple() -> Bench {
    let mut bench = Bench::new();
    assert_eq!(bench.commit(GROUP, -1, "", 1), NONE);
    bench
}

fn deserted() -> Bench {
    let mut bench = stable();
    bench.leave(&[("a", None)]);
    bench
}

fn stable() -> Bench {
    Bench::with_stable_member().0
}

fn preparing() -> Bench {
    let mut bench = stable();
    bench.join(newcomer("b"));
    bench
}

fn completing() -> Bench {
    let mut bench = Bench::new();
    bench.join(newcomer("a"));
    bench
}

/// The group (its generation, where it has one, is 1 and its member is `a`), then the codes for: generation -1 and no member id;
/// -1 and `a`; 1 and `a`; 0 and `a`; 2 and `a`; 1 and no member id; 1 and a stranger's id.
type Row = (&'static str, fn() -> Bench, [ErrorCode; 7]);

const TABLE: &[Row] = &[
    ("no group", no_group, [NONE, NONE, NOT_FOUND, NOT_FOUND, NOT_FOUND, NOT_FOUND, NOT_FOUND]),
    ("simple group", simple, [NONE, NONE, MEMBER, MEMBER, MEMBER, MEMBER, MEMBER]),
    ("deserted group", deserted, [NONE, NONE, MEMBER, MEMBER, MEMBER, MEMBER, MEMBER]),
    ("stable", stable, [MEMBER, GENERATION, NONE, GENERATION, GENERATION, MEMBER, MEMBER]),
    ("preparing", preparing, [MEMBER, GENERATION, NONE, GENERATION, GENERATION, MEMBER, MEMBER]),
    ("completing", completing, [MEMBER, GENERATION, REBALANCE, GENERATION, GENERATION, MEMBER, MEMBER]),
];

const COMMITS: [(i32, &str); 7] = [(-1, ""), (-1, "a"), (1, "a"), (0, "a"), (2, "a"), (1, ""), (1, "x")];

#[test]
fn every_state_generation_and_member_id() {
    for (name, group, codes) in TABLE {
        for ((generation, member_id), expected) in COMMITS.iter().zip(codes) {
            let mut bench = group();
            let before = bench.committed(GROUP);
            let code = bench.commit(GROUP, *generation, member_id, 42);
            assert_eq!(code, *expected, "{name}, generation {generation}, member {member_id:?}");
            let after = if code == NONE { Some(42) } else { before };
            assert_eq!(bench.committed(GROUP), after, "{name}, generation {generation}, member {member_id:?}");
        }
    }
}

#[test]
fn before_v9_an_unknown_group_is_an_illegal_generation() {
    let nobody = MemberRef { member_id: "", instance_id: None };
    assert_eq!(Bench::new().commit_as(GROUP, 5, nobody, false, 1), GENERATION);
}

#[test]
fn an_instance_id_without_membership_counts_only_where_there_are_members() {
    let somebody = MemberRef { member_id: "", instance_id: Some("any") };
    assert_eq!(simple().commit_as(GROUP, -1, somebody, false, 1), NONE);
    assert_eq!(stable().commit_as(GROUP, -1, somebody, false, 1), MEMBER);
}
