//! Counts who is inside: a listener that lets a bounded number of connections in and ends those that send nothing for a while.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::host::net::{TcpListener, TcpStream};
use crate::host::task;

/// Open HTTP connections; further ones wait in the kernel's queue.
pub const CONNECTIONS_MAX: usize = 64;

/// A connection that sends nothing for so long is closed. Longer than the usual minute between two scrapes.
const IDLE: Duration = Duration::from_secs(90);

pub struct Doorman {
    listener: TcpListener,
    room: Arc<Semaphore>,
    idle_max: Duration,
}

impl Doorman {
    pub fn new(listener: TcpListener) -> Doorman {
        Doorman::with_idle_max(listener, IDLE)
    }

    fn with_idle_max(listener: TcpListener, idle_max: Duration) -> Doorman {
        Doorman { listener, room: Arc::new(Semaphore::new(CONNECTIONS_MAX)), idle_max }
    }
}

impl Listener for Doorman {
    type Io = Visitor;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Visitor, SocketAddr) {
        let place = self.room.clone().acquire_owned().await.ok();
        // axum's own accept waits out what is wrong with accepting, such as too many open files.
        let (stream, peer) = Listener::accept(&mut self.listener).await;
        let idle = Box::pin(task::sleep(self.idle_max));
        (Visitor { stream, idle, idle_max: self.idle_max, _place: place }, peer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection with its place in the room.
pub struct Visitor {
    stream: TcpStream,
    idle: Pin<Box<task::Sleep>>,
    idle_max: Duration,
    _place: Option<OwnedSemaphorePermit>,
}

impl AsyncRead for Visitor {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_ready() {
            let again = task::sleep(self.idle_max);
            self.idle.set(again);
            return read;
        }
        self.idle.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncWrite for Visitor {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if written.is_ready() {
            return written;
        }
        self.idle.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::io::AsyncReadExt;

    use super::*;

    async fn doorman(idle_max: Duration) -> (Doorman, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (Doorman::with_idle_max(listener, idle_max), address)
    }

    #[tokio::test]
    async fn a_full_room_lets_the_next_one_in_when_one_leaves() {
        let (mut doorman, address) = doorman(IDLE).await;
        let mut clients = Vec::new();
        let mut visitors = Vec::new();
        for _ in 0..CONNECTIONS_MAX {
            clients.push(TcpStream::connect(address).await.unwrap());
            visitors.push(doorman.accept().await.0);
        }
        assert_eq!(doorman.room.available_permits(), 0);
        clients.push(TcpStream::connect(address).await.unwrap());
        let mut next = Box::pin(doorman.accept());
        assert!((&mut next).now_or_never().is_none());
        drop(visitors.pop());
        next.await;
    }

    #[tokio::test]
    async fn a_silent_visitor_is_shown_out() {
        let (mut doorman, address) = doorman(Duration::from_millis(5)).await;
        let _client = TcpStream::connect(address).await.unwrap();
        let (mut visitor, _) = doorman.accept().await;
        let error = visitor.read(&mut [0; 8]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
