//! The network seam: listeners and streams as the rest of the broker sees them, with this machine's TCP behind them or a network in
//! memory ([`super::sim::SimNet`]). The way of the bytes stays short: one vectored write or one `sendfile` a call, reads into the
//! caller's buffer.
//!
//! HTTP ([`TcpListener`], [`TcpStream`]) does without the seam: simulations have no operator.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
pub use tokio::net::{TcpListener, TcpStream};

use super::DiskFile;
use super::real::net as real;
use super::sim::net as sim;
use crate::base::NodeAddress;

/// What a machine can do on its network.
pub trait Net: Send + Sync {
    /// Listens at once; must be called inside a runtime.
    fn bind(&self, address: SocketAddr, options: ListenOptions) -> io::Result<Listener>;

    /// Connects to another node. Dropping the future gives up.
    fn connect(&self, address: &NodeAddress) -> BoxFuture<'static, io::Result<Stream>>;

    /// The first address of a name that is to be listened on. May block for a moment; for the start only.
    fn resolve(&self, host: &str, port: u16) -> io::Result<SocketAddr>;

    /// What this machine calls itself.
    fn host_name(&self) -> String;
}

/// Options of a listener and of the connections that it accepts; `None` leaves the system's choice.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListenOptions {
    /// Connections that may wait to be accepted.
    pub backlog: i32,
    pub send_buffer_bytes: Option<usize>,
    pub receive_buffer_bytes: Option<usize>,
    /// A silent peer is asked whether it is still there after this long.
    pub keepalive_after: Option<Duration>,
}

/// A bound listener.
pub enum Listener {
    Tcp(real::TcpDoor),
    Sim(sim::SimListener),
}

impl Listener {
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Listener::Tcp(door) => door.local_addr(),
            Listener::Sim(listener) => Ok(listener.local_addr()),
        }
    }

    /// The next connection, with its options set. May be cancelled.
    pub async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Listener::Tcp(door) => door.accept().await,
            Listener::Sim(listener) => listener.accept().await,
        }
    }
}

/// A connection on its way to the runtime that will serve it.
pub struct Accepted {
    pub stream: Detached,
    pub peer: SocketAddr,
    pub local: SocketAddr,
}

/// A stream that no runtime watches.
pub enum Detached {
    Tcp(std::net::TcpStream),
    Sim(Box<sim::SimStream>),
}

impl Detached {
    /// Hands the stream to the runtime this is called in.
    pub fn attach(self) -> io::Result<Stream> {
        match self {
            Detached::Tcp(stream) => TcpStream::from_std(stream).map(Stream::Tcp),
            Detached::Sim(stream) => Ok(Stream::Sim(stream)),
        }
    }
}

/// A connection.
pub enum Stream {
    Tcp(TcpStream),
    Sim(Box<sim::SimStream>),
}

impl Stream {
    /// One system call's worth of these slices; ready with how many bytes it took. With `more`, further bytes follow at once.
    pub fn poll_write_slices(
        &mut self,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
        more: bool,
    ) -> Poll<io::Result<usize>> {
        match self {
            Stream::Tcp(stream) => real::poll_write_slices(stream, context, slices, more),
            Stream::Sim(stream) => stream.poll_write_slices(context, slices),
        }
    }

    /// One system call's worth of a region of a file; ready with how many bytes were sent, 0 when the file ends before `position`.
    pub fn poll_send_file(
        &mut self,
        context: &mut Context<'_>,
        file: &dyn DiskFile,
        position: u64,
        len: usize,
    ) -> Poll<io::Result<usize>> {
        match self {
            Stream::Tcp(stream) => real::poll_send_file(stream, context, file, position, len),
            Stream::Sim(stream) => stream.poll_send_file(context, file, position, len),
        }
    }

    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Stream::Tcp(stream) => stream.peer_addr(),
            Stream::Sim(stream) => Ok(stream.peer_addr()),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut *self {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Sim(stream) => stream.poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut *self {
            Stream::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Sim(stream) => stream.poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Neither twin holds anything back.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Stream::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Sim(stream) => {
                stream.finish();
                Poll::Ready(Ok(()))
            }
        }
    }
}
