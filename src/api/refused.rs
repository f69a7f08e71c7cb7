//! The reason for closing a connection instead of answering.

use std::borrow::Cow;

use crate::telemetry::Reason;

/// A request that is answered by closing the connection. The connection logs it once, with peer, client and API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Labels a metric.
    pub reason: Reason,
    /// What was got and what was expected.
    pub detail: Cow<'static, str>,
}

impl Refused {
    /// A well-formed request that breaks a rule.
    pub fn new(detail: impl Into<Cow<'static, str>>) -> Refused {
        Refused::because(Reason::InvalidRequest, detail)
    }

    pub fn because(reason: Reason, detail: impl Into<Cow<'static, str>>) -> Refused {
        Refused { reason, detail: detail.into() }
    }
}
