//! What the Raft library needs of a runtime. Every wait goes through the seam, and nothing is random here: when to campaign is
//! decided by the quorum with the host's entropy, so that a simulated run can be repeated.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use openraft::async_runtime::{AsyncOneshotSendExt, AsyncRuntime};
use rand::RngCore;
use tokio::sync::oneshot;

use super::task;

/// The shortest time an RPC gets. The library derives its timeouts from the heartbeat interval and the leader lease, which
/// the quorum keeps short for other reasons; a slow disk behind an RPC needs more.
const RPC_TIMEOUT_MIN: Duration = Duration::from_millis(1000);

#[derive(Debug, Default, PartialEq, Eq)]
pub struct HostRuntime;

#[derive(Debug)]
pub struct TimedOut;

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("timed out")
    }
}

impl Error for TimedOut {}

/// A future with a deadline.
pub struct Timeout<F> {
    future: Pin<Box<F>>,
    sleep: Pin<Box<task::Sleep>>,
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, TimedOut>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(output) = self.future.as_mut().poll(context) {
            return Poll::Ready(Ok(output));
        }
        self.sleep.as_mut().poll(context).map(|()| Err(TimedOut))
    }
}

pub struct OneshotSender<T>(oneshot::Sender<T>);

impl<T> fmt::Debug for OneshotSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OneshotSender")
    }
}

impl<T: Send> AsyncOneshotSendExt<T> for OneshotSender<T> {
    fn send(self, value: T) -> Result<(), T> {
        self.0.send(value)
    }
}

/// Numbers that are always the same. The library asks for randomness only to choose an election timeout, which is not used.
pub struct NoRandomness(u64);

impl RngCore for NoRandomness {
    fn next_u32(&mut self) -> u32 {
        let [a, b, c, d, ..] = self.next_u64().to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }

    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let random = self.next_u64().to_le_bytes();
            chunk.iter_mut().zip(random).for_each(|(place, byte)| *place = byte);
        }
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), rand::Error> {
        self.fill_bytes(bytes);
        Ok(())
    }
}

impl AsyncRuntime for HostRuntime {
    type JoinError = tokio::task::JoinError;
    type JoinHandle<T: Send + 'static> = tokio::task::JoinHandle<T>;
    type Sleep = task::Sleep;
    type Instant = task::Moment;
    type TimeoutError = TimedOut;
    type Timeout<R, F: Future<Output = R> + Send> = Timeout<F>;
    type ThreadLocalRng = NoRandomness;
    type OneshotSender<T: Send> = OneshotSender<T>;
    type OneshotReceiverError = oneshot::error::RecvError;
    type OneshotReceiver<T: Send> = oneshot::Receiver<T>;

    fn spawn<T>(future: T) -> Self::JoinHandle<T::Output>
    where
        T: Future + Send + 'static,
        T::Output: Send + 'static,
    {
        task::spawn(future)
    }

    fn sleep(duration: Duration) -> Self::Sleep {
        task::sleep(duration)
    }

    fn sleep_until(deadline: Self::Instant) -> Self::Sleep {
        task::sleep_until(deadline)
    }

    fn timeout<R, F: Future<Output = R> + Send>(duration: Duration, future: F) -> Self::Timeout<R, F> {
        Timeout { future: Box::pin(future), sleep: Box::pin(task::sleep(duration.max(RPC_TIMEOUT_MIN))) }
    }

    fn timeout_at<R, F: Future<Output = R> + Send>(deadline: Self::Instant, future: F) -> Self::Timeout<R, F> {
        Timeout { future: Box::pin(future), sleep: Box::pin(task::sleep_until(deadline)) }
    }

    fn is_panic(error: &Self::JoinError) -> bool {
        error.is_panic()
    }

    fn thread_rng() -> Self::ThreadLocalRng {
        NoRandomness(0)
    }

    fn oneshot<T: Send>() -> (Self::OneshotSender<T>, Self::OneshotReceiver<T>) {
        let (sender, receiver) = oneshot::channel();
        (OneshotSender(sender), receiver)
    }
}
