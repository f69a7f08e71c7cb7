//! BrokerHeartbeat (key 63): a broker lives, wants to serve, or wants to stop (KIP-631).
//! v1 names log directories that failed (KIP-858).

use std::sync::Arc;

use super::check_speaker;
use crate::api::cluster::quorum_refusal;
use crate::api::{Broker, Refused, RequestContext};
use crate::base::ErrorCode;
use crate::controller::decide::heartbeat::Heartbeat;
use crate::wire::messages::{BrokerHeartbeatRequest, BrokerHeartbeatResponse};

pub async fn handle(
    broker: &Arc<Broker>,
    context: &RequestContext,
    request: BrokerHeartbeatRequest,
) -> Result<BrokerHeartbeatResponse, Refused> {
    if let Err(code) = check_speaker(context, request.broker_id.0) {
        return Ok(failed(code));
    }
    let beat = Heartbeat {
        id: request.broker_id.0,
        epoch: request.broker_epoch,
        metadata_offset: request.current_metadata_offset,
        want_fence: request.want_fence,
        want_shut_down: request.want_shut_down,
        offline_directories: request.offline_log_dirs,
    };
    Ok(match broker.controller.heartbeat(beat).await {
        Ok(Ok(reply)) => BrokerHeartbeatResponse::default()
            .with_is_caught_up(reply.caught_up)
            .with_is_fenced(reply.fenced)
            .with_should_shut_down(reply.should_shut_down),
        Ok(Err(code)) => failed(code),
        Err(error) => failed(quorum_refusal(&error).code),
    })
}

fn failed(code: ErrorCode) -> BrokerHeartbeatResponse {
    BrokerHeartbeatResponse::default().with_error_code(code.code()).with_is_fenced(true)
}
