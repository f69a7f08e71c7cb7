//! TxnOffsetCommitRequest v0 to v6. v3 carries the member (KIP-447), v5 is for transactions by KIP-890, v6 carries topic ids in place of names (KIP-1319).

use uuid::Uuid;

use super::codec::message;
use crate::wire::messages::{GroupId, ProducerId, StrBytes, TopicName, TransactionalId};

message! {
    TxnOffsetCommitRequest {
        transactional_id: TransactionalId;
        group_id: GroupId;
        producer_id: ProducerId;
        producer_epoch: i16;
        generation_id_or_member_epoch: i32 [3..] = -1;
        member_id: StrBytes [3..];
        group_instance_id: Option<StrBytes> [3..];
        topics: Vec<TxnOffsetCommitRequestTopic>;
    }

    TxnOffsetCommitRequestTopic {
        name: TopicName [..=5];
        topic_id: Uuid [6..];
        partitions: Vec<TxnOffsetCommitRequestPartition>;
    }

    TxnOffsetCommitRequestPartition {
        partition_index: i32;
        committed_offset: i64;
        committed_leader_epoch: i32 [2..] = -1;
        committed_metadata: Option<StrBytes> = Some(Default::default());
    }
}
