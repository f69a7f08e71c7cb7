//! The follower's side of one partition's replication, as pure decisions: what to ask the leader for, where the own history leaves the
//! leader's, and what of an answer may be written.
//!
//! A log is cut only where epochs say so, never at a high watermark (KIP-101, KIP-279): each fetch names the epoch of the last record,
//! and a leader that knows another end for it says where its own history of that time ended. The follower walks back over such
//! answers until both agree.

use crate::base::ids::{NO_LEADER_EPOCH, NO_OFFSET};
use crate::base::{LeaderEpoch, Offset};
use crate::log::EpochTable;
use crate::records::BatchHeader;

/// What the follower says of its log in a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub fetch_offset: Offset,
    /// -1 for a log without records.
    pub last_epoch: LeaderEpoch,
    pub log_start_offset: Offset,
}

/// The local log, as far as decisions need it.
#[derive(Clone, Copy, Debug)]
pub struct LocalLog<'a> {
    pub start: Offset,
    pub end: Offset,
    pub epochs: &'a EpochTable,
}

/// How to make the local log agree with the leader's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// Cut everything from this offset on.
    CutTo(Offset),
    /// Cut everything from this offset on: it is damaged, and says that it is of epochs after the leader's.
    DropFrom(Offset),
    /// Throw everything away and begin at this offset.
    RestartAt(Offset),
    /// There is nothing to throw away: begin at this offset, where the batch begins that the leader's log starts in.
    BeginInside(Offset),
}

impl LocalLog<'_> {
    pub fn position(&self) -> Position {
        Position {
            fetch_offset: self.end,
            last_epoch: if self.is_empty() { NO_LEADER_EPOCH } else { self.epochs.latest().unwrap_or(NO_LEADER_EPOCH) },
            log_start_offset: self.start,
        }
    }

    /// As of a log that ended at `offset`, for one that is damaged there.
    pub fn position_at(&self, offset: Offset) -> Position {
        let last = offset.checked_sub(1).filter(|last| *last >= self.start);
        Position {
            fetch_offset: offset,
            last_epoch: last.and_then(|last| self.epochs.epoch_at(last)).unwrap_or(NO_LEADER_EPOCH),
            log_start_offset: self.start,
        }
    }

    fn is_empty(&self) -> bool {
        self.start >= self.end
    }

    /// The leader's history has no record of `position().last_epoch` at our end: its last epoch at or below ours is `epoch`, and
    /// ended at `end_offset` (KIP-595).
    pub fn on_divergence(&self, epoch: LeaderEpoch, end_offset: Offset) -> Repair {
        let (own_epoch, own_end) = self.epochs.end_offset(epoch, self.end);
        let to = if own_end == NO_OFFSET {
            end_offset
        } else if own_epoch == epoch {
            own_end.min(end_offset)
        } else {
            // We have nothing of that epoch. Back to where our next older one ended; the next answer tells whether that is enough.
            own_end
        };
        let to = to.min(self.end);
        if to <= self.start { Repair::RestartAt(to.max(0)) } else { Repair::CutTo(to) }
    }

    /// The leader has nothing at our end. `leader_start` is where its log begins, when it said so.
    pub fn on_out_of_range(&self, leader_start: Offset) -> Option<Repair> {
        if leader_start < 0 {
            return None;
        }
        // Behind its start: what lies between is gone everywhere. Before its end with nothing of our own: nothing can be lost.
        (self.end < leader_start || self.is_empty()).then_some(Repair::RestartAt(leader_start))
    }

    /// The leader's log starts inside a batch, after a DeleteRecords, and it sends that batch whole. A log with records never gets there:
    /// it ends where a batch does, or goes on behind what it has.
    pub fn on_first_batch(&self, first: &BatchHeader) -> Option<Repair> {
        let base = first.base_offset;
        let holds_end = (0..self.end).contains(&base) && first.last_offset() >= self.end;
        (self.is_empty() && holds_end).then_some(Repair::BeginInside(base))
    }

    /// The log says that it has records of an epoch in which nobody has led yet, so no leader could tell where that ended.
    pub fn on_later_epochs(&self, leader_epoch: LeaderEpoch) -> Option<Repair> {
        let later = self.epochs.entries().iter().find(|entry| entry.epoch > leader_epoch);
        later.map(|entry| Repair::DropFrom(entry.start_offset))
    }

    /// Whether the log holds records without knowing their epochs: nothing of it can be compared with a leader's.
    pub fn is_unknowable(&self) -> bool {
        !self.is_empty() && self.epochs.latest().is_none()
    }
}

/// Why a batch of a leader's answer is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadBatch {
    #[error("it begins at offset {got}, expected {expected}")]
    Offset { got: Offset, expected: Offset },
    #[error("it is of epoch {got}, which is not between {least} and {most}")]
    Epoch { got: LeaderEpoch, least: LeaderEpoch, most: LeaderEpoch },
    #[error("its last offset lies before its first")]
    Backwards,
}

/// What a batch has to continue.
#[derive(Clone, Copy, Debug)]
pub struct Tail {
    /// Where the log ends.
    pub end: Offset,
    /// Of its last record.
    pub last_epoch: LeaderEpoch,
    /// Compaction has left gaps on the leader. A gap anywhere else is damage, or records that the leader has lost.
    pub takes_gaps: bool,
}

/// Checks that a batch continues a log under a leader of `leader_epoch`.
pub fn check_batch(header: &BatchHeader, tail: Tail, leader_epoch: LeaderEpoch) -> Result<(), BadBatch> {
    let Tail { end, last_epoch, takes_gaps } = tail;
    if header.last_offset_delta < 0 {
        return Err(BadBatch::Backwards);
    }
    if header.base_offset < end || (header.base_offset > end && !takes_gaps) {
        return Err(BadBatch::Offset { got: header.base_offset, expected: end });
    }
    let got = header.partition_leader_epoch;
    if got < last_epoch || got > leader_epoch {
        return Err(BadBatch::Epoch { got, least: last_epoch, most: leader_epoch });
    }
    Ok(())
}
