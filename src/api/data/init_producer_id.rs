//! InitProducerId (key 22), v0 to v5: a producer id for an idempotent producer (KIP-98).
//!
//! v2 flexible, v3 resumes with an id (KIP-360), v4 PRODUCER_FENCED, v5 transaction version 2 (KIP-890). Transactional ids are refused
//! until there is a transaction coordinator.

use std::sync::Arc;

use crate::api::{Broker, Refused, RequestContext, refused};
use crate::base::ErrorCode;
use crate::base::ids::{NO_PRODUCER_EPOCH, NO_PRODUCER_ID};
use crate::telemetry::Reason;
use crate::wire::messages::{InitProducerIdRequest, InitProducerIdResponse};

pub async fn handle(
    broker: &Arc<Broker>,
    context: &RequestContext,
    request: InitProducerIdRequest,
) -> Result<InitProducerIdResponse, Refused> {
    let answer = |error: ErrorCode| {
        InitProducerIdResponse::default()
            .with_error_code(error.code())
            .with_producer_id(NO_PRODUCER_ID.into())
            .with_producer_epoch(NO_PRODUCER_EPOCH)
    };
    if let Some(transactional_id) = &request.transactional_id {
        let error = if transactional_id.is_empty() {
            ErrorCode::INVALID_REQUEST
        } else {
            let detail = "transactions are not there yet: producers with a transactional.id are refused";
            refused::report_answered(broker, context, Reason::NotSupported, &detail);
            ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        };
        return Ok(answer(error));
    }
    match broker.producer_ids.next(broker).await {
        Ok(id) => Ok(InitProducerIdResponse::default().with_producer_id(id.into()).with_producer_epoch(0)),
        Err(code) => Ok(answer(code)),
    }
}
