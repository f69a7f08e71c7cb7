//! UnregisterBroker (key 64): takes a broker that is gone for good out of the cluster (KIP-500).

use std::sync::Arc;

use super::{message, quorum_refusal};
use crate::api::{Broker, Refused, RequestContext};
use crate::base::BrokerId;
use crate::host::task;
use crate::wire::messages::{UnregisterBrokerRequest, UnregisterBrokerResponse};

pub async fn handle(
    broker: &Arc<Broker>,
    _: &RequestContext,
    request: UnregisterBrokerRequest,
) -> Result<UnregisterBrokerResponse, Refused> {
    let id = request.broker_id.0;
    let refusal = match broker.controller.unregister_broker(id).await {
        Ok(None) => {
            stop_telling(broker, id);
            None
        }
        Ok(refusal) => refusal,
        Err(error) => Some(quorum_refusal(&error)),
    };
    let mut response = UnregisterBrokerResponse::default().with_error_message(None);
    if let Some(refusal) = refusal {
        response = response.with_error_code(refusal.code.code()).with_error_message(message(&refusal));
    }
    Ok(response)
}

/// A broker that is gone for good need not be told of the metadata any more. A controller with a vote stays where it is.
fn stop_telling(broker: &Broker, id: BrokerId) {
    let quorum = broker.controller.quorum().clone();
    if quorum.describe().voters.iter().any(|voter| voter.id == id) {
        return;
    }
    task::spawn(async move {
        if let Err(error) = quorum.remove_learner(id).await {
            tracing::info!(broker = id, %error, "an unregistered broker is still told of the metadata");
        }
    });
}
