//! The same seed, the same run: elections, crashes and all.

use std::time::Duration;

use parking_lot::Mutex;

use super::cluster::{Cluster, until};
use super::*;
use crate::host::sim::Crash;
use crate::host::task;

/// What happened: milliseconds since the start, node, and what it saw.
type Trace = Arc<Mutex<Vec<String>>>;

fn note(trace: &Trace, since: task::Moment, what: String) {
    trace.lock().push(format!("{:>6} {what}", since.elapsed().as_micros()));
}

/// Follows a node until it is gone.
fn follow(trace: &Trace, since: task::Moment, quorum: &Quorum) {
    let (trace, id) = (trace.clone(), quorum.node_id());
    let (mut leadership, mut images) = (quorum.leadership(), quorum.watch());
    tokio::spawn(async move {
        loop {
            let what = tokio::select! {
                biased;
                changed = leadership.changed() => match changed {
                    Ok(()) => format!("{:?}", *leadership.borrow_and_update()),
                    Err(_) => return,
                },
                changed = images.changed() => match changed {
                    Ok(()) => format!("image {}", images.borrow_and_update().offset),
                    Err(_) => return,
                },
            };
            note(&trace, since, format!("node {id}: {what}"));
        }
    });
}

async fn run(seed: u64) -> Vec<String> {
    let (trace, since) = (Trace::default(), task::moment());
    let mut cluster = Cluster::started(seed).await;
    for node in cluster.nodes.values() {
        follow(&trace, since, node);
    }
    let mut offset = -1;
    for round in 0..4 {
        for number in 0..3 {
            offset = cluster.propose(vec![topic(round * 10 + number)]).await;
        }
        let leader = cluster.leader().await.node_id();
        cluster.kill(leader, Crash::PowerLosesSome);
        offset = offset.max(cluster.propose(vec![topic(round * 10 + 9)]).await);
        let returned = cluster.restart(leader).await;
        follow(&trace, since, &returned);
        until(&returned, offset).await.expect("catches up");
        let isolated = cluster.followers(cluster.leader().await.node_id())[0];
        cluster.network.isolate(isolated, &[1, 2, 3]);
        task::sleep(Duration::from_millis(2500)).await;
        cluster.network.heal();
    }
    note(&trace, since, format!("{} calls", cluster.network.call_count()));
    for id in 1..=3 {
        let disk = &cluster.machine(id).sim.disk;
        note(&trace, since, format!("node {id}: {} writes, {} bytes", disk.write_count(), disk.used_bytes()));
    }
    std::mem::take(&mut *trace.lock())
}

fn trace(seed: u64) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(run(seed))
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let first = trace(31);
    assert!(first.len() > 40, "{first:#?}");
    let second = trace(31);
    for (at, (left, right)) in first.iter().zip(&second).enumerate() {
        assert_eq!(left, right, "event {at}");
    }
    assert_eq!(first.len(), second.len());
    assert_ne!(first, trace(32));
}
