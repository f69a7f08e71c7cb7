//! What can happen to the disk below a node: the machine loses power, the disk fails or takes no syncs any more, it is full, a bit of a
//! segment turns over while the node is away.

use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::bench::Bench;
use super::history::{Action, By};
use crate::until;

/// How long a node may take to notice what is wrong with its disk.
const NOTICED_MAX: Duration = Duration::from_secs(60);

/// Records that a copy has before a bit of it turns over.
const RECORDS_BEFORE: i64 = 100;

/// What a node logs when it gives a directory up, and when there is no room.
const OFFLINE: &str = "is offline";
const FULL: &str = "disk is full";

/// Where a bit turns over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flip {
    /// In one of the first batches.
    Early,
    /// In the middle of what is there.
    Middle,
}

impl Bench {
    /// The machines under these nodes lose power at the same moment: what was not synced is gone.
    pub fn cut_power(&mut self, nodes: &[i32], away: Duration) {
        let name = if nodes.len() == 1 { "PowerCut" } else { "PowerCutAll" };
        for node in nodes {
            self.history.note(0, Action::Fault { name: name.into(), node: *node });
            self.disk(*node).fail();
        }
        nodes.iter().for_each(|node| self.cluster.node_mut(*node).kill());
        self.run_for(away);
        self.bring_back(name, nodes);
    }

    /// The disk under a node fails while the node runs. Others must lead until it is replaced, with what had been synced.
    pub fn fail_disk(&mut self, node: i32) {
        self.history.note(0, Action::Fault { name: "DiskFails".into(), node });
        self.disk(node).fail();
        self.await_given_up(node);
        self.cluster.node_mut(node).kill();
        self.bring_back("DiskFails", &[node]);
    }

    /// No sync of a node succeeds any more, though writes do. Or why that cannot be done here.
    pub fn fail_syncs(&mut self, node: i32) -> Result<(), String> {
        let process = self.cluster.node(node).process_id();
        let mut strace = Injection::of("fsync,fdatasync:error=EIO", process)?;
        self.history.note(0, Action::Fault { name: "SyncFails".into(), node });
        until("a sync that fails", NOTICED_MAX, || {
            assert!(strace.is_running(), "strace ended, and injected nothing");
            self.cluster.node(node).log().contains(OFFLINE).then_some(())
        });
        self.await_given_up(node);
        self.cluster.node_mut(node).kill();
        let began = Instant::now();
        self.cluster.node_mut(node).spawn();
        self.recover("SyncFails", node, began);
        Ok(())
    }

    /// The node says that a directory is offline, and others say that it leads nothing any more.
    fn await_given_up(&self, node: i32) {
        let log = || self.cluster.node(node).log();
        until("a directory given up", NOTICED_MAX, || log().contains(OFFLINE).then_some(()));
        self.await_other_leaders(node);
    }

    /// A node's disk is full for a while.
    pub fn fill_disk(&mut self, node: i32, time: Duration) {
        self.history.note(0, Action::Fault { name: "DiskFull".into(), node });
        self.disk(node).fill();
        let log = || self.cluster.node(node).log();
        until("a write without room", NOTICED_MAX, || log().contains(FULL).then_some(()));
        self.run_for(time);
        let began = Instant::now();
        self.disk(node).make_room();
        self.recover("DiskFull", node, began);
    }

    /// A node is killed, and a bit of its copy turns over before it comes back. That must be found and made good.
    pub fn turn_bit_over(&mut self, node: i32, partition: i32, place: Flip) {
        let enough = || (self.history.reached(By::Strict, partition) >= RECORDS_BEFORE).then_some(());
        until("records to damage", NOTICED_MAX, enough);
        self.history.note(0, Action::Fault { name: "KillFlip".into(), node });
        self.cluster.node_mut(node).kill();
        let (path, at, right) = self.flip(node, partition, place);
        let began = Instant::now();
        self.cluster.node_mut(node).spawn();
        self.recover("KillFlip", node, began);
        let mut byte = [0];
        let read = std::fs::File::open(&path).and_then(|file| file.read_exact_at(&mut byte, at));
        assert!(read.is_ok() && byte[0] == right, "byte {at} of {} is still wrong: {read:?}", path.display());
    }

    /// Where, and what stood there.
    fn flip(&self, node: i32, partition: i32, place: Flip) -> (PathBuf, u64, u8) {
        let path = self.segment(node, partition);
        let file = std::fs::File::options().read(true).write(true).open(&path).expect("the segment");
        let length = file.metadata().expect("its length").len();
        assert!(length > 1000, "{} has only {length} bytes", path.display());
        // Behind the first header either way, in a file whose batches are small.
        let at = match place {
            Flip::Early => 100,
            Flip::Middle => length / 2,
        };
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).expect("a byte");
        file.write_all_at(&[byte[0] ^ 4], at).expect("a byte");
        (path, at, byte[0])
    }

    /// The first segment of a copy.
    fn segment(&self, node: i32, partition: i32) -> PathBuf {
        self.cluster.node(node).data().join(format!("{}-{partition}", self.topic)).join("00000000000000000000.log")
    }

    /// With what their disks have, as they were made again where they are the nodes' own.
    fn bring_back(&mut self, name: &str, nodes: &[i32]) {
        nodes.iter().for_each(|node| self.disk(*node).renew());
        let began = Instant::now();
        nodes.iter().for_each(|node| self.cluster.node_mut(*node).spawn());
        self.recover(name, nodes[0], began);
    }
}

/// strace on a process, until dropped.
struct Injection(Child);

impl Injection {
    fn of(what: &str, process: u32) -> Result<Injection, String> {
        let calls = what.split(':').next().unwrap_or(what);
        let mut command = Command::new("strace");
        command.args([
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            &format!("trace={calls}"),
            "-e",
            &format!("inject={what}"),
        ]);
        command.args(["-p", &process.to_string()]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().map(Injection).map_err(|error| format!("strace: {error}"))
    }

    fn is_running(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Injection {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
