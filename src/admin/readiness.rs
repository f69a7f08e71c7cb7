//! Whether the broker should be sent clients, and if not, what it waits for.

use std::borrow::Cow;

use parking_lot::RwLock;

/// Shared between the server, which knows, and the HTTP door, which tells.
pub struct Readiness {
    missing: RwLock<Option<Cow<'static, str>>>,
    checks: RwLock<Vec<Check>>,
}

/// Says what is wrong now, if anything is.
pub type Check = Box<dyn Fn() -> Option<String> + Send + Sync>;

impl Readiness {
    /// Not ready, for `reason`.
    pub fn new(reason: impl Into<Cow<'static, str>>) -> Readiness {
        Readiness { missing: RwLock::new(Some(reason.into())), checks: RwLock::default() }
    }

    pub fn ready(&self) {
        *self.missing.write() = None;
    }

    pub fn not_ready(&self, reason: impl Into<Cow<'static, str>>) {
        *self.missing.write() = Some(reason.into());
    }

    /// From now on readiness also depends on this, each time somebody asks.
    pub fn depends_on(&self, check: Check) {
        self.checks.write().push(check);
    }

    /// What it waits for; `None` when it is ready.
    pub fn missing(&self) -> Option<Cow<'static, str>> {
        let missing = self.missing.read().clone();
        missing.or_else(|| self.checks.read().iter().find_map(|check| check()).map(Cow::Owned))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_ready_broker_stops_being_ready_when_a_check_says_so() {
        let readiness = Readiness::new("starting");
        let broken = Arc::new(AtomicBool::new(false));
        let looked_at = broken.clone();
        readiness
            .depends_on(Box::new(move || looked_at.load(Ordering::Relaxed).then(|| "the disk is gone".to_owned())));
        assert_eq!(readiness.missing().as_deref(), Some("starting"));
        readiness.ready();
        assert_eq!(readiness.missing(), None);
        broken.store(true, Ordering::Relaxed);
        assert_eq!(readiness.missing().as_deref(), Some("the disk is gone"));
    }
}
