//! TxnOffsetCommitResponse v0 to v6. v6 answers with topic ids in place of names (KIP-1319).

use uuid::Uuid;

use super::codec::message;
use crate::wire::messages::TopicName;

message! {
    TxnOffsetCommitResponse {
        throttle_time_ms: i32;
        topics: Vec<TxnOffsetCommitResponseTopic>;
    }

    TxnOffsetCommitResponseTopic {
        name: TopicName [..=5];
        topic_id: Uuid [6..];
        partitions: Vec<TxnOffsetCommitResponsePartition>;
    }

    TxnOffsetCommitResponsePartition {
        partition_index: i32;
        error_code: i16;
    }
}
