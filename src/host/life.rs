//! One run of a simulated node's process. Every task that the node starts belongs to it, so that a crash ends them all at once, however
//! deep in a library they were started; and what would block on a device takes simulated time in it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::futures::TaskLocalFuture;
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use tracing::instrument::Instrumented;
use tracing::{Instrument, Span};

tokio::task_local! {
    static LIFE: Arc<Life>;
}

/// Finished tasks are forgotten whenever so many have come together.
const SWEEP_AT: usize = 256;

/// How long the next visit to the device takes.
pub type DevicePauses = Box<dyn Fn() -> Duration + Send + Sync>;

pub struct Life {
    tasks: Mutex<Vec<AbortHandle>>,
    ended: AtomicBool,
    /// `Some` while it stands still: whoever would have gone on.
    stopped: Mutex<Option<Vec<Waker>>>,
    device: DevicePauses,
    /// In which everything that the process logs is shown.
    span: Span,
}

/// What a task of a life runs as.
type Lived<F> = Stoppable<TaskLocalFuture<Arc<Life>, Instrumented<F>>>;

/// Does not go on while its life stands still.
struct Stoppable<F> {
    life: Arc<Life>,
    /// Boxed, so that nothing here has to be pinned by hand.
    work: Pin<Box<F>>,
}

impl<F: Future> Future for Stoppable<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        if let Some(waiting) = &mut *self.life.stopped.lock() {
            waiting.push(context.waker().clone());
            return Poll::Pending;
        }
        self.work.as_mut().poll(context)
    }
}

impl Life {
    pub fn new(span: Span, device: DevicePauses) -> Arc<Life> {
        Arc::new(Life {
            tasks: Mutex::default(),
            ended: AtomicBool::new(false),
            stopped: Mutex::default(),
            device,
            span,
        })
    }

    fn lived<F: Future>(self: &Arc<Self>, work: F) -> Lived<F> {
        let work = Box::pin(LIFE.scope(self.clone(), work.instrument(self.span.clone())));
        Stoppable { life: self.clone(), work }
    }

    /// SIGSTOP: none of its tasks goes on, while time and everybody else do.
    pub fn stand_still(&self) {
        self.stopped.lock().get_or_insert_default();
    }

    /// SIGCONT: it goes on as if nothing had been, late.
    pub fn go_on(&self) {
        let waiting = self.stopped.lock().take();
        waiting.into_iter().flatten().for_each(Waker::wake);
    }

    /// Starts the process's first task, on the current `LocalSet`.
    pub fn begin<F>(self: &Arc<Self>, work: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.adopt(tokio::task::spawn_local(self.lived(work)))
    }

    /// The process is gone when this returns: none of its tasks will ever go on, and what they held was dropped.
    pub async fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        loop {
            let tasks = std::mem::take(&mut *self.tasks.lock());
            if tasks.is_empty() {
                return;
            }
            tasks.iter().for_each(AbortHandle::abort);
            while tasks.iter().any(|task| !task.is_finished()) {
                tokio::task::yield_now().await;
            }
        }
    }

    fn adopt<T>(&self, task: JoinHandle<T>) -> JoinHandle<T> {
        self.note(task.abort_handle());
        task
    }

    fn note(&self, task: AbortHandle) {
        if self.ended.load(Ordering::SeqCst) {
            // Started by something that was dropped: it does not begin.
            task.abort();
        }
        let mut tasks = self.tasks.lock();
        if tasks.len() >= SWEEP_AT && tasks.len().is_power_of_two() {
            tasks.retain(|task| !task.is_finished());
        }
        tasks.push(task);
    }
}

fn current() -> Option<Arc<Life>> {
    LIFE.try_with(Arc::clone).ok()
}

/// Starts a task, which belongs to the life that this is called in, if any.
pub fn spawn<F>(work: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    match current() {
        None => tokio::spawn(work),
        Some(life) => life.adopt(tokio::spawn(life.lived(work))),
    }
}

/// The same for a task that goes to a certain runtime.
pub fn spawn_on<F>(runtime: &Handle, work: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    if current().is_some() { spawn(work) } else { runtime.spawn(work) }
}

/// The same for a task that stays on this thread.
pub fn spawn_local<F>(work: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    match current() {
        None => tokio::task::spawn_local(work),
        Some(life) => life.adopt(tokio::task::spawn_local(life.lived(work))),
    }
}

/// The same for a task of a set.
pub fn spawn_into<F>(tasks: &mut JoinSet<F::Output>, work: F)
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    match current() {
        None => drop(tasks.spawn(work)),
        Some(life) => life.note(tasks.spawn(life.lived(work))),
    }
}

/// How long a visit to the device takes where this is called; `None` outside of a life.
pub(super) fn device_pause() -> Option<Duration> {
    LIFE.try_with(|life| (life.device)()).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::host::task::sleep;

    #[tokio::test(start_paused = true)]
    async fn a_life_that_stands_still_goes_on_late_and_misses_nothing() {
        let life = Life::new(Span::none(), Box::new(|| Duration::ZERO));
        let ticks = Arc::new(AtomicU64::new(0));
        let counted = ticks.clone();
        let seconds = |seconds: u64| sleep(Duration::from_millis(seconds * 1_000 + 500));
        let begun = async {
            life.begin(async move {
                loop {
                    sleep(Duration::from_secs(1)).await;
                    counted.fetch_add(1, Ordering::SeqCst);
                }
            });
            seconds(3).await;
            assert_eq!(ticks.load(Ordering::SeqCst), 3);
            life.stand_still();
            seconds(20).await;
            assert_eq!(ticks.load(Ordering::SeqCst), 3, "time goes on without it");
            life.go_on();
            seconds(1).await;
            assert_eq!(ticks.load(Ordering::SeqCst), 5, "what was due at once, and the next in its time");
            life.stand_still();
            life.end().await;
        };
        tokio::task::LocalSet::new().run_until(begun).await;
    }
}
