//! Hand-made histories: a clean one passes, and each anomaly alone is found and named.

use std::time::Duration;

use super::{Kind, check};
use crate::faults::history::{Action, By, Event, Outcome};

/// A history in the making; each event comes a second after the one before.
#[derive(Default)]
struct Made(Vec<Event>);

impl Made {
    fn put(mut self, process: u32, op: u64, action: Action) -> Made {
        let at = Duration::from_secs(self.0.len() as u64);
        self.0.push(Event { at, process, op, action });
        self
    }

    fn send(self, process: u32, value: u64, outcome: Outcome, offset: i64) -> Made {
        self.put(process, value, Action::Send { partition: 0, value, idempotent: process == 1 }).put(
            process,
            value,
            Action::Sent { value, outcome, offset, error: String::new() },
        )
    }

    fn read(self, by: By, offset: i64, value: u64) -> Made {
        self.put(9, 0, Action::Read { by, partition: 0, offset, value })
    }

    fn end(self, values: &[(i64, u64)]) -> Made {
        values.iter().fold(self, |made, (offset, value)| made.read(By::Final, *offset, *value))
    }

    fn commit(self, op: u64, offset: i64, outcome: Outcome) -> Made {
        let (partition, process) = (0, 5);
        self.put(process, op, Action::Commit { partition, offset }).put(
            process,
            op,
            Action::Committed { partition, offset, outcome },
        )
    }

    fn told(self, op: u64, offset: i64) -> Made {
        self.put(6, op, Action::AskCommitted { partition: 0 }).put(
            6,
            op,
            Action::ToldCommitted { partition: 0, offset },
        )
    }

    fn kinds(&self) -> Vec<Kind> {
        let mut kinds: Vec<Kind> = check(&self.0).into_iter().map(|violation| violation.kind).collect();
        kinds.dedup();
        kinds
    }
}

/// Producer 1 is idempotent, 2 is not.
fn clean() -> Made {
    Made::default().send(1, 1, Outcome::Ok, 0).send(1, 2, Outcome::Ok, 1).send(2, 3, Outcome::Info, -1)
}

const ALL: [(i64, u64); 3] = [(0, 1), (1, 2), (2, 3)];

#[test]
fn a_clean_history_has_no_violation() {
    let made = clean()
        .put(9, 0, Action::Seek { partition: 0, offset: 0 })
        .read(By::Strict, 0, 1)
        .read(By::Strict, 1, 2)
        .commit(10, 1, Outcome::Ok)
        .commit(11, 2, Outcome::Ok)
        .told(12, 2)
        .put(100, 0, Action::Led { partition: 0, leader: 1, epoch: 0 })
        .put(100, 0, Action::Led { partition: 0, leader: 2, epoch: 1 })
        .end(&ALL);
    assert_eq!(check(&made.0), []);
}

#[test]
fn a_record_of_unknown_outcome_may_be_there_or_not() {
    assert_eq!(clean().end(&ALL[..2]).kinds(), []);
}

#[test]
fn a_lost_write_is_found() {
    assert_eq!(clean().end(&[(0, 1), (2, 3)]).kinds(), [Kind::LostWrite]);
}

#[test]
fn a_lost_write_at_the_end_of_the_log_is_found() {
    assert_eq!(clean().end(&[(0, 1)]).kinds(), [Kind::LostWrite]);
}

#[test]
fn an_acknowledgement_without_an_offset_wants_the_record_somewhere() {
    assert_eq!(clean().send(1, 4, Outcome::Ok, -1001).end(&[(0, 1), (1, 2), (2, 4)]).kinds(), []);
    assert_eq!(clean().send(1, 4, Outcome::Ok, -1001).end(&ALL).kinds(), [Kind::LostWrite]);
}

#[test]
fn a_record_that_was_read_and_is_gone_is_lost() {
    assert_eq!(clean().read(By::Group, 2, 3).end(&ALL[..2]).kinds(), [Kind::LostWrite]);
}

#[test]
fn a_duplicate_is_found_with_idempotence_only() {
    assert_eq!(clean().end(&[(0, 1), (1, 2), (2, 3), (3, 2)]).kinds(), [Kind::Duplicate]);
    assert_eq!(clean().end(&[(0, 1), (1, 2), (2, 3), (3, 3)]).kinds(), []);
}

#[test]
fn two_values_at_one_offset_are_found() {
    let made = clean().send(2, 4, Outcome::Ok, 3).read(By::Group, 3, 3).end(&[(0, 1), (1, 2), (3, 4)]);
    assert_eq!(made.kinds(), [Kind::LostWrite, Kind::InconsistentOffset]);
}

#[test]
fn a_refused_record_that_is_read_is_found() {
    assert_eq!(clean().send(2, 4, Outcome::Fail, -1).end(&[(0, 1), (1, 2), (3, 4)]).kinds(), [Kind::G1a]);
}

#[test]
fn acknowledged_offsets_that_fall_are_found() {
    let made = Made::default().send(1, 1, Outcome::Ok, 5).send(1, 2, Outcome::Ok, 4);
    assert_eq!(made.kinds(), [Kind::NonmonotonicSend]);
    let plain = Made::default().send(2, 1, Outcome::Ok, 5).send(2, 2, Outcome::Ok, 4);
    assert_eq!(plain.kinds(), []);
}

#[test]
fn a_log_in_another_order_than_the_sends_is_found() {
    let made = Made::default().send(1, 1, Outcome::Info, -1).send(1, 2, Outcome::Info, -1);
    assert_eq!(made.end(&[(0, 2), (1, 1)]).kinds(), [Kind::FinalOrder]);
}

#[test]
fn a_poll_that_goes_back_is_found() {
    let made = clean().read(By::Strict, 1, 2).read(By::Strict, 0, 1);
    assert_eq!(made.kinds(), [Kind::NonmonotonicPoll]);
    let again = clean().read(By::Strict, 1, 2).read(By::Strict, 1, 2);
    assert_eq!(again.kinds(), [Kind::NonmonotonicPoll]);
    let sought =
        clean().read(By::Strict, 1, 2).put(9, 0, Action::Seek { partition: 0, offset: 0 }).read(By::Strict, 0, 1);
    assert_eq!(sought.kinds(), []);
}

#[test]
fn a_poll_that_skips_a_record_is_found() {
    let made = clean().read(By::Strict, 0, 1).read(By::Strict, 2, 3);
    assert_eq!(made.kinds(), [Kind::PollSkip]);
    let first = clean().put(9, 0, Action::Seek { partition: 0, offset: 0 }).read(By::Strict, 1, 2);
    assert_eq!(first.kinds(), [Kind::PollSkip]);
}

#[test]
fn an_offset_that_nobody_has_is_no_skip() {
    let made = clean().send(1, 4, Outcome::Ok, 7).read(By::Strict, 1, 2).read(By::Strict, 7, 4);
    assert_eq!(made.kinds(), []);
}

#[test]
fn a_record_that_nobody_sent_is_found() {
    assert_eq!(clean().end(&[(0, 1), (1, 2), (2, 77)]).kinds(), [Kind::Phantom]);
    let elsewhere = clean().put(9, 0, Action::Read { by: By::Group, partition: 4, offset: 0, value: 3 });
    assert_eq!(elsewhere.kinds(), [Kind::Phantom]);
}

#[test]
fn a_committed_offset_that_went_back_is_found() {
    let made = Made::default().commit(10, 5, Outcome::Ok).commit(11, 9, Outcome::Ok).told(12, 5);
    assert_eq!(made.kinds(), [Kind::CommittedOffsetWentBack]);
    assert_eq!(Made::default().commit(10, 5, Outcome::Ok).told(12, -1).kinds(), [Kind::CommittedOffsetWentBack]);
}

#[test]
fn a_commit_that_was_under_way_explains_a_lower_offset() {
    let made = Made::default()
        .put(5, 10, Action::Commit { partition: 0, offset: 5 })
        .commit(11, 9, Outcome::Ok)
        .put(5, 10, Action::Committed { partition: 0, offset: 5, outcome: Outcome::Ok })
        .told(12, 5);
    assert_eq!(made.kinds(), []);
    assert_eq!(Made::default().commit(10, 5, Outcome::Info).commit(11, 9, Outcome::Ok).told(12, 5).kinds(), []);
    let never = Made::default().commit(10, 5, Outcome::Fail).commit(11, 9, Outcome::Ok).told(12, 5);
    assert_eq!(never.kinds(), [Kind::CommittedOffsetWentBack]);
}

#[test]
fn two_leaders_of_one_epoch_are_found() {
    let led = |leader, epoch| Action::Led { partition: 0, leader, epoch };
    let made = Made::default().put(101, 0, led(1, 3)).put(102, 0, led(2, 3));
    assert_eq!(made.kinds(), [Kind::TwoLeadersOneEpoch]);
    assert_eq!(Made::default().put(101, 0, led(1, 3)).put(102, 0, led(-1, 3)).kinds(), []);
}

fn batch(node: i32, base: i64, epoch: i32, crc: u32) -> Action {
    Action::Batch { node, partition: 0, base, last: base, epoch, crc }
}

#[test]
fn a_batch_of_two_epochs_or_of_a_lower_one_is_found() {
    let two = Made::default().put(101, 0, batch(1, 4, 3, 0)).put(102, 0, batch(2, 4, 2, 0));
    assert!(two.kinds().contains(&Kind::TwoLeadersOneEpoch));
    let lower = Made::default().put(101, 0, batch(1, 4, 3, 0)).put(101, 0, batch(1, 5, 2, 0));
    assert_eq!(lower.kinds(), [Kind::TwoLeadersOneEpoch]);
}

#[test]
fn copies_that_differ_are_found() {
    let made = Made::default().put(101, 0, batch(1, 4, 3, 7)).put(102, 0, batch(2, 4, 3, 8));
    assert_eq!(made.kinds(), [Kind::ReplicasDiffer]);
}

#[test]
fn a_high_watermark_that_fell_in_its_epoch_is_found() {
    let high = |epoch, offset| Action::HighWatermark { node: 1, partition: 0, epoch, offset };
    let made = Made::default().put(101, 0, high(3, 10)).put(101, 0, high(3, 9));
    assert_eq!(made.kinds(), [Kind::HwWentBackInEpoch]);
    assert_eq!(Made::default().put(101, 0, high(3, 10)).put(101, 0, high(4, 9)).kinds(), []);
}

#[test]
fn two_owners_in_one_generation_are_found() {
    let given = |generation| Action::Assigned { generation, partitions: vec![0, 1] };
    let made = Made::default().put(5, 0, given(1)).put(6, 0, given(1));
    assert_eq!(made.kinds(), [Kind::DoubleOwnership]);
    assert_eq!(Made::default().put(5, 0, given(1)).put(6, 0, given(2)).kinds(), []);
}
