//! Counters that threads do not fight over: each thread adds to its own cache lines, a scrape adds them up.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// More lines than this cost memory per topic and buy little.
const SHARDS_MAX: usize = 8;

#[repr(align(64))]
#[derive(Default)]
struct Line<T>(T);

/// One `T` of atomics per group of threads.
pub struct Sharded<T> {
    /// A power of two of them.
    lines: Box<[Line<T>]>,
}

impl<T: Default> Default for Sharded<T> {
    fn default() -> Sharded<T> {
        Sharded { lines: (0..shards()).map(|_| Line::default()).collect() }
    }
}

impl<T> Sharded<T> {
    /// The calling thread's own.
    pub fn here(&self) -> &T {
        &self.lines[thread_number() & (self.lines.len() - 1)].0
    }

    /// The sum over all threads of one counter of `T`.
    pub fn sum(&self, counter: impl Fn(&T) -> &AtomicU64) -> u64 {
        self.lines.iter().map(|line| counter(&line.0).load(Ordering::Relaxed)).fold(0, u64::wrapping_add)
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.lines.iter().map(|line| &line.0)
    }
}

pub fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

fn shards() -> usize {
    static SHARDS: OnceLock<usize> = OnceLock::new();
    *SHARDS.get_or_init(|| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        threads.next_power_of_two().min(SHARDS_MAX)
    })
}

fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    NUMBER.with(|number| {
        if number.get() == usize::MAX {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed) & (SHARDS_MAX - 1));
        }
        number.get()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_many_threads_add_is_summed() {
        let counters: Sharded<AtomicU64> = Sharded::default();
        std::thread::scope(|scope| {
            for _ in 0..10 {
                scope.spawn(|| (0..1000).for_each(|_| add(counters.here(), 2)));
            }
        });
        assert_eq!(counters.sum(|counter| counter), 20_000);
    }
}
