//! What nodes say to one another: who they are, the quorum's messages, requests that are handed on to the active controller, and the
//! way of this node's own requests there.

pub mod active;
pub mod ensure_topic;
pub mod envelope;
pub mod forward;
pub mod give_up_copies;
pub mod look_at_copy;
pub mod peer_hello;
pub mod raft;
