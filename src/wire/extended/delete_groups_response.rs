//! DeleteGroupsResponse v0 to v3. v3 adds a message to each group's error code.

use super::codec::message;
use crate::wire::messages::{GroupId, StrBytes};

message! {
    DeleteGroupsResponse {
        throttle_time_ms: i32;
        results: Vec<DeletableGroupResult>;
    }

    DeletableGroupResult {
        group_id: GroupId;
        error_code: i16;
        error_message: Option<StrBytes> [3..];
    }
}
