//! WriteShareGroupStateRequest v0 to v1. v1 adds the number of completed deliveries (KIP-1226).

use uuid::Uuid;

use super::codec::message;
use crate::wire::messages::StrBytes;

message! {
    WriteShareGroupStateRequest {
        group_id: StrBytes;
        topics: Vec<WriteStateData>;
    }

    WriteStateData {
        topic_id: Uuid;
        partitions: Vec<PartitionData>;
    }

    PartitionData {
        partition: i32;
        state_epoch: i32;
        leader_epoch: i32;
        start_offset: i64;
        delivery_complete_count: i32 [1..] = -1;
        state_batches: Vec<StateBatch>;
    }

    StateBatch {
        first_offset: i64;
        last_offset: i64;
        delivery_state: i8;
        delivery_count: i16;
    }
}
