//! Room that is kept for the metadata on a disk that fills up. Without any, no topic can be deleted and no retention shortened, which is
//! what would make room; a node that starts then cannot even write down what it promised.
//!
//! A file beside the metadata log takes the room while there is plenty. It is removed when the disk is all but full, at the start or
//! later. From then on records are refused until so much is free that it can be made again: they would eat at once what was given up.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::host::disk::{DiskFile, DiskSpace, OpenMode};
use crate::host::{Disk, task};
use crate::log::{AppendError, LogError};
use crate::replica::error::PartitionError;
use crate::replica::partition::Partition;

const FILE: &str = "reserve";
const UNFINISHED: &str = "reserve.tmp";

/// Size of the file, unless the disk is so small that this is more than its 32nd part.
const BYTES_MAX: u64 = 8 << 20;
const PART_OF_DISK: u64 = 32;

/// With less room than this part of the file's size, it is given up.
const LOW_PART: u64 = 8;

const LOOKED_EVERY: Duration = Duration::from_secs(1);

/// Written at once, where room cannot be had otherwise.
const CHUNK_BYTES: usize = 64 << 10;

pub struct Reserve {
    disk: Arc<dyn Disk>,
    /// Holds the file, once it is there.
    dir: PathBuf,
    /// On the same disk.
    log_dir: PathBuf,
    /// There is no file, and there should be.
    is_spent: AtomicBool,
}

fn wanted(space: DiskSpace) -> u64 {
    (space.total_bytes / PART_OF_DISK).min(BYTES_MAX)
}

/// Whether there is room for the file and as much again.
fn has_plenty(space: DiskSpace) -> bool {
    space.free_bytes >= wanted(space).saturating_mul(2)
}

impl Reserve {
    /// Of a node that starts, before it writes anything: its metadata is in `dir`, in `log_dir`.
    pub fn find(disk: Arc<dyn Disk>, log_dir: &Path, dir: &str) -> Reserve {
        let log_dir = log_dir.to_owned();
        let reserve = Reserve { disk, dir: log_dir.join(dir), log_dir, is_spent: AtomicBool::new(false) };
        // The last run may have given it up.
        let lacks_room = reserve.disk.space(&reserve.log_dir).is_ok_and(|space| !has_plenty(space));
        if lacks_room && !reserve.is_there() {
            reserve.is_spent.store(true, Ordering::Release);
            tracing::warn!(dir = %reserve.log_dir.display(), "the disk is nearly full; records are refused until there is room");
        }
        reserve.look();
        reserve
    }

    fn is_there(&self) -> bool {
        self.disk.exists(&self.dir.join(FILE))
    }

    /// Whether records must not be written to a directory, although there may be room for them.
    pub(super) fn holds_back(&self, log_dir: &Path) -> bool {
        self.is_spent.load(Ordering::Acquire) && self.disk.space(log_dir).is_ok_and(|space| !has_plenty(space))
    }

    /// As long as the node runs.
    pub async fn keep(self: Arc<Self>) {
        loop {
            task::sleep(LOOKED_EVERY).await;
            let reserve = self.clone();
            task::blocking(move || reserve.look()).await;
        }
    }

    /// Gives the room up when the disk is all but full, and takes it again when there is enough. Blocks.
    fn look(&self) {
        let Ok(space) = self.disk.space(&self.log_dir) else { return };
        let is_low = space.free_bytes < wanted(space) / LOW_PART;
        let is_spent = self.is_spent.load(Ordering::Acquire);
        match (self.is_there(), is_low) {
            (true, true) => self.give_up(space),
            (true, false) => self.is_spent.store(false, Ordering::Release),
            // A disk that is half empty does not fill up between two looks.
            (false, false) if has_plenty(space) && (is_spent || space.free_bytes < space.total_bytes / 2) => {
                self.make(space);
            }
            (false, _) => {}
        }
    }

    fn give_up(&self, space: DiskSpace) {
        // First, so that nobody writes into what becomes free.
        self.is_spent.store(true, Ordering::Release);
        let removed = self.disk.remove_file(&self.dir.join(FILE)).and_then(|()| self.disk.sync_dir(&self.dir));
        match removed {
            Ok(()) => tracing::warn!(
                dir = %self.log_dir.display(),
                free_bytes = space.free_bytes,
                refused_below_bytes = wanted(space).saturating_mul(2),
                "the disk is full: the room that was kept for the metadata is given up, and records are refused until there is room again"
            ),
            Err(error) => {
                tracing::warn!(dir = %self.dir.display(), %error, "the room kept for the metadata cannot be given up")
            }
        }
    }

    fn make(&self, space: DiskSpace) {
        if !self.disk.exists(&self.dir) {
            return;
        }
        match self.take(wanted(space)) {
            Ok(()) => {
                if self.is_spent.swap(false, Ordering::AcqRel) {
                    tracing::info!(dir = %self.log_dir.display(), "the disk has room again; records are taken, and some room is kept for the metadata");
                }
            }
            Err(error) => {
                let _ = self.disk.remove_file(&self.dir.join(UNFINISHED));
                tracing::debug!(dir = %self.dir.display(), %error, "no room can be kept for the metadata now");
            }
        }
    }

    /// Under its name there is only a file with all of its room.
    fn take(&self, bytes: u64) -> io::Result<()> {
        let unfinished = self.dir.join(UNFINISHED);
        let file = self.disk.open(&unfinished, OpenMode::Truncate)?;
        match file.reserve(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => fill(&*file, bytes)?,
            reserved => reserved?,
        }
        file.set_len(bytes)?;
        file.sync_data()?;
        self.disk.rename(&unfinished, &self.dir.join(FILE))?;
        self.disk.sync_dir(&self.dir)
    }
}

fn fill(file: &dyn DiskFile, bytes: u64) -> io::Result<()> {
    let chunk = vec![0; CHUNK_BYTES];
    (0..bytes).step_by(CHUNK_BYTES).try_for_each(|at| file.write_all_at(&chunk, at))
}

impl Partition {
    /// Whether records may be written.
    pub(super) fn check_room(&self) -> Result<(), PartitionError> {
        let dir = self.log_dir();
        if !self.dirs.hold_back(dir) {
            return Ok(());
        }
        let source = io::ErrorKind::StorageFull.into();
        let error = LogError::Storage { action: "write records to", path: dir.path.clone(), source };
        self.note_storage(&error);
        Err(AppendError::Storage(error).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::sim::SimDisk;

    const TOTAL: u64 = 1 << 20;
    const WANTED: u64 = TOTAL / 32;

    struct Bench {
        disk: Arc<SimDisk>,
        reserve: Reserve,
    }

    fn find(disk: &Arc<SimDisk>) -> Reserve {
        Reserve::find(disk.clone(), Path::new("/data"), "metadata")
    }

    impl Bench {
        fn new() -> Bench {
            let disk = Arc::new(SimDisk::new(1));
            disk.create_dir_all(Path::new("/data/metadata")).unwrap();
            disk.set_capacity_bytes(TOTAL);
            Bench { reserve: find(&disk), disk }
        }

        /// So much is free of the disk, beside what the reserve takes.
        fn leave_free(&self, bytes: u64) {
            let file = self.disk.open(Path::new("/data/records"), OpenMode::Create).unwrap();
            file.set_len(0).unwrap();
            let room = self.disk.space(Path::new("/data")).unwrap().free_bytes;
            file.set_len(room - bytes).unwrap();
        }

        fn kept_bytes(&self) -> u64 {
            let entries = self.disk.read_dir(Path::new("/data/metadata")).unwrap();
            entries.iter().map(|entry| entry.len).sum()
        }

        fn is_held_back(&self) -> bool {
            self.reserve.holds_back(Path::new("/data"))
        }
    }

    #[test]
    fn room_is_taken_when_the_disk_fills_up_given_up_when_it_is_full_and_taken_again() {
        let bench = Bench::new();
        bench.reserve.look();
        assert_eq!((bench.kept_bytes(), bench.is_held_back()), (0, false), "half of it is free");
        bench.leave_free(TOTAL / 2 - 1);
        bench.reserve.look();
        assert_eq!((bench.kept_bytes(), bench.is_held_back()), (WANTED, false));
        bench.leave_free(WANTED / 8);
        bench.reserve.look();
        assert_eq!((bench.kept_bytes(), bench.is_held_back()), (WANTED, false), "there is some left beside it");
        bench.leave_free(WANTED / 8 - 1);
        bench.reserve.look();
        assert_eq!((bench.kept_bytes(), bench.is_held_back()), (0, true));
        bench.leave_free(2 * WANTED - 1);
        bench.reserve.look();
        assert_eq!((bench.kept_bytes(), bench.is_held_back()), (0, true));
        bench.leave_free(2 * WANTED);
        bench.reserve.look();
        assert_eq!((bench.kept_bytes(), bench.is_held_back()), (WANTED, false));
    }

    #[test]
    fn a_node_that_starts_on_a_full_disk_gives_the_room_up_first_and_knows_that_it_did() {
        let mut bench = Bench::new();
        bench.leave_free(TOTAL / 4);
        bench.reserve.look();
        bench.leave_free(0);
        bench.reserve = find(&bench.disk);
        assert_eq!((bench.kept_bytes(), bench.is_held_back()), (0, true));
        assert_eq!(bench.disk.space(Path::new("/data")).unwrap().free_bytes, WANTED);
        bench.reserve = find(&bench.disk);
        assert!(bench.is_held_back(), "also in its next life");
    }
}
