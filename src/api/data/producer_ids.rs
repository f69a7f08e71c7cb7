//! Producer ids from the block that the controller gave this broker; a new block is asked for when it is used up. Ids of a block that
//! was not used up before a restart are never handed out (C8).

use std::ops::Range;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use crate::api::Broker;
use crate::api::peers::active::{self, AskError};
use crate::base::{ErrorCode, ProducerId};
use crate::wire::messages::AllocateProducerIdsRequest;

/// How long the active controller may take for a block.
const BLOCK_MAX: Duration = Duration::from_secs(5);

#[derive(Default)]
pub struct ProducerIds {
    left: Mutex<Range<ProducerId>>,
}

impl ProducerIds {
    /// # Errors
    /// The active controller's code, or COORDINATOR_LOAD_IN_PROGRESS when it cannot be asked: clients then ask again.
    pub async fn next(&self, broker: &Arc<Broker>) -> Result<ProducerId, ErrorCode> {
        let mut left = self.left.lock().await;
        if let Some(id) = left.next() {
            return Ok(id);
        }
        let request = AllocateProducerIdsRequest::default()
            .with_broker_id(broker.options.node_id.into())
            .with_broker_epoch(broker.broker_epoch());
        let block = active::ask(broker, &request, BLOCK_MAX).await.map_err(|error: AskError| {
            tracing::warn!(%error, "no block of producer ids");
            ErrorCode::COORDINATOR_LOAD_IN_PROGRESS
        })?;
        match ErrorCode(block.error_code) {
            ErrorCode::NONE => {}
            // Another controller, another epoch: a moment later they are known here.
            ErrorCode::NOT_CONTROLLER | ErrorCode::STALE_BROKER_EPOCH => {
                return Err(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
            }
            code => return Err(code),
        }
        let first = block.producer_id_start.0;
        *left = first..first.saturating_add(block.producer_id_len.into());
        left.next().ok_or(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS)
    }
}
