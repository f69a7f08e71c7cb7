//! A small file system of a node's own, in an image file, that can lose power, fail or be full. Needs root, loop devices and ext4.
//!
//! It is mounted in a mount namespace of the calling thread's own, which the processes that the thread starts inherit: it is gone with
//! the test, however that ends.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::net::{is_root, run};

/// `EXT4_IOC_SHUTDOWN`, and the flag by which not even the journal is written: what was not synced is gone, and whatever comes fails.
const SHUTDOWN: libc::c_ulong = 0x8004_587d;
const WITHOUT_JOURNAL: u32 = 2;

/// What takes the room away.
const BALLAST: &str = "ballast";

/// Mounted until dropped.
pub struct Disk {
    directory: TempDir,
}

impl Disk {
    /// A disk of this size, or why there can be none.
    pub fn new(mib: u64) -> Result<Disk, String> {
        if !is_root() {
            return Err("not root".into());
        }
        own_mounts()?;
        let directory = tempfile::Builder::new().prefix("barnabas-disk-").tempdir().map_err(|e| e.to_string())?;
        let disk = Disk { directory };
        let sized = File::create(disk.image()).and_then(|image| image.set_len(mib << 20));
        sized.and_then(|()| std::fs::create_dir(disk.mounted())).map_err(|e| e.to_string())?;
        run("mkfs.ext4", &["-q", "-m0", &text(&disk.image())], "")?;
        disk.mount()?;
        Ok(disk)
    }

    /// Where a node may keep its data.
    pub fn data(&self) -> PathBuf {
        self.mounted().join("data")
    }

    fn image(&self) -> PathBuf {
        self.directory.path().join("image")
    }

    fn mounted(&self) -> PathBuf {
        self.directory.path().join("disk")
    }

    fn mount(&self) -> Result<(), String> {
        run("mount", &["-o", "loop", &text(&self.image()), &text(&self.mounted())], "")
    }

    /// From now on every write and sync fails, and what was not synced before is gone.
    pub fn fail(&self) {
        let root = File::open(self.mounted()).expect("the mounted directory");
        let how = WITHOUT_JOURNAL;
        #[expect(unsafe_code, reason = "an ioctl has no safe wrapper in std")]
        // SAFETY: the call reads one number behind the pointer, which lives until it returns.
        let result = unsafe { libc::ioctl(root.as_raw_fd(), SHUTDOWN, &raw const how) };
        assert_eq!(result, 0, "the file system is shut down: {}", std::io::Error::last_os_error());
    }

    /// Works again, with what had been synced. Nobody may use it at that moment.
    pub fn renew(&self) {
        run("umount", &[&text(&self.mounted())], "").expect("umount");
        self.mount().expect("mount");
    }

    /// Takes all room that is left.
    pub fn fill(&self) {
        let mut ballast = File::create(self.mounted().join(BALLAST)).expect("a file");
        let block = vec![7; 4096];
        while ballast.write_all(&block).is_ok() {}
        let _ = ballast.sync_all();
    }

    /// Gives it back.
    pub fn make_room(&self) {
        std::fs::remove_file(self.mounted().join(BALLAST)).expect("the file that took the room");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = run("umount", &["-l", &text(&self.mounted())], "");
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Mounts of this thread's own.
fn own_mounts() -> Result<(), String> {
    #[expect(unsafe_code, reason = "unshare has no safe wrapper in std")]
    // SAFETY: plain system call that changes what this thread sees of mounts.
    let result = unsafe { libc::unshare(libc::CLONE_NEWNS) };
    if result != 0 {
        return Err(format!("no mount namespace: {}", std::io::Error::last_os_error()));
    }
    run("mount", &["--make-rprivate", "/"], "")
}
