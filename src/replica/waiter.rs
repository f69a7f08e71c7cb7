//! Waiting for news of any of several partitions: one waiter per request, registered with each partition it asks for.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::Poll;

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;

/// Woken when one of the partitions it is registered with moved.
#[derive(Debug, Default)]
pub struct Waiter {
    moved: AtomicBool,
    waker: AtomicWaker,
}

impl Waiter {
    pub fn new() -> Arc<Waiter> {
        Arc::new(Waiter::default())
    }

    pub fn wake(&self) {
        self.moved.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Completes at the next news and forgets it, so that it can be awaited again.
    pub async fn moved(&self) {
        poll_fn(|context| {
            if self.moved.swap(false, Ordering::AcqRel) {
                return Poll::Ready(());
            }
            self.waker.register(context.waker());
            if self.moved.swap(false, Ordering::AcqRel) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

/// A partition's side: who wants to hear of it. A registration lasts until the first news.
#[derive(Debug, Default)]
pub struct Waiters {
    any: AtomicBool,
    list: Mutex<Vec<Weak<Waiter>>>,
}

impl Waiters {
    pub fn register(&self, waiter: &Arc<Waiter>) {
        let mut list = self.list.lock();
        // Requests that gave up leave dead entries behind; sweeping when the list would grow keeps it in proportion.
        if list.len() == list.capacity() {
            list.retain(|waiter| waiter.strong_count() > 0);
        }
        list.push(Arc::downgrade(waiter));
        self.any.store(true, Ordering::SeqCst);
    }

    /// Wakes everybody who registered since the last news.
    pub fn wake_all(&self) {
        if !self.any.load(Ordering::SeqCst) {
            return;
        }
        let woken = {
            let mut list = self.list.lock();
            self.any.store(false, Ordering::SeqCst);
            std::mem::take(&mut *list)
        };
        for waiter in woken.iter().filter_map(Weak::upgrade) {
            waiter.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    fn is_ready(waiter: &Waiter) -> bool {
        pin!(waiter.moved()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn news_before_the_wait_is_not_lost() {
        let (waiters, waiter) = (Waiters::default(), Waiter::new());
        waiters.register(&waiter);
        waiters.wake_all();
        assert!(is_ready(&waiter));
        assert!(!is_ready(&waiter), "news is told once");
    }

    #[test]
    fn a_registration_lasts_until_the_first_news() {
        let (waiters, waiter) = (Waiters::default(), Waiter::new());
        waiters.register(&waiter);
        waiters.wake_all();
        assert!(is_ready(&waiter));
        waiters.wake_all();
        assert!(!is_ready(&waiter));
    }

    #[test]
    fn abandoned_registrations_do_not_pile_up() {
        let waiters = Waiters::default();
        for _ in 0..10_000 {
            waiters.register(&Waiter::new());
        }
        assert!(waiters.list.lock().capacity() < 64);
    }
}
