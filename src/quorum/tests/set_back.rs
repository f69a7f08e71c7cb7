//! Disks that were put back to an older copy: a majority of them forgets what was agreed on, and who remembers must not forget it, too.

use super::cluster::{Cluster, until};
use super::*;
use crate::host::disk::{OpenMode, read_file};
use crate::host::sim::Crash;
use crate::host::task;

/// Files below a directory, with what is in them.
fn copy(disk: &dyn Disk, dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in disk.read_dir(dir).unwrap() {
        let path = dir.join(&entry.name);
        if entry.is_dir {
            files.extend(copy(disk, &path));
        } else {
            files.push((path.clone(), read_file(disk, &path).unwrap()));
        }
    }
    files
}

impl Machine {
    fn put_back(&self, files: &[(PathBuf, Vec<u8>)]) {
        let disk = &self.sim.disk;
        disk.remove_dir_all(&Path::new("/data").join(DIRECTORY)).unwrap();
        for (path, content) in files {
            let dir = path.parent().unwrap();
            disk.create_dir_all(dir).unwrap();
            let file = disk.open(path, OpenMode::Truncate).unwrap();
            file.write_all_at(content, 0).unwrap();
            file.sync_data().unwrap();
            disk.sync_dir(dir).unwrap();
        }
        disk.sync_dir(Path::new("/data")).unwrap();
        self.kv.wipe();
    }
}

/// Node 3 has not heard of the second topic, node 2 has been made to forget it.
async fn with_a_forgetful_majority(seed: u64) -> Cluster {
    let mut cluster = Cluster::started(seed).await;
    let offset = cluster.propose(vec![topic(1)]).await;
    cluster.all_reach(offset).await;
    cluster.kill(3, Crash::Process);
    let copied = copy(&*cluster.machine(2).sim.host().disk, Path::new("/data"));
    // That the first of the two was agreed on is on node 1's disk with the second.
    for number in [2, 3] {
        let offset = cluster.propose(vec![topic(number)]).await;
        cluster.all_reach(offset).await;
    }
    cluster.kill(1, Crash::Process);
    cluster.kill(2, Crash::Process);
    cluster.machine(2).put_back(&copied);
    cluster.restart(2).await;
    cluster.restart(3).await;
    cluster
}

#[tokio::test(start_paused = true)]
async fn who_knows_that_something_was_agreed_on_does_not_forget_it_because_a_majority_did() {
    let mut cluster = with_a_forgetful_majority(41).await;
    let others = cluster.propose(vec![topic(4)]).await;
    let one = cluster.restart(1).await;
    let mut failed = one.disk_failed();
    task::timeout(std::time::Duration::from_secs(20), failed.wait_for(|failed| *failed))
        .await
        .expect("it stops")
        .unwrap();
    let why = one.propose(vec![topic(5)]).await.unwrap_err().to_string();
    assert!(why.contains("another history than what was agreed on"), "{why}");
    assert!(names(&one.image()).contains(&"topic-2".to_owned()), "nothing is removed");
    until(&cluster.nodes[&2], others).await.expect("the others go on");
    drop(one);
    cluster.kill(1, Crash::Process);
    let log = read_file(&*cluster.machine(1).sim.host().disk, &cluster.machine(1).log_file()).unwrap();
    assert!(log.windows(7).any(|bytes| bytes == b"topic-2"), "and it is on its disk");
}
