//! The directories that hold this node's replicas, one for each disk. Each has its own checkpoints, its own lane of the group commit and
//! its own health: one that fails takes only its replicas with it (KIP-112, KIP-858).
//!
//! Which directories there are is settled at the start. One that could not be used then stays out until the next start: what it holds is
//! not known, so nothing is made anew in another one that may lie in it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;
use uuid::Uuid;

use crate::base::{Offset, TopicPartition};
use crate::replica::checkpoints::Checkpoints;
use crate::replica::dir_health::DirHealth;
use crate::replica::partition::Checkpointed;
use crate::replica::reserve::Reserve;

/// Wishes for partitions that are not here yet; more are not remembered.
const WISHES_MAX: usize = 10_000;

/// One directory.
pub struct LogDir {
    /// Absolute.
    pub path: PathBuf,
    /// From its `meta.properties`.
    pub id: Uuid,
    pub health: DirHealth,
    /// Its place in the list.
    pub(super) index: usize,
    /// Replicas that lie here, those that are on their way here among them.
    pub(super) replicas: AtomicUsize,
    /// What the last run remembered of partitions that have not been met yet.
    pub(super) checkpointed: Mutex<HashMap<TopicPartition, Checkpointed>>,
    /// What the checkpoint files say now.
    pub(super) saved: Mutex<Checkpoints>,
    /// The last try to write the logs' recovery points and starts failed, and was told of.
    pub(super) is_unsaved: AtomicBool,
}

/// A directory as the start found it.
pub struct FoundDir {
    pub path: PathBuf,
    pub id: Uuid,
    pub checkpoints: Checkpoints,
}

pub struct LogDirs {
    first: Arc<LogDir>,
    all: Vec<Arc<LogDir>>,
    /// Directories of `log.dirs` that could not be used at the start.
    missing: Vec<PathBuf>,
    /// Where a partition shall be made that is not here yet (AlterReplicaLogDirs).
    wishes: Mutex<HashMap<TopicPartition, usize>>,
    failures: Arc<watch::Sender<usize>>,
    /// Room that is kept on the metadata's disk.
    reserve: Option<Arc<Reserve>>,
}

impl LogDirs {
    /// Of `found`, and where that names several, `others`.
    pub fn new(found: FoundDir, others: Vec<FoundDir>, missing: Vec<PathBuf>) -> LogDirs {
        let failures = Arc::new(watch::Sender::new(0));
        let dirs = std::iter::once(found).chain(others).enumerate();
        let all: Vec<_> = dirs.map(|(index, found)| Arc::new(LogDir::new(index, found, failures.clone()))).collect();
        let first = all.first().cloned();
        let first = first.unwrap_or_else(|| Arc::new(LogDir::new(0, FoundDir::nowhere(), failures.clone())));
        LogDirs { first, all, missing, wishes: Mutex::default(), failures, reserve: None }
    }

    /// Nothing is written that the metadata needs the room for.
    pub fn with_reserve(self, reserve: Arc<Reserve>) -> LogDirs {
        LogDirs { reserve: Some(reserve), ..self }
    }

    /// Whether records must not be written to this directory now.
    pub(super) fn hold_back(&self, dir: &LogDir) -> bool {
        self.reserve.as_ref().is_some_and(|reserve| reserve.holds_back(&dir.path))
    }

    /// A node with one directory.
    pub fn only(path: PathBuf, checkpoints: &Checkpoints) -> LogDirs {
        let found = FoundDir { path, id: Uuid::nil(), checkpoints: checkpoints.clone() };
        LogDirs::new(found, Vec::new(), Vec::new())
    }

    /// The directory of that place in the list.
    #[inline]
    pub(super) fn at(&self, index: usize) -> &Arc<LogDir> {
        self.all.get(index).unwrap_or(&self.first)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<LogDir>> {
        self.all.iter()
    }

    /// Whether there is only one, and never was another.
    pub(super) fn is_one(&self) -> bool {
        self.all.len() == 1 && self.missing.is_empty()
    }

    /// Directories of `log.dirs` that could not be used at the start.
    pub fn missing(&self) -> &[PathBuf] {
        &self.missing
    }

    pub fn by_id(&self, id: Uuid) -> Option<&Arc<LogDir>> {
        self.all.iter().find(|dir| dir.id == id)
    }

    pub fn by_path(&self, path: &Path) -> Option<&Arc<LogDir>> {
        self.all.iter().find(|dir| dir.path.as_os_str() == path.as_os_str())
    }

    /// The directory that a file lies in.
    pub(super) fn holding(&self, path: &Path) -> Option<&Arc<LogDir>> {
        let around = self.all.iter().filter(|dir| path.starts_with(&dir.path));
        around.max_by_key(|dir| dir.path.as_os_str().len())
    }

    /// Whether nothing is known of some directory, now or since the start.
    pub fn some_are_offline(&self) -> bool {
        !self.missing.is_empty() || self.all.iter().any(|dir| dir.health.failure().is_some())
    }

    /// Why nothing can be served any more, when every directory has failed.
    pub fn all_failed(&self) -> Option<Arc<str>> {
        let mut failures = self.all.iter().map(|dir| dir.health.failure());
        let first = failures.next().flatten()?;
        failures.all(|failure| failure.is_some()).then(|| first.clone())
    }

    /// The ids of directories that have failed since the start.
    pub fn failed_ids(&self) -> Vec<Uuid> {
        self.all.iter().filter(|dir| dir.health.failure().is_some()).map(|dir| dir.id).collect()
    }

    /// Changes with each directory that fails.
    pub fn failures(&self) -> watch::Receiver<usize> {
        self.failures.subscribe()
    }

    /// The directory with the fewest replicas, the first of them in the order of `log.dirs`, among those that work.
    pub(super) fn emptiest(&self) -> &Arc<LogDir> {
        let working = self.all.iter().filter(|dir| dir.health.failure().is_none());
        working.min_by_key(|dir| dir.replicas.load(Ordering::Relaxed)).unwrap_or(&self.first)
    }

    /// Remembers where a partition shall be made that is not here yet.
    pub(super) fn wish(&self, partition: &TopicPartition, dir: usize) {
        let mut wishes = self.wishes.lock();
        if wishes.len() < WISHES_MAX || wishes.contains_key(partition) {
            wishes.insert(partition.clone(), dir);
        }
    }

    pub(super) fn take_wish(&self, partition: &TopicPartition) -> Option<&Arc<LogDir>> {
        let wish = self.wishes.lock().remove(partition)?;
        self.all.get(wish).filter(|dir| dir.health.failure().is_none())
    }
}

impl FoundDir {
    fn nowhere() -> FoundDir {
        FoundDir { path: PathBuf::new(), id: Uuid::nil(), checkpoints: Checkpoints::default() }
    }
}

impl LogDir {
    /// Its place among the node's directories.
    pub fn index(&self) -> usize {
        self.index
    }

    fn new(index: usize, found: FoundDir, failures: Arc<watch::Sender<usize>>) -> LogDir {
        let FoundDir { path, id, checkpoints } = found;
        LogDir {
            health: DirHealth::new(path.clone(), failures),
            path,
            id,
            index,
            replicas: AtomicUsize::new(0),
            checkpointed: Mutex::new(by_partition(&checkpoints)),
            saved: Mutex::new(Checkpoints { clean_shutdown: false, ..checkpoints }),
            is_unsaved: AtomicBool::new(false),
        }
    }

    /// What was remembered of a partition, once.
    pub(super) fn take_checkpointed(&self, partition: &TopicPartition) -> Option<Checkpointed> {
        self.checkpointed.lock().remove(partition)
    }

    pub(super) fn gained_replica(&self) {
        self.replicas.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn lost_replica(&self) {
        self.replicas.fetch_sub(1, Ordering::Relaxed);
    }
}

fn by_partition(checkpoints: &Checkpoints) -> HashMap<TopicPartition, Checkpointed> {
    let offset = |offsets: &crate::log::checkpoints::Offsets, name| -> Option<Offset> { offsets.get(name).copied() };
    let known = checkpoints.recovery_points.keys().chain(checkpoints.high_watermarks.keys());
    // Starts are also written by themselves.
    let known = known.chain(checkpoints.log_start_offsets.keys());
    known
        .map(|name| {
            let checkpointed = Checkpointed {
                clean_shutdown: checkpoints.clean_shutdown,
                recovery_point: offset(&checkpoints.recovery_points, name).unwrap_or(0),
                log_start_offset: offset(&checkpoints.log_start_offsets, name),
                high_watermark: offset(&checkpoints.high_watermarks, name).unwrap_or(0),
            };
            (name.clone(), checkpointed)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dirs() -> LogDirs {
        let found = |path: &str, id| FoundDir {
            path: path.into(),
            id: Uuid::from_u128(id),
            checkpoints: Checkpoints::default(),
        };
        LogDirs::new(found("/a", 101), vec![found("/a/b", 102), found("/c", 103)], vec!["/gone".into()])
    }

    #[test]
    fn new_replicas_go_where_fewest_are() {
        let dirs = dirs();
        let mut chosen = Vec::new();
        for _ in 0..4 {
            let dir = dirs.emptiest();
            dir.gained_replica();
            chosen.push(dir.index);
        }
        assert_eq!(chosen, [0, 1, 2, 0]);
        dirs.at(1).health.fail("gone");
        assert_eq!(dirs.emptiest().index, 2, "not into one that failed");
        assert_eq!(dirs.failed_ids(), [Uuid::from_u128(102)]);
        assert_eq!(dirs.all_failed(), None);
        assert_eq!(*dirs.failures().borrow(), 1);
    }

    #[test]
    fn a_file_lies_in_the_innermost_directory_around_it() {
        let dirs = dirs();
        let index = |path: &str| dirs.holding(Path::new(path)).map(|dir| dir.index);
        assert_eq!(index("/a/t-0/0.log"), Some(0));
        assert_eq!(index("/a/b/t-0/0.log"), Some(1));
        assert_eq!(index("/d/t-0"), None);
        assert!(dirs.by_path(Path::new("/c")).is_some() && dirs.by_path(Path::new("/c/")).is_none());
    }

    #[test]
    fn a_wish_is_granted_once_and_not_by_a_directory_that_failed() {
        let dirs = dirs();
        let partition = TopicPartition::new("t", 0);
        dirs.wish(&partition, 2);
        assert_eq!(dirs.take_wish(&partition).map(|dir| dir.index), Some(2));
        assert!(dirs.take_wish(&partition).is_none());
        dirs.wish(&partition, 2);
        dirs.at(2).health.fail("gone");
        assert!(dirs.take_wish(&partition).is_none());
    }
}
