//! What of a partition's log is on the device, and what a sync has to see to.

use std::sync::atomic::Ordering;

use crate::base::{MonotonicMs, Offset};
use crate::replica::partition::Partition;

/// Everything before a byte of a segment, and below the offset that belongs there, is durable: in the file or in the flush journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncMark {
    pub segment_base: Offset,
    pub position: u64,
    pub up_to: Offset,
    /// Which cut of the log it was taken after: it says nothing of a log that was cut since.
    pub cut: u64,
}

impl Partition {
    pub fn is_dirty(&self) -> bool {
        self.dirty.load(Ordering::Acquire)
    }

    /// How long the housekeeper has known that something here is not synced.
    pub(super) fn dirty_for_ms(&self, now: MonotonicMs) -> u64 {
        match self.dirty_since_ms.compare_exchange(0, now.max(1), Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => 0,
            Err(since) => now.saturating_sub(since),
        }
    }

    /// A sync begins: what is appended from now on is dirty again.
    pub(super) fn begin_flush(&self) {
        self.flush_queued.store(false, Ordering::Release);
        self.dirty.store(false, Ordering::Release);
        self.dirty_since_ms.store(0, Ordering::Relaxed);
    }

    pub(super) fn sync_mark(&self) -> Option<SyncMark> {
        *self.sync_mark.lock()
    }

    /// What the mark says is on the device. Releases who waited for that.
    pub(super) fn set_sync_mark(&self, mark: SyncMark) {
        {
            let mut current = self.sync_mark.lock();
            if mark.cut != self.cuts.load(Ordering::SeqCst) {
                return;
            }
            *current = Some(mark);
            self.durable_below.fetch_max(mark.up_to, Ordering::SeqCst);
        }
        self.settle_acks();
    }

    /// The log ends at `end` now, and what is known of the device is only known below. Called under the lock of `slot`.
    pub(super) fn note_cut(&self, end: Offset) {
        self.cuts.fetch_add(1, Ordering::SeqCst);
        let mut current = self.sync_mark.lock();
        *current = None;
        self.durable_below.fetch_min(end, Ordering::SeqCst);
        self.high_watermark.fetch_min(end, Ordering::SeqCst);
    }

    /// Everything below `end` is on the device.
    pub(super) fn note_durable(&self, end: Offset) {
        self.durable_below.fetch_max(end, Ordering::SeqCst);
    }

    /// Everything below is on the device.
    pub fn durable_below(&self) -> Offset {
        self.durable_below.load(Ordering::SeqCst)
    }

    /// Whether everything below `offset` is on the device.
    pub fn is_durable(&self, offset: Offset) -> bool {
        self.durable_below.load(Ordering::Acquire) >= offset
    }

    /// Whether `flush.messages` asks for a sync: of the records below `end`, as many as it says are not on the device.
    pub fn flush_is_due(&self, end: Offset) -> bool {
        let flush_messages = self.config.load().flush_messages;
        flush_messages < i64::MAX && end.saturating_sub(self.durable_below()) >= flush_messages
    }

    /// Lets the device begin with what the next sync will ask for.
    pub(super) fn start_writeback(&self) {
        // A hint: what goes wrong here goes wrong again in the sync, which reports it.
        if let Some(Ok(writeback)) = self.with_open_log(|log| log.writeback()) {
            writeback.start();
        }
    }
}
