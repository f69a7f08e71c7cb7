//! What is due next while the end of a log is read. Neither a batch's base offset nor its leader epoch is in its checksum's cover, so what they
//! claim is held against what the batches before it said.

use super::epochs::EpochTable;
use super::segment::Segment;
use crate::base::ids::NO_LEADER_EPOCH;
use crate::base::{LeaderEpoch, Offset};
use crate::records::BatchHeader;

/// Which offset a batch may begin with.
#[derive(Clone, Copy)]
pub(super) enum Due {
    Exactly(Offset),
    AtLeast(Offset),
}

impl Due {
    /// With what the batch at a byte of a segment may begin, where an index led there.
    pub(super) fn at(segment: &Segment, position: u64) -> Due {
        let base = segment.base_offset();
        if position == 0 { Due::Exactly(base) } else { Due::AtLeast(base) }
    }

    pub(super) fn offset(self) -> Offset {
        match self {
            Due::Exactly(offset) | Due::AtLeast(offset) => offset,
        }
    }

    /// Offsets have no gaps unless compaction has been there, so a damaged one is noticed.
    pub(super) fn takes(self, header: &BatchHeader, compacted: bool) -> bool {
        match self {
            Due::Exactly(offset) if !compacted => header.base_offset == offset,
            Due::Exactly(offset) | Due::AtLeast(offset) => header.base_offset >= offset,
        }
    }
}

/// The epochs of the batches that were read so far. They never go back, so one that does is wrong, or the one before it was: the next tells.
#[derive(Clone, Copy)]
pub(super) struct EpochsRead {
    latest: LeaderEpoch,
    /// Of a batch that goes back, with its offset.
    doubted: Option<(LeaderEpoch, Offset)>,
}

impl EpochsRead {
    pub(super) const NONE: EpochsRead = EpochsRead { latest: NO_LEADER_EPOCH, doubted: None };

    /// Another batch. The table may be older than the log's last cut, and then it learns from the batches; from one that nobody confirms it
    /// does not, and a walk over the log finds that one. Whether the table has changed.
    pub(super) fn note(&mut self, header: &BatchHeader, table: &mut EpochTable) -> bool {
        let (epoch, offset) = (header.partition_leader_epoch, header.base_offset);
        let doubted = self.doubted.take();
        if epoch >= self.latest {
            self.latest = epoch;
            return learn(table, epoch, offset);
        }
        let Some((before, at)) = doubted else {
            self.doubted = Some((epoch, offset));
            return false;
        };
        // Two in a row: what stood before them was wrong.
        self.latest = before.max(epoch);
        let changed = before <= epoch && learn(table, before, at);
        learn(table, epoch, offset) || changed
    }
}

fn learn(table: &mut EpochTable, epoch: LeaderEpoch, offset: Offset) -> bool {
    let retracted = table.retract(epoch, offset);
    table.advance(epoch, offset) || retracted
}
