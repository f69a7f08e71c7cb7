//! What a connection still has to send: bytes and file regions in order, written with as few calls as the socket takes.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::task::{Context, Poll, ready};

use bytes::Buf;

use crate::api::answer::Response;
use crate::host::net::Stream;
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
    pub fn poll_flush(&mut self, stream: &mut Stream, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(piece) = self.pieces.front_mut() {
            match piece {
                Piece::Bytes(_) => ready!(self.poll_bytes(stream, context))?,
                Piece::File { file, position, len } => {
                    let sent = ready!(stream.poll_send_file(context, file.as_ref(), *position, *len))?;
                    if sent == 0 {
                        // The file became shorter than promised: the answer cannot be completed any more.
                        return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
                    }
                    *position += sent as u64;
                    *len -= sent;
                    if *len == 0 {
                        self.pieces.pop_front();
                    }
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_bytes(&mut self, stream: &mut Stream, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let mut count = 0;
        let mut file_follows = false;
        for piece in &self.pieces {
            match piece {
                Piece::Bytes(bytes) if count < SLICES_MAX => {
                    slices[count] = IoSlice::new(bytes);
                    count += 1;
                }
                Piece::Bytes(_) => break,
                Piece::File { .. } => {
                    file_follows = true;
                    break;
                }
            }
        }
        let sent = ready!(stream.poll_write_slices(context, &slices[..count], file_follows))?;
        self.advance(sent);
        Poll::Ready(Ok(()))
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
