//! One partition's log on one disk: its segments, its place in offsets, its epochs and producers. The owner calls it under the
//! partition's lock; readers take a [`LogView`] and need none.
//!
//! Opening is in `open`, appending in `append`, durability in `flush`, getting shorter in `shorten`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arc_swap::ArcSwap;

use super::epochs::EpochTable;
use super::file_cache::FileCache;
use super::producers::{ProducerEntry, Producers};
use super::segment::{Home, SEGMENT_BYTES_MAX, Segment};
use super::view::LogView;
use crate::base::{LeaderEpoch, Offset, ProducerId, TimestampMs, TopicId, TopicPartition};
use crate::host::Host;
use crate::metadata::config::LogConfig;

/// The machine, and the descriptors that all logs share.
#[derive(Clone)]
pub struct LogEnv {
    pub host: Host,
    pub files: Arc<FileCache>,
}

impl LogEnv {
    pub fn new(host: Host, open_files_max: usize) -> LogEnv {
        let files = Arc::new(FileCache::new(Arc::clone(&host.disk), open_files_max));
        LogEnv { host, files }
    }
}

/// Whose log it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogIdentity {
    pub topic_partition: TopicPartition,
    pub topic_id: TopicId,
}

/// A partition's log. Dropping it loses nothing that was flushed, but only [`Log::close`] leaves it as after a clean shutdown.
pub struct Log {
    pub(super) env: LogEnv,
    pub(super) home: Arc<Home>,
    pub(super) identity: LogIdentity,
    pub(super) config: Arc<LogConfig>,
    /// Ascending, never empty; the last one is `active`.
    pub(super) segments: Arc<[Arc<Segment>]>,
    pub(super) active: Arc<Segment>,
    /// When the active segment was made or opened, ms of the wall clock.
    pub(super) active_since: TimestampMs,
    /// The highest timestamp of the active segment's first batch.
    pub(super) active_first_timestamp: Option<TimestampMs>,
    pub(super) roll_jitter_ms: i64,
    pub(super) log_start_offset: Offset,
    pub(super) log_end_offset: Offset,
    pub(super) end_position: u64,
    /// Everything below is on the device.
    pub(super) flushed: Offset,
    /// `flushed` as of the last checkpoint: side files are good for what is below it.
    pub(super) recovery_point: Offset,
    /// Bytes that a recovery had to read at the start, and all that were appended since.
    pub(super) appended_bytes: u64,
    /// `appended_bytes` as of the end of what is flushed, and as of the recovery point.
    pub(super) flushed_bytes: u64,
    pub(super) checkpointed_bytes: u64,
    pub(super) epochs: Arc<EpochTable>,
    pub(super) epochs_unsaved: bool,
    /// The latest epoch was assigned and is worth saving only once something has been written in it.
    pub(super) epoch_assigned: bool,
    pub(super) producers: Producers,
    /// Where snapshots were taken that are kept whether or not a segment begins there, ascending.
    pub(super) snapshots: Vec<Offset>,
    pub(super) published: Arc<ArcSwap<LogView>>,
    pub(super) removals: Vec<super::shorten::Removal>,
    /// A segment, and the byte up to which it has been handed out for syncing: where the next write-back may begin.
    pub(super) writeback_mark: (Offset, u64),
    /// Names were made in the directory that its last sync does not cover.
    pub(super) names_unsynced: bool,
    /// The directory itself is new in the log directory.
    pub(super) dir_unsynced: bool,
    pub(super) metadata_unsynced: bool,
    /// Something was cut away that a power cut could bring back: behind this segment, or at its end.
    pub(super) cut_unsynced: Option<Offset>,
    /// Bytes of a failed write may stand behind the last batch.
    pub(super) tail_is_dirty: bool,
    /// Comes before everything else that changes the files or looks at the producers.
    pub(super) unfinished_cut: Option<super::shorten::Cut>,
}

impl Log {
    pub fn identity(&self) -> &LogIdentity {
        &self.identity
    }

    pub fn dir(&self) -> Arc<Path> {
        self.home.dir()
    }

    pub fn config(&self) -> &Arc<LogConfig> {
        &self.config
    }

    /// Takes effect with the next append, roll or retention.
    pub fn set_config(&mut self, config: Arc<LogConfig>) {
        self.home.index_interval_bytes.store(interval_of(&config), Ordering::Relaxed);
        self.config = config;
        self.roll_jitter_ms = self.draw_jitter();
        self.publish();
    }

    pub fn log_start_offset(&self) -> Offset {
        self.log_start_offset
    }

    /// The offset that the next record gets.
    pub fn log_end_offset(&self) -> Offset {
        self.log_end_offset
    }

    /// Everything below is on the device.
    pub fn flushed_offset(&self) -> Offset {
        self.flushed
    }

    /// From where a recovery has to check; belongs into `recovery-point-offset-checkpoint`. Moves with [`Log::checkpoint`].
    pub fn recovery_point(&self) -> Offset {
        self.recovery_point
    }

    /// Bytes behind the recovery point: what a recovery would have to read.
    pub fn bytes_since_checkpoint(&self) -> u64 {
        self.appended_bytes.saturating_sub(self.checkpointed_bytes)
    }

    /// Bytes of all segments.
    pub fn size_bytes(&self) -> u64 {
        self.view().size_bytes()
    }

    pub fn segment_count(&self) -> usize {
        self.segments.len()
    }

    pub fn latest_epoch(&self) -> Option<LeaderEpoch> {
        self.epochs.latest()
    }

    pub fn epochs(&self) -> &EpochTable {
        &self.epochs
    }

    /// The largest epoch not above `epoch` and the offset behind its last record; (-1, -1) when nobody can know (KIP-101).
    pub fn epoch_end_offset(&self, epoch: LeaderEpoch) -> (LeaderEpoch, Offset) {
        self.epochs.end_offset(epoch, self.log_end_offset)
    }

    /// Notes that this broker leads in `epoch` from the log's end on. Later epochs that the table has are damage that was taken for
    /// records of them.
    ///
    /// A log's first epoch is saved with the next checkpoint. A later one is saved once it has records: until then the next start,
    /// which begins an epoch of its own at the same offset, does not miss it, and ten thousand idle partitions write no files because
    /// of a restart.
    pub fn assign_epoch(&mut self, epoch: LeaderEpoch) {
        if self.epochs.latest().is_some_and(|latest| latest > epoch) {
            self.epochs_unsaved |= Arc::make_mut(&mut self.epochs).retract(epoch, self.log_end_offset);
            self.publish();
        }
        let (is_first, unsaved) = (self.epochs.latest().is_none(), self.epochs_unsaved);
        if self.note_epoch(epoch, self.log_end_offset) {
            self.epochs_unsaved = is_first || unsaved;
            self.epoch_assigned = true;
            self.publish();
        }
    }

    /// Whether `leader-epoch-checkpoint` lacks something that a recovery would miss.
    pub(super) fn must_save_epochs(&self) -> bool {
        let has_records =
            || self.epochs.entries().last().is_some_and(|latest| latest.start_offset < self.log_end_offset);
        self.epochs_unsaved || (self.epoch_assigned && has_records())
    }

    pub(super) fn note_epoch(&mut self, epoch: LeaderEpoch, start_offset: Offset) -> bool {
        if self.epochs.latest().is_some_and(|latest| latest >= epoch) {
            return false;
        }
        let changed = Arc::make_mut(&mut self.epochs).advance(epoch, start_offset);
        self.epochs_unsaved |= changed;
        changed
    }

    /// The producers that are remembered, in no order.
    pub fn producers(&self) -> impl Iterator<Item = &ProducerEntry> {
        self.producers.iter()
    }

    /// Whether it has a batch of the producer, as far as is remembered.
    pub fn knows_producer(&self, producer_id: ProducerId) -> bool {
        self.producers.knows(producer_id)
    }

    /// Forgets producers that have been silent for longer than `expiration_ms` (`producer.id.expiration.ms`); how many.
    pub fn expire_producers(&mut self, now: TimestampMs, expiration_ms: i64) -> usize {
        self.producers.expire(now, expiration_ms)
    }

    /// Ends the log of a deleted topic: descriptors are given back at once, whoever still holds a view, so that the room is free when the
    /// files are removed.
    pub fn retire(self) {
        self.home.retired.store(true, Ordering::Release);
        self.segments.iter().for_each(|segment| segment.close_files());
    }

    /// The picture as of now.
    pub fn view(&self) -> Arc<LogView> {
        self.published.load_full()
    }

    /// Where every new picture appears; for readers without the partition's lock.
    pub fn published(&self) -> Arc<ArcSwap<LogView>> {
        Arc::clone(&self.published)
    }

    pub(super) fn picture(&self) -> LogView {
        LogView {
            log_start_offset: self.log_start_offset,
            log_end_offset: self.log_end_offset,
            end_position: self.end_position,
            segments: Arc::clone(&self.segments),
            epochs: Arc::clone(&self.epochs),
            may_have_gaps: self.config.cleanup.compact,
        }
    }

    pub(super) fn publish(&self) {
        self.published.store(Arc::new(self.picture()));
    }

    pub(super) fn draw_jitter(&self) -> i64 {
        let most = self.config.segment_jitter_ms.min(self.config.segment_ms);
        if most <= 0 {
            return 0;
        }
        let mut bytes = [0; 8];
        self.env.host.entropy.fill(&mut bytes);
        i64::try_from(u64::from_le_bytes(bytes) % most.unsigned_abs()).unwrap_or(0)
    }

    pub(super) fn now(&self) -> TimestampMs {
        self.env.host.clock.now_ms()
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.home.dir().join(name)
    }

    /// `segments` is not empty.
    pub(super) fn set_segments(&mut self, segments: Vec<Arc<Segment>>) {
        if let Some(last) = segments.last() {
            self.active = Arc::clone(last);
            self.segments = segments.into();
        }
    }
}

/// How much room a new segment asks for (`preallocate`).
pub(super) fn reserved_bytes_of(config: &LogConfig) -> Option<u64> {
    config.preallocate.then(|| config.segment_bytes.min(SEGMENT_BYTES_MAX))
}

pub(super) fn interval_of(config: &LogConfig) -> u32 {
    u32::try_from(config.index_interval_bytes).unwrap_or(u32::MAX)
}
