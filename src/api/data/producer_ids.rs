//! Producer ids from the block that the controller gave this broker; a new block is asked for when it is used up. Ids of a block that
//! was not used up before a restart are never handed out (C8).

use std::ops::Range;

use tokio::sync::Mutex;

use crate::base::ProducerId;
use crate::controller::Controller;
use crate::quorum::QuorumError;

#[derive(Default)]
pub struct ProducerIds {
    left: Mutex<Range<ProducerId>>,
}

impl ProducerIds {
    /// `None` when all ids there can be are used up.
    pub async fn next(&self, controller: &Controller) -> Result<Option<ProducerId>, QuorumError> {
        let mut left = self.left.lock().await;
        if let Some(id) = left.next() {
            return Ok(Some(id));
        }
        let Some(block) = controller.allocate_producer_ids().await? else { return Ok(None) };
        *left = block.first..block.first.saturating_add(block.count);
        Ok(left.next())
    }
}
