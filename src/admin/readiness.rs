//! Whether the broker should be sent clients, and if not, what it waits for.

use std::borrow::Cow;

use parking_lot::RwLock;

/// Shared between the server, which knows, and the HTTP door, which tells.
pub struct Readiness {
    missing: RwLock<Option<Cow<'static, str>>>,
}

impl Readiness {
    /// Not ready, for `reason`.
    pub fn new(reason: impl Into<Cow<'static, str>>) -> Readiness {
        Readiness { missing: RwLock::new(Some(reason.into())) }
    }

    pub fn ready(&self) {
        *self.missing.write() = None;
    }

    pub fn not_ready(&self, reason: impl Into<Cow<'static, str>>) {
        *self.missing.write() = Some(reason.into());
    }

    /// What it waits for; `None` when it is ready.
    pub fn missing(&self) -> Option<Cow<'static, str>> {
        self.missing.read().clone()
    }
}
