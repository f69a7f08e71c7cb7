//! DescribeShareGroupOffsetsRequest v0 to v1. v1 is v0 unchanged.

use super::codec::message;
use crate::wire::messages::{GroupId, TopicName};

message! {
    DescribeShareGroupOffsetsRequest {
        groups: Vec<DescribeShareGroupOffsetsRequestGroup>;
    }

    DescribeShareGroupOffsetsRequestGroup {
        group_id: GroupId;
        topics: Option<Vec<DescribeShareGroupOffsetsRequestTopic>> = Some(Vec::new());
    }

    DescribeShareGroupOffsetsRequestTopic {
        topic_name: TopicName;
        partitions: Vec<i32>;
    }
}
