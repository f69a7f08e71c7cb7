//! Tasks and waiting.

use std::cell::Cell;
use std::future::Future;
use std::time::Duration;

thread_local! {
    static BLOCKS_INLINE: Cell<bool> = const { Cell::new(false) };
}

/// For a simulation, which has one thread and a clock that nobody may advance meanwhile: from now on, what is given to [`blocking`]
/// on this thread runs on it, in the order in which it was given.
pub fn block_inline() {
    BLOCKS_INLINE.set(true);
}

/// A wait that was begun by [`sleep`].
pub use tokio::time::Sleep;

/// Waits on the monotonic clock.
#[expect(clippy::disallowed_methods, reason = "this is the seam")]
pub fn sleep(duration: Duration) -> Sleep {
    tokio::time::sleep(duration)
}

/// A point on the clock that [`sleep`] waits on.
pub use tokio::time::Instant as Moment;

/// Now, on the clock that [`sleep`] waits on.
pub fn moment() -> Moment {
    Moment::now()
}

/// Waits for a point in time; one that has passed is no wait.
pub fn sleep_until(deadline: Moment) -> Sleep {
    tokio::time::sleep_until(deadline)
}

/// The future's output, or `None` when `duration` passes first.
pub async fn timeout<F: Future>(duration: Duration, future: F) -> Option<F::Output> {
    tokio::select! {
        output = future => Some(output),
        () = sleep(duration) => None,
    }
}

/// Runs what may wait for a device on a thread that may.
///
/// # Panics
/// When `work` itself panics, with the same panic.
#[expect(clippy::disallowed_methods, reason = "this is the seam")]
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    if BLOCKS_INLINE.get() {
        return work();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(output) => output,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
