//! Whom this node follows, and when it last heard from it.

use std::time::Duration;

use parking_lot::Mutex;

use crate::base::BrokerId;
use crate::host::task::{Moment, moment};

#[derive(Default)]
pub(super) struct Hearing {
    last: Mutex<Option<(BrokerId, Moment)>>,
}

impl Hearing {
    pub(super) fn heard(&self, leader: BrokerId) {
        *self.last.lock() = Some((leader, moment()));
    }

    /// The leader is known to be gone. What another one has said meanwhile stays.
    pub(super) fn forget(&self, leader: BrokerId) {
        let mut last = self.last.lock();
        if last.is_some_and(|(heard, _)| heard == leader) {
            *last = None;
        }
    }

    pub(super) fn last(&self) -> Option<(BrokerId, Moment)> {
        *self.last.lock()
    }

    /// The leader that was heard within the last `within`.
    pub(super) fn live(&self, within: Duration) -> Option<BrokerId> {
        let (leader, at) = self.last()?;
        (moment().duration_since(at) < within).then_some(leader)
    }
}
