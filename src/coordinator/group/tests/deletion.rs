//! Deleting and expiring offsets and groups.

use super::bench::*;
use crate::base::{ErrorCode, TopicId};
use crate::coordinator::group::classic::Phase;
use crate::coordinator::group::words::*;

const DAY_MS: i64 = 86_400_000;

fn expire(bench: &mut Bench, after_days: i64) -> (usize, usize) {
    bench.now.timestamp_ms += after_days * DAY_MS;
    let deletions = bench.machine.decide_expiry(bench.now, &bench.config);
    bench.delete(&deletions);
    (deletions.offsets.len(), deletions.groups.len())
}

#[test]
fn offsets_of_a_simple_group_expire_after_their_last_commit_and_the_group_with_them() {
    let mut bench = Bench::new();
    bench.commit("s", -1, "", 5);
    assert_eq!(expire(&mut bench, 6), (0, 0));
    bench.commit("s", -1, "", 6);
    assert_eq!(expire(&mut bench, 6), (0, 0));
    assert_eq!(expire(&mut bench, 1), (1, 1));
    assert!(bench.machine.group("s").is_none());
}

#[test]
fn offsets_of_a_deserted_group_expire_counting_from_when_it_was_deserted() {
    let (mut bench, a) = Bench::with_stable_member();
    bench.commit(GROUP, 1, &a, 5);
    bench.now.timestamp_ms += 6 * DAY_MS;
    bench.leave(&[(&a, None)]);
    assert_eq!(expire(&mut bench, 6), (0, 0));
    assert_eq!(expire(&mut bench, 1), (1, 1));
}

#[test]
fn offsets_of_topics_that_members_subscribe_to_never_expire() {
    let (mut bench, a) = Bench::with_stable_member();
    bench.commit(GROUP, 1, &a, 5);
    assert_eq!(expire(&mut bench, 100), (0, 0));
    assert_eq!(bench.committed(GROUP), Some(5));
}

#[test]
fn an_empty_group_without_offsets_goes_at_the_next_check_but_not_while_somebody_is_on_the_way() {
    let mut bench = Bench::new();
    bench.join(Join { member_id_required: true, ..newcomer("a") });
    assert_eq!(expire(&mut bench, 0), (0, 0));
    bench.pass(10_001);
    assert_eq!(expire(&mut bench, 0), (0, 1));
}

#[test]
fn a_commits_own_retention_time_counts_where_it_has_one() {
    let mut bench = Bench::new();
    let offsets = [OffsetToCommit {
        topic: "t",
        topic_id: Default::default(),
        partition: 0,
        offset: 5,
        leader_epoch: -1,
        metadata: "",
    }];
    let commit = CommitOffsets {
        group: "s",
        generation: -1,
        member: MemberRef { member_id: "", instance_id: None },
        group_id_not_found_known: false,
        retention_ms: Some(DAY_MS),
        offsets: &offsets,
    };
    let decided = bench.machine.decide_commit(&commit, bench.now, &bench.config).unwrap_or_default();
    for record in decided.into_iter().flatten() {
        bench.machine.replay(record);
    }
    assert_eq!(expire(&mut bench, 1), (1, 1));
}

#[test]
fn a_group_with_members_is_not_deleted() {
    let (bench, _) = Bench::with_stable_member();
    assert_eq!(bench.machine.decide_delete_group(GROUP), Err(ErrorCode::NON_EMPTY_GROUP));
    assert_eq!(bench.machine.decide_delete_group("none"), Err(ErrorCode::GROUP_ID_NOT_FOUND));
}

#[test]
fn a_deleted_group_is_gone_for_ever_with_its_offsets() {
    let (mut bench, a) = Bench::with_stable_member();
    bench.commit(GROUP, 1, &a, 5);
    bench.leave(&[(&a, None)]);
    let deletions = bench.machine.decide_delete_group(GROUP).unwrap_or_default();
    assert_eq!((deletions.offsets.len(), deletions.groups.len()), (1, 1));
    bench.delete(&deletions);
    assert!(bench.machine.group(GROUP).is_none());
    assert!(bench.reloaded().group(GROUP).is_none());
}

#[test]
fn offsets_are_deleted_but_for_topics_subscribed_to() {
    let (mut bench, a) = Bench::with_stable_member();
    bench.commit(GROUP, 1, &a, 5);
    let decided = bench.machine.decide_delete_offsets(GROUP, &[("t", 0), ("u", 0)]);
    let codes = decided.as_ref().map(|(codes, _)| codes.clone());
    assert_eq!(codes, Ok(vec![ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode::NONE]));
    bench.leave(&[(&a, None)]);
    let (codes, deletions) = bench.machine.decide_delete_offsets(GROUP, &[("t", 0)]).unwrap_or_default();
    bench.delete(&deletions);
    assert_eq!((codes, bench.committed(GROUP)), (vec![ErrorCode::NONE], None));
    let phase = bench.machine.group(GROUP).map(|group| group.classic().phase());
    assert_eq!(phase, Some(Phase::Empty));
}

#[test]
fn offsets_of_a_group_of_another_type_with_members_are_not_deleted() {
    let mut bench = Bench::new();
    let joined = bench.join(Join { protocol_type: "connect".into(), ..newcomer("a") });
    bench.joined(joined);
    assert_eq!(bench.machine.decide_delete_offsets(GROUP, &[("t", 0)]), Err(ErrorCode::NON_EMPTY_GROUP));
    assert_eq!(bench.machine.decide_delete_offsets("none", &[]), Err(ErrorCode::GROUP_ID_NOT_FOUND));
}

#[test]
fn a_deleted_topic_takes_its_offsets_along_in_every_group() {
    let mut bench = Bench::new();
    bench.commit("one", -1, "", 1);
    bench.commit("two", -1, "", 2);
    let deletions =
        bench.machine.decide_topics_deleted(&[("t".into(), TopicId::ZERO), ("other".into(), TopicId::ZERO)]);
    assert_eq!((deletions.offsets.len(), deletions.groups.len()), (2, 0));
    bench.delete(&deletions);
    assert_eq!((bench.committed("one"), bench.committed("two")), (None, None));
}

#[test]
fn offsets_committed_for_a_new_topic_of_the_same_name_stay() {
    let mut bench = Bench::new();
    let id = |number| TopicId(uuid::Uuid::from_u128(number));
    let (old, new) = (id(1), id(2));
    bench.commit_for("s", old, 5);
    bench.commit_for("s", new, 6);
    assert!(bench.machine.decide_topics_deleted(&[("t".into(), old)]).is_empty());
    assert_eq!(bench.machine.decide_topics_deleted(&[("t".into(), new)]).offsets.len(), 1);
}

#[test]
fn a_tombstone_of_what_is_unknown_does_nothing() {
    let mut bench = Bench::new();
    bench.commit("s", -1, "", 5);
    let deletions = bench.machine.decide_delete_group("s").unwrap_or_default();
    bench.delete(&deletions);
    bench.delete(&deletions);
    assert!(bench.machine.group("s").is_none());
}

#[test]
fn fetches_answer_everything_asked_for() {
    let mut bench = Bench::new();
    bench.commit("s", -1, "", 5);
    let topics = [
        TopicToFetch { topic: "none", topic_id: Default::default(), partitions: &[0] },
        TopicToFetch { topic: "t", topic_id: Default::default(), partitions: &[0, 9, 0] },
    ];
    let offsets = |group: &str| -> Vec<Vec<i64>> {
        let fetched = bench.machine.fetch(group, &topics, true);
        fetched.iter().map(|topic| topic.partitions.iter().map(|one| one.offset).collect()).collect()
    };
    assert_eq!(offsets("s"), [vec![-1], vec![5, -1, 5]]);
    assert_eq!(offsets("unknown"), [vec![-1], vec![-1, -1, -1]]);
    assert_eq!(bench.machine.fetch_all("s", true).len(), 1);
    assert!(bench.machine.fetch_all("unknown", true).is_empty());
}

#[test]
fn metadata_too_large_is_refused_alone() {
    let bench = Bench::new();
    let (fits, too_long) = ("ü".repeat(4_096), "m".repeat(4_097));
    let offset = |partition, metadata| OffsetToCommit {
        topic: "t",
        topic_id: Default::default(),
        partition,
        offset: 1,
        leader_epoch: -1,
        metadata,
    };
    let offsets = [offset(0, fits.as_str()), offset(1, too_long.as_str())];
    let commit = CommitOffsets {
        group: "s",
        generation: -1,
        member: MemberRef { member_id: "", instance_id: None },
        group_id_not_found_known: true,
        retention_ms: None,
        offsets: &offsets,
    };
    let decided = bench.machine.decide_commit(&commit, bench.now, &bench.config).unwrap_or_default();
    let codes: Vec<Option<ErrorCode>> = decided.into_iter().map(|one| one.err()).collect();
    assert_eq!(codes, [None, Some(ErrorCode::OFFSET_METADATA_TOO_LARGE)]);
}
