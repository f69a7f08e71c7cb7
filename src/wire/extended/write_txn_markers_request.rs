//! WriteTxnMarkersRequest v1 to v2. v2 says by which rules the transaction was run (KIP-890).

use super::codec::message;
use crate::wire::messages::{ProducerId, TopicName};

message! {
    WriteTxnMarkersRequest {
        markers: Vec<WritableTxnMarker>;
    }

    WritableTxnMarker {
        producer_id: ProducerId;
        producer_epoch: i16;
        transaction_result: bool;
        topics: Vec<WritableTxnMarkerTopic>;
        coordinator_epoch: i32;
        transaction_version: i8 [2..];
    }

    WritableTxnMarkerTopic {
        name: TopicName;
        partition_indexes: Vec<i32>;
    }
}
