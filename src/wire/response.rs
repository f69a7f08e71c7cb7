//! What an answer is made of when its record bytes must not be copied: pieces that the connection writes one behind the other.

use std::sync::Arc;

use bytes::Bytes;

use crate::host::DiskFile;

/// A run of bytes of an answer.
#[derive(Clone, Debug)]
pub enum Piece {
    Bytes(Bytes),
    /// A region of a log file; plaintext connections hand it to `sendfile`.
    File {
        file: Arc<dyn DiskFile>,
        position: u64,
        len: usize,
    },
}

impl Piece {
    pub fn len(&self) -> usize {
        match self {
            Piece::Bytes(bytes) => bytes.len(),
            Piece::File { len, .. } => *len,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
