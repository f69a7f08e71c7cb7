//! The real network: this machine's TCP.

use std::io::{self, IoSlice};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::task::{Context, Poll, ready};

use futures_util::future::BoxFuture;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpStream};

use crate::base::NodeAddress;
use crate::host::DiskFile;
use crate::host::net::{Accepted, Detached, ListenOptions, Listener, Net, Stream};

/// Bytes copied at once where a file has no descriptor.
const COPY_BYTES_MAX: usize = 64 * 1024;

/// The machine's network.
pub struct RealNet;

impl Net for RealNet {
    fn bind(&self, address: SocketAddr, options: ListenOptions) -> io::Result<Listener> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        if address.is_ipv6() {
            socket.set_only_v6(false)?;
        }
        socket.bind(&address.into())?;
        socket.listen(options.backlog)?;
        socket.set_nonblocking(true)?;
        Ok(Listener::Tcp(TcpDoor { listener: TcpListener::from_std(socket.into())?, options }))
    }

    fn connect(&self, address: &NodeAddress) -> BoxFuture<'static, io::Result<Stream>> {
        let address = address.clone();
        Box::pin(async move {
            let stream = TcpStream::connect((address.host.as_str(), address.port)).await?;
            stream.set_nodelay(true)?;
            Ok(Stream::Tcp(stream))
        })
    }

    fn resolve(&self, host: &str, port: u16) -> io::Result<SocketAddr> {
        let mut addresses = (host, port).to_socket_addrs()?;
        addresses.next().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("{host} has no address")))
    }

    fn host_name(&self) -> String {
        rustix::system::uname().nodename().to_string_lossy().into_owned()
    }
}

/// A listening socket.
pub struct TcpDoor {
    listener: TcpListener,
    options: ListenOptions,
}

impl TcpDoor {
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    pub async fn accept(&self) -> io::Result<Accepted> {
        let (stream, peer) = self.listener.accept().await?;
        let local = stream.local_addr()?;
        let stream = stream.into_std()?;
        self.tune(&stream)?;
        Ok(Accepted { stream: Detached::Tcp(stream), peer, local })
    }

    fn tune(&self, stream: &std::net::TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let socket = SockRef::from(stream);
        if let Some(after) = self.options.keepalive_after {
            socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(after))?;
        }
        if let Some(bytes) = self.options.send_buffer_bytes {
            socket.set_send_buffer_size(bytes)?;
        }
        if let Some(bytes) = self.options.receive_buffer_bytes {
            socket.set_recv_buffer_size(bytes)?;
        }
        Ok(())
    }
}

pub fn poll_write_slices(
    stream: &TcpStream,
    context: &mut Context<'_>,
    slices: &[IoSlice<'_>],
    more: bool,
) -> Poll<io::Result<usize>> {
    let flags = if more { SendFlags::NOSIGNAL | SendFlags::MORE } else { SendFlags::NOSIGNAL };
    poll_write(stream, context, |socket| Ok(sendmsg(socket, slices, &mut SendAncillaryBuffer::default(), flags)?))
}

pub fn poll_send_file(
    stream: &TcpStream,
    context: &mut Context<'_>,
    file: &dyn DiskFile,
    position: u64,
    len: usize,
) -> Poll<io::Result<usize>> {
    poll_write(stream, context, |socket| send_file(socket, file, position, len))
}

/// Tries until the socket takes something or says that it is full.
fn poll_write(
    stream: &TcpStream,
    context: &mut Context<'_>,
    mut write: impl FnMut(BorrowedFd<'_>) -> io::Result<usize>,
) -> Poll<io::Result<usize>> {
    loop {
        ready!(stream.poll_write_ready(context))?;
        match stream.try_io(Interest::WRITABLE, || write(stream.as_fd())) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            done => return Poll::Ready(done),
        }
    }
}

/// Sends part of a file region: by `sendfile` where the file has a descriptor, else through a buffer.
fn send_file(socket: BorrowedFd<'_>, file: &dyn DiskFile, position: u64, len: usize) -> io::Result<usize> {
    if let Some(descriptor) = file.raw_fd() {
        let mut position = position;
        return Ok(rustix::fs::sendfile(socket, borrowed(descriptor), Some(&mut position), len)?);
    }
    let mut buffer = vec![0; len.min(COPY_BYTES_MAX)];
    let read = file.read_at(&mut buffer, position)?;
    Ok(rustix::net::send(socket, &buffer[..read], SendFlags::NOSIGNAL)?)
}

#[expect(unsafe_code, reason = "the descriptor belongs to the `DiskFile` that the caller borrows for the whole call")]
fn borrowed<'a>(descriptor: RawFd) -> BorrowedFd<'a> {
    unsafe { BorrowedFd::borrow_raw(descriptor) }
}
