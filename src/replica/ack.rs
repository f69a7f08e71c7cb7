//! Tickets of requests that wait for the disk: one ticket per request, counting the partitions that are still to be synced.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;

/// Why what a request waits for will never be safe here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AckFailure {
    #[error("the partition is not served here any more")]
    NotLeader,
    #[error("the log directory failed")]
    Storage,
}

/// Shared between the request that waits and the partitions that will release it.
#[derive(Debug, Default)]
pub struct AckTicket {
    open: AtomicUsize,
    /// Some claim ended with [`AckFailure::NotLeader`], some with [`AckFailure::Storage`].
    not_led: AtomicBool,
    storage_failed: AtomicBool,
    waker: AtomicWaker,
}

impl AckTicket {
    /// A ticket that holds one claim for its maker: see [`AckTicket::seal`].
    pub fn new() -> Arc<AckTicket> {
        Arc::new(AckTicket { open: AtomicUsize::new(1), ..AckTicket::default() })
    }

    /// One more partition has to report before the request is answered.
    pub fn claim(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    /// A claimed partition reports: its records are as durable as the policy asks, or never will be.
    pub fn release(&self, outcome: Result<(), AckFailure>) {
        match outcome {
            Ok(()) => {}
            Err(AckFailure::NotLeader) => self.not_led.store(true, Ordering::Relaxed),
            Err(AckFailure::Storage) => self.storage_failed.store(true, Ordering::Relaxed),
        }
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.waker.wake();
        }
    }

    /// The maker has claimed all there is to claim. `true` when nothing is left to wait for.
    pub fn seal(&self) -> bool {
        self.open.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Completes when every claim was released, with the worst of their failures.
    pub fn wait(self: Arc<Self>) -> AckWait {
        AckWait(self)
    }

    /// Whether a claim was released without its records being safe, and why.
    pub fn failure(&self) -> Option<AckFailure> {
        if self.storage_failed.load(Ordering::Relaxed) {
            Some(AckFailure::Storage)
        } else {
            self.not_led.load(Ordering::Relaxed).then_some(AckFailure::NotLeader)
        }
    }

    fn is_done(&self) -> bool {
        self.open.load(Ordering::Acquire) == 0
    }
}

/// The waiting side of a ticket.
#[derive(Debug)]
pub struct AckWait(Arc<AckTicket>);

impl Future for AckWait {
    type Output = Result<(), AckFailure>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if !self.0.is_done() {
            self.0.waker.register(context.waker());
            if !self.0.is_done() {
                return Poll::Pending;
            }
        }
        Poll::Ready(self.0.failure().map_or(Ok(()), Err))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll_once(wait: &mut AckWait) -> Poll<Result<(), AckFailure>> {
        Pin::new(wait).poll(&mut Context::from_waker(std::task::Waker::noop()))
    }

    #[test]
    fn a_ticket_completes_after_its_last_claim() {
        let ticket = AckTicket::new();
        ticket.claim();
        ticket.claim();
        assert!(!ticket.seal());
        let mut wait = ticket.clone().wait();
        assert_eq!(poll_once(&mut wait), Poll::Pending);
        ticket.release(Ok(()));
        assert_eq!(poll_once(&mut wait), Poll::Pending);
        ticket.release(Ok(()));
        assert_eq!(poll_once(&mut wait), Poll::Ready(Ok(())));
    }

    #[test]
    fn one_failed_claim_fails_the_ticket() {
        for failures in [&[AckFailure::NotLeader][..], &[AckFailure::Storage, AckFailure::NotLeader]] {
            let ticket = AckTicket::new();
            ticket.claim();
            ticket.release(Ok(()));
            for failure in failures {
                ticket.claim();
                ticket.release(Err(*failure));
            }
            assert!(ticket.seal());
            assert_eq!(poll_once(&mut ticket.wait()), Poll::Ready(Err(failures[0])), "the worst one is told");
        }
    }
}
