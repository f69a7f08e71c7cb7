//! InitProducerId (key 22), v0 to v5: a producer id for an idempotent producer (KIP-98).
//!
//! v2 flexible, v3 resumes with an id (KIP-360), v4 PRODUCER_FENCED, v5 transaction version 2 (KIP-890). Transactional ids are refused
//! until there is a transaction coordinator.

use std::sync::Arc;

use crate::api::{Broker, Refused, RequestContext};
use crate::base::ErrorCode;
use crate::base::ids::{NO_PRODUCER_EPOCH, NO_PRODUCER_ID};
use crate::wire::messages::{InitProducerIdRequest, InitProducerIdResponse};

pub async fn handle(
    broker: &Arc<Broker>,
    _context: &RequestContext,
    request: InitProducerIdRequest,
) -> Result<InitProducerIdResponse, Refused> {
    let refused = |error: ErrorCode| {
        InitProducerIdResponse::default()
            .with_error_code(error.code())
            .with_producer_id(NO_PRODUCER_ID.into())
            .with_producer_epoch(NO_PRODUCER_EPOCH)
    };
    if let Some(transactional_id) = &request.transactional_id {
        let error = if transactional_id.is_empty() {
            ErrorCode::INVALID_REQUEST
        } else {
            ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        };
        return Ok(refused(error));
    }
    match broker.producer_ids.next(&broker.controller).await {
        Ok(Some(id)) => Ok(InitProducerIdResponse::default().with_producer_id(id.into()).with_producer_epoch(0)),
        Ok(None) => {
            tracing::error!("no producer id can be handed out: all there can be are used up");
            Ok(refused(ErrorCode::UNKNOWN_SERVER_ERROR))
        }
        Err(error) => {
            tracing::error!(%error, "no producer id can be handed out");
            Ok(refused(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS))
        }
    }
}
