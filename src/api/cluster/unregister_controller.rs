//! UnregisterController (key 94, KIP-1312): takes a controller that is gone for good out of the list. Here the list is that of the metadata
//! log's listeners: whoever votes has to be removed from the voters first, and whoever listens because it is a broker is taken out with
//! UnregisterBroker.

use std::sync::Arc;
use std::time::Duration;

use super::{message, quorum_refusal};
use crate::api::{Broker, Refused, RequestContext};
use crate::base::{BrokerId, ErrorCode, NodeAddress};
use crate::controller::Refusal;
use crate::wire::messages::{UnregisterControllerRequest, UnregisterControllerResponse};

/// How long a controller may take to say that it is there.
const HELLO_MAX: Duration = Duration::from_secs(1);

pub async fn handle(
    broker: &Arc<Broker>,
    _: &RequestContext,
    request: UnregisterControllerRequest,
) -> Result<UnregisterControllerResponse, Refused> {
    let refusal = match unregister(broker, request.controller_id).await {
        Ok(()) => return Ok(UnregisterControllerResponse::default()),
        Err(refusal) => refusal,
    };
    Ok(UnregisterControllerResponse {
        error_code: refusal.code.code(),
        error_message: message(&refusal),
        ..UnregisterControllerResponse::default()
    })
}

async fn unregister(broker: &Arc<Broker>, id: BrokerId) -> Result<(), Refusal> {
    broker.controller.must_be_active().map_err(|error| quorum_refusal(&error))?;
    let description = broker.controller.quorum().describe();
    if description.voters.iter().any(|voter| voter.id == id) {
        let sentence = format!("Controller {id} is one of the voters; remove it from them before unregistering it");
        return Err(Refusal::new(ErrorCode::INVALID_REQUEST, sentence));
    }
    let observer = description.observers.into_iter().find(|observer| observer.id == id);
    let Some(observer) = observer.filter(|_| broker.image().broker(id).is_none()) else {
        let sentence = format!("Controller ID {id} is not currently registered.");
        return Err(Refusal::new(ErrorCode::CONTROLLER_ID_NOT_REGISTERED, sentence));
    };
    if let Some(address) = observer.address
        && is_there(broker, id, &address).await
    {
        // It would come back to the list by itself.
        let sentence = format!("Controller {id} is running; stop it before unregistering it");
        return Err(Refusal::new(ErrorCode::INVALID_REQUEST, sentence));
    }
    broker.controller.quorum().remove_learner(id).await.map_err(|error| quorum_refusal(&error))
}

async fn is_there(broker: &Broker, id: BrokerId, address: &NodeAddress) -> bool {
    broker.peers.meet(address, HELLO_MAX).await.is_ok_and(|answer| answer.identity.node_id == id)
}
