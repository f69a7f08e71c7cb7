//! The writing side. Owned by the thread that syncs the disk, so it needs no lock.
//!
//! The file begins with a header (magic, generation, CRC) in a block of its own; entries follow. Beginning again means: everything the
//! entries repeat has been synced, then a header with the next generation is written and synced. A crash before that replays the old
//! generation, which is harmless; after it, nothing.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::FILE_NAME;
use super::entry::{self, Place, checksum};
use crate::host::{Disk, DiskFile, OpenMode};

pub(super) const MAGIC: [u8; 8] = *b"BNBSJRN1";

/// Entries begin here, so that header and entries never share a device block.
pub(super) const HEADER_BYTES: u64 = 4096;

/// Entries up to this many bytes, then the journal begins again.
const CAPACITY_BYTES: u64 = 32 * 1024 * 1024;

#[derive(Debug, thiserror::Error)]
#[error("cannot {action} the flush journal {}: {source}", path.display())]
pub struct JournalError {
    pub action: &'static str,
    pub path: PathBuf,
    pub source: io::Error,
}

impl JournalError {
    pub fn is_disk_full(&self) -> bool {
        matches!(self.source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
}

/// Takes the journal away where none is kept. What it holds has been replayed or synced in its place, and must not be replayed by a
/// later start over what was written there since.
pub fn discard(disk: &dyn Disk, log_dir: &Path) -> Result<(), JournalError> {
    let path = log_dir.join(FILE_NAME);
    let removed = match disk.remove_file(&path) {
        Ok(()) => disk.sync_dir(log_dir),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    };
    removed.map_err(|source| JournalError { action: "remove", path, source })
}

pub struct Journal {
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    generation: u64,
    /// Bytes of entries that are in the file.
    end: u64,
    /// Behind `end` lies what a write left that failed: entries behind that would not be found, and some of it may be whole. Or beginning
    /// again has failed. Nothing is written before the journal has begun again.
    torn: bool,
    capacity: u64,
    buffer: Vec<u8>,
}

impl Journal {
    /// Begins a new generation behind whatever the file held; [`super::recover`] must have dealt with that.
    pub fn create(disk: &dyn Disk, log_dir: &Path) -> Result<Journal, JournalError> {
        Journal::with_capacity(disk, log_dir, CAPACITY_BYTES)
    }

    pub fn with_capacity(disk: &dyn Disk, log_dir: &Path, capacity: u64) -> Result<Journal, JournalError> {
        let path = log_dir.join(FILE_NAME);
        let failed = |action| {
            let path = path.clone();
            move |source| JournalError { action, path, source }
        };
        let file = disk.open(&path, OpenMode::Create).map_err(failed("open"))?;
        let generation = read_generation(&*file).unwrap_or(0);
        let mut journal =
            Journal { path: path.clone(), file, generation, end: 0, torn: false, capacity, buffer: Vec::new() };
        journal.begin_again()?;
        disk.sync_dir(log_dir).map_err(failed("sync the directory of"))?;
        Ok(journal)
    }

    /// Whether these pieces still fit behind what is written.
    pub fn has_room<'p>(&self, pieces: impl Iterator<Item = (&'p Place, usize)>) -> bool {
        let bytes: usize = pieces.map(|(place, len)| entry::entry_bytes(place, len)).sum();
        !self.torn && self.end + bytes as u64 <= self.capacity
    }

    /// Whether it has to begin again before anything else is written.
    pub fn is_torn(&self) -> bool {
        self.torn
    }

    /// Adds a piece to the round being collected. `fill` copies it from the segment.
    pub fn collect(
        &mut self,
        place: &Place,
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        entry::push(&mut self.buffer, self.generation, place, len, fill)
    }

    /// Writes and syncs what was collected: one write, one sync.
    pub fn commit(&mut self) -> Result<(), JournalError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let position = HEADER_BYTES + self.end;
        let written = self.file.write_all_at(&self.buffer, position).map_err(|source| self.failed("write", source));
        match written {
            Ok(()) => self.end += self.buffer.len() as u64,
            Err(_) => self.torn = true,
        }
        self.buffer.clear();
        written?;
        self.file.sync_data().map_err(|source| self.failed("sync", source))
    }

    /// Everything that the entries repeat is on the device: begins again from the front. After an error it has to begin again before
    /// anything else is written, and a start may write its entries once more.
    pub fn begin_again(&mut self) -> Result<(), JournalError> {
        self.generation += 1;
        (self.end, self.torn) = (0, true);
        self.buffer.clear();
        let header = header(self.generation);
        self.file.write_all_at(&header, 0).map_err(|source| self.failed("write", source))?;
        self.file.sync_data().map_err(|source| self.failed("sync", source))?;
        self.torn = false;
        Ok(())
    }

    fn failed(&self, action: &'static str, source: io::Error) -> JournalError {
        JournalError { action, path: self.path.clone(), source }
    }
}

fn header(generation: u64) -> [u8; 20] {
    let mut header = [0; 20];
    header[..8].copy_from_slice(&MAGIC);
    header[8..16].copy_from_slice(&generation.to_be_bytes());
    let crc = checksum(&header[..16]);
    header[16..].copy_from_slice(&crc.to_be_bytes());
    header
}

/// The generation that the file's header names; `None` when there is no whole header.
pub(super) fn read_generation(file: &dyn DiskFile) -> Option<u64> {
    let mut header = [0; 20];
    file.read_exact_at(&mut header, 0).ok()?;
    let (body, crc) = header.split_at(16);
    if body[..8] != MAGIC || u32::from_be_bytes(crc.try_into().ok()?) != checksum(body) {
        return None;
    }
    Some(u64::from_be_bytes(body[8..].try_into().ok()?))
}
