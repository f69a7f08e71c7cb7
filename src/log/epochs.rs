//! Which leader epoch began at which offset (KIP-101). Pure; its file is `leader-epoch-checkpoint`, in Kafka's text format.

use super::checkpoint_text::{Lines, TextError};
use crate::base::ids::{NO_LEADER_EPOCH, NO_OFFSET};
use crate::base::{LeaderEpoch, Offset};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochStart {
    pub epoch: LeaderEpoch,
    pub start_offset: Offset,
}

/// Epochs in ascending order, with ascending start offsets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EpochTable {
    entries: Vec<EpochStart>,
}

impl EpochTable {
    pub fn entries(&self) -> &[EpochStart] {
        &self.entries
    }

    pub fn latest(&self) -> Option<LeaderEpoch> {
        self.entries.last().map(|entry| entry.epoch)
    }

    pub fn earliest(&self) -> Option<EpochStart> {
        self.entries.first().copied()
    }

    /// Notes that `epoch` begins at `start_offset`. Entries that contradict it (no lower epoch, no lower start) give way.
    /// `false` when nothing changed.
    pub fn assign(&mut self, epoch: LeaderEpoch, start_offset: Offset) -> bool {
        if epoch < 0 || start_offset < 0 || !self.is_news(epoch, start_offset) {
            return false;
        }
        while self.entries.last().is_some_and(|last| last.epoch >= epoch || last.start_offset >= start_offset) {
            self.entries.pop();
        }
        self.entries.push(EpochStart { epoch, start_offset });
        true
    }

    /// Notes a batch of `epoch` at `start_offset`: news only when no batch so far had as high an epoch. `false` when nothing changed.
    pub fn advance(&mut self, epoch: LeaderEpoch, start_offset: Offset) -> bool {
        self.latest().is_none_or(|latest| latest < epoch) && self.assign(epoch, start_offset)
    }

    /// Notes that a batch of `epoch` stands at `offset`. When a higher one is said to have begun by then, that was another history, and
    /// so is what follows it. `false` when that is not so.
    pub fn retract(&mut self, epoch: LeaderEpoch, offset: Offset) -> bool {
        let higher = self.entries.partition_point(|entry| entry.epoch <= epoch);
        let is_wrong = self.entries.get(higher).is_some_and(|entry| entry.start_offset <= offset);
        if is_wrong {
            self.entries.truncate(higher);
        }
        is_wrong
    }

    fn is_news(&self, epoch: LeaderEpoch, start_offset: Offset) -> bool {
        self.entries.last().is_none_or(|last| last.epoch != epoch || start_offset < last.start_offset)
    }

    /// The epoch of the record at `offset`.
    pub fn epoch_at(&self, offset: Offset) -> Option<LeaderEpoch> {
        let below = self.entries.partition_point(|entry| entry.start_offset <= offset);
        Some(self.entries.get(below.checked_sub(1)?)?.epoch)
    }

    /// The largest epoch that is not above `epoch`, and the offset behind its last record; (-1, -1) when nobody can know.
    pub fn end_offset(&self, epoch: LeaderEpoch, log_end: Offset) -> (LeaderEpoch, Offset) {
        const UNKNOWN: (LeaderEpoch, Offset) = (NO_LEADER_EPOCH, NO_OFFSET);
        if epoch < 0 {
            return UNKNOWN;
        }
        if self.latest() == Some(epoch) {
            return (epoch, log_end);
        }
        let below = self.entries.partition_point(|entry| entry.epoch <= epoch);
        match (below.checked_sub(1).and_then(|at| self.entries.get(at)), self.entries.get(below)) {
            (_, None) => UNKNOWN,
            (None, Some(higher)) => (epoch, higher.start_offset),
            (Some(floor), Some(higher)) => (floor.epoch, higher.start_offset),
        }
    }

    /// Forgets epochs that begin at or behind the log's new end. `false` when nothing changed.
    pub fn truncate_from_end(&mut self, end: Offset) -> bool {
        let keep = self.entries.partition_point(|entry| entry.start_offset < end);
        let changed = keep < self.entries.len();
        self.entries.truncate(keep);
        changed
    }

    /// Forgets epochs that end at or before the log's new start; the one that spans it begins there. `false` when nothing changed.
    pub fn truncate_from_start(&mut self, start: Offset) -> bool {
        let below = self.entries.partition_point(|entry| entry.start_offset <= start);
        let Some(spanning) = below.checked_sub(1) else { return false };
        self.entries.drain(..spanning);
        match self.entries.first_mut() {
            Some(first) if first.start_offset != start => {
                first.start_offset = start;
                true
            }
            _ => spanning > 0,
        }
    }

    pub fn to_text(&self) -> String {
        let mut text = format!("0\n{}\n", self.entries.len());
        for entry in &self.entries {
            text.push_str(&format!("{} {}\n", entry.epoch, entry.start_offset));
        }
        text
    }

    /// Reads what [`EpochTable::to_text`] writes; an error also for epochs or offsets that do not ascend.
    pub fn parse(text: &str) -> Result<EpochTable, TextError> {
        let mut table = EpochTable::default();
        for line in Lines::parse(text)? {
            let [epoch, start_offset] = line.fields()?;
            let entry = EpochStart { epoch: line.number(epoch)?, start_offset: line.number(start_offset)? };
            let ascends = table
                .entries
                .last()
                .is_none_or(|last| last.epoch < entry.epoch && last.start_offset < entry.start_offset);
            if !ascends || entry.epoch < 0 || entry.start_offset < 0 {
                return Err(line.error("epochs and offsets must ascend"));
            }
            table.entries.push(entry);
        }
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(entries: &[(LeaderEpoch, Offset)]) -> EpochTable {
        let entries = entries.iter().map(|&(epoch, start_offset)| EpochStart { epoch, start_offset }).collect();
        EpochTable { entries }
    }

    #[test]
    fn an_epoch_without_records_gives_way_to_the_next_one() {
        let mut epochs = EpochTable::default();
        assert!(epochs.assign(0, 0));
        assert!(!epochs.assign(0, 5));
        assert!(epochs.assign(1, 0));
        assert!(epochs.assign(3, 7));
        assert_eq!(epochs, table(&[(1, 0), (3, 7)]));
        assert!(epochs.assign(2, 4));
        assert_eq!(epochs, table(&[(1, 0), (2, 4)]));
    }

    #[test]
    fn a_batch_of_a_lower_epoch_proves_higher_ones_wrong_that_had_begun() {
        for (epoch, offset, left) in [(2, 9, 3), (2, 12, 1), (4, 15, 3), (4, 20, 2), (7, 30, 3), (1, 0, 0)] {
            let mut epochs = table(&[(2, 0), (4, 10), (7, 20)]);
            assert_eq!(epochs.retract(epoch, offset), left < 3, "{epoch} at {offset}");
            assert_eq!(epochs.entries().len(), left, "{epoch} at {offset}");
        }
    }

    #[test]
    fn end_offsets_are_the_next_epochs_start() {
        let epochs = table(&[(2, 0), (4, 10), (7, 20)]);
        let cases = [
            (-1, (-1, -1)),
            (1, (1, 0)),
            (2, (2, 10)),
            (3, (2, 10)),
            (4, (4, 20)),
            (6, (4, 20)),
            (7, (7, 33)),
            (8, (-1, -1)),
        ];
        for (epoch, expected) in cases {
            assert_eq!(epochs.end_offset(epoch, 33), expected, "epoch {epoch}");
        }
        assert_eq!(EpochTable::default().end_offset(0, 0), (-1, -1));
    }

    #[test]
    fn truncation_from_both_ends() {
        let mut epochs = table(&[(2, 0), (4, 10), (7, 20)]);
        assert!(!epochs.truncate_from_end(21));
        assert!(epochs.truncate_from_end(20));
        assert_eq!(epochs, table(&[(2, 0), (4, 10)]));
        assert!(epochs.truncate_from_start(15));
        assert_eq!(epochs, table(&[(4, 15)]));
        assert!(!epochs.truncate_from_start(15));
        assert!(epochs.truncate_from_end(0));
        assert_eq!(epochs, table(&[]));
    }

    #[test]
    fn the_epoch_of_an_offset() {
        let epochs = table(&[(2, 5), (4, 10)]);
        assert_eq!([4, 5, 9, 10, 99].map(|at| epochs.epoch_at(at)), [None, Some(2), Some(2), Some(4), Some(4)]);
    }

    #[test]
    fn text_round_trips_and_nonsense_is_refused() {
        let epochs = table(&[(2, 5), (4, 10)]);
        assert_eq!(epochs.to_text(), "0\n2\n2 5\n4 10\n");
        assert_eq!(EpochTable::parse(&epochs.to_text()).unwrap(), epochs);
        for text in
            ["", "1\n0\n", "0\n2\n2 5\n", "0\n1\n2 5\n4 10\n", "0\n1\nx 5\n", "0\n2\n4 10\n2 5\n", "0\n1\n1 2 3\n"]
        {
            assert!(EpochTable::parse(text).is_err(), "{text:?}");
        }
    }
}
