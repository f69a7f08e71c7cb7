//! One direction of a simulated connection.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes};
use parking_lot::Mutex;
use tokio::io::ReadBuf;
use tokio::time::Instant;

/// What a sender may have under way before it has to wait, as a socket's buffers would hold.
const BYTES_MAX: usize = 256 * 1024;

pub struct Pipe {
    from: IpAddr,
    to: IpAddr,
    /// The connection's door.
    port: u16,
    flow: Mutex<Flow>,
}

#[derive(Default)]
struct Flow {
    /// With the time of arrival, which never goes back.
    chunks: VecDeque<(Instant, Bytes)>,
    bytes: usize,
    /// Nothing comes behind what is there.
    finished: Option<Instant>,
    /// The reader is gone: what is written is answered with a reset.
    deserted: bool,
    reset: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// What a reader finds.
pub enum Found {
    Bytes,
    End,
    /// Something arrives then.
    Later(Instant),
    Nothing,
}

impl Pipe {
    pub fn new(from: IpAddr, to: IpAddr, port: u16) -> Arc<Pipe> {
        Arc::new(Pipe { from, to, port, flow: Mutex::default() })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn from(&self) -> IpAddr {
        self.from
    }

    pub fn to(&self) -> IpAddr {
        self.to
    }

    pub fn is_between(&self, one: IpAddr, other: IpAddr) -> bool {
        (self.from, self.to) == (one, other) || (self.from, self.to) == (other, one)
    }

    pub fn touches(&self, ip: IpAddr) -> bool {
        self.from == ip || self.to == ip
    }

    /// Takes what has arrived. Whoever finds nothing is woken when that changes.
    pub fn read(&self, buffer: &mut ReadBuf<'_>, is_cut: bool, context: &Context<'_>) -> io::Result<Found> {
        let mut flow = self.flow.lock();
        if flow.reset {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        flow.reader = Some(context.waker().clone());
        let next = flow.chunks.front().map(|(at, _)| *at).or(flow.finished);
        let Some(at) = next.filter(|_| !is_cut) else { return Ok(Found::Nothing) };
        if at > Instant::now() {
            return Ok(Found::Later(at));
        }
        let Some((_, chunk)) = flow.chunks.front_mut() else { return Ok(Found::End) };
        let count = chunk.len().min(buffer.remaining());
        buffer.put_slice(&chunk[..count]);
        chunk.advance(count);
        let is_empty = chunk.is_empty();
        if is_empty {
            flow.chunks.pop_front();
        }
        flow.bytes -= count;
        flow.writer.take().into_iter().for_each(Waker::wake);
        Ok(Found::Bytes)
    }

    pub fn poll_write(&self, bytes: &[u8], arrival: Instant, context: &Context<'_>) -> Poll<io::Result<usize>> {
        let mut flow = self.flow.lock();
        if flow.reset || flow.deserted {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let count = bytes.len().min(BYTES_MAX.saturating_sub(flow.bytes));
        if count == 0 && !bytes.is_empty() {
            flow.writer = Some(context.waker().clone());
            return Poll::Pending;
        }
        let arrival = flow.chunks.back().map_or(arrival, |(last, _)| arrival.max(*last));
        flow.chunks.push_back((arrival, Bytes::copy_from_slice(&bytes[..count])));
        flow.bytes += count;
        flow.reader.take().into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(count))
    }

    /// The writer has nothing more to say.
    pub fn finish(&self, arrival: Instant) {
        let mut flow = self.flow.lock();
        let arrival = flow.chunks.back().map_or(arrival, |(last, _)| arrival.max(*last));
        flow.finished.get_or_insert(arrival);
        flow.reader.take().into_iter().for_each(Waker::wake);
    }

    /// The reader does not listen any more.
    pub fn desert(&self) {
        let mut flow = self.flow.lock();
        flow.deserted = true;
        flow.writer.take().into_iter().for_each(Waker::wake);
    }

    /// Both ends are told that the connection broke.
    pub fn reset(&self) {
        self.flow.lock().reset = true;
        self.wake();
    }

    /// Lets both ends look again.
    pub fn wake(&self) {
        let mut flow = self.flow.lock();
        let wakers = [flow.reader.take(), flow.writer.take()];
        drop(flow);
        wakers.into_iter().flatten().for_each(Waker::wake);
    }
}
