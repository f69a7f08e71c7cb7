//! The one log line of a connection that was closed by us.

use std::sync::Arc;

use crate::api::Broker;
use crate::api::context::{ConnectionInfo, RequestContext};
use crate::server::connection::End;
use crate::telemetry::{Reason, Refusal};
use crate::wire::table::lookup;

/// Reports an end that the peer did not choose.
pub fn report(broker: &Broker, info: &Arc<ConnectionInfo>, end: &End) {
    match end {
        End::Refused { context, refused } => {
            say(broker, info, context.as_deref(), refused.reason, &refused.detail);
        }
        End::Idle => say(broker, info, None, Reason::Idle, &"no request within connections.max.idle.ms"),
        End::Lost(error) => tracing::debug!(peer = %info.peer, %error, "connection lost"),
        End::Closed => {}
    }
}

fn say(
    broker: &Broker,
    info: &ConnectionInfo,
    context: Option<&RequestContext>,
    reason: Reason,
    detail: &dyn std::fmt::Display,
) {
    let software = info.software.get();
    let refusal = Refusal {
        peer: info.peer,
        listener: &info.listener,
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
