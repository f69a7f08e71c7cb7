//! Where logs begin is written down before anybody is told of it. A start that only memory knew would go back with the next crash, and
//! what was deleted would be read again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Partitions;
use crate::base::Offset;
use crate::log::LogError;
use crate::log::checkpoints::Offsets;
use crate::replica::checkpoints::{Checkpoints, save_log_starts};
use crate::replica::log_dirs::LogDir;
use crate::replica::partition::Partition;

impl Partition {
    /// Where the log begins at least after a crash.
    pub fn kept_start(&self) -> Offset {
        self.start_kept.load(Ordering::Acquire)
    }

    fn start_is_kept(&self) -> bool {
        self.view_if_open().is_none_or(|view| view.log_start_offset <= self.kept_start())
    }

    /// Whether it is worth a try to write where the log begins. Where the last one failed, the housekeeper tries again.
    pub(in crate::replica) fn wants_start_kept(&self) -> bool {
        let dir = self.log_dir();
        !self.start_is_kept() && !dir.is_unsaved.load(Ordering::Relaxed) && dir.health.failure().is_none()
    }
}

impl Partitions {
    /// Writes where these logs begin, unless that is written: one small file for each directory. What came of it,
    /// [`Partition::kept_start`] says. Blocks.
    pub fn keep_starts<'a>(&self, moved: impl IntoIterator<Item = &'a Arc<Partition>>) {
        let _turn = self.saving.lock();
        let unkept = moved.into_iter().filter(|partition| !partition.start_is_kept());
        let dirs: BTreeSet<usize> = unkept.map(|partition| partition.log_dir().index).collect();
        if dirs.is_empty() {
            return;
        }
        let current = self.checkpoints_of(&self.table.load());
        self.each_working(current, |dir, current| {
            if dirs.contains(&dir.index) {
                self.save_starts(dir, &mut dir.saved.lock(), current);
            }
        });
    }

    fn save_starts(&self, dir: &LogDir, saved: &mut Checkpoints, current: &mut Checkpoints) {
        if current.log_start_offsets != saved.log_start_offsets {
            if let Err(error) = save_log_starts(self.disk(), &dir.path, &current.log_start_offsets) {
                self.note_unsaved(dir, &error);
                return;
            }
            saved.log_start_offsets = std::mem::take(&mut current.log_start_offsets);
        }
        self.note_saved(dir, &saved.log_start_offsets);
    }

    /// The directory's file says so now.
    pub(super) fn note_saved(&self, dir: &LogDir, starts: &Offsets) {
        dir.is_unsaved.store(false, Ordering::Relaxed);
        for topic in self.table.load().by_name.values() {
            for partition in topic.partitions.iter().flatten().filter(|one| one.log_dir().index == dir.index) {
                let start = starts.get(&partition.identity.topic_partition).copied().unwrap_or(0);
                partition.start_kept.store(start, Ordering::Release);
            }
        }
    }

    /// The housekeeper tries again. `false`, for whoever wanted it written.
    pub(super) fn note_unsaved(&self, dir: &LogDir, error: &LogError) -> bool {
        self.note_start_moved();
        if !dir.is_unsaved.swap(true, Ordering::Relaxed) {
            tracing::error!(
                dir = %dir.path.display(),
                %error,
                "cannot write the checkpoint files; trying again: until then recovery would take longer, and what is deleted is not \
                 said to be"
            );
        }
        false
    }
}
