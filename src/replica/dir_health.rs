//! Whether a log directory can still be trusted. The first failed sync or write ends that for good: pages that could not be written
//! may be gone although a second sync says otherwise (A9). A full disk is no such failure.

use std::sync::{Arc, OnceLock};

#[derive(Debug, Default)]
pub struct DirHealth {
    failure: OnceLock<Arc<str>>,
}

impl DirHealth {
    /// Why the directory is offline, if it is.
    pub fn failure(&self) -> Option<&Arc<str>> {
        self.failure.get()
    }

    /// Takes the directory offline. Later failures add nothing.
    pub fn fail(&self, reason: &str) {
        if self.failure.set(reason.into()).is_ok() {
            tracing::error!(
                reason,
                "the log directory is offline until restart: nothing in it is written or acknowledged any more"
            );
        }
    }
}
