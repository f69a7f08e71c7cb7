//! OffsetFetchRequest v1 to v10. v7 can ask for stable offsets only (KIP-447), v8 asks for several groups (KIP-709), v9 carries a member
//! (KIP-848), v10 topic ids in place of names.

use uuid::Uuid;

use super::codec::message;
use crate::wire::messages::{GroupId, StrBytes, TopicName};

message! {
    OffsetFetchRequest {
        group_id: GroupId [..=7];
        topics: Option<Vec<OffsetFetchRequestTopic>> [..=7] = Some(Vec::new());
        groups: Vec<OffsetFetchRequestGroup> [8..];
        require_stable: bool [7..];
    }

    OffsetFetchRequestTopic {
        name: TopicName;
        partition_indexes: Vec<i32>;
    }

    OffsetFetchRequestGroup {
        group_id: GroupId;
        member_id: Option<StrBytes> [9..];
        member_epoch: i32 [9..] = -1;
        topics: Option<Vec<OffsetFetchRequestTopics>> = Some(Vec::new());
    }

    OffsetFetchRequestTopics {
        name: TopicName [..=9];
        topic_id: Uuid [10..];
        partition_indexes: Vec<i32>;
    }
}
