//! The reading side, once, at a start after an unclean shutdown and before any log is opened.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::FILE_NAME;
use super::entry::{self, HEAD_BYTES, Place};
use super::writer::{HEADER_BYTES, JournalError, read_generation};
use crate::base::Offset;
use crate::host::{Disk, DiskFile, OpenMode};
use crate::log::read_topic_id;

/// What a recovery did, for the log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalRecovery {
    pub entries: u64,
    /// Entries whose segment is gone since: retention or a deleted topic.
    pub skipped: u64,
    pub bytes: u64,
}

/// Writes every entry of the file's generation to its place and syncs those places.
pub fn recover(disk: &dyn Disk, log_dir: &Path) -> Result<JournalRecovery, JournalError> {
    let path = log_dir.join(FILE_NAME);
    let failed = |action| {
        let path = path.clone();
        move |source| JournalError { action, path, source }
    };
    let mut done = JournalRecovery::default();
    let file = match disk.open(&path, OpenMode::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(done),
        Err(error) => return Err(failed("open")(error)),
    };
    let Some(generation) = read_generation(&*file) else { return Ok(done) };
    let mut position = HEADER_BYTES;
    let mut segments = Segments { disk, log_dir, open: BTreeMap::new() };
    while let Some((place, content, size)) = next(&*file, position, generation).map_err(failed("read"))? {
        match segments.restore(&place, &content).map_err(failed("replay"))? {
            true => done.bytes += content.len() as u64,
            false => done.skipped += 1,
        }
        done.entries += 1;
        position += size as u64;
    }
    segments.sync().map_err(failed("sync what was replayed from"))?;
    Ok(done)
}

/// The entry at `position`; `None` behind the last one.
fn next(file: &dyn DiskFile, position: u64, generation: u64) -> io::Result<Option<(Place, Vec<u8>, usize)>> {
    let mut head = [0; HEAD_BYTES];
    if file.read_at(&mut head, position)? < HEAD_BYTES {
        return Ok(None);
    }
    let Some(size) = entry::claimed_bytes(&head) else { return Ok(None) };
    // Entries never reach beyond the file: a claim that does is no entry, and no memory is taken for it.
    if position + size as u64 > file.len()? {
        return Ok(None);
    }
    let mut bytes = vec![0; size];
    file.read_exact_at(&mut bytes, position)?;
    let parsed = entry::parse(&bytes, generation);
    Ok(parsed.map(|(place, content, size)| (place, content.to_vec(), size)))
}

/// Segments written to and not yet synced.
struct Segments<'a> {
    disk: &'a dyn Disk,
    log_dir: &'a Path,
    /// By directory name and base offset. `None`: not there, or of another topic.
    open: BTreeMap<(String, Offset), Option<Arc<dyn DiskFile>>>,
}

/// Segments kept open until they are synced together.
const OPEN_SEGMENTS_MAX: usize = 512;

impl Segments<'_> {
    /// `false` when the segment is not there any more, or the directory belongs to another topic now.
    fn restore(&mut self, place: &Place, content: &[u8]) -> io::Result<bool> {
        let key = (place.dir_name.clone(), place.segment_base);
        if !self.open.contains_key(&key) {
            if self.open.len() >= OPEN_SEGMENTS_MAX {
                self.sync()?;
            }
            let file = self.find(place)?;
            self.open.insert(key.clone(), file);
        }
        match self.open.get(&key) {
            Some(Some(file)) => file.write_all_at(content, place.position).map(|()| true),
            _ => Ok(false),
        }
    }

    fn find(&self, place: &Place) -> io::Result<Option<Arc<dyn DiskFile>>> {
        let dir = self.log_dir.join(&place.dir_name);
        if read_topic_id(self.disk, &dir).ok().flatten() != Some(place.topic_id) {
            return Ok(None);
        }
        match self.disk.open(&dir.join(format!("{:020}.log", place.segment_base)), OpenMode::ReadWrite) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        std::mem::take(&mut self.open).into_values().flatten().try_for_each(|file| file.sync_data())
    }
}
