//! What becomes of the in-sync sets of the partitions led here.

use std::sync::atomic::{AtomicU64, Ordering};

use super::names;
use super::page::Page;
use super::shard::add;

#[derive(Default)]
pub struct ReplicationMetrics {
    isr_shrinks: AtomicU64,
    isr_expands: AtomicU64,
    failed_isr_updates: AtomicU64,
}

impl ReplicationMetrics {
    /// The controller took replicas that were behind out of a set, as their leader here asked.
    pub fn isr_shrunk(&self) {
        add(&self.isr_shrinks, 1);
    }

    pub fn isr_expanded(&self) {
        add(&self.isr_expands, 1);
    }

    /// The controller refused a change.
    pub fn isr_update_failed(&self) {
        add(&self.failed_isr_updates, 1);
    }

    pub(super) fn write(&self, page: &mut Page) {
        for (metric, counter) in [
            (&names::ISR_SHRINKS, &self.isr_shrinks),
            (&names::ISR_EXPANDS, &self.isr_expands),
            (&names::FAILED_ISR_UPDATES, &self.failed_isr_updates),
        ] {
            page.add(metric, &[], counter.load(Ordering::Relaxed) as f64);
        }
    }
}
