//! OffsetFetchResponse v1 to v10. v8 answers several groups (KIP-709), v10 with topic ids in place of names (KIP-848).

use uuid::Uuid;

use super::codec::message;
use crate::wire::messages::{GroupId, StrBytes, TopicName};

message! {
    OffsetFetchResponse {
        throttle_time_ms: i32 [3..];
        topics: Vec<OffsetFetchResponseTopic> [..=7];
        error_code: i16 [2..=7];
        groups: Vec<OffsetFetchResponseGroup> [8..];
    }

    OffsetFetchResponseTopic {
        name: TopicName;
        partitions: Vec<OffsetFetchResponsePartition>;
    }

    OffsetFetchResponsePartition {
        partition_index: i32;
        committed_offset: i64;
        committed_leader_epoch: i32 [5..] = -1;
        metadata: Option<StrBytes> = Some(Default::default());
        error_code: i16;
    }

    OffsetFetchResponseGroup {
        group_id: GroupId;
        topics: Vec<OffsetFetchResponseTopics>;
        error_code: i16;
    }

    OffsetFetchResponseTopics {
        name: TopicName [..=9];
        topic_id: Uuid [10..];
        partitions: Vec<OffsetFetchResponsePartitions>;
    }

    OffsetFetchResponsePartitions {
        partition_index: i32;
        committed_offset: i64;
        committed_leader_epoch: i32 = -1;
        metadata: Option<StrBytes> = Some(Default::default());
        error_code: i16;
    }
}
