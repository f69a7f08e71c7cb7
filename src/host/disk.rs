//! The disk seam: files that are written at positions and synced on purpose. Calls block; callers on an async path send what may
//! wait for the device to [`super::task::blocking`].

use std::fmt;
use std::io::{self, IoSlice};
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Must exist; reading only.
    Read,
    /// Must exist; reading and writing.
    ReadWrite,
    /// Made when absent, kept when present; reading and writing.
    Create,
    /// Must not exist; reading and writing.
    CreateNew,
    /// Made when absent, emptied when present; reading and writing.
    Truncate,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    pub name: String,
    pub is_dir: bool,
    pub len: u64,
}

/// A file system. What was written or renamed survives a power cut only after the matching sync.
pub trait Disk: Send + Sync {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>>;
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Entries in name order.
    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>>;
    fn exists(&self, path: &Path) -> bool;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Makes created, renamed and removed names of this directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Bytes free and bytes in all on the file system that holds `path`.
    fn space(&self, path: &Path) -> io::Result<DiskSpace>;
    /// Takes the directory for this process alone until the guard is dropped; `WouldBlock` when another one has it.
    fn lock_dir(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    pub free_bytes: u64,
    pub total_bytes: u64,
}

/// An open file. Positioned calls only: no shared cursor, so readers need no lock.
pub trait DiskFile: Send + Sync + fmt::Debug {
    fn len(&self) -> io::Result<u64>;

    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Reads up to `buffer.len()` bytes; fewer only at the end of the file.
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize>;

    /// Reads exactly `buffer.len()` bytes or answers `UnexpectedEof`.
    fn read_exact_at(&self, buffer: &mut [u8], position: u64) -> io::Result<()> {
        if self.read_at(buffer, position)? == buffer.len() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn write_all_at(&self, bytes: &[u8], position: u64) -> io::Result<()>;

    /// Writes all slices one behind the other, in as few calls as the system allows.
    fn write_all_vectored_at(&self, slices: &[IoSlice<'_>], position: u64) -> io::Result<()>;

    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Takes room on the device for the first `len` bytes. The file's length and content stay as they are; `set_len` gives back what
    /// lies behind the length. After an error some of the room may be taken.
    fn reserve(&self, len: u64) -> io::Result<()>;

    /// Returns when content and length are on the device. An error means the unsynced content may be lost for good (A9):
    /// it must not be called again in the hope of a better answer.
    fn sync_data(&self) -> io::Result<()>;

    /// Asks the system to begin writing the range back, without waiting. A hint; durability comes from `sync_data` alone.
    fn start_writeback(&self, position: u64, len: u64) -> io::Result<()>;

    /// Whether a read of the range would be served from memory. `true` when the system cannot tell.
    fn is_cached(&self, position: u64, len: u64) -> bool;

    /// A hint: what is read through this handle is not wanted again, so it need not push anything out of memory.
    fn will_read_once(&self) {}

    /// The descriptor for `sendfile`, where there is one.
    fn raw_fd(&self) -> Option<RawFd>;
}

/// A directory that could not be opened for its sync: the device was not asked for anything, so nothing is lost.
#[derive(Debug)]
struct NotOpened(io::Error);

impl fmt::Display for NotOpened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for NotOpened {}

/// Marks an error of [`Disk::sync_dir`] as one from before the sync.
pub fn not_opened(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), NotOpened(error))
}

/// Whether the error is marked by [`not_opened`].
pub fn was_not_opened(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<NotOpened>())
}

/// Whether the machine lacked something that it may have again in a moment: descriptors, memory, room. It says nothing about the
/// device. Not to be asked about a sync that failed.
pub fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, OutOfMemory, QuotaExceeded, StorageFull};
    use rustix::io::Errno;
    if let Some(NotOpened(inner)) = error.get_ref().and_then(|inner| inner.downcast_ref()) {
        return is_passing(inner);
    }
    matches!(error.kind(), Interrupted | OutOfMemory | QuotaExceeded | StorageFull)
        || matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// Replaces `path` so that after a crash at any point either the old or the new content is there, whole:
/// write aside, sync, rename, sync the directory.
pub fn write_file_atomically(disk: &dyn Disk, path: &Path, content: &[u8]) -> io::Result<()> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".tmp");
    let aside = PathBuf::from(aside);
    let file = disk.open(&aside, OpenMode::Truncate)?;
    file.write_all_at(content, 0)?;
    file.sync_data()?;
    drop(file);
    disk.rename(&aside, path)?;
    match path.parent() {
        Some(parent) => disk.sync_dir(parent),
        None => Ok(()),
    }
}

/// The whole content of a small file.
pub fn read_file(disk: &dyn Disk, path: &Path) -> io::Result<Vec<u8>> {
    let file = disk.open(path, OpenMode::Read)?;
    let len = usize::try_from(file.len()?).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let mut content = vec![0; len];
    let read = file.read_at(&mut content, 0)?;
    content.truncate(read);
    Ok(content)
}
