//! Following a leader: what the log says of itself, writing what the leader sent, and cutting what it never had.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::base::ids::{NO_LEADER_EPOCH, NO_OFFSET};
use crate::base::{LeaderEpoch, Offset};
use crate::log::{AppendError, Log, LogError};
use crate::records::{BatchHeader, Batches, crc_is_valid};
use crate::replica::error::PartitionError;
use crate::replica::follower::{BadBatch, LocalLog, Position, Repair, Tail, check_batch};
use crate::replica::lanes::Flusher;
use crate::replica::partition::Partition;
use crate::replica::partitions::Partitions;
use crate::replica::role::Role;

/// Bytes written by one append, so that the lock is not held for long.
const APPEND_BYTES_MAX: u64 = 1 << 20;

/// Why an answer of the leader was not taken over, or not whole.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    #[error("the partition follows another leader or epoch now")]
    RoleChanged,
    #[error("the batch at offset {offset} does not have the checksum it claims")]
    Corrupt { offset: Offset },
    #[error("what the leader sent is no batch: {0}")]
    Malformed(String),
    #[error("the batch at offset {offset} does not continue the log: {reason}")]
    Misfit { offset: Offset, reason: BadBatch },
    #[error("our own copy is damaged")]
    Damaged,
    #[error("the flush journal cannot be emptied now")]
    Journal,
    #[error("the checkpoint files cannot be written now")]
    Checkpoints,
    #[error(transparent)]
    Partition(#[from] PartitionError),
}

/// What the leader says of its log besides the records.
#[derive(Clone, Copy, Debug)]
pub struct LeaderSays {
    pub high_watermark: Offset,
    pub log_start_offset: Offset,
}

/// What has to agree before a log is cut.
#[derive(Clone, Copy)]
pub(super) struct Files<'a> {
    pub(super) flusher: &'a Flusher,
    pub(super) partitions: &'a Partitions,
}

impl Partition {
    /// What to ask a leader of `epoch` for.
    pub fn position(&self, epoch: LeaderEpoch) -> Result<Position, FollowError> {
        self.as_follower(epoch, |log| self.position_in(log))
    }

    /// Runs `work` on the log while this node follows a leader of `epoch`.
    pub(super) fn as_follower<T>(
        &self,
        epoch: LeaderEpoch,
        work: impl FnOnce(&mut Log) -> T,
    ) -> Result<T, FollowError> {
        let mut slot = self.slot.lock();
        if !matches!(self.role(), Role::Follower { epoch: current, .. } if current == epoch) {
            return Err(FollowError::RoleChanged);
        }
        Ok(work(self.opened(&mut slot)?))
    }

    /// Writes what a leader of `epoch` sent, as far as it is whole, intact and continues the log. Nothing is synced. Returns the log's
    /// end.
    pub(super) fn append_as_follower(
        &self,
        files: Files<'_>,
        epoch: LeaderEpoch,
        records: &[u8],
        says: LeaderSays,
    ) -> Result<Offset, FollowError> {
        if self.damage.is_marked() {
            return Err(FollowError::Damaged);
        }
        // Checked before the lock is taken: a checksum over megabytes takes its time.
        let (batches, damage) = intact_batches(records, self.common.options.rules.checks_crc);
        if let Some(first) = batches.first() {
            self.begin_inside(files, epoch, first)?;
        }
        let mut rest = batches.as_slice();
        let mut at = 0;
        while let Some(chunk) = next_chunk(rest, self.chunk_bytes_max()) {
            let bytes: usize = chunk.iter().map(BatchHeader::size_bytes).sum();
            self.append_chunk(epoch, chunk, records.get(at..at + bytes).unwrap_or_default())?;
            rest = rest.get(chunk.len()..).unwrap_or_default();
            at += bytes;
        }
        let end = self.note_leader_says(epoch, says)?;
        damage.map_or(Ok(end), Err)
    }

    /// An empty log begins where the first batch does when the leader's log starts inside of that. The log's start is the batch's base
    /// until [`Partition::note_leader_says`]; until then nothing of it can be read either.
    fn begin_inside(&self, files: Files<'_>, epoch: LeaderEpoch, first: &BatchHeader) -> Result<(), FollowError> {
        let is_below = self.view_if_open().is_some_and(|view| first.base_offset < view.log_end_offset);
        // What would not be written anyway changes nothing.
        let tail = Tail { end: first.base_offset, last_epoch: NO_LEADER_EPOCH, takes_gaps: false };
        if is_below && check_batch(first, tail, epoch).is_ok() {
            self.repair(files, epoch, |log| log.on_first_batch(first))?;
        }
        Ok(())
    }

    pub(super) fn chunk_bytes_max(&self) -> u64 {
        self.config.load().segment_bytes.min(APPEND_BYTES_MAX)
    }

    fn append_chunk(&self, epoch: LeaderEpoch, headers: &[BatchHeader], bytes: &[u8]) -> Result<(), FollowError> {
        self.check_room()?;
        let appended = self.as_follower(epoch, |log| {
            let mut tail = Tail {
                end: log.log_end_offset(),
                last_epoch: log.latest_epoch().unwrap_or(NO_LEADER_EPOCH),
                takes_gaps: log.config().cleanup.compact,
            };
            let mut fitting = 0;
            let mut misfit = None;
            for header in headers {
                if let Err(reason) = check_batch(header, tail, epoch) {
                    misfit = Some(FollowError::Misfit { offset: header.base_offset, reason });
                    break;
                }
                (tail.end, tail.last_epoch) = (header.next_offset(), header.partition_leader_epoch);
                fitting += 1;
            }
            // What is before one that does not fit is as good as ever, and then the leader is asked for exactly that one.
            let headers = headers.get(..fitting).unwrap_or_default();
            if !headers.is_empty() {
                let whole: usize = headers.iter().map(BatchHeader::size_bytes).sum();
                let bytes = bytes.get(..whole).unwrap_or_default();
                log.append_as_follower(headers, bytes).map_err(|error| FollowError::Partition(error.into()))?;
            }
            Ok((fitting > 0, misfit))
        })?;
        if let Err(FollowError::Partition(PartitionError::Append(AppendError::Storage(error)))) = &appended {
            self.note_storage(error);
        }
        let (is_longer, misfit) = appended?;
        if is_longer {
            self.mark_dirty();
        }
        misfit.map_or(Ok(()), Err)
    }

    /// The leader's high watermark holds here too, up to this log's end, and so does its log's start.
    fn note_leader_says(&self, epoch: LeaderEpoch, says: LeaderSays) -> Result<Offset, FollowError> {
        let mut moved = false;
        let end = self.as_follower(epoch, |log| {
            // First, so that nobody reads what the leader has deleted.
            if says.log_start_offset > log.log_start_offset() {
                moved = true;
                log.delete_records_before(says.log_start_offset.min(log.log_end_offset()))?;
            }
            let committed = says.high_watermark.min(log.log_end_offset());
            moved |= self.high_watermark.fetch_max(committed, Ordering::SeqCst) < committed;
            Ok(log.log_end_offset())
        })?;
        if moved {
            self.wake_everybody();
        }
        end.map_err(|error: LogError| self.storage(error))
    }

    /// A damaged copy asks for what it lacks, and the leader has deleted that meanwhile: this log starts where the leader's does, too. `false`
    /// when there is nothing in it for this copy.
    pub(super) fn follow_start_when_damaged(&self, epoch: LeaderEpoch, start: Offset) -> Result<bool, FollowError> {
        if !self.damage.is_marked() || self.view_if_open().is_none_or(|view| start <= view.log_start_offset) {
            return Ok(false);
        }
        let says = LeaderSays { high_watermark: NO_OFFSET, log_start_offset: start };
        self.note_leader_says(epoch, says).map(|_| true)
    }

    pub(super) fn storage(&self, error: LogError) -> FollowError {
        self.note_storage(&error);
        FollowError::Partition(PartitionError::Append(AppendError::Storage(error)))
    }

    /// The leader of `epoch` says that its history has another end for our last epoch: cuts ours there. `false`: it was not done, and is
    /// to be asked for again. Blocks.
    pub(super) fn cut_to_divergence(
        &self,
        files: Files<'_>,
        epoch: LeaderEpoch,
        leaders_epoch: LeaderEpoch,
        leaders_end: Offset,
    ) -> Result<bool, FollowError> {
        let repair = self.repair(files, epoch, |log| Some(log.on_divergence(leaders_epoch, leaders_end)))?;
        Ok(repair.is_some())
    }

    /// The leader of `epoch` has nothing at our end: begins again where its log begins, if nothing is lost by that. Blocks.
    pub(super) fn restart_if_out_of_range(
        &self,
        files: Files<'_>,
        epoch: LeaderEpoch,
        leader_start: Offset,
    ) -> Result<Option<Repair>, FollowError> {
        self.repair(files, epoch, |log| log.on_out_of_range(leader_start))
    }

    /// Before the first fetch from a leader of `epoch`: throws away what cannot be compared with a leader's log. Blocks.
    pub(super) fn prepare_to_follow(
        &self,
        files: Files<'_>,
        epoch: LeaderEpoch,
    ) -> Result<Option<Repair>, FollowError> {
        if !self.common.options.rules.cuts_by_epoch {
            // Only in tests: what Kafka did before KIP-101.
            let high_watermark = self.high_watermark();
            return self
                .repair(files, epoch, |log| (log.end > high_watermark).then_some(Repair::CutTo(high_watermark)));
        }
        self.repair(files, epoch, |log| {
            let unknowable = || log.is_unknowable().then_some(Repair::RestartAt(log.start));
            log.on_later_epochs(epoch).or_else(unknowable)
        })
    }

    /// The flush journal may hold bytes that are about to be cut, and would write them again after a crash. So it is emptied first, and
    /// takes nothing of this partition until the cut is done and its file synced. The checkpoint files may say more than what will be
    /// left: they are lowered first.
    fn repair(
        &self,
        files: Files<'_>,
        epoch: LeaderEpoch,
        choose: impl Fn(LocalLog<'_>) -> Option<Repair>,
    ) -> Result<Option<Repair>, FollowError> {
        let chosen = self.as_follower(epoch, |log| -> Result<_, LogError> {
            let Some(repair) = choose(local(log)) else { return Ok(None) };
            let end = match repair {
                Repair::CutTo(offset) | Repair::DropFrom(offset) => log.end_when_cut_at(offset)?,
                Repair::RestartAt(offset) | Repair::BeginInside(offset) => offset,
            };
            Ok(Some((repair, end, self.begin_cut(end))))
        })?;
        let chosen = match chosen {
            // What is to be cut cannot be found behind a batch that is none: with the copy marked, the leader is asked for that one.
            Err(error @ LogError::Corrupt { .. }) => return self.mark_damage(error).map(|()| None),
            chosen => chosen.map_err(|error| self.storage(error))?,
        };
        let Some((repair, end, _cutting)) = chosen else { return Ok(None) };
        if !files.flusher.empty_journal(self.log_dir()) {
            return Err(FollowError::Journal);
        }
        if !files.partitions.save_cut(&self.identity.topic_partition, end) {
            return Err(FollowError::Checkpoints);
        }
        let cut = self.as_follower(epoch, |log| {
            // Somebody else may have been quicker.
            (choose(local(log)) == Some(repair)).then(|| self.cut(log, epoch, repair))
        })?;
        self.wake_everybody();
        match cut {
            Some(Ok(())) => Ok(Some(repair)),
            Some(Err(error)) => Err(self.storage(error)),
            None => Ok(None),
        }
    }

    /// Called under the lock of `slot`, and ends with what it gives back, which must be dropped without that lock.
    pub(super) fn begin_cut(&self, to: Offset) -> Cutting<'_> {
        self.unjournaled.fetch_add(1, Ordering::SeqCst);
        self.cutting_to.fetch_min(to, Ordering::Relaxed);
        Cutting(self)
    }

    fn cut(&self, log: &mut Log, epoch: LeaderEpoch, repair: Repair) -> Result<(), LogError> {
        let (before, committed) = (log.log_end_offset(), self.high_watermark());
        let cut = match repair {
            Repair::CutTo(offset) | Repair::DropFrom(offset) => log.truncate_to(offset),
            Repair::RestartAt(offset) | Repair::BeginInside(offset) => log.truncate_fully_and_start_at(offset),
        };
        // Also when it was interrupted: the log may end there all the same.
        let end = log.log_end_offset();
        self.note_cut(end);
        self.fail_synced_above(end);
        // What lies before a leader's start was committed once.
        self.high_watermark.fetch_max(log.log_start_offset(), Ordering::SeqCst);
        let partition = &self.identity.topic_partition;
        if let Repair::BeginInside(_) = repair {
            tracing::info!(
                %partition,
                leader_epoch = epoch,
                log_end_offset_before = before,
                log_end_offset = end,
                "the leader's log starts inside a batch: this copy begins where that batch does"
            );
            return cut;
        }
        if let Repair::DropFrom(_) = repair {
            tracing::warn!(
                %partition,
                leader_epoch = epoch,
                log_end_offset_before = before,
                log_end_offset = end,
                "this copy is damaged: it claims records of a later epoch than its leader's; cut it there, and what belongs there is \
                 fetched again"
            );
            return cut;
        }
        if end < committed {
            tracing::warn!(
                %partition,
                leader_epoch = epoch,
                high_watermark = committed,
                log_end_offset = end,
                "the leader lacks records that were committed, as after an unclean election; they are gone here, too"
            );
        }
        if end != before {
            tracing::info!(
                %partition,
                leader_epoch = epoch,
                log_end_offset_before = before,
                log_end_offset = end,
                "cut the log to where its history leaves the leader's"
            );
        }
        cut
    }
}

/// Somebody is about to cut a log.
pub(super) struct Cutting<'a>(&'a Partition);

impl Drop for Cutting<'_> {
    fn drop(&mut self) {
        let _slot = self.0.slot.lock();
        if self.0.unjournaled.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.cutting_to.store(Offset::MAX, Ordering::Relaxed);
        }
    }
}

pub(super) fn local(log: &Log) -> LocalLog<'_> {
    LocalLog { start: log.log_start_offset(), end: log.log_end_offset(), epochs: log.epochs() }
}

/// The headers of the whole and intact batches at the front, and what is wrong with the first that is not.
pub(super) fn intact_batches(records: &[u8], checks_crc: bool) -> (Vec<BatchHeader>, Option<FollowError>) {
    let mut headers = Vec::new();
    for batch in Batches::new(records) {
        match batch {
            Ok((header, bytes)) if !checks_crc || crc_is_valid(bytes) => headers.push(header),
            Ok((header, _)) => return (headers, Some(FollowError::Corrupt { offset: header.base_offset })),
            Err(error) => return (headers, Some(FollowError::Malformed(error.to_string()))),
        }
    }
    (headers, None)
}

/// The first batches that fit into one write; at least one.
fn next_chunk(headers: &[BatchHeader], bytes_max: u64) -> Option<&[BatchHeader]> {
    let mut bytes = 0;
    let fitting = headers.iter().take_while(|header| {
        bytes += header.size_bytes() as u64;
        bytes <= bytes_max
    });
    let count = fitting.count().max(1);
    headers.get(..count)
}

impl Partition {
    /// Whether a fetched answer of a leader of `epoch` would still be taken.
    pub fn follows(self: &Arc<Self>, epoch: LeaderEpoch) -> bool {
        matches!(self.role(), Role::Follower { epoch: current, .. } if current == epoch)
    }
}
