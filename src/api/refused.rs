//! The reason for closing a connection instead of answering.

use std::borrow::Cow;

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
