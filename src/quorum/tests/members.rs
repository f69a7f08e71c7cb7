//! Learners, and voters that come and go.

use std::time::Duration;

use super::cluster::{Cluster, content, until};
use super::*;
use crate::host::sim::Crash;
use crate::host::task;

fn address(id: i32) -> NodeAddress {
    NodeAddress::new(format!("node-{id}"), 9093)
}

#[tokio::test(start_paused = true)]
async fn a_learner_sees_every_change_and_has_no_vote() {
    let mut cluster = Cluster::started(21).await;
    cluster.propose(vec![topic(1)]).await;
    let learner = cluster.start(4).await.unwrap();
    let leader = cluster.leader().await;
    leader.ensure_learner(4, address(4)).await.unwrap();
    leader.ensure_learner(4, address(4)).await.unwrap();
    let offset = cluster.propose(vec![topic(2)]).await;
    until(&learner, offset).await.expect("the learner sees it");
    assert_eq!(content(&learner), content(&leader));
    assert_eq!(learner.leadership().borrow().leader, Some(leader.node_id()));
    let description = leader.describe();
    assert_eq!(description.observers.iter().map(|one| one.id).collect::<Vec<_>>(), [4]);
    assert_eq!(description.voters.len(), 3);
    // It keeps what it has, and gets what it missed.
    cluster.kill(4, Crash::PowerLosesAll);
    drop((learner, leader));
    let offset = cluster.propose(vec![topic(3)]).await;
    let learner = cluster.start_as(4, true).await.unwrap();
    until(&learner, offset).await.expect("and again");
    cluster.leader().await.remove_learner(4).await.unwrap();
    assert!(cluster.leader().await.describe().observers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn one_node_grows_to_three_and_keeps_its_data() {
    let mut cluster = Cluster::new(22, &[1]);
    let first = cluster.start(1).await.unwrap();
    first.propose(vec![topic(1)]).await.unwrap();
    for id in [2, 3] {
        let node = cluster.start(id).await.unwrap();
        first.add_voter(id, address(id)).await.unwrap();
        until(&node, 0).await.expect("has the data");
    }
    assert_eq!(first.describe().voters.iter().map(|voter| voter.id).collect::<Vec<_>>(), [1, 2, 3]);
    let offset = cluster.propose(vec![topic(2)]).await;
    cluster.all_reach(offset).await;
    drop(first);
    cluster.kill(1, Crash::PowerLosesAll);
    let offset = cluster.propose(vec![topic(3)]).await;
    let returned = cluster.start_as(1, true).await.unwrap();
    until(&returned, offset).await.expect("the first node is one of three now");
    assert_eq!(names(&returned.image()), ["topic-1", "topic-2", "topic-3"]);
}

#[tokio::test(start_paused = true)]
async fn a_voter_is_removed_and_a_leader_removes_itself() {
    let cluster = Cluster::started(23).await;
    cluster.propose(vec![topic(1)]).await;
    let leader = cluster.leader().await;
    let removed = cluster.followers(leader.node_id())[0];
    leader.remove_voter(removed).await.unwrap();
    assert!(matches!(leader.remove_voter(removed).await, Err(QuorumError::Membership(_))));
    assert_eq!(leader.describe().voters.len(), 2);
    leader.remove_voter(leader.node_id()).await.unwrap();
    let mut leadership = leader.leadership();
    leadership.wait_for(|now| !now.is_me).await.unwrap();
    let offset = cluster.propose(vec![topic(2)]).await;
    let last = cluster.leader().await;
    assert_ne!(last.node_id(), leader.node_id());
    assert_eq!(last.describe().voters.len(), 1);
    assert!(matches!(last.remove_voter(last.node_id()).await, Err(QuorumError::Membership(_))));
    cluster.all_reach(offset).await;
}

#[tokio::test(start_paused = true)]
async fn a_replaced_voter_starts_with_an_empty_disk() {
    let mut cluster = Cluster::started(24).await;
    let offset = cluster.propose(vec![topic(1)]).await;
    cluster.all_reach(offset).await;
    let leader = cluster.leader().await;
    let gone = cluster.followers(leader.node_id())[0];
    cluster.kill(gone, Crash::Process);
    leader.remove_voter(gone).await.unwrap();
    let fresh = cluster.start(4).await.unwrap();
    leader.add_voter(4, address(4)).await.unwrap();
    until(&fresh, offset).await.expect("has everything");
    let mut voters: Vec<i32> = leader.describe().voters.iter().map(|voter| voter.id).collect();
    voters.sort_unstable();
    assert!(voters.contains(&4) && !voters.contains(&gone) && voters.len() == 3, "{voters:?}");
}

/// Node 3 has begun a quorum by itself, and then the line is corrected.
#[tokio::test(start_paused = true)]
async fn nodes_that_are_configured_as_voters_and_are_none_are_told_of() {
    let mut cluster = Cluster::new(81, &[3]);
    cluster.start(3).await.unwrap();
    let mut offset = cluster.propose(vec![topic(1)]).await;
    task::sleep(Duration::from_secs(10)).await;
    assert_eq!(cluster.nodes[&3].voteless(), None, "it is configured alone");
    cluster.kill(3, Crash::Process);
    cluster.configure(&[1, 2, 3]);
    for id in [3, 1, 2] {
        cluster.start(id).await.unwrap();
    }
    let leader = cluster.leader().await;
    for id in [1, 2] {
        leader.ensure_learner(id, address(id)).await.unwrap();
    }
    cluster.all_reach(offset).await;
    task::sleep(Duration::from_secs(10)).await;
    for node in cluster.nodes.values() {
        let told = node.voteless().expect("it is said");
        assert_eq!((told.missing, told.voters), (vec![1, 2], vec![3]));
    }
    for id in [1, 2] {
        leader.add_voter(id, address(id)).await.unwrap();
    }
    offset = cluster.propose(vec![topic(2)]).await;
    cluster.all_reach(offset).await;
    cluster.kill(1, Crash::Process);
    let back = cluster.restart(1).await;
    task::sleep(Duration::from_secs(10)).await;
    assert_eq!(back.voteless(), None);
}
