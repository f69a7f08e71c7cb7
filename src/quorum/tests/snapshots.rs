use super::*;

/// Proposes about `mib` MiB of configs and lets the snapshots finish.
async fn grow(machine: &Machine, mib: usize) -> std::sync::Arc<Image> {
    let quorum = machine.open().await.unwrap();
    for number in 0..mib * 10 {
        // The same few keys again and again: the log grows, the image does not.
        quorum.propose(vec![bulky(number % 5, 100 * 1024 + number)]).await.unwrap();
    }
    quorum.close().await.unwrap();
    quorum.image()
}

fn files(machine: &Machine, suffix: &str) -> Vec<String> {
    let entries = machine.sim.disk.read_dir(&file("")).unwrap();
    entries.into_iter().map(|entry| entry.name).filter(|name| name.ends_with(suffix)).collect()
}

#[tokio::test]
async fn a_long_log_is_replaced_by_snapshots() {
    let machine = Machine::new(1);
    let image = grow(&machine, 20).await;
    assert_eq!(files(&machine, ".checkpoint").len(), 2, "{:?}", files(&machine, ""));
    assert!(files(&machine, ".log").len() <= 3, "{:?}", files(&machine, ""));
    let kept: u64 = machine.sim.disk.read_dir(&file("")).unwrap().iter().map(|entry| entry.len).sum();
    assert!(kept < 16 * 1024 * 1024, "{kept} bytes kept");
    machine.kv.wipe();
    assert_eq!(*machine.open().await.unwrap().image(), *image);
}

#[tokio::test]
async fn a_damaged_snapshot_falls_back_on_the_one_before() {
    let machine = Machine::new(1);
    let image = grow(&machine, 20).await;
    machine.kv.wipe();
    let newest = file(files(&machine, ".checkpoint").last().unwrap());
    machine.sim.disk.corrupt(&newest, |bytes| bytes[300] ^= 1).unwrap();
    assert_eq!(*machine.open().await.unwrap().image(), *image);
    // The node may have written a newer one since.
    for snapshot in files(&machine, ".checkpoint") {
        machine.sim.disk.corrupt(&file(&snapshot), |bytes| bytes.truncate(200)).unwrap();
    }
    machine.kv.wipe();
    assert!(matches!(machine.open().await, Err(QuorumError::Incomplete { .. })));
}
