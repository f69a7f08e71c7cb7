//! Where compressed bytes go: a buffer with an end. What does not fit stops the work instead of growing memory.

use std::io::{self, ErrorKind, Write};

/// A buffer that refuses to grow beyond `bytes_max`, with [`ErrorKind::StorageFull`].
#[derive(Debug)]
pub(in crate::records) struct Sink {
    bytes: Vec<u8>,
    bytes_max: usize,
}

impl Sink {
    /// A sink that begins with `front`, which counts.
    pub fn new(front: Vec<u8>, bytes_max: usize) -> Sink {
        Sink { bytes: front, bytes_max }
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.bytes_max.saturating_sub(self.bytes.len()) {
            return Err(ErrorKind::StorageFull.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
