//! Reading frames off a socket without holding memory for connections that are silent.
//!
//! A connection owns a buffer only while a frame is partly there; otherwise it reads into the buffer that its shard's connections
//! share. Large frames get a buffer of the size the last one had, so that a steady producer's bytes are read once, into place.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use tokio_util::io::poll_read_buf;

use crate::base::limits::READ_CHUNK_BYTES;
use crate::host::net::Stream;
use crate::wire::frame::{FrameError, FrameLimit, next_frame, read_room_bytes};

/// Frames above this size are read into a buffer of their own.
const LARGE_FRAME_BYTES: usize = READ_CHUNK_BYTES / 2;

thread_local! {
    /// The buffer that connections without a partial frame read into.
    static SHARED: RefCell<BytesMut> = RefCell::new(BytesMut::new());
}

#[derive(Default)]
pub struct Input {
    /// What was read and is not a whole frame yet.
    pending: BytesMut,
    /// `pending` holds on to more memory than its own: the shard's buffer, or a frame that stood before it.
    pins_more: bool,
    /// The size of the last frame if it was a large one, else 0.
    large_frame_bytes: usize,
}

impl Input {
    /// Reads once. Ready with the number of bytes, 0 when the peer closed its side.
    pub fn poll_read(
        &mut self,
        stream: &mut Stream,
        limit: FrameLimit,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if self.pending.len() < LARGE_FRAME_BYTES && self.large_frame_bytes == 0 {
            return self.poll_read_shared(stream, context);
        }
        self.reserve(limit);
        let count = poll_read_buf(Pin::new(stream), context, &mut self.pending);
        if !matches!(count, Poll::Ready(Ok(_))) && self.pending.is_empty() {
            self.pending = BytesMut::new();
        }
        count
    }

    /// Reads by way of the shard's buffer: a connection that sends little at a time keeps no room for more.
    fn poll_read_shared(&mut self, stream: &mut Stream, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        SHARED.with_borrow_mut(|shared| {
            shared.reserve(READ_CHUNK_BYTES);
            let count = ready!(poll_read_buf(Pin::new(stream), context, shared))?;
            let read = shared.split();
            if self.pending.is_empty() {
                self.pending = read;
                self.pins_more = true;
            } else {
                self.pending.extend_from_slice(&read);
            }
            Poll::Ready(Ok(count))
        })
    }

    /// Room for the rest of the frame that is partly there. Grows with what has arrived; only as far as the last frame really went
    /// is room made at once.
    fn reserve(&mut self, limit: FrameLimit) {
        // An illegal length is reported by `next_frame`; here it only means that nothing need be read.
        let room = read_room_bytes(&self.pending, limit).unwrap_or(READ_CHUNK_BYTES);
        let usual = self.large_frame_bytes.saturating_sub(self.pending.len());
        let wanted =
            if self.large_frame_bytes > 0 && self.pending.len() < self.large_frame_bytes { usual } else { room };
        if self.pending.capacity() - self.pending.len() < wanted {
            self.pending.reserve(wanted);
        }
    }

    /// The next whole frame, without its length prefix.
    pub fn next_frame(&mut self, limit: FrameLimit) -> Result<Option<Bytes>, FrameError> {
        let frame = next_frame(&mut self.pending, limit)?;
        match &frame {
            Some(frame) => {
                self.large_frame_bytes = if frame.len() > LARGE_FRAME_BYTES { frame.len() + 4 } else { 0 };
                self.pins_more = true;
                if self.pending.is_empty() {
                    self.pending = BytesMut::new();
                }
            }
            None if self.pending.is_empty() => self.pending = BytesMut::new(),
            None => self.own_partial(),
        }
        Ok(frame)
    }

    /// A partial frame must not pin other memory. What comes in small pieces is not copied with each of them.
    fn own_partial(&mut self) {
        if self.pins_more && self.pending.len() < LARGE_FRAME_BYTES && self.large_frame_bytes == 0 {
            self.pending = BytesMut::from(&self.pending[..]);
            self.pins_more = false;
        }
    }
}
