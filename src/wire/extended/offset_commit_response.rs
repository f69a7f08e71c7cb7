//! OffsetCommitResponse v2 to v10. v10 answers with topic ids in place of names (KIP-848).

use uuid::Uuid;

use super::codec::message;
use crate::wire::messages::TopicName;

message! {
    OffsetCommitResponse {
        throttle_time_ms: i32 [3..];
        topics: Vec<OffsetCommitResponseTopic>;
    }

    OffsetCommitResponseTopic {
        name: TopicName [..=9];
        topic_id: Uuid [10..];
        partitions: Vec<OffsetCommitResponsePartition>;
    }

    OffsetCommitResponsePartition {
        partition_index: i32;
        error_code: i16;
    }
}
