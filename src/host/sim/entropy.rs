//! The simulated randomness.

//! Randomness from a seed: the same seed, the same bytes.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::host::Entropy;

/// Numbers that follow from a seed (SplitMix64).
pub struct SimEntropy(AtomicU64);

impl SimEntropy {
    pub fn new(seed: u64) -> SimEntropy {
        SimEntropy(AtomicU64::new(seed))
    }

    pub fn next_u64(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self.0.fetch_add(STEP, Ordering::SeqCst).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 for 0.
    pub fn below(&self, bound: u64) -> u64 {
        self.next_u64().checked_rem(bound).unwrap_or(0)
    }
}

impl Entropy for SimEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let random = self.next_u64().to_le_bytes();
            chunk.iter_mut().zip(random).for_each(|(place, byte)| *place = byte);
        }
    }
}
