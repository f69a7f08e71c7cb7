//! The two sparse indexes of a segment, in Kafka's file formats: offset to byte position, and timestamp to offset. Young entries
//! wait in memory and are written out in runs; older ones are found by binary search in the file.
//!
//! An index is a hint and never believed: whoever follows an entry checks that the batch it names is there, and rebuilds the
//! index when it is not. So index files need no sync.

use std::io;
use std::marker::PhantomData;

use crate::base::TimestampMs;
use crate::host::DiskFile;

/// Entries read at once when the binary search has come close.
const BLOCK_ENTRIES: u64 = 256;

/// One fixed-size entry, ordered by its key.
pub trait Entry: Copy + PartialEq + std::fmt::Debug {
    const BYTES: usize;
    fn key(&self) -> i64;
    fn write(&self, out: &mut Vec<u8>);
    /// `bytes` has [`Entry::BYTES`]; `None` for what no writer writes.
    fn read(bytes: &[u8]) -> Option<Self>;
}

/// The batch whose last offset is `relative_offset` behind the segment's base begins at byte `position`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetEntry {
    pub relative_offset: i32,
    pub position: u32,
}

/// No batch up to the one whose last offset is `relative_offset` has a timestamp above `timestamp`, and that one has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeEntry {
    pub timestamp: TimestampMs,
    pub relative_offset: i32,
}

impl Entry for OffsetEntry {
    const BYTES: usize = 8;

    fn key(&self) -> i64 {
        i64::from(self.relative_offset)
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.relative_offset.to_be_bytes());
        out.extend_from_slice(&self.position.to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Option<OffsetEntry> {
        let (offset, position) = bytes.split_first_chunk::<4>()?;
        Some(OffsetEntry {
            relative_offset: i32::from_be_bytes(*offset),
            position: u32::from_be_bytes(*position.first_chunk()?),
        })
    }
}

impl Entry for TimeEntry {
    const BYTES: usize = 12;

    fn key(&self) -> i64 {
        self.timestamp
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.timestamp.to_be_bytes());
        out.extend_from_slice(&self.relative_offset.to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Option<TimeEntry> {
        let (timestamp, offset) = bytes.split_first_chunk::<8>()?;
        Some(TimeEntry {
            timestamp: i64::from_be_bytes(*timestamp),
            relative_offset: i32::from_be_bytes(*offset.first_chunk()?),
        })
    }
}

/// The part of an index that is in its file. A value, so that a reader can search without holding the segment's lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written<E> {
    pub entries: u64,
    entry: PhantomData<E>,
}

impl<E: Entry> Written<E> {
    pub fn new(entries: u64) -> Written<E> {
        Written { entries, entry: PhantomData }
    }

    /// The last entry that `is_low` holds for, with its place. It must hold for the first entries and none behind them.
    pub fn last_where(&self, file: &dyn DiskFile, is_low: impl Fn(&E) -> bool) -> io::Result<Option<(u64, E)>> {
        let (mut low, mut high) = (0, self.entries);
        while high - low > BLOCK_ENTRIES {
            let middle = low + (high - low) / 2;
            if is_low(&self.at(file, middle)?) { low = middle } else { high = middle }
        }
        let block = self.block(file, low, high)?;
        let below = block.partition_point(is_low);
        Ok(below.checked_sub(1).and_then(|at| Some((low + at as u64, *block.get(at)?))))
    }

    /// The last entry whose key is not above `key`.
    pub fn floor(&self, file: &dyn DiskFile, key: i64) -> io::Result<Option<E>> {
        Ok(self.last_where(file, |entry| entry.key() <= key)?.map(|(_, entry)| entry))
    }

    pub fn at(&self, file: &dyn DiskFile, place: u64) -> io::Result<E> {
        let block = self.block(file, place, place + 1)?;
        block.first().copied().ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Entries `from..to`, fewer when the file ends before.
    pub fn block(&self, file: &dyn DiskFile, from: u64, to: u64) -> io::Result<Vec<E>> {
        let to = to.min(self.entries);
        let entries = usize::try_from(to.saturating_sub(from)).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut bytes = vec![0; entries * E::BYTES];
        let read = file.read_at(&mut bytes, from * E::BYTES as u64)?;
        bytes.truncate(read);
        Ok(bytes.chunks_exact(E::BYTES).filter_map(E::read).collect())
    }
}

/// One index of one segment.
#[derive(Debug)]
pub struct SparseIndex<E> {
    written: Written<E>,
    pending: Vec<E>,
}

impl<E: Entry> SparseIndex<E> {
    pub fn new(written_entries: u64) -> SparseIndex<E> {
        SparseIndex { written: Written::new(written_entries), pending: Vec::new() }
    }

    pub fn len(&self) -> u64 {
        self.written.entries + self.pending.len() as u64
    }

    pub fn written(&self) -> Written<E> {
        self.written
    }

    pub fn pending(&self) -> &[E] {
        &self.pending
    }

    pub fn push(&mut self, entry: E) {
        self.pending.push(entry);
    }

    /// The last entry in memory whose key is not above `key`; `None` also when only the file can tell.
    pub fn floor_pending(&self, key: i64) -> Option<E> {
        let below = self.pending.partition_point(|entry| entry.key() <= key);
        self.pending.get(below.checked_sub(1)?).copied()
    }

    /// Writes what waits in memory behind what is in the file, and cuts off what a longer index left there.
    pub fn spill(&mut self, file: &dyn DiskFile) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(self.pending.len() * E::BYTES);
        self.pending.iter().for_each(|entry| entry.write(&mut bytes));
        file.write_all_at(&bytes, self.written.entries * E::BYTES as u64)?;
        let entries = self.len();
        if file.len()? != entries * E::BYTES as u64 {
            file.set_len(entries * E::BYTES as u64)?;
        }
        self.written = Written::new(entries);
        self.pending.clear();
        Ok(())
    }

    /// Drops the entries behind the first `entries`.
    pub fn truncate(&mut self, entries: u64) {
        if entries <= self.written.entries {
            self.written = Written::new(entries);
            self.pending.clear();
        } else {
            self.pending.truncate((entries - self.written.entries) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::host::sim::SimDisk;
    use crate::host::{Disk, OpenMode};

    fn file() -> Arc<dyn DiskFile> {
        SimDisk::new(1).open(Path::new("/index"), OpenMode::Create).unwrap()
    }

    fn entry(at: i32) -> OffsetEntry {
        OffsetEntry { relative_offset: at * 10, position: at as u32 * 100 }
    }

    #[test]
    fn entries_are_kafkas_bytes() {
        let mut bytes = Vec::new();
        OffsetEntry { relative_offset: 0x0102_0304, position: 0x0506_0708 }.write(&mut bytes);
        TimeEntry { timestamp: 0x1112_1314_1516_1718, relative_offset: 0x191a_1b1c }.write(&mut bytes);
        let expected: Vec<u8> = (1..=8).chain(0x11..=0x1c).collect();
        assert_eq!(bytes, expected);
        assert_eq!(OffsetEntry::read(&bytes).map(|entry| entry.position), Some(0x0506_0708));
        assert_eq!(TimeEntry::read(&bytes[8..]).map(|entry| entry.relative_offset), Some(0x191a_1b1c));
    }

    #[test]
    fn floors_are_found_in_memory_and_in_the_file_alike() {
        for spilled in [0, 1, 255, 256, 257, 1000, 3000] {
            let file = file();
            let mut index = SparseIndex::new(0);
            for at in 1..=3000 {
                index.push(entry(at));
                if at == spilled {
                    index.spill(&*file).unwrap();
                }
            }
            assert_eq!(index.len(), 3000);
            for key in [0, 9, 10, 11, 2549, 2550, 2560, 15_005, 30_000, 99_999] {
                let found = match index.floor_pending(key) {
                    Some(entry) => Some(entry),
                    None => index.written().floor(&*file, key).unwrap(),
                };
                let expected = (key / 10).min(3000);
                assert_eq!(found, (expected > 0).then(|| entry(expected as i32)), "{key} with {spilled} spilled");
            }
        }
    }

    #[test]
    fn truncation_keeps_the_first_entries_and_the_next_spill_cuts_the_file() {
        let file = file();
        let mut index = SparseIndex::new(0);
        (1..=100).for_each(|at| index.push(entry(at)));
        index.spill(&*file).unwrap();
        (101..=150).for_each(|at| index.push(entry(at)));
        index.truncate(120);
        assert_eq!((index.len(), index.pending().len()), (120, 20));
        index.truncate(40);
        assert_eq!((index.len(), index.pending().len()), (40, 0));
        index.push(entry(77));
        index.spill(&*file).unwrap();
        assert_eq!(file.len().unwrap(), 41 * 8);
        assert_eq!(index.written().at(&*file, 40).unwrap(), entry(77));
    }
}
