//! A disk in memory that keeps two pictures: what programs see, and what a power cut would leave. Content moves from the first to
//! the second with a file's `sync_data`, names with a directory's `sync_dir`; anything else may be lost, in part or whole.
//!
//! Faults are set beforehand: a number of writes after which the power is gone, a size after which the disk is full, a sync that
//! fails. All that looks random follows from the seed.

use std::fmt;
use std::io::{self, IoSlice};
use std::os::fd::RawFd;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::SimEntropy;
use super::disk_node::{Crash, DirNode, Edit, FileNode, Node};
use crate::host::disk::{DirEntry, Disk, DiskFile, DiskSpace, OpenMode, not_opened};

/// A disk. Clones of the `Arc` around it are the same disk; open files die with a crash.
pub struct SimDisk {
    state: Arc<Mutex<State>>,
    /// As one process sees it, which is gone with the next crash; `None` for whoever steers the machine.
    mounted_in: Option<u64>,
}

struct State {
    nodes: Vec<Node>,
    entropy: SimEntropy,
    /// Goes up with each crash; files opened before are dead.
    life: u64,
    writes: u64,
    writes_until_cut: Option<u64>,
    syncs_until_failure: Option<u64>,
    failed_syncs: u64,
    renames_fail: bool,
    /// Directories whose device answers nothing but errors.
    broken: Vec<PathBuf>,
    descriptors_are_out: bool,
    capacity_bytes: u64,
    locked: Vec<usize>,
}

const ROOT: usize = 0;

impl SimDisk {
    /// An empty disk without faults.
    pub fn new(seed: u64) -> SimDisk {
        SimDisk {
            state: Arc::new(Mutex::new(State {
                nodes: vec![Node::Dir(DirNode::default())],
                entropy: SimEntropy::new(seed),
                life: 0,
                writes: 0,
                writes_until_cut: None,
                syncs_until_failure: None,
                failed_syncs: 0,
                renames_fail: false,
                broken: Vec::new(),
                descriptors_are_out: false,
                capacity_bytes: u64::MAX,
                locked: Vec::new(),
            })),
            mounted_in: None,
        }
    }

    /// The disk as a process sees it that begins now. It can do nothing with it any more after a crash.
    pub fn mounted(&self) -> SimDisk {
        SimDisk { state: self.state.clone(), mounted_in: Some(self.state.lock().life) }
    }

    fn state(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.state.lock();
        if self.mounted_in.is_none_or(|life| life == state.life) { Ok(state) } else { Err(power_is_off()) }
    }

    /// Calls so far that change something: writes, syncs, names.
    pub fn write_count(&self) -> u64 {
        self.state.lock().writes
    }

    /// Cuts the power in the middle of the changing call number `count` from now (1 is the next one). That call and all behind
    /// it fail, until [`SimDisk::crash`].
    pub fn cut_power_at(&self, count: u64) {
        self.state.lock().writes_until_cut = Some(count);
    }

    /// Makes the `count`th sync from now fail (1 is the next one), and lose what it should have kept.
    pub fn fail_sync_at(&self, count: u64) {
        self.state.lock().syncs_until_failure = Some(count);
    }

    /// No sync will fail any more.
    pub fn fail_no_sync(&self) {
        self.state.lock().syncs_until_failure = None;
    }

    /// How many syncs have failed.
    pub fn failed_syncs(&self) -> u64 {
        self.state.lock().failed_syncs
    }

    /// Makes renaming fail, or work again.
    pub fn fail_renames(&self, fail: bool) {
        self.state.lock().renames_fail = fail;
    }

    /// Breaks the device under a directory, or mends it: whatever is asked of what lies there fails.
    pub fn break_device(&self, dir: &Path, is_broken: bool) {
        let broken = &mut self.state.lock().broken;
        broken.retain(|known| known != dir);
        if is_broken {
            broken.push(dir.to_owned());
        }
    }

    /// Makes everything that needs a descriptor fail with EMFILE, or work again.
    pub fn run_out_of_descriptors(&self, out: bool) {
        self.state.lock().descriptors_are_out = out;
    }

    /// How much all files together may hold.
    pub fn set_capacity_bytes(&self, bytes: u64) {
        self.state.lock().capacity_bytes = bytes;
    }

    pub fn used_bytes(&self) -> u64 {
        self.state.lock().used_bytes()
    }

    /// The machine goes down and comes up again: open files are dead, faults are over.
    pub fn crash(&self, how: Crash) {
        let mut state = self.state.lock();
        let state = &mut *state;
        state.life += 1;
        state.writes_until_cut = None;
        state.syncs_until_failure = None;
        state.locked.clear();
        for node in &mut state.nodes {
            match node {
                Node::File(file) => file.crash(how, &state.entropy),
                Node::Dir(dir) => dir.crash(how, &state.entropy),
            }
        }
    }

    /// Changes a file behind everybody's back, as failing hardware does.
    pub fn corrupt(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let mut state = self.state.lock();
        let id = state.find(path)?;
        let file = state.file(id)?;
        change(&mut file.seen);
        file.durable = file.seen.clone();
        file.unsynced.clear();
        Ok(())
    }

    /// A file's content as programs see it.
    pub fn content(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut state = self.state.lock();
        let id = state.find(path)?;
        Ok(state.file(id)?.seen.clone())
    }
}

fn not_found() -> io::Error {
    io::ErrorKind::NotFound.into()
}

fn device_failed() -> io::Error {
    io::Error::other("the simulated device failed")
}

fn power_is_off() -> io::Error {
    io::Error::other("the simulated power is off")
}

impl State {
    fn used_bytes(&self) -> u64 {
        let dirs = self.nodes.iter().filter_map(|node| match node {
            Node::Dir(dir) => Some(dir),
            Node::File(_) => None,
        });
        let named = dirs.flat_map(|dir| dir.seen.values());
        let sizes = named.map(|id| match self.nodes.get(*id) {
            Some(Node::File(file)) => file.used_bytes() as u64,
            _ => 0,
        });
        sizes.sum()
    }

    /// A directory that has no name any more gives its room back.
    fn empty(&mut self, dir: usize) {
        let mut left = vec![dir];
        while let Some(id) = left.pop() {
            if let Some(Node::Dir(dir)) = self.nodes.get_mut(id) {
                left.extend(std::mem::take(&mut dir.seen).into_values());
            }
        }
    }

    fn room(&self) -> u64 {
        if self.capacity_bytes == u64::MAX { u64::MAX } else { self.capacity_bytes.saturating_sub(self.used_bytes()) }
    }

    fn dir(&mut self, id: usize) -> io::Result<&mut DirNode> {
        match self.nodes.get_mut(id) {
            Some(Node::Dir(dir)) => Ok(dir),
            _ => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    fn file(&mut self, id: usize) -> io::Result<&mut FileNode> {
        match self.nodes.get_mut(id) {
            Some(Node::File(file)) => Ok(file),
            _ => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    fn child(&mut self, dir: usize, name: &str) -> io::Result<Option<usize>> {
        Ok(self.dir(dir)?.seen.get(name).copied())
    }

    fn find(&mut self, path: &Path) -> io::Result<usize> {
        names(path).into_iter().try_fold(ROOT, |id, name| self.child(id, &name)?.ok_or_else(not_found))
    }

    /// The directory that holds `path`, and its last name.
    fn find_parent(&mut self, path: &Path) -> io::Result<(usize, String)> {
        let name = names(path).pop().ok_or(io::ErrorKind::InvalidInput)?;
        Ok((self.find(path.parent().unwrap_or(Path::new("/")))?, name))
    }

    fn check_device(&self, path: &Path) -> io::Result<()> {
        if self.broken.iter().any(|broken| path.starts_with(broken)) { Err(device_failed()) } else { Ok(()) }
    }

    fn take_descriptor(&self) -> io::Result<()> {
        if self.descriptors_are_out { Err(rustix::io::Errno::MFILE.into()) } else { Ok(()) }
    }

    /// Counts a changing call. `Err` when the power is off; `true` when it goes off in the middle of this one.
    fn change(&mut self) -> io::Result<bool> {
        self.writes += 1;
        match self.writes_until_cut {
            None => Ok(false),
            Some(0) => Err(power_is_off()),
            Some(left) => {
                self.writes_until_cut = Some(left - 1);
                Ok(left == 1)
            }
        }
    }

    /// A changing call that is done whole or not at all.
    fn atomic_change(&mut self) -> io::Result<()> {
        if self.change()? { Err(power_is_off()) } else { Ok(()) }
    }
}

fn names(path: &Path) -> Vec<String> {
    let normal = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    });
    normal.collect()
}

impl Disk for SimDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state()?;
        state.take_descriptor()?;
        state.check_device(path)?;
        let (parent, name) = state.find_parent(path)?;
        let id = match (state.child(parent, &name)?, mode) {
            (None, OpenMode::Read | OpenMode::ReadWrite) => return Err(not_found()),
            (Some(_), OpenMode::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(id), OpenMode::Truncate) => {
                state.atomic_change()?;
                state.file(id)?.edit(Edit::SetLen(0));
                id
            }
            (Some(id), _) => id,
            (None, _) => {
                state.atomic_change()?;
                state.nodes.push(Node::File(FileNode::default()));
                let id = state.nodes.len() - 1;
                state.dir(parent)?.seen.insert(name, id);
                id
            }
        };
        state.file(id)?;
        let writable = mode != OpenMode::Read;
        let path = path.to_owned();
        Ok(Arc::new(SimFile { state: Arc::clone(&self.state), id, path, life: state.life, writable }))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state()?;
        state.check_device(path)?;
        let mut id = ROOT;
        for name in names(path) {
            id = match state.child(id, &name)? {
                Some(child) => child,
                None => {
                    state.atomic_change()?;
                    state.nodes.push(Node::Dir(DirNode::default()));
                    let child = state.nodes.len() - 1;
                    state.dir(id)?.seen.insert(name, child);
                    child
                }
            };
        }
        Ok(())
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let mut state = self.state()?;
        state.take_descriptor()?;
        state.check_device(path)?;
        let id = state.find(path)?;
        let entries = state.dir(id)?.seen.clone();
        let entry = |(name, id): (String, usize)| match state.nodes.get(id) {
            Some(Node::File(file)) => DirEntry { name, is_dir: false, len: file.seen.len() as u64 },
            _ => DirEntry { name, is_dir: true, len: 0 },
        };
        Ok(entries.into_iter().map(entry).collect())
    }

    fn exists(&self, path: &Path) -> bool {
        self.state().is_ok_and(|mut state| state.find(path).is_ok())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state()?;
        state.check_device(from)?;
        state.check_device(to)?;
        let (from_dir, from_name) = state.find_parent(from)?;
        let (to_dir, to_name) = state.find_parent(to)?;
        let id = state.child(from_dir, &from_name)?.ok_or_else(not_found)?;
        if let Some(there) = state.child(to_dir, &to_name)?
            && state.dir(there).is_ok_and(|there| !there.seen.is_empty())
        {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        if state.renames_fail {
            return Err(device_failed());
        }
        state.atomic_change()?;
        state.dir(from_dir)?.seen.remove(&from_name);
        state.dir(to_dir)?.seen.insert(to_name, id);
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state()?;
        state.check_device(path)?;
        let (parent, name) = state.find_parent(path)?;
        let id = state.child(parent, &name)?.ok_or_else(not_found)?;
        state.file(id)?;
        state.atomic_change()?;
        state.dir(parent)?.seen.remove(&name);
        Ok(())
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state()?;
        state.check_device(path)?;
        let (parent, name) = state.find_parent(path)?;
        let id = state.child(parent, &name)?.ok_or_else(not_found)?;
        state.dir(id)?;
        state.atomic_change()?;
        state.dir(parent)?.seen.remove(&name);
        state.empty(id);
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state()?;
        state.take_descriptor().map_err(not_opened)?;
        state.check_device(path)?;
        let id = state.find(path).map_err(not_opened)?;
        state.atomic_change()?;
        let dir = state.dir(id)?;
        dir.durable = dir.seen.clone();
        Ok(())
    }

    fn space(&self, path: &Path) -> io::Result<DiskSpace> {
        let mut state = self.state()?;
        state.find(path)?;
        Ok(DiskSpace { free_bytes: state.room(), total_bytes: state.capacity_bytes })
    }

    fn lock_dir(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        let mut state = self.state()?;
        state.check_device(path)?;
        let id = state.find(path)?;
        if state.locked.contains(&id) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        state.locked.push(id);
        let life = state.life;
        Ok(Box::new(DirLock { state: Arc::clone(&self.state), id, life }))
    }
}

struct DirLock {
    state: Arc<Mutex<State>>,
    id: usize,
    life: u64,
}

impl Drop for DirLock {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        if state.life == self.life {
            state.locked.retain(|id| *id != self.id);
        }
    }
}

struct SimFile {
    state: Arc<Mutex<State>>,
    id: usize,
    /// Where it was opened.
    path: PathBuf,
    life: u64,
    writable: bool,
}

impl fmt::Debug for SimFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimFile({})", self.id)
    }
}

impl SimFile {
    fn state(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.state.lock();
        state.check_device(&self.path)?;
        if state.life == self.life { Ok(state) } else { Err(power_is_off()) }
    }

    fn state_to_write(&self) -> io::Result<MutexGuard<'_, State>> {
        if self.writable { self.state() } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }
}

impl DiskFile for SimFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state()?.file(self.id)?.seen.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        let mut state = self.state()?;
        let content = &state.file(self.id)?.seen;
        let rest = content.get(usize::try_from(position).unwrap_or(usize::MAX)..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer.iter_mut().zip(rest).for_each(|(place, byte)| *place = *byte);
        Ok(count)
    }

    fn write_all_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        let mut state = self.state_to_write()?;
        let position = usize::try_from(position).map_err(|_| io::ErrorKind::InvalidInput)?;
        let cut = state.change()?;
        let grows = (position + bytes.len()).saturating_sub(state.file(self.id)?.used_bytes()) as u64;
        let room = state.room();
        let mut keep = bytes.len();
        if grows > room {
            // As much as fits is there, like a short write.
            keep -= usize::try_from(grows - room).unwrap_or(keep).min(keep);
        }
        if cut {
            keep = usize::try_from(state.entropy.below(keep as u64 + 1)).unwrap_or(0);
        }
        let kept = bytes.get(..keep).unwrap_or_default().to_vec();
        state.file(self.id)?.edit(Edit::Write { position, bytes: kept });
        if cut {
            Err(power_is_off())
        } else if grows > room {
            Err(io::ErrorKind::StorageFull.into())
        } else {
            Ok(())
        }
    }

    fn write_all_vectored_at(&self, slices: &[IoSlice<'_>], position: u64) -> io::Result<()> {
        let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
        self.write_all_at(&bytes, position)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state_to_write()?;
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::InvalidInput)?;
        state.atomic_change()?;
        state.file(self.id)?.edit(Edit::SetLen(len));
        Ok(())
    }

    fn reserve(&self, len: u64) -> io::Result<()> {
        let mut state = self.state_to_write()?;
        state.atomic_change()?;
        let room = state.room();
        let file = state.file(self.id)?;
        let used = file.used_bytes() as u64;
        let taken = len.max(used).min(used.saturating_add(room));
        file.reserved = usize::try_from(taken).map_err(|_| io::ErrorKind::InvalidInput)?;
        // Like ext4: what there was is taken, and then it is too little.
        if taken < len { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.state()?;
        state.atomic_change()?;
        if let Some(left) = state.syncs_until_failure {
            state.syncs_until_failure = left.checked_sub(1).filter(|left| *left > 0);
            if left <= 1 {
                state.failed_syncs += 1;
                // The pages are dropped and count as clean from now on, as Linux does it.
                let file = state.file(self.id)?;
                file.unsynced.clear();
                file.seen.clone_from(&file.durable);
                return Err(device_failed());
            }
        }
        state.file(self.id)?.sync();
        Ok(())
    }

    fn start_writeback(&self, _position: u64, _len: u64) -> io::Result<()> {
        Ok(())
    }

    fn is_cached(&self, _position: u64, _len: u64) -> bool {
        true
    }

    fn raw_fd(&self) -> Option<RawFd> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::disk_node::SECTOR_BYTES;
    use super::*;

    fn disk() -> SimDisk {
        let disk = SimDisk::new(7);
        disk.create_dir_all(Path::new("/d")).unwrap();
        disk.sync_dir(Path::new("/")).unwrap();
        disk
    }

    fn create(disk: &SimDisk, name: &str, bytes: &[u8]) -> Arc<dyn DiskFile> {
        let file = disk.open(&Path::new("/d").join(name), OpenMode::CreateNew).unwrap();
        file.write_all_at(bytes, 0).unwrap();
        file
    }

    fn content(disk: &SimDisk, name: &str) -> Option<Vec<u8>> {
        disk.content(&Path::new("/d").join(name)).ok()
    }

    #[test]
    fn a_power_cut_takes_unsynced_content_and_unsynced_names() {
        let disk = disk();
        create(&disk, "both", b"x").sync_data().unwrap();
        create(&disk, "name", b"x");
        disk.sync_dir(Path::new("/d")).unwrap();
        create(&disk, "content", b"x").sync_data().unwrap();
        disk.crash(Crash::PowerLosesAll);
        assert_eq!(content(&disk, "both"), Some(b"x".to_vec()));
        assert_eq!(content(&disk, "name"), Some(Vec::new()));
        assert_eq!(content(&disk, "content"), None);
    }

    #[test]
    fn a_dead_process_takes_nothing() {
        let disk = disk();
        let file = create(&disk, "a", b"x");
        disk.crash(Crash::Process);
        assert_eq!(content(&disk, "a"), Some(b"x".to_vec()));
        assert!(file.len().is_err(), "descriptors die with it");
    }

    #[test]
    fn some_sectors_survive_and_some_do_not() {
        let mut outcomes = std::collections::BTreeSet::new();
        for seed in 0..50 {
            let disk = SimDisk::new(seed);
            let file = disk.open(Path::new("/a"), OpenMode::Create).unwrap();
            file.write_all_at(&[0; 2048], 0).unwrap();
            file.sync_data().unwrap();
            disk.sync_dir(Path::new("/")).unwrap();
            file.write_all_at(&[1; 2048], 0).unwrap();
            disk.crash(Crash::PowerLosesSome);
            let found = disk.content(Path::new("/a")).unwrap();
            let sectors: Vec<u8> = found.chunks(SECTOR_BYTES).map(|sector| sector[0]).collect();
            assert!(found.chunks(SECTOR_BYTES).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
            outcomes.insert(sectors);
        }
        assert!(outcomes.len() > 8, "{outcomes:?}");
    }

    #[test]
    fn the_same_seed_gives_the_same_ruin() {
        let ruin = |seed| {
            let disk = SimDisk::new(seed);
            let file = disk.open(Path::new("/a"), OpenMode::Create).unwrap();
            disk.sync_dir(Path::new("/")).unwrap();
            file.write_all_at(&[1; 9000], 0).unwrap();
            disk.crash(Crash::PowerLosesSome);
            disk.content(Path::new("/a")).unwrap()
        };
        assert_eq!(ruin(5), ruin(5));
        assert_ne!(ruin(5), ruin(6));
    }

    #[test]
    fn a_full_disk_takes_what_fits_and_says_so() {
        let disk = disk();
        let file = create(&disk, "a", &[1; 90]);
        disk.set_capacity_bytes(100);
        let refused = file.write_all_at(&[2; 30], 80).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::StorageFull);
        assert_eq!(file.len().unwrap(), 100);
        assert_eq!(disk.space(Path::new("/d")).unwrap().free_bytes, 0);
        disk.remove_file(Path::new("/d/a")).unwrap();
        assert_eq!(disk.space(Path::new("/d")).unwrap().free_bytes, 100);
        create(&disk, "b", &[1; 90]);
        disk.remove_dir_all(Path::new("/d")).unwrap();
        assert_eq!(disk.space(Path::new("/")).unwrap().free_bytes, 100);
    }

    #[test]
    fn reserved_room_is_taken_but_not_seen_and_given_back_with_the_length() {
        let disk = disk();
        disk.set_capacity_bytes(100);
        let file = create(&disk, "a", &[1; 10]);
        file.reserve(60).unwrap();
        assert_eq!((file.len().unwrap(), disk.used_bytes()), (10, 60));
        let other = create(&disk, "b", &[2; 40]);
        file.write_all_at(&[1; 50], 10).unwrap();
        assert!(file.write_all_at(&[1], 60).is_err());
        assert!(other.reserve(50).is_err());
        disk.set_capacity_bytes(200);
        other.reserve(90).unwrap();
        other.set_len(40).unwrap();
        assert_eq!(disk.used_bytes(), 100);
    }

    #[test]
    fn a_failed_sync_loses_the_content_for_good() {
        let disk = disk();
        let file = create(&disk, "a", b"old");
        file.sync_data().unwrap();
        file.write_all_at(b"new", 0).unwrap();
        disk.fail_sync_at(1);
        assert!(file.sync_data().is_err());
        file.sync_data().unwrap();
        assert_eq!(content(&disk, "a"), Some(b"old".to_vec()));
    }

    #[test]
    fn after_the_cut_nothing_changes_any_more() {
        let disk = disk();
        let file = create(&disk, "a", b"");
        disk.cut_power_at(2);
        file.write_all_at(b"one", 0).unwrap();
        assert!(file.write_all_at(&[2; 100], 3).is_err());
        assert!(file.write_all_at(b"three", 3).is_err());
        assert!(disk.remove_file(Path::new("/d/a")).is_err());
        let found = content(&disk, "a").unwrap();
        assert!(found.starts_with(b"one") && found[3..].iter().all(|byte| *byte == 2), "{found:?}");
    }

    #[test]
    fn a_locked_directory_is_locked_until_the_guard_goes() {
        let disk = disk();
        let guard = disk.lock_dir(Path::new("/d")).unwrap();
        assert_eq!(disk.lock_dir(Path::new("/d")).err().unwrap().kind(), io::ErrorKind::WouldBlock);
        drop(guard);
        disk.lock_dir(Path::new("/d")).unwrap();
    }
}
