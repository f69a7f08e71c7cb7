//! Cuts length-prefixed frames out of a read buffer. The declared length is only ever compared with a cap, never used to take
//! memory: the buffer grows with what arrives.

use std::fmt;

use bytes::{Buf, Bytes, BytesMut};

use crate::base::limits::{FIRST_FRAME_BYTES_MAX, READ_CHUNK_BYTES};

const LENGTH_BYTES: usize = 4;

/// The largest frame that a connection may send at this moment, without its length prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLimit {
    pub bytes_max: usize,
    /// Nothing of this connection could be read yet.
    pub is_first: bool,
}

impl FrameLimit {
    /// Before the connection has sent a request that could be read.
    pub fn first(request_bytes_max: usize) -> FrameLimit {
        FrameLimit { bytes_max: request_bytes_max.min(FIRST_FRAME_BYTES_MAX), is_first: true }
    }

    /// Afterwards: `socket.request.max.bytes`.
    pub const fn later(request_bytes_max: usize) -> FrameLimit {
        FrameLimit { bytes_max: request_bytes_max, is_first: false }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    Negative(i32),
    TooLarge { declared: usize, limit: FrameLimit },
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::Negative(declared) => write!(f, "frame declares {declared} bytes"),
            FrameError::TooLarge { declared, limit: FrameLimit { bytes_max, is_first } } => {
                if let Some(other) = spoken(*declared).filter(|_| *is_first) {
                    write!(f, "this looks like {other}; Kafka's protocol is spoken here; ")?;
                }
                write!(f, "frame declares {declared} bytes, at most {bytes_max} are allowed")?;
                if *is_first { f.write_str(" in a connection's first request") } else { Ok(()) }
            }
        }
    }
}

impl std::error::Error for FrameError {}

/// Which other protocol begins with the bytes that were taken for a length.
fn spoken(declared: usize) -> Option<&'static str> {
    const HTTP: &[&[u8; 4]] =
        &[b"GET ", b"POST", b"PUT ", b"HEAD", b"OPTI", b"DELE", b"CONN", b"PATC", b"TRAC", b"PRI "];
    let first = u32::try_from(declared).ok()?.to_be_bytes();
    match first {
        // A handshake record of any version.
        [0x16, 0x03, ..] => Some("TLS"),
        first if HTTP.contains(&&first) => Some("HTTP"),
        _ => None,
    }
}

/// The next whole frame, without its length prefix, sharing the memory of `buffer`. `None` while it is still arriving;
/// an error as soon as the length is seen to be illegal. An empty frame is a frame (its header will be refused).
pub fn next_frame(buffer: &mut BytesMut, limit: FrameLimit) -> Result<Option<Bytes>, FrameError> {
    let Some(length) = declared_length(buffer, limit)? else { return Ok(None) };
    if buffer.len() - LENGTH_BYTES < length {
        return Ok(None);
    }
    buffer.advance(LENGTH_BYTES);
    Ok(Some(buffer.split_to(length).freeze()))
}

/// How much room to make before the next read of the socket: what is missing of the frame at the front, but never more than a chunk
/// beyond what has already arrived, so that memory stays in proportion to what the peer really sent.
pub fn read_room_bytes(buffer: &BytesMut, limit: FrameLimit) -> Result<usize, FrameError> {
    let missing = match declared_length(buffer, limit)? {
        Some(length) => (LENGTH_BYTES + length).saturating_sub(buffer.len()),
        None => READ_CHUNK_BYTES,
    };
    Ok(missing.clamp(READ_CHUNK_BYTES, READ_CHUNK_BYTES.max(buffer.len())))
}

fn declared_length(buffer: &BytesMut, limit: FrameLimit) -> Result<Option<usize>, FrameError> {
    let Some(prefix) = buffer.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
    let declared = i32::from_be_bytes(*prefix);
    let length = usize::try_from(declared).map_err(|_| FrameError::Negative(declared))?;
    if length > limit.bytes_max {
        return Err(FrameError::TooLarge { declared: length, limit });
    }
    Ok(Some(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: FrameLimit = FrameLimit { bytes_max: 100, is_first: false };

    fn buffer(bytes: &[u8]) -> BytesMut {
        BytesMut::from(bytes)
    }

    #[test]
    fn frames_come_out_whole_whatever_the_pieces() {
        let stream = [0, 0, 0, 3, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 1, 9];
        for step in 1..=stream.len() {
            let (mut buffer, mut frames) = (BytesMut::new(), Vec::new());
            for piece in stream.chunks(step) {
                buffer.extend_from_slice(piece);
                while let Some(frame) = next_frame(&mut buffer, LIMIT).unwrap() {
                    frames.push(frame.to_vec());
                }
            }
            assert_eq!(frames, [vec![1, 2, 3], vec![], vec![9]], "pieces of {step}");
            assert!(buffer.is_empty());
        }
    }

    #[test]
    fn illegal_lengths_are_refused_before_the_body_arrives() {
        for declared in [-1, i32::MIN] {
            let mut buffer = buffer(&declared.to_be_bytes());
            assert_eq!(next_frame(&mut buffer, LIMIT), Err(FrameError::Negative(declared)));
        }
        for declared in [101, 0x4745_5420, i32::MAX] {
            let mut buffer = buffer(&declared.to_be_bytes());
            let error = FrameError::TooLarge { declared: declared as usize, limit: LIMIT };
            assert_eq!(next_frame(&mut buffer, LIMIT), Err(error));
            assert_eq!(read_room_bytes(&buffer, LIMIT), Err(error));
        }
        assert_eq!(next_frame(&mut buffer(&[0, 0, 0]), LIMIT), Ok(None));
    }

    #[test]
    fn other_protocols_are_recognised_by_their_first_bytes() {
        let told = |bytes: &[u8], limit| next_frame(&mut buffer(bytes), limit).unwrap_err().to_string();
        let first = FrameLimit::first(100 << 20);
        assert!(told(b"GET / HTTP/1.1", first).starts_with("this looks like HTTP; "));
        assert!(told(b"\x16\x03\x01\x02\x00", first).starts_with("this looks like TLS; "));
        let large = told(&(3i32 << 20).to_be_bytes(), first);
        assert_eq!(large, "frame declares 3145728 bytes, at most 2097152 are allowed in a connection's first request");
        assert!(told(b"GET / HTTP/1.1", FrameLimit::later(100)).starts_with("frame declares"));
    }

    #[test]
    fn a_frame_shares_the_memory_of_the_read_buffer() {
        let mut buffer = buffer(&[0, 0, 0, 2, 7, 8]);
        let body = buffer.as_ptr().wrapping_add(4);
        assert_eq!(next_frame(&mut buffer, LIMIT).unwrap().unwrap().as_ptr(), body);
    }

    #[test]
    fn room_grows_with_what_arrived_not_with_what_was_declared() {
        let limit = FrameLimit::later(100 << 20);
        let mut buffer = buffer(&(90i32 << 20).to_be_bytes());
        assert_eq!(read_room_bytes(&buffer, limit), Ok(READ_CHUNK_BYTES));
        buffer.resize(1 << 20, 0);
        assert_eq!(read_room_bytes(&buffer, limit), Ok(1 << 20));
        assert_eq!(FrameLimit::first(100 << 20).bytes_max, FIRST_FRAME_BYTES_MAX);
    }
}
