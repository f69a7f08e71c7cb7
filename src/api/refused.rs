//! The reason for closing a connection instead of answering, and the log line of a request that was refused.

use std::borrow::Cow;
use std::fmt;

use crate::api::{Broker, ConnectionInfo, RequestContext};
use crate::telemetry::{Reason, Refusal};
use crate::wire::table::lookup;

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

/// Counts and logs a refused request, one line in a while for the same peer, API and reason. `context` is `None` where not even the
/// request's header could be read.
pub fn report(
    broker: &Broker,
    connection: &ConnectionInfo,
    context: Option<&RequestContext>,
    reason: Reason,
    detail: &dyn fmt::Display,
) {
    let software = connection.software.get();
    let refusal = Refusal {
        peer: connection.peer,
        listener: &connection.listener,
        client_id: context.and_then(|context| context.client_id.as_deref()),
        software_name: software.map(|software| &*software.name),
        software_version: software.map(|software| &*software.version),
        api_key: context.map(|context| context.api_key),
        api_name: context.and_then(|context| lookup(context.api_key)).map(|api| api.name),
        api_version: context.map(|context| context.api_version),
        reason,
        detail,
    };
    broker.telemetry.refusals.refuse(&refusal, broker.host.clock.monotonic_ms());
}

/// As [`report`], for a request that is answered with an error that its sender cannot mend by trying again.
pub fn report_answered(broker: &Broker, context: &RequestContext, reason: Reason, detail: &dyn fmt::Display) {
    report(broker, &context.connection, Some(context), reason, detail);
}
