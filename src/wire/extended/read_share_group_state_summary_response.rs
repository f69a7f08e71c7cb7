//! ReadShareGroupStateSummaryResponse v0 to v1. v1 adds the number of completed deliveries (KIP-1226).

use uuid::Uuid;

use super::codec::message;
use crate::wire::messages::StrBytes;

message! {
    ReadShareGroupStateSummaryResponse {
        results: Vec<ReadStateSummaryResult>;
    }

    ReadStateSummaryResult {
        topic_id: Uuid;
        partitions: Vec<PartitionResult>;
    }

    PartitionResult {
        partition: i32;
        error_code: i16;
        error_message: Option<StrBytes>;
        state_epoch: i32;
        leader_epoch: i32;
        start_offset: i64;
        delivery_complete_count: i32 [1..] = -1;
    }
}
