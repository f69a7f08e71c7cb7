//! Tickets of requests that wait until what they wrote is committed: one ticket per request, counting the partitions that have not
//! reported yet, and remembering how each of them ended.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;

/// Why what a claim waits for will not be reported as committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AckFailure {
    #[error("another node leads the partition now")]
    NotLeader,
    #[error("fewer replicas are in sync than min.insync.replicas asks for")]
    NotEnoughReplicas,
    #[error("it took longer than the request allows")]
    TimedOut,
    #[error("the log directory failed")]
    Storage,
}

/// Claims that are kept track of without a lock.
const QUICK_CLAIMS: usize = 64;

/// Shared between the request that waits and the partitions that will release it. The maker numbers what it appends; a number that is
/// never claimed had nothing to wait for.
#[derive(Debug, Default)]
pub struct AckTicket {
    /// Claims not reported yet, and one for the maker until the ticket is sealed.
    open: AtomicUsize,
    /// One bit for each of the first numbers that were claimed, and one for each that succeeded.
    claimed: AtomicU64,
    done: AtomicU64,
    /// Failures, and all claims with high numbers.
    slow: Mutex<BTreeMap<usize, Result<(), AckFailure>>>,
    /// Some claim waits for other nodes and not only for this one's disk.
    waits_for_replicas: AtomicBool,
    waker: AtomicWaker,
}

impl AckTicket {
    /// A ticket that holds one claim for its maker: see [`AckTicket::seal`].
    pub fn new() -> Arc<AckTicket> {
        Arc::new(AckTicket { open: AtomicUsize::new(1), ..AckTicket::default() })
    }

    /// One more partition has to report before the request is answered.
    pub fn claim(&self, number: usize, waits_for_replicas: bool) {
        self.open.fetch_add(1, Ordering::Relaxed);
        if number < QUICK_CLAIMS {
            self.claimed.fetch_or(1 << number, Ordering::Relaxed);
        } else {
            self.slow.lock().insert(number, Err(AckFailure::TimedOut));
        }
        if waits_for_replicas {
            self.waits_for_replicas.store(true, Ordering::Relaxed);
        }
    }

    /// A claimed partition reports: its records are as safe as the policy asks, or are not known to become so.
    pub fn release(&self, number: usize, outcome: Result<(), AckFailure>) {
        if number < QUICK_CLAIMS && outcome.is_ok() {
            self.done.fetch_or(1 << number, Ordering::Relaxed);
        } else {
            self.slow.lock().insert(number, outcome);
        }
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.waker.wake();
        }
    }

    /// The maker has claimed all there is to claim. `true` when nothing is left to wait for.
    pub fn seal(&self) -> bool {
        self.open.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Completes when every claim was released.
    pub fn wait(self: Arc<Self>) -> AckWait {
        AckWait(self)
    }

    pub fn waits_for_replicas(&self) -> bool {
        self.waits_for_replicas.load(Ordering::Relaxed)
    }

    /// How what the maker calls `number` ended; [`AckFailure::TimedOut`] when it was claimed and has not reported.
    pub fn outcome(&self, number: usize) -> Result<(), AckFailure> {
        if number < QUICK_CLAIMS {
            let bit = 1 << number;
            let claimed = self.claimed.load(Ordering::Acquire) & bit != 0;
            if !claimed || self.done.load(Ordering::Acquire) & bit != 0 {
                return Ok(());
            }
            return self.slow_outcome(number).unwrap_or(Err(AckFailure::TimedOut));
        }
        self.slow_outcome(number).unwrap_or(Ok(()))
    }

    fn slow_outcome(&self, number: usize) -> Option<Result<(), AckFailure>> {
        self.slow.lock().get(&number).copied()
    }

    /// Whether everything claimed has succeeded. Quick when nothing failed.
    pub fn has_succeeded(&self) -> bool {
        self.claimed.load(Ordering::Acquire) == self.done.load(Ordering::Acquire)
            && self.slow.lock().values().all(Result::is_ok)
    }

    fn is_done(&self) -> bool {
        self.open.load(Ordering::Acquire) == 0
    }
}

/// The waiting side of a ticket.
#[derive(Debug)]
pub struct AckWait(Arc<AckTicket>);

impl Future for AckWait {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if !self.0.is_done() {
            self.0.waker.register(context.waker());
            if !self.0.is_done() {
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll_once(wait: &mut AckWait) -> Poll<()> {
        Pin::new(wait).poll(&mut Context::from_waker(std::task::Waker::noop()))
    }

    #[test]
    fn a_ticket_completes_after_its_last_claim() {
        let ticket = AckTicket::new();
        ticket.claim(0, false);
        ticket.claim(1, false);
        assert!(!ticket.seal());
        let mut wait = ticket.clone().wait();
        assert_eq!(poll_once(&mut wait), Poll::Pending);
        ticket.release(1, Ok(()));
        assert_eq!(poll_once(&mut wait), Poll::Pending);
        ticket.release(0, Ok(()));
        assert_eq!(poll_once(&mut wait), Poll::Ready(()));
        assert!(ticket.has_succeeded());
    }

    #[test]
    fn one_failed_claim_fails_the_ticket() {
        for failures in [&[AckFailure::NotLeader][..], &[AckFailure::Storage, AckFailure::NotLeader]] {
            let ticket = AckTicket::new();
            ticket.claim(0, false);
            ticket.release(0, Ok(()));
            for (number, failure) in (1..).zip(failures) {
                ticket.claim(number, false);
                ticket.release(number, Err(*failure));
            }
            assert!(ticket.seal());
            assert_eq!(poll_once(&mut ticket.clone().wait()), Poll::Ready(()));
            assert!(!ticket.has_succeeded());
            assert_eq!(ticket.outcome(0), Ok(()));
            assert_eq!(ticket.outcome(1), Err(failures[0]));
        }
    }

    #[test]
    fn each_claim_has_its_own_outcome() {
        let ticket = AckTicket::new();
        for number in (0..70).filter(|number| *number != 5) {
            ticket.claim(number, true);
        }
        for number in (0..69).filter(|number| ![3, 5, 65].contains(number)) {
            ticket.release(number, Ok(()));
        }
        ticket.release(3, Err(AckFailure::NotLeader));
        ticket.release(65, Err(AckFailure::Storage));
        assert!(!ticket.seal());
        let outcomes = [0, 3, 5, 64, 65, 69].map(|number| ticket.outcome(number));
        let expected = [
            Ok(()),
            Err(AckFailure::NotLeader),
            Ok(()), // was never claimed
            Ok(()),
            Err(AckFailure::Storage),
            Err(AckFailure::TimedOut), // has not reported
        ];
        assert_eq!(outcomes, expected);
        assert!(!ticket.has_succeeded() && ticket.waits_for_replicas());
    }
}
