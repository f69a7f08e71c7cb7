//! Choices from a seed.

use std::ops::Range;
use std::time::Duration;

use crate::host::sim::SimEntropy;

/// One source of choices. Every part of a run has its own, so that one part's choices do not shift another's.
pub struct Dice(SimEntropy);

impl Dice {
    pub fn new(seed: u64, part: u64) -> Dice {
        let mixed = SimEntropy::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ part.rotate_left(32));
        Dice(SimEntropy::new(mixed.next_u64()))
    }

    pub fn below(&self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    pub fn index(&self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap()
    }

    pub fn between(&self, range: Range<u64>) -> u64 {
        range.start + self.below(range.end.saturating_sub(range.start))
    }

    pub fn ms(&self, range: Range<u64>) -> Duration {
        Duration::from_micros(self.between(range.start * 1_000..range.end * 1_000))
    }

    /// True once in so many times.
    pub fn one_in(&self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub fn pick<'a, T>(&self, among: &'a [T]) -> &'a T {
        &among[self.index(among.len())]
    }
}
