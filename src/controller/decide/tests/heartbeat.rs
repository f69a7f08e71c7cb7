use super::*;
use crate::base::ErrorCode;
use crate::controller::decide::heartbeat::{Heartbeat, HeartbeatReply, Stopping, fence, heartbeat};

fn beat(id: BrokerId) -> Heartbeat {
    Heartbeat {
        id,
        epoch: 1,
        metadata_offset: i64::MAX,
        want_fence: false,
        want_shut_down: false,
        offline_directories: vec![],
    }
}

fn stop(id: BrokerId) -> Heartbeat {
    Heartbeat { want_shut_down: true, ..beat(id) }
}

/// The image after the heartbeat, and what the broker is told: fenced, shutting down, may stop.
fn told(image: &Image, beat: &Heartbeat, stopping: Option<Stopping>) -> (Image, (bool, bool, bool)) {
    let decision = heartbeat(image, &RULES, beat, stopping);
    let image = after(image, &decision);
    let HeartbeatReply { fenced, shutting_down, should_shut_down, .. } = decision.reply.expect("known");
    (image, (fenced, shutting_down, should_shut_down))
}

#[test]
fn a_heartbeat_that_changes_nothing_makes_no_records() {
    let image = replicated(3, 2);
    assert_eq!(heartbeat(&image, &RULES, &beat(1), None).records, []);
}

#[test]
fn an_unknown_broker_and_an_old_epoch_are_stale() {
    let image = replicated(3, 2);
    for bad in [beat(9), Heartbeat { epoch: 0, ..beat(1) }] {
        assert_eq!(heartbeat(&image, &RULES, &bad, None), Decision::unchanged(Err(ErrorCode::STALE_BROKER_EPOCH)));
    }
}

#[test]
fn a_fenced_broker_serves_when_it_has_seen_its_own_registration() {
    let mut image = replicated(3, 2);
    fence_broker(&mut image, 2);
    let (still, standing) = told(&image, &Heartbeat { metadata_offset: 0, ..beat(2) }, None);
    assert_eq!((standing, still.is_active(2)), ((true, false, false), false));
    let (still, standing) = told(&image, &Heartbeat { want_fence: true, ..beat(2) }, None);
    assert_eq!((standing, still.is_active(2)), ((true, false, false), false));
    let (serving, standing) = told(&image, &Heartbeat { metadata_offset: 1, ..beat(2) }, None);
    assert_eq!((standing, serving.is_active(2)), ((false, false, false), true));
}

#[test]
fn fencing_moves_leaders_and_unfencing_brings_back_those_that_had_none() {
    let mut image = replicated(3, 2);
    fence_broker(&mut image, 1);
    assert_eq!(shown(&image), expect(2, &[2, 3], &[]));
    fence_broker(&mut image, 2);
    assert_eq!(shown(&image), expect(3, &[3], &[2]));
    fence_broker(&mut image, 3);
    assert_eq!(shown(&image), expect(-1, &[3], &[2]));
    let (without_copy, _) = told(&image, &beat(1), None);
    assert_eq!(shown(&without_copy).leader, -1);
    let (eligible, _) = told(&image, &beat(2), None);
    assert_eq!(shown(&eligible), expect(2, &[2], &[3]));
    let (last, _) = told(&image, &beat(3), None);
    assert_eq!(shown(&last), expect(3, &[3], &[2]));
}

#[test]
fn the_broker_is_fenced_after_its_partitions_so_that_half_a_fencing_is_done_again() {
    let image = replicated(3, 2);
    let records = fence(&image, &RULES, 1);
    assert_eq!(records.last(), Some(&MetadataRecord::BrokerFenced { id: 1, fenced: true }));
    assert_eq!(records.len(), 2);
    let mut fenced = image;
    apply(&mut fenced, &records);
    assert_eq!(fence(&fenced, &RULES, 1), []);
}

#[test]
fn a_broker_stops_when_its_leaders_are_moved_and_all_have_seen_it() {
    let image = replicated(3, 2);
    let (image, standing) = told(&image, &stop(1), None);
    assert_eq!(standing, (false, true, false));
    assert_eq!(shown(&image), expect(2, &[2, 3], &[]));
    assert!(image.is_live(1) && !image.is_active(1));
    let slow = Some(Stopping { moved_at: 10, seen_by_all: 9 });
    assert_eq!(told(&image, &stop(1), slow).1, (false, true, false));
    let (image, standing) = told(&image, &stop(1), Some(Stopping { moved_at: 10, seen_by_all: 10 }));
    assert_eq!(standing, (true, false, true));
    assert!(!image.is_live(1));
}

#[test]
fn a_broker_without_leaders_stops_at_once() {
    let (image, standing) = told(&replicated(3, 2), &stop(3), None);
    assert_eq!(standing, (true, false, true));
    assert_eq!(shown(&image), expect(1, &[1, 2], &[]));
}

#[test]
fn the_last_one_leaves_everything_as_it_is() {
    let mut image = replicated(2, 1);
    fence_broker(&mut image, 2);
    let decision = heartbeat(&image, &RULES, &stop(1), None);
    assert!(decision.reply.unwrap().should_shut_down);
    assert_eq!(decision.records, []);
    let not_yet = Heartbeat { want_fence: true, ..beat(1) };
    assert_eq!(heartbeat(&image, &RULES, &not_yet, None).records, []);
}

#[test]
fn a_fenced_broker_may_stop_at_any_time() {
    let mut image = replicated(3, 2);
    fence_broker(&mut image, 2);
    assert_eq!(told(&image, &stop(2), None).1, (true, false, true));
}

#[test]
fn a_failed_directory_takes_only_its_replicas_away() {
    let mut image = replicated(3, 2);
    let mut two = broker(1, None);
    two.directories.push(Uuid::from_u128(777));
    apply(&mut image, &[MetadataRecord::Broker(two)]);
    let other = Heartbeat { offline_directories: vec![Uuid::from_u128(777)], ..beat(1) };
    let (kept, _) = told(&image, &other, None);
    assert_eq!(shown(&kept), expect(1, &[1, 2, 3], &[]));
    assert_eq!(kept.broker(1).unwrap().directories, [directory(1)]);
    let its_own = Heartbeat { offline_directories: vec![directory(1)], ..beat(1) };
    let (moved, _) = told(&image, &its_own, None);
    assert_eq!(shown(&moved), expect(2, &[2, 3], &[]));
    assert_eq!(heartbeat(&moved, &RULES, &its_own, None).records, []);
}

#[test]
fn a_thousand_leaders_move_in_one_decision() {
    let mut image = cluster(3);
    let directories = vec![directory(1), directory(2), directory(3)];
    let partitions = vec![PartitionState::new(vec![1, 2, 3], directories); 1000];
    apply(&mut image, &[MetadataRecord::Topic { id: topic_id(1), name: "t".into(), partitions }]);
    let records = fence(&image, &RULES, 1);
    assert_eq!(records.len(), 1001);
    apply(&mut image, &records);
    assert!(!image.leads_something(1));
    assert!(image.partitions().all(|(_, _, state)| state.leader == 2 && state.leader_epoch == 1));
}
