//! What two nodes say of themselves when they meet.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::base::{BrokerId, NodeAddress};

/// A node, and which run of its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PeerIdentity {
    pub node_id: BrokerId,
    /// Another one for each start of the process.
    pub incarnation: Uuid,
}

/// Who is calling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Empty while the node belongs to no cluster.
    pub cluster_id: String,
    #[serde(flatten)]
    pub identity: PeerIdentity,
    /// Of the software.
    pub version: String,
    /// Where this node takes messages of the metadata quorum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum_address: Option<NodeAddress>,
}

/// Who was reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelloAnswer {
    /// Why the caller is not let in. The other fields hold all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    pub cluster_id: String,
    #[serde(flatten)]
    pub identity: PeerIdentity,
    pub version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<LeaderHint>,
}

/// Whom a node takes for the active controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaderHint {
    pub id: BrokerId,
    pub address: NodeAddress,
    pub term: u64,
}
