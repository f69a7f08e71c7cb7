//! WriteTxnMarkersResponse v1 to v2. v2 is v1 unchanged.

use super::codec::message;
use crate::wire::messages::{ProducerId, TopicName};

message! {
    WriteTxnMarkersResponse {
        markers: Vec<WritableTxnMarkerResult>;
    }

    WritableTxnMarkerResult {
        producer_id: ProducerId;
        topics: Vec<WritableTxnMarkerTopicResult>;
    }

    WritableTxnMarkerTopicResult {
        name: TopicName;
        partitions: Vec<WritableTxnMarkerPartitionResult>;
    }

    WritableTxnMarkerPartitionResult {
        partition_index: i32;
        error_code: i16;
    }
}
