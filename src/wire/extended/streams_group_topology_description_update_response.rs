//! StreamsGroupTopologyDescriptionUpdateResponse v0. Whether the description was taken.

use super::codec::message;
use crate::wire::messages::StrBytes;

message! {
    StreamsGroupTopologyDescriptionUpdateResponse {
        throttle_time_ms: i32;
        error_code: i16;
        error_message: Option<StrBytes>;
    }
}
