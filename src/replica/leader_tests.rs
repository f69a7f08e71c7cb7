//! Facts about the leader's machine and the follower's decisions, one by one. What they are good for together is shown in `model`.

use crate::base::{BrokerId, Offset};
use crate::log::EpochTable;
use crate::replica::follower::{LocalLog, Repair, Tail, check_batch};
use crate::replica::leader::{Assignment, FollowerFetch, Leader, Moment, NotCounted, Rules};

const LAG: u64 = 100;

fn assignment(isr: &[BrokerId], min_isr: usize) -> Assignment {
    Assignment {
        leader_epoch: 5,
        partition_epoch: 7,
        replicas: vec![1, 2, 3],
        isr: isr.to_vec(),
        min_isr,
        recovering: false,
    }
}

fn at(log_end: Offset, high_watermark: Offset, now: u64) -> Moment {
    Moment { log_start: 0, log_end, high_watermark, now, lag_ms_max: LAG }
}

/// Node 1 leads; its log ended at 10 when that began.
fn leader(isr: &[BrokerId], min_isr: usize) -> Leader {
    Leader::begin(1, assignment(isr, min_isr), at(10, 8, 0), Rules::ALL)
}

fn fetch(broker: BrokerId, fetch_offset: Offset) -> FollowerFetch {
    FollowerFetch { broker, broker_epoch: 40, fetch_offset, log_start_offset: 0 }
}

/// Everybody is registered with broker epoch 40.
fn all(_: BrokerId) -> Option<i64> {
    Some(40)
}

fn nobody(_: BrokerId) -> Option<i64> {
    None
}

#[test]
fn the_high_watermark_is_the_lowest_end_of_the_in_sync_set() {
    let mut leader = leader(&[1, 2, 3], 2);
    assert_eq!(leader.advance(at(12, 8, 1), &all), None, "nobody has fetched yet");
    leader.note_fetch(fetch(2, 12), at(12, 8, 1)).unwrap();
    assert_eq!(leader.advance(at(12, 8, 1), &all), None);
    leader.note_fetch(fetch(3, 11), at(12, 8, 1)).unwrap();
    assert_eq!(leader.advance(at(12, 8, 1), &all), Some(11));
    leader.note_fetch(fetch(3, 12), at(12, 11, 2)).unwrap();
    assert_eq!(leader.advance(at(12, 11, 2), &all), Some(12));
}

#[test]
fn the_high_watermark_never_goes_back() {
    let mut leader = leader(&[1, 2], 1);
    leader.note_fetch(fetch(2, 10), at(10, 8, 1)).unwrap();
    assert_eq!(leader.advance(at(10, 8, 1), &all), Some(10));
    leader.note_fetch(fetch(2, 4), at(10, 10, 2)).unwrap();
    assert_eq!(leader.advance(at(10, 10, 2), &all), None);
}

#[test]
fn below_min_insync_replicas_the_high_watermark_stands_still() {
    let mut leader = leader(&[1], 2);
    assert_eq!(leader.advance(at(12, 8, 1), &nobody), None);
    assert!(!leader.is_alone(at(12, 8, 1), &nobody) && !leader.has_enough_in_sync());
    leader.renew(Assignment { partition_epoch: 8, ..assignment(&[1, 2], 2) }, 2);
    leader.note_fetch(fetch(2, 12), at(12, 8, 2)).unwrap();
    assert_eq!(leader.advance(at(12, 8, 2), &all), Some(12));
}

#[test]
fn alone_is_who_waits_for_nobody() {
    let mut leader = leader(&[1], 1);
    assert!(leader.is_alone(at(10, 8, 1), &all));
    leader.note_fetch(fetch(2, 10), at(10, 8, 1)).unwrap();
    assert!(!leader.is_alone(at(10, 8, 1), &all), "it is about to join");
    assert!(leader.is_alone(at(10, 8, 1), &nobody), "it may not join");
    assert!(leader.is_alone(at(11, 8, 2 + LAG), &all), "it has fallen behind");
}

#[test]
fn a_proposed_member_is_waited_for_until_the_outcome_is_known() {
    let mut leader = leader(&[1], 1);
    leader.note_fetch(fetch(2, 10), at(10, 10, 1)).unwrap();
    let proposal = leader.propose_growth(at(10, 10, 1), &all).unwrap();
    assert_eq!(proposal.isr, [(1, -1), (2, 40)]);
    let late = at(15, 10, 1 + 10 * LAG);
    assert_eq!(leader.advance(late, &all), None, "2 may be in sync by now, and has 10");
    assert_eq!(leader.propose_growth(late, &all), None, "one change at a time");
    assert_eq!(leader.propose_shrink(late), None);
    leader.note_refused(6);
    assert!(leader.is_proposing(), "that was about an older state");
    leader.note_refused(7);
    assert_eq!(leader.advance(late, &all), Some(15));
}

#[test]
fn a_newer_state_ends_the_proposal() {
    let mut leader = leader(&[1, 2], 1);
    let proposal = leader.propose_shrink(at(11, 8, 1 + LAG)).unwrap();
    assert_eq!(proposal.isr, [(1, -1)]);
    leader.renew(assignment(&[1, 2], 1), 1 + LAG);
    assert!(leader.is_proposing());
    leader.renew(Assignment { partition_epoch: 8, ..assignment(&[1], 1) }, 1 + LAG);
    assert!(!leader.is_proposing());
    assert_eq!(leader.advance(at(11, 8, 1 + LAG), &all), Some(11));
}

#[test]
fn a_follower_joins_with_everything_up_to_the_high_watermark_and_the_start_of_the_epoch() {
    let mut leader = leader(&[1], 1);
    let can_grow = |leader: &Leader, high_watermark| leader.can_grow(at(20, high_watermark, 1), &all);
    leader.note_fetch(fetch(2, 9), at(20, 8, 1)).unwrap();
    assert!(!can_grow(&leader, 8), "the epoch began at 10");
    leader.note_fetch(fetch(2, 10), at(20, 8, 1)).unwrap();
    assert!(can_grow(&leader, 8));
    assert!(!can_grow(&leader, 11));
    assert!(!leader.can_grow(at(20, 8, 1), &nobody), "a fenced broker does not join");
    assert!(!leader.can_grow(at(20, 8, 1), &|_| Some(41)), "it was an older life of it that fetched");
}

#[test]
fn an_older_life_of_a_broker_counts_nothing() {
    let mut leader = leader(&[1, 2], 1);
    leader.note_fetch(FollowerFetch { broker_epoch: 41, ..fetch(2, 5) }, at(10, 8, 1)).unwrap();
    assert_eq!(leader.note_fetch(fetch(2, 10), at(10, 8, 2)), Err(NotCounted::StaleBrokerEpoch));
    assert_eq!(leader.note_fetch(fetch(4, 10), at(10, 8, 2)), Err(NotCounted::NoReplica));
    assert_eq!(leader.advance(at(10, 4, 2), &all), Some(5));
}

#[test]
fn who_keeps_up_with_constant_writing_is_not_behind() {
    let mut leader = leader(&[1, 2], 1);
    for round in 0..10 {
        // Each fetch has what was there at the fetch before.
        let now = round * LAG / 2;
        let end = 10 + 5 * (round as Offset + 1);
        leader.note_fetch(fetch(2, end - 5), at(end, 8, now)).unwrap();
        assert_eq!(leader.propose_shrink(at(end, 8, now)), None, "round {round}");
    }
    let end = 10 + 5 * 11;
    assert!(leader.propose_shrink(at(end, 8, 9 * LAG / 2 + LAG)).is_some(), "it stopped fetching");
}

#[test]
fn who_was_put_out_is_not_waited_for_until_it_fetches_again() {
    let mut leader = leader(&[1, 2], 1);
    leader.note_fetch(fetch(2, 10), at(10, 8, 1)).unwrap();
    leader.renew(Assignment { partition_epoch: 8, ..assignment(&[1], 1) }, 2);
    assert_eq!(leader.advance(at(11, 10, 2), &all), Some(11), "it was caught up a moment ago, and is dead perhaps");
    leader.note_fetch(fetch(2, 11), at(11, 11, 3)).unwrap();
    assert_eq!(leader.advance(at(12, 11, 3), &all), None);
}

#[test]
fn who_still_has_what_was_deleted_does_not_join() {
    let mut leader = leader(&[1], 1);
    let at = Moment { log_start: 6, ..at(10, 10, 1) };
    leader.note_fetch(FollowerFetch { log_start_offset: 5, ..fetch(2, 10) }, at).unwrap();
    assert!(!leader.can_grow(at, &all), "were it to lead, the deleted records would be back");
    leader.note_fetch(FollowerFetch { log_start_offset: 6, ..fetch(2, 10) }, at).unwrap();
    assert!(leader.can_grow(at, &all));
}

#[test]
fn a_deletion_waits_for_all_that_live_or_may_be_elected() {
    let mut leader = leader(&[1, 2], 1);
    for (broker, log_start_offset) in [(2, 3), (3, 2)] {
        leader.note_fetch(FollowerFetch { log_start_offset, ..fetch(broker, 10) }, at(10, 8, 1)).unwrap();
    }
    assert_eq!(leader.lowest_start(5, &all), 2);
    assert_eq!(leader.lowest_start(5, &nobody), 3, "who is in sync may lead as soon as it is back");
}

#[test]
fn readers_are_sent_only_where_the_offset_is() {
    let mut leader = leader(&[1, 2], 1);
    leader.note_fetch(FollowerFetch { log_start_offset: 4, ..fetch(2, 10) }, at(10, 8, 1)).unwrap();
    leader.note_fetch(fetch(3, 10), at(10, 8, 1)).unwrap();
    let readable = |offset| leader.readable_followers(offset).collect::<Vec<_>>();
    assert_eq!((readable(3), readable(4), readable(11)), (vec![], vec![(2, 10)], vec![]));
}

fn epochs(entries: &[(i32, Offset)]) -> EpochTable {
    let mut table = EpochTable::default();
    for (epoch, start_offset) in entries {
        table.assign(*epoch, *start_offset);
    }
    table
}

fn diverge(own: &[(i32, Offset)], start: Offset, end: Offset, answer: (i32, Offset)) -> Repair {
    LocalLog { start, end, epochs: &epochs(own) }.on_divergence(answer.0, answer.1)
}

#[test]
fn a_log_is_cut_where_the_common_epoch_ended_first() {
    // The leader's epoch 1 ended at 7, ours goes on to 9 (KIP-101).
    assert_eq!(diverge(&[(0, 0), (1, 5)], 0, 9, (1, 7)), Repair::CutTo(7));
    // Ours ended before the leader's did.
    assert_eq!(diverge(&[(0, 0), (1, 5), (2, 6)], 0, 9, (1, 7)), Repair::CutTo(6));
}

#[test]
fn a_log_without_the_leaders_epoch_goes_back_one_epoch_of_its_own() {
    // The leader knows 3 below our 4; we never had 3 (KIP-279): first our 4 goes, the next answer tells about our 2.
    assert_eq!(diverge(&[(2, 0), (4, 6)], 0, 9, (3, 8)), Repair::CutTo(6));
    assert_eq!(diverge(&[(2, 0)], 0, 6, (2, 4)), Repair::CutTo(4));
}

#[test]
fn an_epoch_without_records_is_forgotten_though_nothing_is_cut() {
    assert_eq!(diverge(&[(2, 0), (4, 6)], 0, 6, (2, 9)), Repair::CutTo(6));
}

#[test]
fn a_log_that_shares_nothing_begins_anew() {
    assert_eq!(diverge(&[(5, 3)], 3, 9, (1, 2)), Repair::RestartAt(2));
    assert_eq!(diverge(&[(5, 3)], 3, 9, (1, 8)), Repair::RestartAt(3));
}

#[test]
fn out_of_range_costs_nothing_that_the_leader_has() {
    let table = epochs(&[(1, 0)]);
    let log = |start, end| LocalLog { start, end, epochs: &table };
    assert_eq!(log(0, 9).on_out_of_range(12), Some(Repair::RestartAt(12)), "behind the leader's start");
    assert_eq!(log(9, 9).on_out_of_range(0), Some(Repair::RestartAt(0)), "empty, and before its end");
    assert_eq!(log(0, 9).on_out_of_range(4), None, "there is something to compare");
    assert_eq!(log(0, 9).on_out_of_range(-1), None, "it did not say");
}

#[test]
fn an_empty_log_begins_where_the_batch_does_that_it_ends_in() {
    use crate::records::{BatchBuilder, BatchHeader, Codec};
    let table = epochs(&[]);
    let begins = |start, end, base, count| {
        let mut builder = BatchBuilder::new(Codec::None);
        for _ in 0..count {
            builder.push(0, None, Some(b"v"), &[]);
        }
        let header = BatchHeader::parse(&builder.finish(base, 1)).unwrap();
        LocalLog { start, end, epochs: &table }.on_first_batch(&header)
    };
    assert_eq!(begins(25, 25, 20, 10), Some(Repair::BeginInside(20)));
    assert_eq!(begins(29, 29, 20, 10), Some(Repair::BeginInside(20)), "with its last record");
    assert_eq!(begins(30, 30, 20, 10), None, "that batch ends before");
    assert_eq!(begins(20, 20, 20, 10), None, "it continues the log as it is");
    assert_eq!(begins(24, 25, 20, 10), None, "there is a record");
    assert_eq!(begins(5, 5, -5, 20), None, "no log begins before 0");
}

#[test]
fn records_of_epochs_after_the_leaders_are_damage() {
    let later = |epoch| {
        let table = epochs(&[(0, 0), (3, 5), (7, 8), (1 << 30, 9)]);
        LocalLog { start: 0, end: 10, epochs: &table }.on_later_epochs(epoch)
    };
    assert_eq!(later(1 << 30), None);
    assert_eq!(later(7), Some(Repair::DropFrom(9)));
    assert_eq!(later(6), Some(Repair::DropFrom(8)));
}

#[test]
fn an_empty_log_says_no_epoch() {
    let table = epochs(&[(3, 5)]);
    assert_eq!(LocalLog { start: 5, end: 5, epochs: &table }.position().last_epoch, -1);
    assert_eq!(LocalLog { start: 5, end: 6, epochs: &table }.position().last_epoch, 3);
}

#[test]
fn batches_continue_the_log_in_offset_and_epoch() {
    use crate::records::{BatchBuilder, BatchHeader, Codec};
    let batch = |offset, epoch| {
        let mut builder = BatchBuilder::new(Codec::None);
        builder.push(0, None, Some(b"v"), &[]);
        BatchHeader::parse(&builder.finish(offset, epoch)).unwrap()
    };
    for takes_gaps in [false, true] {
        let check = |offset, epoch| check_batch(&batch(offset, epoch), Tail { end: 5, last_epoch: 2, takes_gaps }, 3);
        assert_eq!(check(5, 2), Ok(()));
        assert_eq!(check(7, 3).is_ok(), takes_gaps, "only compaction leaves gaps");
        assert!(check(4, 2).is_err());
        assert!(check(5, 1).is_err(), "epochs do not go back");
        assert!(check(5, 4).is_err(), "no leader writes a later epoch than its own");
    }
}

#[test]
fn a_leader_that_was_elected_uncleanly_says_once_that_it_goes_on() {
    let recovering = Assignment { recovering: true, ..assignment(&[1], 1) };
    let mut leader = Leader::begin(1, recovering, at(10, 0, 0), Rules::ALL);
    assert_eq!(leader.propose_recovered().map(|proposal| proposal.isr), Some(vec![(1, -1)]));
    assert_eq!(leader.propose_recovered(), None, "it is under way");
    leader.renew(Assignment { partition_epoch: 8, ..assignment(&[1], 1) }, 1);
    assert_eq!(leader.propose_recovered(), None, "it is done");
}
