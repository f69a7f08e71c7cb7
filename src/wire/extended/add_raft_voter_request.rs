//! AddRaftVoterRequest v0 to v1. v1 says whether the answer may come before the voter set is committed (KIP-1186).

use uuid::Uuid;

use super::codec::message;
use crate::wire::messages::StrBytes;

message! {
    AddRaftVoterRequest {
        cluster_id: Option<StrBytes> = Some(Default::default());
        timeout_ms: i32;
        voter_id: i32;
        voter_directory_id: Uuid;
        listeners: Vec<Listener>;
        ack_when_committed: bool [1..] = true;
    }

    Listener {
        name: StrBytes;
        host: StrBytes;
        port: u16;
    }
}
