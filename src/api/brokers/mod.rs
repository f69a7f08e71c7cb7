//! What brokers ask the active controller: to be let in, to be kept, and to keep what they found out about their partitions. Only a
//! connection of that very broker may speak for it.

pub mod allocate_producer_ids;
pub mod alter_partition;
pub mod assign_replicas_to_dirs;
pub mod broker_heartbeat;
pub mod broker_registration;

use crate::api::RequestContext;
use crate::base::{BrokerId, ErrorCode};

/// Whether the connection belongs to the broker that it speaks for.
pub(super) fn check_speaker(context: &RequestContext, broker: BrokerId) -> Result<(), ErrorCode> {
    let is_it = context.connection.peer_node.get().is_some_and(|node| node.node_id == broker);
    if is_it { Ok(()) } else { Err(ErrorCode::CLUSTER_AUTHORIZATION_FAILED) }
}
