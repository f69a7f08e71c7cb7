use super::*;
use crate::base::ErrorCode;
use crate::controller::decide::alter_partition::{AlterPartition, NewIsr, alter_partition};
use crate::controller::decide::reassignments::{Ongoing, Reassignment, list, reassign};

fn outcome(image: &Image, replicas: Option<&[BrokerId]>, factor_may_change: bool) -> (Image, Result<(), ErrorCode>) {
    let asked = Reassignment { partition: 0, replicas: replicas.map(<[BrokerId]>::to_vec) };
    let decision = reassign(image, &RULES, &[("t".to_owned(), vec![asked])], factor_may_change);
    let outcome = decision.reply[0].1[0].1.clone().map_err(|refusal| refusal.code);
    (after(image, &decision), outcome)
}

fn moved(image: &Image, replicas: &[BrokerId]) -> Image {
    let (image, outcome) = outcome(image, Some(replicas), true);
    assert_eq!(outcome, Ok(()));
    image
}

fn in_sync(image: &Image, isr: &[BrokerId]) -> Image {
    let now = state(image);
    let new = NewIsr {
        partition: 0,
        leader_epoch: now.leader_epoch,
        partition_epoch: now.partition_epoch,
        isr: isr.iter().map(|id| (*id, 1)).collect(),
        recovering: false,
    };
    let asked = AlterPartition { broker: now.leader, broker_epoch: 1, topics: vec![(topic_id(1), vec![new])] };
    after(image, &alter_partition(image, &RULES, &asked))
}

/// Five brokers, topic `t` on the first two.
fn five() -> Image {
    let mut image = replicated(5, 1);
    let two = PartitionState::new(vec![1, 2], vec![directory(1), directory(2)]);
    set_state(&mut image, two);
    image
}

/// Replicas, those that come and those that go.
fn plan(image: &Image) -> (Vec<BrokerId>, Vec<BrokerId>, Vec<BrokerId>) {
    let state = state(image);
    (state.replicas, state.adding, state.removing)
}

#[test]
fn new_replicas_join_at_once_and_old_ones_leave_when_the_new_are_in_sync() {
    let image = moved(&five(), &[3, 4]);
    assert_eq!(plan(&image), (vec![3, 4, 1, 2], vec![3, 4], vec![1, 2]));
    assert_eq!(state(&image).directories, [3, 4, 1, 2].map(directory));
    assert_eq!((state(&image).leader_epoch, state(&image).partition_epoch), (0, 1));
    let ongoing = Ongoing { partition: 0, replicas: vec![3, 4, 1, 2], adding: vec![3, 4], removing: vec![1, 2] };
    assert_eq!(list(&image, None), [("t".to_owned(), vec![ongoing.clone()])]);
    assert_eq!(list(&image, Some(&[("t".to_owned(), vec![0, 7])])), [("t".to_owned(), vec![ongoing])]);
    assert_eq!(list(&image, Some(&[("t".to_owned(), vec![7]), ("none".to_owned(), vec![0])])), []);
    let half = in_sync(&image, &[1, 2, 3]);
    assert_eq!(plan(&half).1, [3, 4]);
    let done = in_sync(&half, &[1, 2, 3, 4]);
    assert_eq!(plan(&done), (vec![3, 4], vec![], vec![]));
    assert_eq!(shown(&done), expect(3, &[3, 4], &[]));
    assert_eq!(state(&done).directories, [3, 4].map(directory));
    assert_eq!(list(&done, None), []);
}

#[test]
fn another_order_is_done_at_once() {
    let image = moved(&five(), &[2, 1]);
    assert_eq!(plan(&image), (vec![2, 1], vec![], vec![]));
    assert_eq!(shown(&image).leader, 1);
    assert_eq!(moved(&image, &[2, 1]), image);
}

#[test]
fn a_reassignment_that_changes_its_mind_drops_what_it_was_adding() {
    let image = moved(&five(), &[1, 2, 3]);
    let elsewhere = moved(&image, &[1, 2, 4]);
    assert_eq!(plan(&elsewhere), (vec![1, 2, 4], vec![4], vec![]));
    let back = moved(&image, &[1, 2]);
    assert_eq!(plan(&back), (vec![1, 2], vec![], vec![]));
    let synced = in_sync(&moved(&five(), &[3, 4]), &[1, 2, 3]);
    let changed = moved(&synced, &[1, 5]);
    assert_eq!(plan(&changed), (vec![1, 5, 2, 3], vec![5], vec![2, 3]));
    let done = in_sync(&changed, &[1, 2, 3, 5]);
    assert_eq!((plan(&done).0, shown(&done).isr), (vec![1, 5], vec![1, 5]));
}

#[test]
fn what_is_taken_back_is_as_before() {
    let image = moved(&five(), &[3, 4]);
    let (cancelled, done) = outcome(&image, None, true);
    assert_eq!((done, plan(&cancelled)), (Ok(()), (vec![1, 2], vec![], vec![])));
    assert_eq!(shown(&cancelled), expect(1, &[1, 2], &[]));
    assert_eq!(state(&cancelled).leader_epoch, 1);
    assert_eq!(outcome(&cancelled, None, true).1, Err(ErrorCode::NO_REASSIGNMENT_IN_PROGRESS));
}

#[test]
fn taking_back_never_loses_the_only_copy() {
    let mut image = moved(&five(), &[3, 4]);
    let only_new = PartitionState { isr: vec![3], leader: 3, ..state(&image) };
    set_state(&mut image, only_new);
    assert_eq!(outcome(&image, None, true).1, Err(ErrorCode::INVALID_REPLICA_ASSIGNMENT));
    apply(&mut image, &[topic_config("unclean.leader.election.enable", "true")]);
    assert_eq!(outcome(&image, None, true).1, Ok(()));
}

#[test]
fn bad_assignments_are_refused() {
    let image = five();
    for replicas in [&[][..], &[1, 9], &[1, 1], &[-1]] {
        assert_eq!(outcome(&image, Some(replicas), true).1, Err(ErrorCode::INVALID_REPLICA_ASSIGNMENT), "{replicas:?}");
    }
    let three = outcome(&image, Some(&[1, 2, 3]), false).1;
    assert_eq!(three, Err(ErrorCode::INVALID_REPLICATION_FACTOR));
    assert_eq!(outcome(&image, Some(&[1, 3]), false).1, Ok(()));
    let under_way = moved(&image, &[1, 3]);
    assert_eq!(outcome(&under_way, Some(&[1, 4]), false).1, Ok(()));
}
