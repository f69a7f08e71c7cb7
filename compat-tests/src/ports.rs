//! Free ports below the range that the kernel hands to outgoing connections, so that nothing takes one between choosing and using it.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

const FIRST: u32 = 10_500;
const COUNT: u32 = 20_000;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A port that nobody listens on and that this process has not been given before.
pub fn free() -> u16 {
    for _ in 0..COUNT {
        // Processes start far apart, so that two test binaries at once rarely look at the same port.
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + (std::process::id().wrapping_mul(997).wrapping_add(step)) % COUNT;
        let port = u16::try_from(port).unwrap_or(u16::MAX);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no free port between {FIRST} and {}", FIRST + COUNT);
}
