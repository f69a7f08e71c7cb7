//! The real disk: the machine's file system through positioned, vectored calls.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use crate::host::disk::{DirEntry, Disk, DiskFile, DiskSpace, OpenMode, not_opened};

/// Most `writev` slices the kernel takes at once (`IOV_MAX`).
const SLICES_MAX: usize = 1024;

/// The machine's file system.
#[derive(Debug, Default)]
pub struct RealDisk;

impl RealDisk {
    pub fn new() -> RealDisk {
        RealDisk
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the seam")]
impl Disk for RealDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(mode != OpenMode::Read);
        match mode {
            OpenMode::Read | OpenMode::ReadWrite => {}
            OpenMode::Create => {
                options.create(true);
            }
            OpenMode::CreateNew => {
                options.create_new(true);
            }
            OpenMode::Truncate => {
                options.create(true).truncate(true);
            }
        }
        Ok(Arc::new(RealFile(options.open(path)?)))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            // A name that vanished between listing and asking is simply not there any more.
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let name = entry.file_name().to_string_lossy().into_owned();
            entries.push(DirEntry { name, is_dir: metadata.is_dir(), len: metadata.len() });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path).map_err(not_opened)?.sync_all()
    }

    fn space(&self, path: &Path) -> io::Result<DiskSpace> {
        let stat = rustix::fs::statvfs(path)?;
        Ok(DiskSpace { free_bytes: stat.f_bavail * stat.f_frsize, total_bytes: stat.f_blocks * stat.f_frsize })
    }

    fn lock_dir(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path.join(".lock"))?;
        rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive)?;
        Ok(Box::new(file))
    }
}

#[derive(Debug)]
struct RealFile(File);

impl DiskFile for RealFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.0.read_at(&mut buffer[filled..], position + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn write_all_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, position)
    }

    fn write_all_vectored_at(&self, slices: &[IoSlice<'_>], position: u64) -> io::Result<()> {
        let mut position = position;
        for group in slices.chunks(SLICES_MAX) {
            let total: usize = group.iter().map(|slice| slice.len()).sum();
            let written = retry_interrupted(|| rustix::io::pwritev(&self.0, group, position))?;
            if written < total {
                write_rest(&self.0, group, written, position)?;
            }
            position += total as u64;
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn reserve(&self, len: u64) -> io::Result<()> {
        Ok(rustix::fs::fallocate(&self.0, rustix::fs::FallocateFlags::KEEP_SIZE, 0, len)?)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn start_writeback(&self, position: u64, len: u64) -> io::Result<()> {
        sync_file_range(&self.0, position, len)
    }

    fn is_cached(&self, position: u64, len: u64) -> bool {
        let mut byte = [0u8];
        [position, position + len.saturating_sub(1)].into_iter().all(|at| {
            let flags = rustix::io::ReadWriteFlags::NOWAIT;
            let read = rustix::io::preadv2(self.0.as_fd(), &mut [io::IoSliceMut::new(&mut byte)], at, flags);
            read != Err(rustix::io::Errno::AGAIN)
        })
    }

    fn will_read_once(&self) {
        // Heeded by Linux from 6.3 on. Older ones read all the same.
        let _ = rustix::fs::fadvise(&self.0, 0, None, rustix::fs::Advice::NoReuse);
    }

    fn raw_fd(&self) -> Option<RawFd> {
        Some(self.0.as_raw_fd())
    }
}

fn retry_interrupted(mut call: impl FnMut() -> rustix::io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(rustix::io::Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

/// The slow end of a short vectored write: slice by slice from where it stopped.
fn write_rest(file: &File, slices: &[IoSlice<'_>], written: usize, position: u64) -> io::Result<()> {
    let mut skip = written;
    let mut position = position;
    for slice in slices {
        let from = skip.min(slice.len());
        file.write_all_at(&slice[from..], position + from as u64)?;
        skip -= from;
        position += slice.len() as u64;
    }
    Ok(())
}

#[expect(unsafe_code, reason = "rustix does not wrap sync_file_range; the descriptor is open for the whole call")]
fn sync_file_range(file: &File, position: u64, len: u64) -> io::Result<()> {
    let (Ok(position), Ok(len)) = (i64::try_from(position), i64::try_from(len)) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let answer = unsafe { libc::sync_file_range(file.as_raw_fd(), position, len, libc::SYNC_FILE_RANGE_WRITE) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
