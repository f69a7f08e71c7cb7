//! UnregisterBroker (key 64): takes a broker that is gone for good out of the cluster (KIP-500).

use std::sync::Arc;

use super::{message, quorum_refusal};
use crate::api::{Broker, Refused, RequestContext};
use crate::wire::messages::{UnregisterBrokerRequest, UnregisterBrokerResponse};

pub async fn handle(
    broker: &Arc<Broker>,
    _: &RequestContext,
    request: UnregisterBrokerRequest,
) -> Result<UnregisterBrokerResponse, Refused> {
    let refusal = match broker.controller.unregister_broker(request.broker_id.0).await {
        Ok(refusal) => refusal,
        Err(error) => Some(quorum_refusal(&error)),
    };
    let mut response = UnregisterBrokerResponse::default().with_error_message(None);
    if let Some(refusal) = refusal {
        response = response.with_error_code(refusal.code.code()).with_error_message(message(&refusal));
    }
    Ok(response)
}
