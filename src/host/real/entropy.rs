//! Real randomness, from the kernel.

use crate::host::Entropy;

/// The kernel's random numbers.
pub struct RealEntropy;

impl Entropy for RealEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        let mut filled = 0;
        while filled < bytes.len() {
            match rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
                Ok(count) => filled += count,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => unreachable!("getrandom cannot fail with a valid buffer: {error}"),
            }
        }
    }
}
