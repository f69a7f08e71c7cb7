//! A bound on open descriptors. Files open on first use and the least recently used ones close again, so ten thousand partitions
//! need no more descriptors than are in use at once.
//!
//! A [`Slot`] sits beside its file's owner and holds the open file: a hit is one atomic load, without a look-up. Only opening and
//! closing take the cache's lock. A file that is closed while somebody still uses it stays open until that use ends. Closing a
//! file with unsynced content is safe: Linux reports a failed write-back to the next descriptor that asks.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;

use crate::host::{Disk, DiskFile, OpenMode};

/// Holds at most `open_max` files open, and those that are in use beyond that.
pub struct FileCache {
    disk: Arc<dyn Disk>,
    open_max: usize,
    /// Slots with an open file, in the order in which the clock hand will reach them.
    ring: Mutex<VecDeque<Weak<Slot>>>,
}

/// Where one file is kept open.
#[derive(Default)]
pub struct Slot {
    file: ArcSwapOption<Arc<dyn DiskFile>>,
    /// Used since the clock hand passed.
    used: AtomicBool,
    /// In the ring; changed under the ring's lock only.
    listed: AtomicBool,
}

impl FileCache {
    pub fn new(disk: Arc<dyn Disk>, open_max: usize) -> FileCache {
        FileCache { disk, open_max: open_max.max(1), ring: Mutex::new(VecDeque::new()) }
    }

    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// Files held open now.
    pub fn open_count(&self) -> usize {
        self.ring.lock().iter().filter_map(Weak::upgrade).filter(|slot| slot.file.load().is_some()).count()
    }

    /// The slot's file, opened by `path` when it is not open.
    pub fn open<P: AsRef<Path>>(
        &self,
        slot: &Arc<Slot>,
        mode: OpenMode,
        path: impl FnOnce() -> P,
    ) -> io::Result<Arc<dyn DiskFile>> {
        if let Some(file) = slot.get() {
            return Ok(file);
        }
        let file = self.disk.open(path().as_ref(), mode)?;
        let mut ring = self.ring.lock();
        if let Some(other) = slot.get() {
            return Ok(other);
        }
        slot.file.store(Some(Arc::new(Arc::clone(&file))));
        slot.used.store(true, Ordering::Relaxed);
        if !slot.listed.swap(true, Ordering::Relaxed) {
            ring.push_back(Arc::downgrade(slot));
        }
        self.close_surplus(&mut ring);
        Ok(file)
    }

    /// Moves the clock hand until the ring is within its bound. Two rounds are enough: the first takes the marks away.
    fn close_surplus(&self, ring: &mut VecDeque<Weak<Slot>>) {
        for _ in 0..2 * ring.len() {
            if ring.len() <= self.open_max {
                return;
            }
            let Some(slot) = ring.pop_front().and_then(|slot| slot.upgrade()) else { continue };
            let is_open = slot.file.load().is_some();
            if is_open && slot.used.swap(false, Ordering::Relaxed) {
                ring.push_back(Arc::downgrade(&slot));
            } else {
                slot.listed.store(false, Ordering::Relaxed);
                slot.file.store(None);
            }
        }
    }
}

impl Slot {
    /// The open file, if it is open. The hot path: no lock, no hash.
    #[inline]
    pub fn get(&self) -> Option<Arc<dyn DiskFile>> {
        let file = self.file.load();
        let file = Arc::clone(&**file.as_ref()?);
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        Some(file)
    }

    /// Forgets the file, as before it is renamed or removed.
    pub fn close(&self) {
        self.file.store(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::sim::SimDisk;

    fn open(cache: &FileCache, slot: &Arc<Slot>, name: &str) -> Arc<dyn DiskFile> {
        cache.open(slot, OpenMode::Create, || format!("/d/{name}")).unwrap()
    }

    fn cache(open_max: usize) -> FileCache {
        let disk = SimDisk::new(1);
        disk.create_dir_all(Path::new("/d")).unwrap();
        FileCache::new(Arc::new(disk), open_max)
    }

    #[test]
    fn no_more_files_than_the_bound_stay_open() {
        let cache = cache(3);
        let slots: Vec<Arc<Slot>> = (0..10).map(|_| Arc::default()).collect();
        for (at, slot) in slots.iter().enumerate() {
            open(&cache, slot, &at.to_string()).write_all_at(&[at as u8], 0).unwrap();
            assert!(cache.open_count() <= 3);
        }
        for (at, slot) in slots.iter().enumerate() {
            let mut byte = [0];
            open(&cache, slot, &at.to_string()).read_exact_at(&mut byte, 0).unwrap();
            assert_eq!(byte, [at as u8]);
        }
        assert_eq!(cache.open_count(), 3);
    }

    #[test]
    fn a_file_in_use_outlives_its_place_in_the_cache() {
        let cache = cache(1);
        let (one, two) = (Arc::<Slot>::default(), Arc::<Slot>::default());
        let file = open(&cache, &one, "one");
        open(&cache, &two, "two");
        open(&cache, &two, "two");
        file.write_all_at(b"x", 0).unwrap();
        assert_eq!(open(&cache, &one, "one").len().unwrap(), 1);
    }
}
