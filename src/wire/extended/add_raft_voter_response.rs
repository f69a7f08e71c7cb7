//! AddRaftVoterResponse v0 to v1. v1 is v0 unchanged.

use super::codec::message;
use crate::wire::messages::StrBytes;

message! {
    AddRaftVoterResponse {
        throttle_time_ms: i32;
        error_code: i16;
        error_message: Option<StrBytes> = Some(Default::default());
    }
}
