//! ShareAcknowledgeRequest v1 to v2. v2 adds the renewal of locks (KIP-1222).

use uuid::Uuid;

use super::codec::message;
use crate::wire::messages::{GroupId, StrBytes};

message! {
    ShareAcknowledgeRequest {
        group_id: Option<GroupId>;
        member_id: Option<StrBytes> = Some(Default::default());
        share_session_epoch: i32;
        is_renew_ack: bool [2..];
        topics: Vec<AcknowledgeTopic>;
    }

    AcknowledgeTopic {
        topic_id: Uuid;
        partitions: Vec<AcknowledgePartition>;
    }

    AcknowledgePartition {
        partition_index: i32;
        acknowledgement_batches: Vec<AcknowledgementBatch>;
    }

    AcknowledgementBatch {
        first_offset: i64;
        last_offset: i64;
        acknowledge_types: Vec<i8>;
    }
}
