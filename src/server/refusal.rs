//! The one log line of a connection that was closed by us.

use std::sync::Arc;

use crate::api::Broker;
use crate::api::context::ConnectionInfo;
use crate::api::refused;
use crate::server::connection::End;
use crate::telemetry::Reason;

/// Reports an end that the peer did not choose.
pub fn report(broker: &Broker, info: &Arc<ConnectionInfo>, end: &End) {
    match end {
        End::Refused { context, refused: why } => {
            refused::report(broker, info, context.as_deref(), why.reason, &why.detail);
        }
        End::Idle => {
            refused::report(broker, info, None, Reason::Idle, &"no request within connections.max.idle.ms");
        }
        End::Lost(error) => tracing::debug!(peer = %info.peer, %error, "connection lost"),
        End::Closed => {}
    }
}
