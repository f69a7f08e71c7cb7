//! AllocateProducerIds (key 67): a broker asks for a block of producer ids (KIP-730).

use std::sync::Arc;

use super::check_speaker;
use crate::api::cluster::quorum_refusal;
use crate::api::{Broker, Refused, RequestContext};
use crate::base::ErrorCode;
use crate::controller::decide::producer_ids::ProducerIdBlock;
use crate::wire::messages::{AllocateProducerIdsRequest, AllocateProducerIdsResponse, ProducerId};

pub async fn handle(
    broker: &Arc<Broker>,
    context: &RequestContext,
    request: AllocateProducerIdsRequest,
) -> Result<AllocateProducerIdsResponse, Refused> {
    let id = request.broker_id.0;
    if let Err(code) = check_speaker(context, id) {
        return Ok(failed(code));
    }
    Ok(match broker.controller.allocate_producer_ids_to(id, request.broker_epoch).await {
        Ok(Ok(Some(block))) => answer(block),
        // Kafka has no code for the end of 63 bits.
        Ok(Ok(None)) => {
            tracing::error!("no producer id can be handed out: all there can be are used up");
            failed(ErrorCode::UNKNOWN_SERVER_ERROR)
        }
        Ok(Err(code)) => failed(code),
        Err(error) => failed(quorum_refusal(&error).code),
    })
}

fn answer(block: ProducerIdBlock) -> AllocateProducerIdsResponse {
    AllocateProducerIdsResponse::default()
        .with_producer_id_start(ProducerId(block.first))
        .with_producer_id_len(i32::try_from(block.count).unwrap_or(i32::MAX))
}

fn failed(code: ErrorCode) -> AllocateProducerIdsResponse {
    AllocateProducerIdsResponse::default().with_error_code(code.code())
}
