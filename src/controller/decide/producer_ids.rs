//! Producer ids are handed to brokers in blocks, so that a new producer costs no record.

use super::Decision;
use crate::base::{BrokerId, ErrorCode, ProducerId};
use crate::metadata::{Image, MetadataRecord};

/// Ids in one block, as in Kafka.
pub const PRODUCER_IDS_PER_BLOCK: i64 = 1000;

/// Ids `first .. first + count` belong to the asker for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerIdBlock {
    pub first: ProducerId,
    pub count: i64,
}

/// A block for a broker that says under which registration it asks. `Ok(None)` when the 63 bits are used up.
pub fn allocate_to(
    image: &Image,
    broker: BrokerId,
    epoch: i64,
) -> Decision<Result<Option<ProducerIdBlock>, ErrorCode>> {
    if image.broker(broker).is_none_or(|known| known.epoch != epoch) {
        return Decision::unchanged(Err(ErrorCode::STALE_BROKER_EPOCH));
    }
    let Decision { records, reply } = allocate_producer_ids(image, broker);
    Decision { records, reply: Ok(reply) }
}

/// `None` when the 63 bits are used up.
pub fn allocate_producer_ids(image: &Image, broker: BrokerId) -> Decision<Option<ProducerIdBlock>> {
    let first = image.next_producer_id;
    let Some(next) = first.checked_add(PRODUCER_IDS_PER_BLOCK) else { return Decision::unchanged(None) };
    let reply = Some(ProducerIdBlock { first, count: PRODUCER_IDS_PER_BLOCK });
    Decision { records: vec![MetadataRecord::ProducerIds { broker, next }], reply }
}
