//! The process's own randomness, taken away: hash maps and the runtime take their seeds from `getrandom`, which the standard library lets
//! a program replace. While a run is on, it gives numbers that follow from nothing but their order.

use std::sync::atomic::{AtomicU64, Ordering};

use super::SimEntropy;
use crate::host::Entropy;

/// Counts the calls of a run; 0 while there is none.
static CALLS: AtomicU64 = AtomicU64::new(0);

/// From now on nothing in this process is random. Begin a thread afterwards: what hash maps do is decided once in each.
pub fn take_randomness_away() {
    CALLS.store(1, Ordering::SeqCst);
}

/// # Safety
/// As the system's own: `buffer` has room for `length` bytes.
#[expect(unsafe_code, reason = "replaces a function of the C library, in tests only")]
#[unsafe(no_mangle)]
unsafe extern "C" fn getrandom(buffer: *mut libc::c_void, length: libc::size_t, flags: libc::c_uint) -> libc::ssize_t {
    let call = CALLS.load(Ordering::SeqCst);
    if call == 0 {
        // SAFETY: the arguments are passed on as they came.
        let got = unsafe { libc::syscall(libc::SYS_getrandom, buffer, length, flags) };
        return libc::ssize_t::try_from(got).unwrap_or(-1);
    }
    CALLS.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the caller says that there is room.
    let room = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length) };
    SimEntropy::new(call).fill(room);
    libc::ssize_t::try_from(length).unwrap_or(-1)
}
