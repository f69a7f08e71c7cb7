//! Tasks and waiting.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::Builder;

use super::life::{device_pause, spawn_local};
pub use super::life::{spawn, spawn_into, spawn_on};

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

/// Runs what may wait for a device on a thread that may. In a simulation ([`block_inline`]) at once, where it stands, or, in the life of
/// a simulated process, a little later, as a device would have it.
///
/// # Panics
/// When `work` itself panics, with the same panic.
#[expect(clippy::disallowed_methods, reason = "this is the seam")]
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    if let Some(pause) = device_pause() {
        let done = spawn(async move {
            sleep(pause).await;
            work()
        });
        return joined(done.await);
    }
    if BLOCKS_INLINE.get() {
        return work();
    }
    joined(tokio::task::spawn_blocking(work).await)
}

fn joined<T>(ended: Result<T, tokio::task::JoinError>) -> T {
    match ended {
        Ok(output) => output,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// In the life of a simulated process, waits as long as the device takes; else not at all. For workers that have no thread of their own.
pub async fn wait_for_device() {
    if let Some(pause) = device_pause() {
        sleep(pause).await;
    }
}

/// How workers run that go on beside everything else: as threads, or, in a simulation, as tasks of the one thread that there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    Threads,
    /// On the current `LocalSet`.
    Tasks,
}

/// A worker that was started.
pub struct Worker(Running);

enum Running {
    Thread(JoinHandle<()>),
    Task(tokio::task::JoinHandle<()>),
}

impl Workers {
    /// Starts a worker that waits for events only; as a thread it has a runtime of its own.
    pub fn start<F>(self, name: &str, work: impl FnOnce() -> F + Send + 'static) -> io::Result<Worker>
    where
        F: Future<Output = ()> + 'static,
    {
        match self {
            Workers::Threads => {
                let runtime = Builder::new_current_thread().enable_all().build()?;
                thread(name, move || runtime.block_on(work()))
            }
            Workers::Tasks => Ok(Worker(Running::Task(spawn_local(work())))),
        }
    }

    /// Starts a worker that blocks where it may have a thread; where it may not, `as_task` does the same work by waiting.
    pub fn start_blocking<F>(
        self,
        name: &str,
        as_thread: impl FnOnce() + Send + 'static,
        as_task: impl FnOnce() -> F,
    ) -> io::Result<Worker>
    where
        F: Future<Output = ()> + 'static,
    {
        match self {
            Workers::Threads => thread(name, as_thread),
            Workers::Tasks => Ok(Worker(Running::Task(spawn_local(as_task())))),
        }
    }
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<Worker> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map(Running::Thread).map(Worker)
}

impl Worker {
    pub fn of_thread(thread: JoinHandle<()>) -> Worker {
        Worker(Running::Thread(thread))
    }

    /// Waits for its end; `false` when it panicked.
    pub async fn ended(self) -> bool {
        match self.0 {
            Running::Thread(thread) => blocking(move || thread.join().is_ok()).await,
            Running::Task(task) => task.await.is_ok(),
        }
    }
}
