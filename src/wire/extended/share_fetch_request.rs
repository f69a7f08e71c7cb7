//! ShareFetchRequest v1 to v2. v2 adds the acquire mode (KIP-1206) and the renewal of locks (KIP-1222).

use uuid::Uuid;

use super::codec::message;
use crate::wire::messages::{GroupId, StrBytes};

message! {
    ShareFetchRequest {
        group_id: Option<GroupId>;
        member_id: Option<StrBytes> = Some(Default::default());
        share_session_epoch: i32;
        max_wait_ms: i32;
        min_bytes: i32;
        max_bytes: i32 = i32::MAX;
        max_records: i32;
        batch_size: i32;
        share_acquire_mode: i8 [2..];
        is_renew_ack: bool [2..];
        topics: Vec<FetchTopic>;
        forgotten_topics_data: Vec<ForgottenTopic>;
    }

    FetchTopic {
        topic_id: Uuid;
        partitions: Vec<FetchPartition>;
    }

    FetchPartition {
        partition_index: i32;
        acknowledgement_batches: Vec<AcknowledgementBatch>;
    }

    AcknowledgementBatch {
        first_offset: i64;
        last_offset: i64;
        acknowledge_types: Vec<i8>;
    }

    ForgottenTopic {
        topic_id: Uuid;
        partitions: Vec<i32>;
    }
}
