//! The APIs of consumer groups and their offsets. Thin: a file turns one API's request into the coordinator's words, adds what only
//! the metadata knows (which topics exist, under which id), and lays the answer out as the request's version wants it.
//!
//! Handlers take what they need (`GroupCoordinator`, `Image`) rather than the whole broker, so that they can be tried without one.

pub mod consumer_group_describe;
pub mod delete_groups;
pub mod describe_groups;
pub mod heartbeat;
pub mod join_group;
pub mod leave_group;
pub mod list_groups;
pub mod offset_commit;
pub mod offset_delete;
pub mod offset_fetch;
pub mod sync_group;

use std::sync::Arc;

use bytes::Bytes;

use crate::wire::messages::StrBytes;

/// A text that stays when the request is gone.
fn kept(text: &StrBytes) -> Arc<str> {
    Arc::from(text.as_str())
}

fn kept_option(text: &Option<StrBytes>) -> Option<Arc<str>> {
    text.as_ref().map(kept)
}

/// Bytes that stay when the request is gone, without keeping its whole frame in memory.
fn kept_bytes(bytes: &Bytes) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

#[cfg(test)]
mod tests;
