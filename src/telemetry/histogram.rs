//! A histogram of fixed size: four buckets to every doubling, so a quantile is at most a quarter off. Recording is two atomic
//! additions and takes no memory; quantiles are of the last minute or two, totals of the whole life.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::names::Metric;
use super::page::Page;
use super::shard::{Sharded, add};
use crate::base::MonotonicMs;

/// Values from 2^OCTAVE_MAX on (an hour in microseconds, four GiB in bytes) share the last bucket.
const OCTAVE_MAX: u32 = 32;
const BUCKETS: usize = (OCTAVE_MAX as usize - 1) * 4 + 1;

/// How long a window of the quantiles is; they span the running window and the one before.
const WINDOW_MS: u64 = 60_000;

/// The quantiles that Kafka's own summaries have under the usual exporter rules.
const QUANTILES: [(f64, &str); 6] =
    [(0.5, "0.50"), (0.75, "0.75"), (0.95, "0.95"), (0.98, "0.98"), (0.99, "0.99"), (0.999, "0.999")];

struct Buckets {
    counts: [AtomicU64; BUCKETS],
    sum: AtomicU64,
}

impl Default for Buckets {
    fn default() -> Buckets {
        Buckets { counts: std::array::from_fn(|_| AtomicU64::new(0)), sum: AtomicU64::new(0) }
    }
}

/// Totals at the starts of the windows.
struct Windows {
    before: Box<[u64]>,
    running: Box<[u64]>,
    began: Option<MonotonicMs>,
}

/// A histogram over whole numbers: microseconds, bytes, counts.
pub struct Histogram {
    buckets: Sharded<Buckets>,
    windows: Mutex<Windows>,
}

impl Default for Histogram {
    fn default() -> Histogram {
        let zeros = || vec![0; BUCKETS].into_boxed_slice();
        Histogram {
            buckets: Sharded::default(),
            windows: Mutex::new(Windows { before: zeros(), running: zeros(), began: None }),
        }
    }
}

impl Histogram {
    pub fn record(&self, value: u64) {
        let buckets = self.buckets.here();
        add(&buckets.counts[bucket_of(value)], 1);
        add(&buckets.sum, value);
    }

    pub fn count(&self) -> u64 {
        self.totals().iter().sum()
    }

    pub fn sum(&self) -> u64 {
        self.buckets.sum(|buckets| &buckets.sum)
    }

    /// Starts a new window when the running one is over. Calling more often does no harm.
    pub fn upkeep(&self, now: MonotonicMs) {
        let mut windows = self.windows.lock();
        match windows.began {
            Some(began) if now.saturating_sub(began) < WINDOW_MS => return,
            Some(_) => {
                let totals = self.totals();
                windows.before = std::mem::replace(&mut windows.running, totals);
            }
            None => {}
        }
        windows.began = Some(now);
    }

    /// This one's figures and another's together.
    pub fn merged_with(&self, other: Option<&Histogram>) -> Figures {
        let mut figures = self.figures();
        if let Some(other) = other {
            let more = other.figures();
            figures.sum = figures.sum.wrapping_add(more.sum);
            figures.totals.iter_mut().zip(&more.totals).for_each(|(mine, more)| *mine += more);
            figures.recent.iter_mut().zip(&more.recent).for_each(|(mine, more)| *mine += more);
        }
        figures
    }

    fn figures(&self) -> Figures {
        let totals = self.totals();
        let windows = self.windows.lock();
        let recent = totals.iter().zip(&windows.before).map(|(now, then)| now.saturating_sub(*then)).collect();
        Figures { totals, recent, sum: self.sum() }
    }

    fn totals(&self) -> Box<[u64]> {
        let mut totals = vec![0u64; BUCKETS].into_boxed_slice();
        for shard in self.buckets.iter() {
            for (total, count) in totals.iter_mut().zip(&shard.counts) {
                *total += count.load(Ordering::Relaxed);
            }
        }
        totals
    }
}

/// A histogram's numbers at one moment.
pub struct Figures {
    totals: Box<[u64]>,
    recent: Box<[u64]>,
    sum: u64,
}

impl Figures {
    /// Writes `{quantile}` samples of the last windows with `_sum` and `_count`, each value divided by `per_unit`.
    pub fn write_summary(&self, page: &mut Page, metric: &'static Metric, labels: &[&str], per_unit: f64) {
        for (quantile, text) in QUANTILES {
            page.add_quantile(metric, labels, text, self.quantile(quantile) as f64 / per_unit);
        }
        page.add_summary_end(metric, labels, self.totals.iter().sum(), self.sum as f64 / per_unit);
    }

    /// Writes cumulative buckets at the doublings from `2^octaves.0` to `2^octaves.1`, with `_sum` and `_count`, divided by `per_unit`.
    pub fn write_histogram(
        &self,
        page: &mut Page,
        metric: &'static Metric,
        labels: &[&str],
        octaves: (u32, u32),
        per_unit: f64,
    ) {
        for octave in octaves.0..=octaves.1 {
            let bound = 1u64 << octave;
            let below: u64 = self.totals.iter().take(bucket_of(bound)).sum();
            page.add_bucket(metric, labels, bound as f64 / per_unit, below);
        }
        page.add_bucket_end(metric, labels, self.totals.iter().sum(), self.sum as f64 / per_unit);
    }

    /// The middle of the bucket in which the quantile falls; 0 when nothing was recorded.
    pub fn quantile(&self, quantile: f64) -> u64 {
        let count: u64 = self.recent.iter().sum();
        let rank = (count as f64 * quantile).ceil() as u64;
        let mut seen = 0;
        for (bucket, in_bucket) in self.recent.iter().enumerate() {
            seen += in_bucket;
            if *in_bucket > 0 && seen >= rank {
                return u64::midpoint(lower_bound(bucket), lower_bound(bucket + 1).saturating_sub(1));
            }
        }
        0
    }
}

/// 0 to 3 have a bucket each; above, the two bits behind the leading one choose among the four of an octave.
fn bucket_of(value: u64) -> usize {
    if value < 4 {
        return value as usize;
    }
    let octave = value.ilog2();
    if octave >= OCTAVE_MAX {
        return BUCKETS - 1;
    }
    let quarter = (value >> (octave - 2)) & 3;
    (octave as usize - 1) * 4 + quarter as usize
}

/// The least value of a bucket.
fn lower_bound(bucket: usize) -> u64 {
    if bucket < 4 {
        return bucket as u64;
    }
    let octave = bucket / 4 + 1;
    (4 + (bucket as u64 & 3)) << (octave - 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_meet_without_gap_or_overlap() {
        for bucket in 0..BUCKETS {
            assert_eq!(bucket_of(lower_bound(bucket)), bucket);
            assert_eq!(bucket_of(lower_bound(bucket + 1) - 1), bucket.min(BUCKETS - 1), "bucket {bucket}");
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_a_quarter_off_at_most() {
        let histogram = Histogram::default();
        (1..=10_000).for_each(|value| histogram.record(value));
        let figures = histogram.merged_with(None);
        for (quantile, exact) in [(0.5, 5_000.0), (0.95, 9_500.0), (0.999, 9_990.0)] {
            let ratio = figures.quantile(quantile) as f64 / exact;
            assert!((0.8..1.25).contains(&ratio), "{quantile}: {ratio}");
        }
        assert_eq!((histogram.count(), histogram.sum()), (10_000, 50_005_000));
    }

    #[test]
    fn quantiles_forget_what_is_two_windows_old() {
        let histogram = Histogram::default();
        histogram.upkeep(0);
        histogram.record(1_000_000);
        histogram.upkeep(WINDOW_MS);
        assert!(histogram.merged_with(None).quantile(0.5) > 900_000, "still in the window before");
        histogram.upkeep(WINDOW_MS + 1);
        histogram.upkeep(2 * WINDOW_MS);
        assert_eq!(histogram.merged_with(None).quantile(0.5), 0);
        assert_eq!(histogram.count(), 1, "totals never go back");
    }

    #[test]
    fn nothing_recorded_is_zero() {
        assert_eq!(Histogram::default().merged_with(None).quantile(0.99), 0);
    }
}
