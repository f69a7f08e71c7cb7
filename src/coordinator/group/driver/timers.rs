//! All deadlines of all groups in one ordered set, and a bell for when the earliest moves forward.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::base::{MonotonicMs, PartitionIndex};

/// Which group of which partition of `__consumer_offsets` is to be ticked, ordered by when.
type Deadline = (MonotonicMs, PartitionIndex, Arc<str>);

#[derive(Debug, Default)]
pub struct Timers {
    deadlines: Mutex<BTreeSet<Deadline>>,
    earlier: Notify,
}

impl Timers {
    pub fn arm(
        &self,
        partition: PartitionIndex,
        group: Arc<str>,
        at_ms: MonotonicMs,
        instead_of_ms: Option<MonotonicMs>,
    ) {
        let mut deadlines = self.deadlines.lock();
        if let Some(superseded_ms) = instead_of_ms {
            deadlines.remove(&(superseded_ms, partition, group.clone()));
        }
        let is_earliest = deadlines.first().is_none_or(|(earliest_ms, ..)| at_ms < *earliest_ms);
        deadlines.insert((at_ms, partition, group));
        drop(deadlines);
        if is_earliest {
            self.earlier.notify_one();
        }
    }

    pub fn earliest_ms(&self) -> Option<MonotonicMs> {
        self.deadlines.lock().first().map(|(at_ms, ..)| *at_ms)
    }

    /// Takes out one deadline that has come.
    pub fn pop_due(&self, now_ms: MonotonicMs) -> Option<(PartitionIndex, Arc<str>)> {
        let mut deadlines = self.deadlines.lock();
        if deadlines.first().is_none_or(|(at_ms, ..)| *at_ms > now_ms) {
            return None;
        }
        deadlines.pop_first().map(|(_, partition, group)| (partition, group))
    }

    /// Resolves when a deadline was set that is earlier than all others.
    pub async fn earlier_set(&self) {
        self.earlier.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_come_in_order_and_once() {
        let timers = Timers::default();
        timers.arm(0, "late".into(), 30, None);
        timers.arm(0, "soon".into(), 10, None);
        timers.arm(1, "late".into(), 20, Some(40));
        assert_eq!(timers.earliest_ms(), Some(10));
        assert_eq!(timers.pop_due(9), None);
        assert_eq!(timers.pop_due(20), Some((0, "soon".into())));
        assert_eq!(timers.pop_due(20), Some((1, "late".into())));
        assert_eq!(timers.pop_due(20), None);
    }

    #[test]
    fn an_earlier_deadline_takes_the_place_of_a_later_one() {
        let timers = Timers::default();
        timers.arm(0, "g".into(), 30, None);
        timers.arm(0, "g".into(), 10, Some(30));
        assert_eq!(timers.pop_due(100), Some((0, "g".into())));
        assert_eq!(timers.pop_due(100), None);
    }
}
