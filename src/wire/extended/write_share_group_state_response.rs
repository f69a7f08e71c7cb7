//! WriteShareGroupStateResponse v0 to v1. v1 is v0 unchanged.

use uuid::Uuid;

use super::codec::message;
use crate::wire::messages::StrBytes;

message! {
    WriteShareGroupStateResponse {
        results: Vec<WriteStateResult>;
    }

    WriteStateResult {
        topic_id: Uuid;
        partitions: Vec<PartitionResult>;
    }

    PartitionResult {
        partition: i32;
        error_code: i16;
        error_message: Option<StrBytes>;
    }
}
