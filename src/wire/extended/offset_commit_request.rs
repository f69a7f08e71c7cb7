//! OffsetCommitRequest v2 to v10. v6 adds leader epochs (KIP-320), v7 static members (KIP-345), v9 the KIP-848 groups, v10 topic ids in
//! place of names (KIP-848).

use uuid::Uuid;

use super::codec::message;
use crate::wire::messages::{GroupId, StrBytes, TopicName};

message! {
    OffsetCommitRequest {
        group_id: GroupId;
        generation_id_or_member_epoch: i32 = -1;
        member_id: StrBytes;
        retention_time_ms: i64 [..=4] = -1;
        group_instance_id: Option<StrBytes> [7..];
        topics: Vec<OffsetCommitRequestTopic>;
    }

    OffsetCommitRequestTopic {
        name: TopicName [..=9];
        topic_id: Uuid [10..];
        partitions: Vec<OffsetCommitRequestPartition>;
    }

    OffsetCommitRequestPartition {
        partition_index: i32;
        committed_offset: i64;
        committed_leader_epoch: i32 [6..] = -1;
        committed_metadata: Option<StrBytes> = Some(Default::default());
    }
}
