//! What the disks do: syncs, removed segments.

use std::sync::atomic::{AtomicU64, Ordering};

use super::histogram::Histogram;
use super::names;
use super::page::Page;
use super::shard::add;
use crate::base::MonotonicMs;

/// Buckets of `barnabas_flush_seconds`: from 64 us to 34 s.
const SECONDS_OCTAVES: (u32, u32) = (6, 25);

/// All log directories' events together.
#[derive(Default)]
pub struct DiskMetrics {
    flush_micros: Histogram,
    flush_failures: AtomicU64,
    flushed_appends: AtomicU64,
    segments_deleted: AtomicU64,
    scrubbed_bytes: AtomicU64,
    damaged_batches: AtomicU64,
    damaged_copies: AtomicU64,
}

impl DiskMetrics {
    /// One group commit: how long its sync took and how many appends waited for it.
    pub fn flushed(&self, nanos: u64, appends: u64) {
        self.flush_micros.record(nanos / 1000);
        add(&self.flushed_appends, appends);
    }

    pub fn flush_failed(&self) {
        add(&self.flush_failures, 1);
    }

    pub fn segments_deleted(&self, count: u64) {
        add(&self.segments_deleted, count);
    }

    /// So many bytes of logs were compared with their checksums.
    pub fn scrubbed(&self, bytes: u64) {
        add(&self.scrubbed_bytes, bytes);
    }

    /// A batch was not what had been written.
    pub fn damage_found(&self) {
        add(&self.damaged_batches, 1);
    }

    /// How many copies are damaged now and not rebuilt yet.
    pub fn damaged_copies(&self, count: u64) {
        self.damaged_copies.store(count, Ordering::Relaxed);
    }

    pub(super) fn upkeep(&self, now: MonotonicMs) {
        self.flush_micros.upkeep(now);
    }

    pub(super) fn write(&self, page: &mut Page) {
        let micros = self.flush_micros.merged_with(None);
        micros.write_summary(page, &names::FLUSH_TIME, &[], 1e3);
        micros.write_histogram(page, &names::FLUSH_SECONDS, &[], SECONDS_OCTAVES, 1e6);
        for (metric, counter) in [
            (&names::FLUSH_FAILURES, &self.flush_failures),
            (&names::FLUSHED_APPENDS, &self.flushed_appends),
            (&names::SEGMENTS_DELETED, &self.segments_deleted),
            (&names::SCRUBBED_BYTES, &self.scrubbed_bytes),
            (&names::DAMAGED_BATCHES, &self.damaged_batches),
            (&names::DAMAGED_COPIES, &self.damaged_copies),
        ] {
            page.add(metric, &[], counter.load(Ordering::Relaxed) as f64);
        }
    }
}
