//! Whether a log directory can still be trusted. The first failed sync or write ends that for good: pages that could not be written
//! may be gone although a second sync says otherwise (A9). A full disk is no such failure.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::watch;

use crate::base::MonotonicMs;

/// A disk that is nearly full takes small batches and refuses large ones: there is room again when none was refused for this long.
const ROOM_AFTER_MS: MonotonicMs = 10_000;

#[derive(Debug, Default)]
pub struct DirHealth {
    dir: PathBuf,
    failure: OnceLock<Arc<str>>,
    /// How many directories of this node have failed.
    failures: Arc<watch::Sender<usize>>,
    /// Writes are refused for want of room.
    full: AtomicBool,
    /// Writes refused since it is full.
    refused: AtomicU64,
    last_refused_ms: AtomicU64,
}

impl DirHealth {
    /// `failures` counts, and is rung, when the directory fails.
    pub fn new(dir: PathBuf, failures: Arc<watch::Sender<usize>>) -> DirHealth {
        DirHealth { dir, failures, ..DirHealth::default() }
    }

    /// Why the directory is offline, if it is.
    pub fn failure(&self) -> Option<&Arc<str>> {
        self.failure.get()
    }

    /// A write found no room. One line says so until there is room again; whether this was it.
    pub fn note_full(&self, error: &dyn fmt::Display, now: MonotonicMs) -> bool {
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.last_refused_ms.store(now, Ordering::Relaxed);
        let is_news = !self.full.swap(true, Ordering::AcqRel);
        if is_news {
            tracing::warn!(dir = %self.dir.display(), %error, "the disk is full; writes are refused until there is room");
        }
        is_news
    }

    /// Whether a write that succeeded is worth telling [`DirHealth::note_room`].
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// A write succeeded on a directory that was full: how many were refused meanwhile, when that is over.
    pub fn note_room(&self, now: MonotonicMs) -> Option<u64> {
        if now.saturating_sub(self.last_refused_ms.load(Ordering::Relaxed)) < ROOM_AFTER_MS
            || !self.full.swap(false, Ordering::AcqRel)
        {
            return None;
        }
        let refused_writes = self.refused.swap(0, Ordering::Relaxed);
        tracing::info!(dir = %self.dir.display(), refused_writes, "the disk has room again");
        Some(refused_writes)
    }

    /// Takes the directory offline. Later failures add nothing.
    pub fn fail(&self, reason: &str) {
        if self.failure.set(reason.into()).is_ok() {
            tracing::error!(
                dir = %self.dir.display(),
                reason,
                "the log directory is offline until restart: nothing in it is written, read or acknowledged any more; check the disk, \
                 then restart with it, or with another one or none in its place in log.dirs"
            );
            self.failures.send_modify(|failures| *failures += 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_said_once_and_its_end_with_the_count() {
        let health = DirHealth::default();
        assert!(health.note_full(&"no room", 1));
        assert!(!health.note_full(&"no room", 2));
        assert_eq!(health.note_room(3), None, "a small batch found room");
        assert!(!health.note_full(&"no room", 4));
        assert_eq!(health.note_room(4 + ROOM_AFTER_MS), Some(3));
        assert!(!health.is_full() && health.failure().is_none());
        assert!(health.note_full(&"no room", 40_000), "the next time is news again");
    }
}
