//! Voters whose address is not the configured one, or not the one that the metadata knows.

use std::time::Duration;

use super::cluster::{Cluster, until};
use super::*;
use crate::host::sim::Crash;
use crate::host::task;

fn elsewhere(id: i32) -> NodeAddress {
    NodeAddress::new(format!("elsewhere-{id}"), 9093)
}

/// Node 3 is at another address than 1 and 2 are configured with, and the leader has been told.
async fn with_one_elsewhere(seed: u64) -> Cluster {
    let mut cluster = Cluster::started(seed).await;
    cluster.propose(vec![topic(1)]).await;
    cluster.kill(3, Crash::Process);
    cluster.move_to(3, elsewhere(3));
    let offset = cluster.propose(vec![topic(2)]).await;
    let moved = cluster.restart(3).await;
    cluster.leader().await.ensure_learner(3, elsewhere(3)).await.unwrap();
    until(&moved, offset).await.expect("it is reached");
    cluster
}

#[tokio::test(start_paused = true)]
async fn a_voter_at_another_address_is_reached_as_soon_as_the_metadata_knows_it() {
    let mut cluster = with_one_elsewhere(61).await;
    let address = cluster.leader().await.describe().voters[2].address.clone();
    assert_eq!(address, Some(elsewhere(3)));
    // It counts, and it can lead.
    let other = [1, 2].into_iter().find(|id| cluster.nodes[id].leadership().borrow().is_me).unwrap_or(1);
    cluster.kill(other, Crash::PowerLosesAll);
    let offset = cluster.propose(vec![topic(3)]).await;
    cluster.all_reach(offset).await;
    cluster.restart(other).await;
    cluster.all_reach(offset).await;
}

#[tokio::test(start_paused = true)]
async fn a_configured_address_is_used_while_that_of_the_metadata_does_not_answer() {
    let mut cluster = with_one_elsewhere(62).await;
    cluster.kill(3, Crash::Process);
    // Back where it was, as everybody is configured, and nobody tells the leader.
    cluster.move_to(3, NodeAddress::new("node-3", 9093));
    let offset = cluster.propose(vec![topic(3)]).await;
    let back = cluster.restart(3).await;
    until(&back, offset).await.expect("it is reached");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_not_reached_is_told_where_it_is_looked_for() {
    let mut cluster = Cluster::started(63).await;
    cluster.propose(vec![topic(1)]).await;
    cluster.kill(3, Crash::Process);
    cluster.move_to(3, elsewhere(3));
    let leader = cluster.leader().await;
    let moved = cluster.restart(3).await;
    task::sleep(Duration::from_secs(10)).await;
    let told = moved.unreached().expect("it has found out");
    assert_eq!(told, (leader.node_id(), Some(NodeAddress::new("node-3", 9093))));
    for node in [leader.node_id(), 3 - leader.node_id()] {
        assert_eq!(cluster.nodes[&node].unreached(), None);
    }
    let offset = cluster.propose(vec![topic(2)]).await;
    leader.ensure_learner(3, elsewhere(3)).await.unwrap();
    until(&moved, offset).await.expect("it is reached");
}

#[tokio::test(start_paused = true)]
async fn a_second_process_under_the_leaders_id_is_told_where_the_first_one_is() {
    let cluster = Cluster::started(64).await;
    let leader = cluster.leader().await;
    cluster.propose(vec![topic(1)]).await;
    let id = leader.node_id();
    let twin = cluster.twin_of(id).await;
    task::sleep(Duration::from_secs(10)).await;
    assert_eq!(twin.unreached(), Some((id, Some(NodeAddress::new(format!("node-{id}"), 9093)))));
    assert!(cluster.nodes.values().all(|node| node.unreached().is_none()));
    assert!(leader.leadership().borrow().is_me, "the first one stays");
    let offset = cluster.propose(vec![topic(2)]).await;
    cluster.all_reach(offset).await;
}
