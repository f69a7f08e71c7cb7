//! What a handler gives back to the connection: bytes now, bytes later, nothing, or a reason to hang up.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;

use crate::wire::response::Response;

/// A request that is answered by closing the connection. The connection logs the reason once, with peer, client and API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub reason: Cow<'static, str>,
}

impl Refused {
    pub fn new(reason: impl Into<Cow<'static, str>>) -> Refused {
        Refused { reason: reason.into() }
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
