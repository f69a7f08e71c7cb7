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
pub const CONNECTIONS_MAX: usize = 256;

/// How long a connection may stay.
#[derive(Clone, Copy)]
struct Patience {
    /// From its start, or from the first byte of a request, to the answer: whoever sends half a request must not hold a place.
    request: Duration,
    /// Between an answer and the next request. Longer than the usual minute between two scrapes.
    between: Duration,
}

const PATIENCE: Patience = Patience { request: Duration::from_secs(5), between: Duration::from_secs(90) };

pub struct Doorman {
    listener: TcpListener,
    room: Arc<Semaphore>,
    patience: Patience,
}

impl Doorman {
    pub fn new(listener: TcpListener) -> Doorman {
        Doorman::with_patience(listener, PATIENCE)
    }

    fn with_patience(listener: TcpListener, patience: Patience) -> Doorman {
        Doorman { listener, room: Arc::new(Semaphore::new(CONNECTIONS_MAX)), patience }
    }
}

impl Listener for Doorman {
    type Io = Visitor;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Visitor, SocketAddr) {
        let place = self.room.clone().acquire_owned().await.ok();
        // axum's own accept waits out what is wrong with accepting, such as too many open files.
        let (stream, peer) = Listener::accept(&mut self.listener).await;
        let deadline = Box::pin(task::sleep(self.patience.request));
        (Visitor { stream, deadline, asking: true, patience: self.patience, _place: place }, peer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection with its place in the room.
pub struct Visitor {
    stream: TcpStream,
    deadline: Pin<Box<task::Sleep>>,
    /// A request has begun and is not answered yet.
    asking: bool,
    patience: Patience,
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
            // Further bytes of the same request win no time.
            if !self.asking {
                self.asking = true;
                let deadline = task::sleep(self.patience.request);
                self.deadline.set(deadline);
            }
            return read;
        }
        self.deadline.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncWrite for Visitor {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if written.is_ready() {
            self.asking = false;
            let deadline = task::sleep(self.patience.between);
            self.deadline.set(deadline);
            return written;
        }
        self.deadline.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
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
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    async fn doorman(patience: Patience) -> (Doorman, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (Doorman::with_patience(listener, patience), address)
    }

    #[tokio::test]
    async fn a_full_room_lets_the_next_one_in_when_one_leaves() {
        let (mut doorman, address) = doorman(PATIENCE).await;
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
        let patience = Patience { request: Duration::from_millis(5), ..PATIENCE };
        let (mut doorman, address) = doorman(patience).await;
        let _client = TcpStream::connect(address).await.unwrap();
        let (mut visitor, _) = doorman.accept().await;
        let error = visitor.read(&mut [0; 8]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn bytes_that_trickle_in_win_no_time() {
        let patience = Patience { request: Duration::from_millis(40), ..PATIENCE };
        let (mut doorman, address) = doorman(patience).await;
        let mut client = TcpStream::connect(address).await.unwrap();
        let (mut visitor, _) = doorman.accept().await;
        let trickle = async {
            loop {
                if client.write_all(b"G").await.is_err() {
                    break;
                }
                task::sleep(Duration::from_millis(1)).await;
            }
        };
        let reading = async {
            loop {
                if let Err(error) = visitor.read(&mut [0; 8]).await {
                    break error.kind();
                }
                // Nothing there for a moment: that is when the deadline is looked at.
            }
        };
        tokio::select! {
            () = trickle => panic!("the client was not to give up"),
            ended = reading => assert_eq!(ended, io::ErrorKind::TimedOut),
        }
    }

    #[tokio::test]
    async fn an_answered_visitor_may_be_silent_for_longer() {
        let patience = Patience { request: Duration::ZERO, between: Duration::from_secs(60) };
        let (mut doorman, address) = doorman(patience).await;
        let _client = TcpStream::connect(address).await.unwrap();
        let (mut visitor, _) = doorman.accept().await;
        visitor.write_all(b"answer").await.unwrap();
        assert!(visitor.read(&mut [0; 8]).now_or_never().is_none());
    }
}
