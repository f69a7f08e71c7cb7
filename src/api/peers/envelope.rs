//! A client's request on its way from the node it is connected to to the active controller, and the answer on its way back: what stands in
//! front of the frame.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::base::BrokerId;

/// Whose request it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    /// The node that the client is connected to.
    pub node_id: BrokerId,
    pub peer: SocketAddr,
    /// The address by which the client reached the first node.
    pub local: SocketAddr,
    pub listener: String,
    pub principal: String,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The answer's frame follows. What it says holds from this metadata offset on.
    Answered { offset: i64 },
    /// The node that was asked is not the active controller (any more).
    NotController,
    /// The client's connection has to be closed.
    Refused { sentence: String },
}
