//! ApiVersionsRequest v0 to v5. Since v3 the client names its software (KIP-511); since v5 it may name the cluster and node that it
//! believes to talk to (KIP-1242).

use super::codec::message;
use crate::wire::messages::StrBytes;

message! {
    ApiVersionsRequest {
        client_software_name: StrBytes [3..];
        client_software_version: StrBytes [3..];
        cluster_id: Option<StrBytes> [5..];
        node_id: i32 [5..] = -1;
    }
}
