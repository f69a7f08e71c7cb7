//! StreamsGroupDescribeRequest v0 to v1. Asks for streams groups (KIP-1071).

use super::codec::message;
use crate::wire::messages::StrBytes;

message! {
    StreamsGroupDescribeRequest {
        group_ids: Vec<StrBytes>;
        include_authorized_operations: bool;
        include_topology_description: bool [1..];
    }
}
