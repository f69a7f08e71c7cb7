//! ShareAcknowledgeResponse v1 to v2. v2 answers with the lock duration (KIP-1222).

use uuid::Uuid;

use super::codec::message;
use crate::wire::messages::{BrokerId, StrBytes};

message! {
    ShareAcknowledgeResponse {
        throttle_time_ms: i32;
        error_code: i16;
        error_message: Option<StrBytes>;
        acquisition_lock_timeout_ms: i32 [2..];
        responses: Vec<ShareAcknowledgeTopicResponse>;
        node_endpoints: Vec<NodeEndpoint>;
    }

    ShareAcknowledgeTopicResponse {
        topic_id: Uuid;
        partitions: Vec<PartitionData>;
    }

    PartitionData {
        partition_index: i32;
        error_code: i16;
        error_message: Option<StrBytes>;
        current_leader: LeaderIdAndEpoch;
    }

    LeaderIdAndEpoch {
        leader_id: i32;
        leader_epoch: i32;
    }

    NodeEndpoint {
        node_id: BrokerId;
        host: StrBytes;
        port: i32;
        rack: Option<StrBytes>;
    }
}
