//! One end of a simulated connection.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::ReadBuf;
use tokio::time::{Instant, Sleep};

use super::Shared;
use super::pipe::{Found, Pipe};
use crate::host::DiskFile;

/// Bytes of a file that are sent at once.
const FILE_BYTES_MAX: usize = 64 * 1024;

pub struct SimStream {
    net: Arc<Shared>,
    incoming: Arc<Pipe>,
    outgoing: Arc<Pipe>,
    local: SocketAddr,
    peer: SocketAddr,
    /// Rings when bytes that are under way arrive.
    arrival: Option<Pin<Box<Sleep>>>,
}

impl SimStream {
    pub(super) fn new(
        net: Arc<Shared>,
        incoming: Arc<Pipe>,
        outgoing: Arc<Pipe>,
        local: SocketAddr,
        peer: SocketAddr,
    ) -> SimStream {
        SimStream { net, incoming, outgoing, local, peer, arrival: None }
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    pub fn peer_addr(&self) -> SocketAddr {
        self.peer
    }

    pub fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let is_cut = self.net.is_cut(self.incoming.from(), self.incoming.to(), self.incoming.port());
            let at = match self.incoming.read(buffer, is_cut, context)? {
                Found::Bytes | Found::End => return Poll::Ready(Ok(())),
                Found::Nothing => return Poll::Pending,
                Found::Later(at) => at,
            };
            let arrival = self.arrival.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
            if arrival.deadline() != at {
                arrival.as_mut().reset(at);
            }
            if arrival.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
    }

    pub fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let arrival = self.arrival_time();
        let written = self.outgoing.poll_write(bytes, arrival, context);
        if let Poll::Ready(Ok(count)) = &written {
            self.net.note_sent(self.outgoing.from(), self.outgoing.to(), bytes.get(..*count).unwrap_or_default());
        }
        written
    }

    pub fn poll_write_slices(&mut self, context: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        match slices.iter().find(|slice| !slice.is_empty()) {
            Some(slice) => self.poll_write(context, slice),
            None => Poll::Ready(Ok(0)),
        }
    }

    pub fn poll_send_file(
        &mut self,
        context: &mut Context<'_>,
        file: &dyn DiskFile,
        position: u64,
        len: usize,
    ) -> Poll<io::Result<usize>> {
        let mut buffer = vec![0; len.min(FILE_BYTES_MAX)];
        let read = file.read_at(&mut buffer, position)?;
        if read == 0 {
            return Poll::Ready(Ok(0));
        }
        self.poll_write(context, &buffer[..read])
    }

    /// When what is sent now arrives.
    fn arrival_time(&self) -> Instant {
        let way = &self.outgoing;
        Instant::now() + self.net.latency(way.from(), way.to(), way.port())
    }

    /// No more is sent from this end.
    pub fn finish(&self) {
        self.outgoing.finish(self.arrival_time());
    }
}

impl Drop for SimStream {
    fn drop(&mut self) {
        self.finish();
        self.incoming.desert();
    }
}
