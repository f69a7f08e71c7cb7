//! One member of a classic group.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;

use crate::base::MonotonicMs;
use crate::coordinator::group::words::{Protocol, ReplyTo};

#[derive(Clone, Debug)]
pub struct Member {
    pub instance_id: Option<Arc<str>>,
    pub client_id: Arc<str>,
    pub client_host: Arc<str>,
    pub session_timeout_ms: i32,
    pub rebalance_timeout_ms: i32,
    /// In the order of preference.
    pub protocols: Vec<Protocol>,
    pub assignment: Bytes,
    /// A JoinGroup of this member that is not answered yet.
    pub join_waits: Option<ReplyTo>,
    /// A SyncGroup of this member that is not answered yet.
    pub sync_waits: Option<ReplyTo>,
    /// Whether it has asked for its assignment in this generation.
    pub has_synced: bool,
    /// Not yet answered for the first time: it does not know its id and cannot send heartbeats.
    pub is_new: bool,
    pub session_deadline_ms: MonotonicMs,
}

impl Member {
    pub fn is_joining(&self) -> bool {
        self.join_waits.is_some()
    }

    pub fn extend_session(&mut self, now_ms: MonotonicMs) {
        self.session_deadline_ms = now_ms + self.session_timeout_ms.max(0) as MonotonicMs;
    }

    /// When the session ends, unless the member waits for us: then its silence is our doing.
    pub fn session_ends_ms(&self) -> Option<MonotonicMs> {
        let waits_for_us = !self.is_new && (self.join_waits.is_some() || self.sync_waits.is_some());
        (!waits_for_us).then_some(self.session_deadline_ms)
    }

    /// What the member says for a protocol; empty when it does not know it.
    pub fn metadata(&self, protocol: &str) -> Bytes {
        self.protocols
            .iter()
            .find(|known| *known.name == *protocol)
            .map(|known| known.metadata.clone())
            .unwrap_or_default()
    }

    pub fn protocol_names(&self) -> HashSet<&str> {
        self.protocols.iter().map(|known| &*known.name).collect()
    }
}
