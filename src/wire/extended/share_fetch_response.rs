//! ShareFetchResponse v1 to v2. v2 is v1 unchanged.

use bytes::Bytes;
use uuid::Uuid;

use super::codec::message;
use crate::wire::messages::{BrokerId, StrBytes};

message! {
    ShareFetchResponse {
        throttle_time_ms: i32;
        error_code: i16;
        error_message: Option<StrBytes>;
        acquisition_lock_timeout_ms: i32;
        responses: Vec<ShareFetchableTopicResponse>;
        node_endpoints: Vec<NodeEndpoint>;
    }

    ShareFetchableTopicResponse {
        topic_id: Uuid;
        partitions: Vec<PartitionData>;
    }

    PartitionData {
        partition_index: i32;
        error_code: i16;
        error_message: Option<StrBytes>;
        acknowledge_error_code: i16;
        acknowledge_error_message: Option<StrBytes>;
        current_leader: LeaderIdAndEpoch;
        records: Option<Bytes>;
        acquired_records: Vec<AcquiredRecords>;
    }

    LeaderIdAndEpoch {
        leader_id: i32;
        leader_epoch: i32;
    }

    AcquiredRecords {
        first_offset: i64;
        last_offset: i64;
        delivery_count: i16;
    }

    NodeEndpoint {
        node_id: BrokerId;
        host: StrBytes;
        port: i32;
        rack: Option<StrBytes>;
    }
}
