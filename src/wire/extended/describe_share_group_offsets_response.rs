//! DescribeShareGroupOffsetsResponse v0 to v1. v1 adds the lag (KIP-1226).

use uuid::Uuid;

use super::codec::message;
use crate::wire::messages::{GroupId, StrBytes, TopicName};

message! {
    DescribeShareGroupOffsetsResponse {
        throttle_time_ms: i32;
        groups: Vec<DescribeShareGroupOffsetsResponseGroup>;
    }

    DescribeShareGroupOffsetsResponseGroup {
        group_id: GroupId;
        topics: Vec<DescribeShareGroupOffsetsResponseTopic>;
        error_code: i16;
        error_message: Option<StrBytes>;
    }

    DescribeShareGroupOffsetsResponseTopic {
        topic_name: TopicName;
        topic_id: Uuid;
        partitions: Vec<DescribeShareGroupOffsetsResponsePartition>;
    }

    DescribeShareGroupOffsetsResponsePartition {
        partition_index: i32;
        start_offset: i64;
        leader_epoch: i32;
        lag: i64 [1..] = -1;
        error_code: i16;
        error_message: Option<StrBytes>;
    }
}
