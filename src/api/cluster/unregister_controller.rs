//! UnregisterController (key 94, KIP-1312): takes a controller that is gone for good out of the list. This node is the only one.

use std::sync::Arc;

use super::message;
use crate::api::{Broker, Refused, RequestContext};
use crate::base::ErrorCode;
use crate::controller::Refusal;
use crate::wire::messages::{UnregisterControllerRequest, UnregisterControllerResponse};

pub async fn handle(
    broker: &Arc<Broker>,
    _: &RequestContext,
    request: UnregisterControllerRequest,
) -> Result<UnregisterControllerResponse, Refused> {
    let id = request.controller_id;
    let refusal = if id == broker.options.node_id {
        Refusal::new(ErrorCode::INVALID_REQUEST, format!("Controller {id} is running; stop it before unregistering it"))
    } else {
        let sentence = format!("Controller ID {id} is not currently registered.");
        Refusal::new(ErrorCode::CONTROLLER_ID_NOT_REGISTERED, sentence)
    };
    Ok(UnregisterControllerResponse {
        error_code: refusal.code.code(),
        error_message: message(&refusal),
        ..UnregisterControllerResponse::default()
    })
}
