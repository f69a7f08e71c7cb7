//! What the table does to its directories as a whole: checkpoint files, what nobody owns any more, the end of a run. Each directory's
//! files speak of the replicas in it, and of those that are on their way into it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Partitions, Table};
use crate::base::{MonotonicMs, Offset, TopicPartition};
use crate::log::checkpoints::{Offsets, mark_clean_shutdown};
use crate::log::{LogError, future_of, is_retired_dir_name};
use crate::replica::checkpoints::{Checkpoints, save_high_watermarks};
use crate::replica::log_dirs::LogDir;
use crate::replica::partition::{Checkpointed, Partition};
use crate::replica::stock::Stock;
use crate::replica::strays::set_aside;

/// Directories of deleted partitions that are removed before the housekeeper looks at its other duties.
const REMOVED_AT_ONCE: usize = 64;

/// A partition directory that nobody owns any more.
pub(super) struct Doomed {
    pub path: PathBuf,
    /// Readers that were at it go on for a moment: not removed before.
    pub not_before: MonotonicMs,
}

impl Partitions {
    /// Takes retired partitions out of the checkpoint files, which know names only: what they say would be believed of a new topic of the
    /// name, or of a replica that comes back.
    pub(super) fn forget(&self, gone: &[Arc<Partition>], table: &Table) {
        if gone.is_empty() {
            return;
        }
        let _turn = self.saving.lock();
        let mut current = self.checkpoints_of(table);
        for (dir, current) in self.dirs.iter().zip(&mut current) {
            let mut saved = dir.saved.lock();
            let remembers = |offsets: &Offsets| {
                let of = |partition: &Arc<Partition>| offsets.get(&partition.identity.topic_partition).copied();
                gone.iter().filter_map(of).any(|offset| offset > 0)
            };
            let in_points = remembers(&saved.recovery_points) || remembers(&saved.log_start_offsets);
            let in_watermarks = remembers(&saved.high_watermarks);
            let points_saved = !in_points || self.save_points(dir, &mut saved, current);
            let watermarks_saved = !in_watermarks || self.save_watermarks(dir, &mut saved, current);
            if !points_saved || !watermarks_saved {
                self.note_start_moved();
            }
        }
    }

    /// Brings the checkpoint files up to date, but for the high watermarks.
    pub(in crate::replica) fn save_checkpoints(&self) {
        let _turn = self.saving.lock();
        let current = self.checkpoints_of(&self.table.load());
        self.each_working(current, |dir, current| {
            self.save_points(dir, &mut dir.saved.lock(), current);
        });
    }

    /// Before a log is cut at `to`, which it knows already: no checkpoint file says more of it afterwards, or it would be believed of
    /// what comes in the place of what is cut. `false` when that cannot be written.
    pub(in crate::replica) fn save_cut(&self, name: &TopicPartition, to: Offset) -> bool {
        let Some(partition) = self.partition(&name.topic, name.partition) else { return true };
        let _turn = self.saving.lock();
        let mut current = self.checkpoints_of(&self.table.load());
        // It does not move while it is about to be cut.
        let dir = partition.log_dir();
        let Some(current) = current.get_mut(dir.index) else { return false };
        let mut saved = dir.saved.lock();
        let says_more = |offsets: &Offsets| offsets.get(name).is_some_and(|offset| *offset > to);
        let in_points = says_more(&saved.recovery_points) || says_more(&saved.log_start_offsets);
        let in_watermarks = says_more(&saved.high_watermarks);
        (!in_points || self.save_points(dir, &mut saved, current))
            && (!in_watermarks || self.save_watermarks(dir, &mut saved, current))
    }

    /// What consumers could read before a restart they can read soon after it.
    pub(in crate::replica) fn save_high_watermarks(&self) {
        let _turn = self.saving.lock();
        let current = self.checkpoints_of(&self.table.load());
        self.each_working(current, |dir, current| {
            self.save_watermarks(dir, &mut dir.saved.lock(), current);
        });
    }

    /// All files of one directory.
    pub(in crate::replica) fn save_all_of(&self, dir: &LogDir) -> bool {
        let _turn = self.saving.lock();
        let mut current = self.checkpoints_of(&self.table.load());
        let Some(current) = current.get_mut(dir.index) else { return false };
        let mut saved = dir.saved.lock();
        self.save_points(dir, &mut saved, current) && self.save_watermarks(dir, &mut saved, current)
    }

    pub(super) fn each_working(&self, mut current: Vec<Checkpoints>, mut work: impl FnMut(&LogDir, &mut Checkpoints)) {
        for (dir, current) in self.dirs.iter().zip(&mut current) {
            if dir.health.failure().is_none() {
                work(dir, current);
            }
        }
    }

    fn save_points(&self, dir: &LogDir, saved: &mut Checkpoints, current: &mut Checkpoints) -> bool {
        if current.recovery_points == saved.recovery_points && current.log_start_offsets == saved.log_start_offsets {
            self.note_saved(dir, &saved.log_start_offsets);
            return true;
        }
        match current.save(self.disk(), &dir.path) {
            Ok(()) => {
                saved.recovery_points = std::mem::take(&mut current.recovery_points);
                saved.log_start_offsets = std::mem::take(&mut current.log_start_offsets);
                self.note_saved(dir, &saved.log_start_offsets);
                true
            }
            Err(error) => self.note_unsaved(dir, &error),
        }
    }

    fn save_watermarks(&self, dir: &LogDir, saved: &mut Checkpoints, current: &mut Checkpoints) -> bool {
        if current.high_watermarks == saved.high_watermarks {
            return true;
        }
        match save_high_watermarks(self.disk(), &dir.path, &current.high_watermarks) {
            Ok(()) => {
                saved.high_watermarks = std::mem::take(&mut current.high_watermarks);
                true
            }
            Err(error) => {
                tracing::error!(%error, "cannot write the high watermarks; consumers would wait after a restart");
                false
            }
        }
    }

    /// Removes some of what deleted topics and replicas that moved left behind, until `is_stopping`; the next start removes what is left
    /// then. Blocks. `true` when more could be removed now.
    pub fn remove_doomed(&self, is_stopping: impl Fn() -> bool) -> bool {
        let now = self.env.host.clock.monotonic_ms();
        let mut batch = Vec::new();
        self.doomed.lock().retain(|doomed| {
            let stays = doomed.not_before > now || batch.len() >= REMOVED_AT_ONCE;
            if !stays {
                batch.push(doomed.path.clone());
            }
            stays
        });
        let mut kept = Vec::new();
        for dir in batch {
            if is_stopping() {
                return false;
            }
            if let Err(error) = self.env.host.disk.remove_dir_all(&dir) {
                tracing::warn!(dir = %dir.display(), %error, "cannot remove a deleted partition's directory; trying again later");
                kept.push(Doomed { path: dir, not_before: 0 });
            }
        }
        let mut doomed = self.doomed.lock();
        let more = kept.is_empty() && doomed.iter().any(|doomed| doomed.not_before <= now);
        doomed.extend(kept);
        more
    }

    /// Looks once, at start, for what no topic of the image owns. Half-deleted directories go, unknown ones are set aside, and what
    /// the checkpoint files say of others is forgotten. Only when an image has taken effect that knows all topics that had a directory
    /// here before the start.
    pub fn sweep_strays(&self) -> std::io::Result<()> {
        let disk = &self.env.host.disk;
        for dir in self.dirs.iter().filter(|dir| dir.health.failure().is_none()) {
            let entries = match disk.read_dir(&dir.path) {
                Ok(entries) => entries,
                Err(error) => {
                    dir.health.fail(&format!("cannot list {}: {error}", dir.path.display()));
                    continue;
                }
            };
            for entry in entries.into_iter().filter(|entry| entry.is_dir) {
                let path = dir.path.join(&entry.name);
                if is_retired_dir_name(&entry.name) {
                    self.doom(path, 0);
                } else if let Some(found) = TopicPartition::parse_dir_name(&entry.name) {
                    let is_metadata = entry.name.starts_with("__cluster_metadata-");
                    if !is_metadata && !self.is_owned(&found, &path) {
                        self.set_stray_aside(&path);
                    }
                } else if let Some(partition) = future_of(&entry.name).and_then(TopicPartition::parse_dir_name)
                    && !self.is_moving_into(&partition, &path)
                {
                    // A copy of a replica that is elsewhere, or was.
                    self.set_stray_aside(&path);
                }
            }
            dir.checkpointed.lock().clear();
        }
        // What is left was set aside.
        *self.stock.lock() = Some(Stock::default());
        self.save_checkpoints();
        self.save_high_watermarks();
        Ok(())
    }

    fn set_stray_aside(&self, path: &std::path::Path) {
        if let Err(error) = set_aside(&self.env.host, path) {
            tracing::error!(dir = %path.display(), %error, "no topic owns this partition directory, and it cannot be set aside");
        }
    }

    /// Whether the directory is, or may be, that of a partition here.
    fn is_owned(&self, name: &TopicPartition, path: &std::path::Path) -> bool {
        let partition = self.partition(&name.topic, name.partition);
        partition.is_some_and(|partition| partition.is_missing() || partition.dir() == path)
    }

    fn is_moving_into(&self, name: &TopicPartition, path: &std::path::Path) -> bool {
        let partition = self.partition(&name.topic, name.partition);
        partition
            .is_some_and(|partition| partition.is_missing() || partition.future_dir().is_some_and(|dir| dir == path))
    }

    pub(in crate::replica) fn doom(&self, path: PathBuf, not_before: MonotonicMs) {
        self.doomed.lock().push(Doomed { path, not_before });
    }

    /// Directories that failed: their replicas are not served any more, whoever waits for them is told so.
    pub fn note_failures(&self) {
        for topic in self.topics() {
            for partition in topic.partitions.iter().flatten().filter(|partition| partition.disk_has_failed()) {
                partition.go_offline();
            }
        }
    }

    /// Closes every log in order and marks the directories as cleanly shut down. Blocks.
    pub fn close(&self, broker_epoch: i64) -> Result<(), LogError> {
        let _turn = self.saving.lock();
        let mut current = self.checkpoints_of(&self.table.load());
        let mut unchecked = vec![0_usize; current.len()];
        for topic in self.topics() {
            for partition in topic.partitions.iter().flatten() {
                self.close_one(partition, &mut current, &mut unchecked)?;
            }
        }
        for (dir, (current, unchecked)) in self.dirs.iter().zip(current.into_iter().zip(unchecked)) {
            if let Some(failure) = dir.health.failure() {
                tracing::warn!(dir = %dir.path.display(), %failure, "the log directory is offline: it is not marked as cleanly shut down");
                continue;
            }
            let mut saved = dir.saved.lock();
            current.save(self.disk(), &dir.path)?;
            save_high_watermarks(self.disk(), &dir.path, &current.high_watermarks)?;
            *saved = current;
            if unchecked > 0 {
                tracing::warn!(
                    dir = %dir.path.display(),
                    unchecked,
                    "not all logs could be checked: the log directory is not marked as cleanly shut down"
                );
                continue;
            }
            mark_clean_shutdown(self.disk(), &dir.path, broker_epoch)?;
        }
        Ok(())
    }

    fn close_one(
        &self,
        partition: &Arc<Partition>,
        checkpoints: &mut [Checkpoints],
        unchecked: &mut [usize],
    ) -> Result<(), LogError> {
        let name = &partition.identity.topic_partition;
        let mut note_end = |dir: usize, end| {
            if let Some(checkpoints) = checkpoints.get_mut(dir) {
                checkpoints.recovery_points.insert(name.clone(), end);
            }
        };
        if let Some((dir, log)) = partition.take_future_log()
            && self.dirs.at(dir).health.failure().is_none()
        {
            let end = log.log_end_offset();
            log.close()?;
            note_end(dir, end);
        }
        let home = partition.log_dir();
        if partition.is_unchecked()
            && let Some(unchecked) = unchecked.get_mut(home.index)
        {
            *unchecked += 1;
        }
        if let Some(log) = partition.retire()
            && home.health.failure().is_none()
        {
            let end = log.log_end_offset();
            log.close()?;
            note_end(home.index, end);
        }
        Ok(())
    }

    /// The content of `replication-offset-checkpoint` as of now, over all directories.
    pub fn high_watermarks(&self) -> Offsets {
        let all = self.checkpoints_of(&self.table.load());
        all.into_iter().flat_map(|checkpoints| checkpoints.high_watermarks).collect()
    }

    /// What each directory's checkpoint files should say now, in the order of the directories.
    pub(super) fn checkpoints_of(&self, table: &Table) -> Vec<Checkpoints> {
        let mut all = vec![Checkpoints::default(); self.dirs.iter().count()];
        for topic in table.by_name.values() {
            for (partition, state) in topic.partitions.iter().zip(&topic.source.partitions) {
                let Some(partition) = partition else { continue };
                let name = &partition.identity.topic_partition;
                let is_replicated = state.replicas.len() > 1;
                let places = [partition.checkpoint(), partition.future_checkpoint()];
                for (dir, at) in places.into_iter().flatten() {
                    if let Some(checkpoints) = all.get_mut(dir) {
                        checkpoints.note(name, &at, is_replicated);
                    }
                }
            }
        }
        all
    }

    /// How many replicas lie in the directory, or are on their way there.
    pub fn replicas_in(&self, dir: &LogDir) -> usize {
        dir.replicas.load(Ordering::Relaxed)
    }
}

impl Checkpoints {
    fn note(&mut self, name: &TopicPartition, at: &Checkpointed, is_replicated: bool) {
        self.recovery_points.insert(name.clone(), at.recovery_point);
        if let Some(start) = at.log_start_offset.filter(|start| *start > 0) {
            self.log_start_offsets.insert(name.clone(), start);
        }
        if is_replicated {
            self.high_watermarks.insert(name.clone(), at.high_watermark);
        }
    }
}
