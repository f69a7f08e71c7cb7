//! Walking the batches of a segment file: headers only (to find a place), or every byte with its CRC (after a crash). Memory does
//! not grow with what a header declares.

use std::io;

use crate::host::DiskFile;
use crate::records::{BATCH_HEADER_BYTES, BatchHeader};

/// How much the header walk reads at once: a few small batches, without much waste on large ones.
const HEADER_WINDOW_BYTES: usize = 4096;

/// How much the checking walk reads at once.
const CHECK_WINDOW_BYTES: usize = 256 * 1024;

/// Where the CRC's cover begins in a batch.
const ATTRIBUTES_AT: usize = 21;

/// A part of a file that slides over it.
struct Window {
    bytes: Vec<u8>,
    filled: usize,
    start: u64,
}

impl Window {
    fn new(size: usize) -> Window {
        Window { bytes: vec![0; size], filled: 0, start: 0 }
    }

    /// At least `len` bytes at `position` and whatever is behind them in the window; fewer only where `end` or the file ends.
    fn slice(&mut self, file: &dyn DiskFile, position: u64, len: usize, end: u64) -> io::Result<&[u8]> {
        let inside = position >= self.start && position + len as u64 <= self.start + self.filled as u64;
        if !inside {
            let want = usize::try_from(end.saturating_sub(position)).unwrap_or(usize::MAX).min(self.bytes.len());
            self.start = position;
            self.filled = 0;
            if let Some(target) = self.bytes.get_mut(..want) {
                self.filled = file.read_at(target, position)?;
            }
        }
        let from = (position - self.start) as usize;
        Ok(self.bytes.get(from..self.filled).unwrap_or_default())
    }
}

/// What stands at a place of a segment file.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    Batch(BatchHeader),
    /// The walk has reached its end exactly.
    End,
    /// Bytes that are no whole batch, and why.
    Broken(String),
}

/// Walks headers from `position` to `end`.
pub struct HeaderWalk<'a> {
    file: &'a dyn DiskFile,
    window: Window,
    pub position: u64,
    end: u64,
}

impl<'a> HeaderWalk<'a> {
    pub fn new(file: &'a dyn DiskFile, position: u64, end: u64) -> HeaderWalk<'a> {
        HeaderWalk { file, window: Window::new(HEADER_WINDOW_BYTES), position, end }
    }

    /// The batch at `self.position`; the position stays.
    pub fn peek(&mut self) -> io::Result<Found> {
        if self.position >= self.end {
            return Ok(Found::End);
        }
        let bytes = self.window.slice(self.file, self.position, BATCH_HEADER_BYTES, self.end)?;
        Ok(judge(bytes, self.end - self.position))
    }

    /// The batch at `self.position`; the position moves behind it.
    pub fn step(&mut self) -> io::Result<Found> {
        let found = self.peek()?;
        if let Found::Batch(header) = &found {
            self.position += header.size_bytes() as u64;
        }
        Ok(found)
    }
}

/// Whether `bytes` begin a batch of which `left` bytes could be there.
fn judge(bytes: &[u8], left: u64) -> Found {
    let header = match BatchHeader::parse(bytes) {
        Ok(header) => header,
        Err(error) => return Found::Broken(error.to_string()),
    };
    if header.size_bytes() as u64 > left {
        return Found::Broken(format!("the batch has {} bytes, {left} are there", header.size_bytes()));
    }
    if header.last_offset_delta < 0 || header.base_offset < 0 || header.last_offset() < header.base_offset {
        return Found::Broken(format!("offset {} with delta {}", header.base_offset, header.last_offset_delta));
    }
    Found::Batch(header)
}

/// Walks whole batches and checks their CRC.
pub struct CheckedWalk<'a> {
    file: &'a dyn DiskFile,
    window: Window,
    pub position: u64,
    end: u64,
}

impl<'a> CheckedWalk<'a> {
    pub fn new(file: &'a dyn DiskFile, position: u64, end: u64) -> CheckedWalk<'a> {
        CheckedWalk { file, window: Window::new(CHECK_WINDOW_BYTES), position, end }
    }

    /// The batch at the position, whole and with a right CRC; the position moves behind it.
    pub fn step(&mut self) -> io::Result<Found> {
        if self.position >= self.end {
            return Ok(Found::End);
        }
        let bytes = self.window.slice(self.file, self.position, BATCH_HEADER_BYTES, self.end)?;
        let found = judge(bytes, self.end - self.position);
        let Found::Batch(header) = &found else { return Ok(found) };
        let size = header.size_bytes() as u64;
        let crc = self.crc(self.position + ATTRIBUTES_AT as u64, self.position + size)?;
        if crc != Some(header.crc) {
            return Ok(Found::Broken("the CRC does not match".to_owned()));
        }
        self.position += size;
        Ok(found)
    }

    /// The CRC-32C of `from..to`, piece by piece; `None` when the file ends before.
    fn crc(&mut self, from: u64, to: u64) -> io::Result<Option<u32>> {
        let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi);
        let mut at = from;
        while at < to {
            let piece = self.window.slice(self.file, at, 1, self.end)?;
            let take = piece.len().min(usize::try_from(to - at).unwrap_or(usize::MAX));
            let Some(piece) = piece.get(..take).filter(|piece| !piece.is_empty()) else { return Ok(None) };
            digest.update(piece);
            at += take as u64;
        }
        Ok(u32::try_from(digest.finalize()).ok())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::host::sim::SimDisk;
    use crate::host::{Disk, OpenMode};
    use crate::records::{BatchBuilder, Codec};

    fn batch(base_offset: i64, bytes: usize) -> Vec<u8> {
        let mut builder = BatchBuilder::new(Codec::None);
        builder.push(1, None, Some(&vec![7; bytes]), &[]);
        builder.finish(base_offset, 0)
    }

    fn file(bytes: &[u8]) -> Arc<dyn DiskFile> {
        let file = SimDisk::new(1).open(Path::new("/log"), OpenMode::Create).unwrap();
        file.write_all_at(bytes, 0).unwrap();
        file
    }

    #[test]
    fn batches_of_all_sizes_are_walked_and_checked_across_windows() {
        let sizes = [1, 300, 5000, 100, 4096, 300_000, 2, 700_000, 9];
        let bytes: Vec<u8> = sizes.iter().zip(0..).flat_map(|(size, offset)| batch(offset, *size)).collect();
        let file = file(&bytes);
        let end = bytes.len() as u64;
        let mut headers = HeaderWalk::new(&*file, 0, end);
        let mut checked = CheckedWalk::new(&*file, 0, end);
        for offset in 0..sizes.len() as i64 {
            let Found::Batch(header) = headers.step().unwrap() else { panic!("header {offset}") };
            assert_eq!(header.base_offset, offset);
            assert_eq!(checked.step().unwrap(), Found::Batch(header));
        }
        assert_eq!((headers.step().unwrap(), checked.step().unwrap()), (Found::End, Found::End));
        assert_eq!((headers.position, checked.position), (end, end));
    }

    #[test]
    fn a_flipped_bit_anywhere_in_a_large_batch_is_found() {
        let bytes = batch(0, 600_000);
        for at in [21, 70, 256 * 1024, 256 * 1024 + 1, 599_999] {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            let file = file(&bytes);
            let mut walk = CheckedWalk::new(&*file, 0, bytes.len() as u64);
            assert!(matches!(walk.step().unwrap(), Found::Broken(_)), "at {at}");
            assert_eq!(walk.position, 0);
        }
    }

    #[test]
    fn a_declared_length_takes_no_memory_and_does_not_lead_past_the_end() {
        let mut bytes = batch(0, 100);
        bytes[8..12].copy_from_slice(&i32::MAX.to_be_bytes());
        let file = file(&bytes);
        let end = bytes.len() as u64;
        assert!(matches!(HeaderWalk::new(&*file, 0, end).step().unwrap(), Found::Broken(_)));
        assert!(matches!(CheckedWalk::new(&*file, 0, end).step().unwrap(), Found::Broken(_)));
    }
}
