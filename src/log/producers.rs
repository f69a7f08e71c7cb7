//! What each idempotent producer has written here lately: its epoch and its last five batches (KIP-98). Pure; decides whether a
//! batch is new, a duplicate, out of order or from a fenced epoch.

use std::collections::HashMap;

use super::error::AppendError;
use crate::base::ids::{NO_PRODUCER_EPOCH, NO_SEQUENCE};
use crate::base::limits::PRODUCERS_PER_PARTITION_MAX;
use crate::base::rules::{Rule, holds};
use crate::base::{Offset, ProducerEpoch, ProducerId, TimestampMs};
use crate::records::BatchHeader;

/// Batches remembered for each producer: what a client may have in flight with idempotence.
pub const BATCHES_MAX: usize = 5;

/// One batch as it is remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchMemory {
    pub last_sequence: i32,
    pub last_offset: Offset,
    pub offset_delta: i32,
    pub timestamp: TimestampMs,
}

impl BatchMemory {
    pub fn first_offset(&self) -> Offset {
        self.last_offset - i64::from(self.offset_delta)
    }

    /// The sequence of its first record; sequences run to `i32::MAX` and begin again at 0.
    pub fn first_sequence(&self) -> i32 {
        let first = i64::from(self.last_sequence) - i64::from(self.offset_delta);
        if first >= 0 { first as i32 } else { (first + i64::from(i32::MAX) + 1) as i32 }
    }

    fn of(header: &BatchHeader) -> BatchMemory {
        BatchMemory {
            last_sequence: header.last_sequence(),
            last_offset: header.last_offset(),
            offset_delta: header.last_offset_delta,
            timestamp: header.max_timestamp,
        }
    }
}

/// One producer's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerEntry {
    pub producer_id: ProducerId,
    pub epoch: ProducerEpoch,
    pub coordinator_epoch: i32,
    pub current_txn_first_offset: Option<Offset>,
    /// The newest batch's timestamp, ms; what Kafka calls the last timestamp.
    pub last_timestamp: TimestampMs,
    /// When it was last heard of by our clock, ms; not on disk.
    pub seen_at: TimestampMs,
    batches: [BatchMemory; BATCHES_MAX],
    len: u8,
}

impl ProducerEntry {
    pub fn new(producer_id: ProducerId, epoch: ProducerEpoch) -> ProducerEntry {
        ProducerEntry {
            producer_id,
            epoch,
            coordinator_epoch: -1,
            current_txn_first_offset: None,
            last_timestamp: -1,
            seen_at: 0,
            batches: Default::default(),
            len: 0,
        }
    }

    /// The batches remembered, oldest first.
    pub fn batches(&self) -> &[BatchMemory] {
        self.batches.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// The last record's sequence; -1 when none is known in this epoch.
    pub fn last_sequence(&self) -> i32 {
        self.batches().last().map_or(NO_SEQUENCE, |batch| batch.last_sequence)
    }

    pub fn last_offset(&self) -> Option<Offset> {
        self.batches().last().map(|batch| batch.last_offset)
    }

    pub fn push(&mut self, batch: BatchMemory) {
        let len = usize::from(self.len);
        if len == BATCHES_MAX {
            self.batches.rotate_left(1);
            self.batches[BATCHES_MAX - 1] = batch;
        } else {
            self.batches[len] = batch;
            self.len += 1;
        }
        self.last_timestamp = batch.timestamp;
    }

    /// Puts an older batch in front while there is room.
    fn push_front(&mut self, batch: BatchMemory) {
        if usize::from(self.len) < BATCHES_MAX {
            self.batches.rotate_right(1);
            self.batches[0] = batch;
            self.len += 1;
        }
    }

    fn begin_epoch(&mut self, epoch: ProducerEpoch) {
        self.epoch = epoch;
        self.len = 0;
    }

    fn duplicate_of(&self, header: &BatchHeader) -> Option<BatchMemory> {
        if header.producer_epoch != self.epoch {
            return None;
        }
        let (first, last) = (header.base_sequence, header.last_sequence());
        self.batches()
            .iter()
            .rev()
            .find(|batch| batch.last_sequence == last && batch.first_sequence() == first)
            .copied()
    }

    /// Whether `header` may follow. Its epoch and first sequence must continue what is here.
    fn accepts(&self, header: &BatchHeader) -> Result<(), AppendError> {
        let producer_id = header.producer_id;
        if header.producer_epoch < self.epoch {
            let (got, current) = (header.producer_epoch, self.epoch);
            return Err(AppendError::InvalidProducerEpoch { producer_id, got, current });
        }
        let current = if header.producer_epoch == self.epoch { self.last_sequence() } else { NO_SEQUENCE };
        if follows(current, header.base_sequence) {
            Ok(())
        } else {
            Err(AppendError::OutOfOrderSequence { producer_id, got: header.base_sequence, current })
        }
    }
}

/// Whether `next` is the sequence behind `last`; behind `i32::MAX` comes 0, behind nothing too.
fn follows(last: i32, next: i32) -> bool {
    if last == i32::MAX { next == 0 } else { next == last + 1 }
}

/// A producer that nobody here knows counts as one with the epoch before the first.
fn newcomer(header: &BatchHeader) -> Result<Verdict, AppendError> {
    let (producer_id, got, current) = (header.producer_id, header.producer_epoch, NO_PRODUCER_EPOCH);
    if got < current { Err(AppendError::InvalidProducerEpoch { producer_id, got, current }) } else { Ok(Verdict::New) }
}

/// What to do with a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    New,
    /// It is in the log already, there.
    Duplicate(BatchMemory),
}

/// All producers of one partition.
#[derive(Clone, Debug, Default)]
pub struct Producers {
    entries: HashMap<ProducerId, ProducerEntry>,
}

impl Producers {
    /// In no order.
    pub fn iter(&self) -> impl Iterator<Item = &ProducerEntry> {
        self.entries.values()
    }

    pub fn knows(&self, producer_id: ProducerId) -> bool {
        self.entries.contains_key(&producer_id)
    }

    /// Judges a batch that a client sent. A producer that nobody here knows may begin with any sequence: its earlier batches may
    /// have been removed by retention.
    pub fn check(&self, header: &BatchHeader) -> Result<Verdict, AppendError> {
        if !header.has_producer() {
            return Ok(Verdict::New);
        }
        if !holds(Rule::ChecksDuplicates) {
            return Ok(Verdict::New);
        }
        let Some(entry) = self.entries.get(&header.producer_id) else { return newcomer(header) };
        if let Some(batch) = entry.duplicate_of(header) {
            return Ok(Verdict::Duplicate(batch));
        }
        entry.accepts(header).map(|()| Verdict::New)
    }

    /// Judges a batch that goes in behind others of the same append, which are not noted yet.
    pub fn check_behind<'a>(
        &self,
        earlier: impl DoubleEndedIterator<Item = &'a BatchHeader>,
        header: &BatchHeader,
    ) -> Result<Verdict, AppendError> {
        let previous = earlier.rev().find(|earlier| header.has_producer() && earlier.producer_id == header.producer_id);
        let Some(previous) = previous else { return self.check(header) };
        let mut entry = ProducerEntry::new(previous.producer_id, previous.producer_epoch);
        entry.push(BatchMemory::of(previous));
        entry.accepts(header).map(|()| Verdict::New)
    }

    /// Notes a batch that is in the log, with its final offsets. Whatever the log holds is true: nothing is refused.
    pub fn note(&mut self, header: &BatchHeader, now: TimestampMs) {
        if !header.has_producer() {
            return;
        }
        if self.entries.len() >= PRODUCERS_PER_PARTITION_MAX && !self.entries.contains_key(&header.producer_id) {
            self.forget_longest_silent();
        }
        let fresh = || ProducerEntry::new(header.producer_id, header.producer_epoch);
        let entry = self.entries.entry(header.producer_id).or_insert_with(fresh);
        entry.seen_at = now;
        if header.producer_epoch != entry.epoch {
            entry.begin_epoch(header.producer_epoch);
        }
        if header.is_control() {
            entry.last_timestamp = header.max_timestamp;
            entry.current_txn_first_offset = None;
        } else {
            if header.is_transactional() {
                entry.current_txn_first_offset.get_or_insert(header.base_offset);
            }
            entry.push(BatchMemory::of(header));
        }
    }

    /// Makes room: a tenth goes, those that have been silent for longest and have no open transaction. Their next batch is taken
    /// as a stranger's, which may begin with any sequence.
    fn forget_longest_silent(&mut self) {
        let idle = self.entries.values().filter(|entry| entry.current_txn_first_offset.is_none());
        let mut idle: Vec<(TimestampMs, ProducerId)> = idle.map(|entry| (entry.seen_at, entry.producer_id)).collect();
        let count = (self.entries.len() / 10 + 1).min(idle.len());
        if count < idle.len() {
            idle.select_nth_unstable(count);
        }
        for (_, producer_id) in idle.into_iter().take(count) {
            self.entries.remove(&producer_id);
        }
        tracing::warn!(count, "a partition has too many producers: the longest silent ones are forgotten");
    }

    /// Takes an entry from a snapshot. Several of one producer hold its batches, the oldest first; in all else the last one counts.
    pub fn restore(&mut self, mut entry: ProducerEntry) {
        let older = self.entries.get(&entry.producer_id).filter(|older| older.epoch == entry.epoch);
        older.into_iter().flat_map(|older| older.batches().iter().rev()).for_each(|batch| entry.push_front(*batch));
        self.entries.insert(entry.producer_id, entry);
    }

    /// Whether a producer is known by one batch alone, as all are in a snapshot that Kafka wrote: it may have older ones in the log.
    pub fn may_lack_batches(&self) -> bool {
        self.entries.values().any(|entry| entry.batches().len() == 1)
    }

    /// Fills the windows of restored producers from batches that are in the log, oldest first: those that lead up to the first
    /// batch that the snapshot has, in its epoch and without a gap.
    pub fn refill(&mut self, older: &[BatchHeader]) {
        for header in older.iter().rev().filter(|header| !header.is_control()) {
            let Some(entry) = self.entries.get_mut(&header.producer_id) else { continue };
            let Some(first) = entry.batches().first().copied() else { continue };
            let leads_up = header.producer_epoch == entry.epoch
                && header.last_offset() < first.first_offset()
                && follows(header.last_sequence(), first.first_sequence());
            if leads_up {
                entry.push_front(BatchMemory::of(header));
            }
        }
    }

    /// Forgets producers that have been silent for longer than `expiration_ms` and have no open transaction.
    pub fn expire(&mut self, now: TimestampMs, expiration_ms: i64) -> usize {
        let before = self.entries.len();
        self.entries.retain(|_, entry| {
            let last = entry.seen_at.max(entry.last_timestamp);
            entry.current_txn_first_offset.is_some() || now.saturating_sub(last) <= expiration_ms
        });
        before - self.entries.len()
    }
}
