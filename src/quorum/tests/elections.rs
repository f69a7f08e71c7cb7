//! Who may disturb whom.

use std::time::Duration;

use super::cluster::{Cluster, until};
use super::*;
use crate::host::sim::Crash;
use crate::host::task;

#[tokio::test(start_paused = true)]
async fn a_returning_node_does_not_disturb() {
    let cluster = Cluster::started(11).await;
    let leader = cluster.leader().await;
    let term = leader.leadership().borrow().term;
    let away = cluster.followers(leader.node_id())[0];
    cluster.network.isolate(away, &[1, 2, 3]);
    // Long enough for several elections.
    task::sleep(Duration::from_millis(4500)).await;
    let offset = leader.propose(vec![topic(1)]).await.unwrap();
    cluster.network.heal();
    until(&cluster.nodes[&away], offset).await.expect("follows again");
    task::sleep(Duration::from_millis(500)).await;
    let now = leader.leadership().borrow().clone();
    assert_eq!((now.term, now.is_me), (term, true));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_does_not_hear_the_leader_does_not_depose_it() {
    let cluster = Cluster::started(12).await;
    let leader = cluster.leader().await;
    let term = leader.leadership().borrow().term;
    let deaf = cluster.followers(leader.node_id())[0];
    cluster.network.cut(leader.node_id(), deaf);
    for number in 0..8 {
        task::sleep(Duration::from_millis(500)).await;
        leader.propose(vec![topic(number)]).await.unwrap();
    }
    assert_eq!(leader.leadership().borrow().term, term);
    cluster.network.heal();
    until(&cluster.nodes[&deaf], 7).await.expect("follows again");
}

#[tokio::test(start_paused = true)]
async fn a_broken_connection_to_a_living_leader_is_no_reason() {
    let cluster = Cluster::started(13).await;
    let leader = cluster.leader().await;
    let term = leader.leadership().borrow().term;
    for _ in 0..5 {
        cluster.network.break_connections(leader.node_id());
        task::sleep(Duration::from_millis(100)).await;
    }
    assert!(leader.leadership().borrow().is_me);
    assert_eq!(leader.leadership().borrow().term, term);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_stops_hands_over() {
    let mut cluster = Cluster::started(14).await;
    cluster.propose(vec![topic(1)]).await;
    let old = cluster.leader().await;
    let id = old.node_id();
    let before = task::moment();
    old.close().await.unwrap();
    drop(old);
    cluster.nodes.remove(&id);
    let new = cluster.leader().await;
    let took = before.elapsed();
    assert!(took < Duration::from_millis(700), "{took:?}");
    assert_ne!(new.node_id(), id);
    cluster.propose(vec![topic(2)]).await;
}

#[tokio::test(start_paused = true)]
async fn two_of_three_begin_without_the_third() {
    let mut cluster = Cluster::new(15, &[1, 2, 3]);
    let first = cluster.start(1).await.unwrap();
    task::sleep(Duration::from_millis(500)).await;
    assert!(!first.leadership().borrow().is_me, "one of three is no majority");
    cluster.start(2).await.unwrap();
    let offset = cluster.propose(vec![topic(1)]).await;
    let third = cluster.start(3).await.unwrap();
    until(&third, offset).await.expect("is given everything");
    drop((first, third));
    // From its next word with the leader on it counts.
    task::sleep(Duration::from_millis(500)).await;
    let leader = cluster.leader().await.node_id();
    cluster.kill(leader, Crash::Process);
    cluster.propose(vec![topic(2)]).await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_disk_is_full_gives_up_and_comes_back() {
    let cluster = Cluster::started(16).await;
    cluster.propose(vec![topic(1)]).await;
    let full = cluster.leader().await;
    let disk = &cluster.machine(full.node_id()).sim.disk;
    disk.set_capacity_bytes(disk.used_bytes() + 10);
    assert!(full.propose(vec![topic(2)]).await.is_err());
    let offset = cluster.propose(vec![topic(3)]).await;
    disk.set_capacity_bytes(u64::MAX);
    until(&full, offset).await.expect("follows again");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_lost_among_many_others_is_missed_at_once() {
    let mut cluster = Cluster::started(16).await;
    let leader = cluster.leader().await.node_id();
    cluster.kill(leader, Crash::Process);
    // More than a listener may be behind, before anybody can listen.
    for _ in 0..100 {
        cluster.network.break_connections(99);
    }
    let lost_at = task::moment();
    cluster.leader().await;
    let took = task::moment().duration_since(lost_at);
    assert!(took < Duration::from_millis(900), "{took:?}, which is no sooner than silence is noticed");
}
