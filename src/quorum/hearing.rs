//! Whom this node follows, and when it last heard from it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::base::BrokerId;
use crate::host::task::{Moment, moment};

#[derive(Default)]
pub(super) struct Hearing {
    last: Mutex<Option<(BrokerId, Moment)>>,
    /// Campaigns of this node since there was last a leader.
    campaigns: AtomicU32,
}

impl Hearing {
    pub(super) fn heard(&self, leader: BrokerId) {
        *self.last.lock() = Some((leader, moment()));
        self.campaigns.store(0, Ordering::Relaxed);
    }

    /// Counts a campaign; answers how many were before it.
    pub(super) fn count_campaign(&self) -> u32 {
        self.campaigns.fetch_add(1, Ordering::Relaxed)
    }

    /// This node leads.
    pub(super) fn note_leading(&self) {
        self.campaigns.store(0, Ordering::Relaxed);
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
