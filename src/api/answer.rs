//! What a handler gives back to the connection: bytes now, bytes later, nothing, or a reason to hang up.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;

use crate::api::Refused;
use crate::wire::response::Piece;

/// An encoded answer with its length prefix.
#[derive(Debug)]
pub enum Response {
    Whole(Bytes),
    /// In order; record bytes stay in their files.
    Pieces(Vec<Piece>),
}

impl Response {
    pub fn size_bytes(&self) -> usize {
        match self {
            Response::Whole(bytes) => bytes.len(),
            Response::Pieces(pieces) => pieces.iter().map(Piece::len).sum(),
        }
    }
}

pub type LaterAnswer = Pin<Box<dyn Future<Output = Result<Option<Response>, Refused>> + Send>>;

pub enum Answer {
    Now(Response),
    /// Produce with `acks=0` is never answered.
    Nothing,
    /// The work is under way; its answer takes this request's place in the connection's order.
    Later(LaterAnswer),
    Close(Refused),
}
