//! UnregisterControllerResponse v0. Whether the controller was taken out.

use super::codec::message;
use crate::wire::messages::StrBytes;

message! {
    UnregisterControllerResponse {
        throttle_time_ms: i32;
        error_code: i16;
        error_message: Option<StrBytes> = Some(Default::default());
    }
}
