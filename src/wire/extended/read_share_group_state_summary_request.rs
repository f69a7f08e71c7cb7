//! ReadShareGroupStateSummaryRequest v0 to v1. v1 is v0 unchanged.

use uuid::Uuid;

use super::codec::message;
use crate::wire::messages::StrBytes;

message! {
    ReadShareGroupStateSummaryRequest {
        group_id: StrBytes;
        topics: Vec<ReadStateSummaryData>;
    }

    ReadStateSummaryData {
        topic_id: Uuid;
        partitions: Vec<PartitionData>;
    }

    PartitionData {
        partition: i32;
        leader_epoch: i32;
    }
}
