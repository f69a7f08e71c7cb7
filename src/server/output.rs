//! What a connection still has to send: bytes and file regions in order, written with as few calls as the socket takes.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::task::{Context, Poll, ready};

use bytes::Buf;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use tokio::io::Interest;

use crate::api::answer::Response;
use crate::host::net::TcpStream;
use crate::wire::response::Piece;

/// Slices handed to one vectored write.
const SLICES_MAX: usize = 64;

#[derive(Default)]
pub struct Output {
    pieces: VecDeque<Piece>,
}

impl Output {
    pub fn push(&mut self, response: Response) {
        match response {
            Response::Whole(bytes) => self.pieces.push_back(Piece::Bytes(bytes)),
            Response::Pieces(pieces) => self.pieces.extend(pieces.into_iter().filter(|piece| !piece.is_empty())),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Writes as much as the socket takes. Ready when everything is out.
    pub fn poll_flush(&mut self, stream: &TcpStream, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.pieces.is_empty() {
            ready!(stream.poll_write_ready(context))?;
            match stream.try_io(Interest::WRITABLE, || self.write_some(stream.as_fd())) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// One system call's worth.
    fn write_some(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        match self.pieces.front_mut() {
            None => Ok(()),
            Some(Piece::Bytes(_)) => self.write_bytes(socket),
            Some(Piece::File { file, position, len }) => {
                let sent = send_file(socket, file.as_ref(), *position, *len)?;
                if sent == 0 {
                    // The file became shorter than promised: the answer cannot be completed any more.
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                *position += sent as u64;
                *len -= sent;
                if *len == 0 {
                    self.pieces.pop_front();
                }
                Ok(())
            }
        }
    }

    fn write_bytes(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let mut count = 0;
        let mut flags = SendFlags::NOSIGNAL;
        for piece in &self.pieces {
            match piece {
                Piece::Bytes(bytes) if count < SLICES_MAX => {
                    slices[count] = IoSlice::new(bytes);
                    count += 1;
                }
                Piece::Bytes(_) => break,
                Piece::File { .. } => {
                    flags |= SendFlags::MORE;
                    break;
                }
            }
        }
        let sent = sendmsg(socket, &slices[..count], &mut SendAncillaryBuffer::default(), flags)?;
        self.advance(sent);
        Ok(())
    }

    fn advance(&mut self, sent: usize) {
        let mut sent = sent;
        while let Some(Piece::Bytes(bytes)) = self.pieces.front_mut() {
            if sent < bytes.len() {
                bytes.advance(sent);
                return;
            }
            sent -= bytes.len();
            self.pieces.pop_front();
        }
    }
}

/// Sends part of a file region: by `sendfile` where the file has a descriptor, else through a buffer.
fn send_file(socket: BorrowedFd<'_>, file: &dyn crate::host::DiskFile, position: u64, len: usize) -> io::Result<usize> {
    const COPY_BYTES_MAX: usize = 64 * 1024;
    if let Some(descriptor) = file.raw_fd() {
        let mut position = position;
        return Ok(rustix::fs::sendfile(socket, borrowed(descriptor), Some(&mut position), len)?);
    }
    let mut buffer = vec![0; len.min(COPY_BYTES_MAX)];
    let read = file.read_at(&mut buffer, position)?;
    Ok(rustix::net::send(socket, &buffer[..read], SendFlags::NOSIGNAL)?)
}

#[expect(unsafe_code, reason = "the descriptor belongs to the `DiskFile` that the caller borrows for the whole call")]
fn borrowed<'a>(descriptor: std::os::fd::RawFd) -> BorrowedFd<'a> {
    unsafe { BorrowedFd::borrow_raw(descriptor) }
}
