//! UnregisterControllerRequest v0. Takes a controller that is gone out of the list (KIP-1312).

use super::codec::message;

message! {
    UnregisterControllerRequest {
        controller_id: i32;
    }
}
