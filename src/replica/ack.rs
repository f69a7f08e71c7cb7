//! Tickets of requests that wait for the disk: one ticket per request, counting the partitions that are still to be synced.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;

/// Shared between the request that waits and the partitions that will release it.
#[derive(Debug, Default)]
pub struct AckTicket {
    open: AtomicUsize,
    failed: AtomicBool,
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
    pub fn release(&self, durable: bool) {
        if !durable {
            self.failed.store(true, Ordering::Relaxed);
        }
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.waker.wake();
        }
    }

    /// The maker has claimed all there is to claim. `true` when nothing is left to wait for.
    pub fn seal(&self) -> bool {
        self.open.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Completes when every claim was released; `false` when one of them failed.
    pub fn wait(self: Arc<Self>) -> AckWait {
        AckWait(self)
    }

    /// Whether a claim was released without its records being safe.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    fn is_done(&self) -> bool {
        self.open.load(Ordering::Acquire) == 0
    }
}

/// The waiting side of a ticket.
#[derive(Debug)]
pub struct AckWait(Arc<AckTicket>);

impl Future for AckWait {
    type Output = bool;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<bool> {
        if !self.0.is_done() {
            self.0.waker.register(context.waker());
            if !self.0.is_done() {
                return Poll::Pending;
            }
        }
        Poll::Ready(!self.0.has_failed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll_once(wait: &mut AckWait) -> Poll<bool> {
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
        ticket.release(true);
        assert_eq!(poll_once(&mut wait), Poll::Pending);
        ticket.release(true);
        assert_eq!(poll_once(&mut wait), Poll::Ready(true));
    }

    #[test]
    fn one_failed_claim_fails_the_ticket() {
        let ticket = AckTicket::new();
        ticket.claim();
        ticket.claim();
        ticket.release(false);
        ticket.release(true);
        assert!(ticket.seal());
        assert_eq!(poll_once(&mut ticket.wait()), Poll::Ready(false));
    }
}
