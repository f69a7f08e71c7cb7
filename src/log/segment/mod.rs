//! One segment of a partition's log: a file of batches and its two sparse indexes. The log's owner writes to the youngest one;
//! anybody who holds a view reads from any of them, without the partition's lock.
//!
//! Batches that were written lately are remembered with their places, so a reader at the tail needs no look at the disk.
//!
//! `state` is what is known in memory, `lookup` finds batches, `times` timestamps, `restart` goes back to a sound place.

mod lookup;
mod restart;
mod state;
mod times;

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use parking_lot::RwLock;

pub use state::{MaxTimestamp, Place};

use super::error::{Context, LogError};
use super::file_cache::{FileCache, Slot};
use super::names::{self, DELETED, INDEX, LOG, TIME_INDEX};
use crate::base::Offset;
use crate::host::{DiskFile, OpenMode};
use crate::records::BatchHeader;
use state::State;

/// Positions in an index file have 31 bits.
pub(super) const SEGMENT_BYTES_MAX: u64 = i32::MAX as u64;

/// Index entries that wait in memory before they are written out: one run for every 4 MiB of data.
const PENDING_MAX: usize = 1024;

/// What all segments of one partition share.
pub(super) struct Home {
    pub dir: PathBuf,
    pub files: Arc<FileCache>,
    pub index_interval_bytes: AtomicU32,
    /// The directory is somebody else's or nobody's now: nothing in it is opened any more.
    pub retired: AtomicBool,
}

pub struct Segment {
    base_offset: Offset,
    home: Arc<Home>,
    log: Arc<Slot>,
    index: Arc<Slot>,
    time_index: Arc<Slot>,
    /// The files carry the suffix of those that wait for removal.
    deleted: AtomicBool,
    /// There may be room on the device behind the last batch that was taken for this file.
    reserved: AtomicBool,
    state: RwLock<State>,
}

impl Segment {
    /// Makes the empty segment that begins at `base_offset`. With `reserved_bytes` it asks for that much room on the device.
    pub(super) fn create(
        home: &Arc<Home>,
        base_offset: Offset,
        reserved_bytes: Option<u64>,
    ) -> Result<Segment, LogError> {
        let segment = Segment::existing(home, base_offset, 0, 0, 0);
        segment.make_file(reserved_bytes)?;
        Ok(segment)
    }

    /// Makes the file of a segment that nothing was written to.
    pub(super) fn make_file(&self, reserved_bytes: Option<u64>) -> Result<(), LogError> {
        let path = self.path(LOG);
        let file = self.home.files.open(&self.log, OpenMode::Truncate, || &path).context("create", &path)?;
        if let Some(bytes) = reserved_bytes {
            self.may_have_reserved();
            // A wish: where the file system cannot, or has not so much, the segment grows as it is written, and leaves what there is
            // to others.
            if file.reserve(bytes).is_err() {
                self.give_back_reserved();
            }
        }
        Ok(())
    }

    /// Room may be taken behind the last batch: [`Segment::give_back_reserved`] has something to do.
    pub(super) fn may_have_reserved(&self) {
        self.reserved.store(true, Ordering::Relaxed);
    }

    /// Gives back the room that was reserved and not written to. What cannot be given back now goes with the file.
    pub(super) fn give_back_reserved(&self) {
        if self.reserved.swap(false, Ordering::Relaxed)
            && let Ok(file) = self.file()
        {
            let _ = file.set_len(self.bytes());
        }
    }

    /// A segment whose files are there, of the sizes that the directory shows. Nothing is opened.
    pub(super) fn existing(
        home: &Arc<Home>,
        base_offset: Offset,
        bytes: u64,
        index_bytes: u64,
        time_index_bytes: u64,
    ) -> Segment {
        Segment {
            base_offset,
            home: Arc::clone(home),
            log: Arc::default(),
            index: Arc::default(),
            time_index: Arc::default(),
            deleted: AtomicBool::new(false),
            reserved: AtomicBool::new(false),
            state: RwLock::new(State::new(bytes, index_bytes / 8, time_index_bytes / 12)),
        }
    }

    pub fn base_offset(&self) -> Offset {
        self.base_offset
    }

    /// Bytes of batches now; a view may know fewer.
    pub fn bytes(&self) -> u64 {
        self.state.read().bytes
    }

    /// Entries in the offset and in the time index.
    pub(super) fn index_entries(&self) -> (u64, u64) {
        let state = self.state.read();
        (state.offsets.len(), state.times.len())
    }

    /// The file of batches, opened when it is not.
    #[inline]
    pub fn file(&self) -> Result<Arc<dyn DiskFile>, LogError> {
        match self.log.get() {
            Some(file) => Ok(file),
            None => self.open(&self.log, LOG, OpenMode::ReadWrite),
        }
    }

    /// Always for reading and writing: the cache holds one descriptor for both.
    fn open(&self, slot: &Arc<Slot>, kind: &str, mode: OpenMode) -> Result<Arc<dyn DiskFile>, LogError> {
        let path = self.path(kind);
        let opened = self.open_any(slot, mode, kind, &path)?;
        if self.home.retired.load(Ordering::Acquire) {
            // Looked at behind the opening: the file may be one of a new topic of the name.
            slot.close();
            return Err(io::Error::other("the partition was deleted")).context("open", &path);
        }
        Ok(opened)
    }

    fn open_any(
        &self,
        slot: &Arc<Slot>,
        mode: OpenMode,
        kind: &str,
        path: &Path,
    ) -> Result<Arc<dyn DiskFile>, LogError> {
        match self.home.files.open(slot, mode, || path) {
            // Renamed between the two looks, for removal.
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.path(kind) != path => {
                self.home.files.open(slot, mode, || self.path(kind)).context("open", path)
            }
            opened => opened.context("open", path),
        }
    }

    pub(super) fn path(&self, kind: &str) -> PathBuf {
        let mut name = names::offset_file(self.base_offset, kind);
        if self.deleted.load(Ordering::Acquire) {
            name.push_str(DELETED);
        }
        self.home.dir.join(name)
    }

    fn interval(&self) -> u64 {
        u64::from(self.home.index_interval_bytes.load(Ordering::Relaxed))
    }

    /// Writes behind the last batch. The segment does not know of it before [`Segment::note`].
    pub(super) fn write(&self, slices: &[IoSlice<'_>], position: u64) -> io::Result<()> {
        match self.log.get() {
            Some(file) => file.write_all_vectored_at(slices, position),
            None => {
                let file = self.home.files.open(&self.log, OpenMode::ReadWrite, || self.path(LOG))?;
                file.write_all_vectored_at(slices, position)
            }
        }
    }

    /// Takes note of batches that now stand behind the last one, with their final offsets.
    pub(super) fn note<'a>(&self, headers: impl Iterator<Item = &'a BatchHeader>) {
        let interval = self.interval();
        let mut state = self.state.write();
        for header in headers {
            state.note(self.base_offset, header, interval);
        }
        if state.offsets.pending().len() >= PENDING_MAX {
            // Entries that cannot be written now stay in memory and go with the next run.
            let _ = self.spill(&mut state);
        }
    }

    fn spill(&self, state: &mut State) -> Result<(), LogError> {
        let index = self.open(&self.index, INDEX, OpenMode::Create)?;
        state.offsets.spill(&*index).context("write", &self.path(INDEX))?;
        let times = self.open(&self.time_index, TIME_INDEX, OpenMode::Create)?;
        state.times.spill(&*times).context("write", &self.path(TIME_INDEX))
    }

    /// Writes the indexes out with the closing entry of the time index, as when the segment gets a successor or the log closes.
    pub(super) fn finish_indexes(&self) -> Result<(), LogError> {
        let mut state = self.state.write();
        state.push_time(self.base_offset);
        self.spill(&mut state)
    }

    /// Writes out index entries that wait in memory.
    pub(super) fn write_indexes(&self) -> Result<(), LogError> {
        let mut state = self.state.write();
        let waiting = !state.offsets.pending().is_empty() || !state.times.pending().is_empty();
        if waiting { self.spill(&mut state) } else { Ok(()) }
    }

    /// Frees what only the youngest segment needs.
    pub(super) fn forget_recent(&self) {
        self.state.write().recent = VecDeque::new();
    }

    /// Cuts off what a failed write may have left behind the last batch.
    pub(super) fn cut_to_size(&self) -> io::Result<()> {
        let bytes = self.bytes();
        let file = self.home.files.open(&self.log, OpenMode::ReadWrite, || self.path(LOG))?;
        if file.len()? != bytes { file.set_len(bytes) } else { Ok(()) }
    }

    /// Renames the files so that they no longer count, whatever happens next. Who reads them goes on reading. Can be repeated.
    pub(super) fn mark_deleted(&self) -> Result<Vec<PathBuf>, LogError> {
        let disk = self.home.files.disk();
        let mut renamed = Vec::new();
        for kind in [LOG, INDEX, TIME_INDEX, names::TXN_INDEX, names::SNAPSHOT] {
            let from = self.home.dir.join(names::offset_file(self.base_offset, kind));
            let to = suffixed(&from, DELETED);
            match disk.rename(&from, &to) {
                Ok(()) => renamed.push(to),
                // Perhaps it was renamed by a try that got no further.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    if disk.exists(&to) {
                        renamed.push(to);
                    }
                }
                Err(error) => return Err(error).context("rename", &from),
            }
        }
        self.deleted.store(true, Ordering::Release);
        self.close_files();
        Ok(renamed)
    }

    /// Lets go of the descriptors. Whoever is reading finishes.
    pub(super) fn close_files(&self) {
        [&self.log, &self.index, &self.time_index].into_iter().for_each(|slot| slot.close());
    }
}

pub(super) fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
