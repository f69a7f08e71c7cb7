//! Three voters over the network in memory, on a clock that passes when everybody waits.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::base::BrokerId;
use crate::host::sim::Crash;
use crate::host::task;

/// Nobody is waited for longer than this.
const PATIENCE: Duration = Duration::from_secs(20);

/// Machines in one network. Each keeps its disk when its node is killed.
pub(super) struct Cluster {
    pub(super) network: MemoryNetwork,
    voters: Vec<BrokerId>,
    /// Of those that have moved: what their own configuration says.
    moved: BTreeMap<BrokerId, NodeAddress>,
    machines: BTreeMap<BrokerId, Machine>,
    pub(super) nodes: BTreeMap<BrokerId, Quorum>,
}

fn address(id: BrokerId) -> NodeAddress {
    NodeAddress::new(format!("node-{id}"), 9093)
}

impl Cluster {
    pub(super) fn new(seed: u64, voters: &[BrokerId]) -> Cluster {
        task::block_inline();
        let machines = (1..=5).map(|id: BrokerId| (id, Machine::new(seed * 100 + u64::from(id.unsigned_abs()))));
        Cluster {
            network: MemoryNetwork::new(),
            voters: voters.to_vec(),
            moved: BTreeMap::new(),
            machines: machines.collect(),
            nodes: BTreeMap::new(),
        }
    }

    /// A running quorum of three.
    pub(super) async fn started(seed: u64) -> Cluster {
        let mut cluster = Cluster::new(seed, &[1, 2, 3]);
        for id in 1..=3 {
            cluster.start(id).await.unwrap();
        }
        cluster
    }

    pub(super) fn machine(&self, id: BrokerId) -> &Machine {
        &self.machines[&id]
    }

    pub(super) async fn start(&mut self, id: BrokerId) -> Result<Quorum, QuorumError> {
        self.start_as(id, false).await
    }

    /// Another process under the id of one that runs, with the disk of the unused machine 5. Nobody can reach it.
    pub(super) async fn twin_of(&self, id: BrokerId) -> Quorum {
        let machine = &self.machines[&5];
        let my_address = NodeAddress::new("twin", 9093);
        let place = |other: &BrokerId| (*other, if *other == id { my_address.clone() } else { address(*other) });
        let options = QuorumOptions {
            node_id: id,
            voters: self.voters.iter().map(place).collect(),
            my_address: my_address.clone(),
            transport: self.network.transport(id),
            ..alone(opener(&machine.kv))
        };
        Quorum::open(&machine.sim.host(), Path::new("/data"), options).await.unwrap()
    }

    pub(super) async fn start_as(&mut self, id: BrokerId, must_exist: bool) -> Result<Quorum, QuorumError> {
        let machine = &self.machines[&id];
        let my_address = self.moved.get(&id).cloned().unwrap_or_else(|| address(id));
        let place = |other: &BrokerId| (*other, if *other == id { my_address.clone() } else { address(*other) });
        let options = QuorumOptions {
            node_id: id,
            must_exist,
            voters: self.voters.iter().map(place).collect(),
            my_address: my_address.clone(),
            transport: self.network.transport(id),
            ..alone(opener(&machine.kv))
        };
        let quorum = Quorum::open(&machine.sim.host(), Path::new("/data"), options).await?;
        self.network.connect(id, quorum.clone());
        self.nodes.insert(id, quorum.clone());
        Ok(quorum)
    }

    /// The node answers elsewhere from now on, and says so itself at its next start; the others' configurations stay.
    pub(super) fn move_to(&mut self, id: BrokerId, address: NodeAddress) {
        self.network.place(id, address.clone());
        self.moved.insert(id, address);
    }

    /// What the configuration of those says that start from now on.
    pub(super) fn configure(&mut self, voters: &[BrokerId]) {
        self.voters = voters.to_vec();
    }

    /// As `kill -9`, or as when the power goes.
    pub(super) fn kill(&mut self, id: BrokerId, crash: Crash) {
        self.network.kill(id);
        self.nodes.remove(&id);
        self.machines[&id].sim.disk.crash(crash);
    }

    pub(super) async fn restart(&mut self, id: BrokerId) -> Quorum {
        self.start(id).await.unwrap()
    }

    /// The node that leads.
    pub(super) async fn leader(&self) -> Quorum {
        let found = async {
            loop {
                if let Some(leader) = self.nodes.values().find(|node| node.leadership().borrow().is_me) {
                    return leader.clone();
                }
                task::sleep(Duration::from_millis(5)).await;
            }
        };
        task::timeout(PATIENCE, found).await.expect("no leader")
    }

    pub(super) fn followers(&self, leader: BrokerId) -> Vec<BrokerId> {
        self.nodes.keys().copied().filter(|id| *id != leader).collect()
    }

    /// Proposes until somebody takes it.
    pub(super) async fn propose(&self, records: Vec<MetadataRecord>) -> i64 {
        let proposed = async {
            loop {
                match self.leader().await.propose(records.clone()).await {
                    Ok(offset) => return offset,
                    Err(_) => task::sleep(Duration::from_millis(10)).await,
                }
            }
        };
        task::timeout(PATIENCE, proposed).await.expect("nobody takes the proposal")
    }

    /// Until every running node has the offset.
    pub(super) async fn all_reach(&self, offset: i64) {
        for (id, node) in &self.nodes {
            until(node, offset).await.unwrap_or_else(|| panic!("node {id} is at {}", node.image().offset));
        }
    }
}

pub(super) async fn until(node: &Quorum, offset: i64) -> Option<()> {
    let mut images = node.watch();
    task::timeout(PATIENCE, images.wait_for(|image| image.offset >= offset)).await?.ok().map(|_| ())
}

/// The image, without who leads.
pub(super) fn content(node: &Quorum) -> Image {
    let mut image = Image::clone(&node.image());
    image.controller_id = 0;
    image
}

#[tokio::test(start_paused = true)]
async fn three_voters_elect_and_agree() {
    let cluster = Cluster::started(1).await;
    let leader = cluster.leader().await;
    assert_eq!(leader.propose(vec![topic(1), topic(2)]).await, Ok(1));
    cluster.all_reach(1).await;
    let expected = content(&leader);
    for (id, node) in &cluster.nodes {
        assert_eq!(content(node), expected);
        let mut leadership = node.leadership();
        let known = task::timeout(PATIENCE, leadership.wait_for(|known| known.leader == Some(leader.node_id()))).await;
        let known = known.unwrap().unwrap().clone();
        assert_eq!(known.is_me, *id == leader.node_id());
        assert_eq!(known.leader_address, Some(address(leader.node_id())));
        assert_eq!(node.image().controller_id, leader.node_id());
    }
    let description = leader.describe();
    assert_eq!(description.voters.iter().map(|voter| voter.id).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(description.observers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_follower_takes_no_proposals_and_says_who_does() {
    let cluster = Cluster::started(2).await;
    let leader = cluster.leader().await.node_id();
    cluster.propose(vec![topic(1)]).await;
    cluster.all_reach(0).await;
    for id in cluster.followers(leader) {
        let refused = cluster.nodes[&id].propose(vec![topic(2)]).await;
        assert_eq!(refused, Err(QuorumError::NotLeader { leader: Some(leader) }));
    }
}

#[tokio::test(start_paused = true)]
async fn a_stale_decision_is_refused() {
    let cluster = Cluster::started(3).await;
    let leader = cluster.leader().await;
    assert_eq!(leader.propose_at(-1, vec![topic(1)]).await, Ok(0));
    assert_eq!(leader.propose_at(-1, vec![topic(2)]).await, Err(QuorumError::Stale { expected: -1, found: 0 }));
    let (first, second) = tokio::join!(leader.propose_at(0, vec![topic(3)]), leader.propose_at(0, vec![topic(4)]));
    assert_eq!((first, second), (Ok(1), Err(QuorumError::Stale { expected: 0, found: 1 })));
    cluster.all_reach(1).await;
    for node in cluster.nodes.values() {
        assert_eq!(names(&node.image()), ["topic-1", "topic-3"]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_loss_of_a_leader_loses_nothing_and_is_over_soon() {
    let mut cluster = Cluster::started(4).await;
    cluster.propose(vec![topic(1)]).await;
    let old = cluster.leader().await;
    let (id, term) = (old.node_id(), old.leadership().borrow().term);
    drop(old);
    let before = task::moment();
    cluster.kill(id, Crash::PowerLosesAll);
    let new = cluster.leader().await;
    let took = before.elapsed();
    assert!(took < Duration::from_millis(1500), "{took:?}");
    assert!(new.leadership().borrow().term > term);
    assert_eq!(names(&new.image()), ["topic-1"]);
    let offset = cluster.propose(vec![topic(2)]).await;
    let returned = cluster.restart(id).await;
    until(&returned, offset).await.expect("the returning node catches up");
    assert_eq!(content(&returned), content(&new));
}

#[tokio::test(start_paused = true)]
async fn each_node_keeps_what_was_acknowledged() {
    let mut cluster = Cluster::started(5).await;
    let mut number = 0;
    let mut offset = -1;
    for round in 0..6 {
        for _ in 0..5 {
            number += 1;
            offset = cluster.propose(vec![topic(number)]).await;
        }
        // All at once in the last rounds.
        let victims: Vec<BrokerId> = if round < 4 { vec![1 + round % 3] } else { vec![1, 2, 3] };
        for id in &victims {
            let crash = if round % 2 == 0 { Crash::PowerLosesAll } else { Crash::PowerLosesSome };
            cluster.kill(*id, crash);
        }
        for id in &victims {
            cluster.restart(*id).await;
        }
        cluster.leader().await;
        cluster.all_reach(offset).await;
        for node in cluster.nodes.values() {
            assert_eq!(node.image().topic_count() as u128, number, "round {round}");
        }
    }
    assert_eq!(offset, i64::try_from(number).unwrap() - 1);
}

#[tokio::test(start_paused = true)]
async fn a_leader_without_a_majority_agrees_on_nothing_and_steps_back() {
    let mut cluster = Cluster::started(6).await;
    let old = cluster.leader().await;
    cluster.propose(vec![topic(1)]).await;
    cluster.all_reach(0).await;
    cluster.network.isolate(old.node_id(), &[1, 2, 3]);
    let mut leadership = old.leadership();
    let cut_off = tokio::spawn({
        let old = old.clone();
        async move { old.propose(vec![topic(99)]).await }
    });
    task::timeout(Duration::from_secs(3), leadership.wait_for(|now| !now.is_me)).await.expect("steps back").unwrap();
    let lost = task::timeout(Duration::from_secs(3), cut_off).await.expect("answers").unwrap();
    assert!(matches!(lost, Err(QuorumError::TimedOut | QuorumError::NotLeader { .. })), "{lost:?}");
    assert!(matches!(old.propose(vec![topic(98)]).await, Err(QuorumError::NotLeader { .. })));
    let offset = {
        let others = || cluster.nodes.values().filter(|node| node.node_id() != old.node_id());
        let found = async {
            loop {
                if let Some(new) = others().find(|node| node.leadership().borrow().is_me) {
                    return new.clone();
                }
                task::sleep(Duration::from_millis(5)).await;
            }
        };
        let new = task::timeout(PATIENCE, found).await.expect("the others elect");
        new.propose(vec![topic(2)]).await.unwrap()
    };
    cluster.network.heal();
    until(&old, offset).await.expect("the old leader follows");
    assert_eq!(names(&old.image()), ["topic-1", "topic-2"]);
    // What it had written alone is gone for good.
    let id = old.node_id();
    drop((old, leadership));
    cluster.kill(id, Crash::PowerLosesAll);
    let returned = cluster.restart(id).await;
    until(&returned, offset).await.expect("follows again");
    assert_eq!(names(&returned.image()), ["topic-1", "topic-2"]);
}

/// Six proposals, while node 2 loses its power at one of its writes.
async fn with_a_power_cut(seed: u64, count: u64) -> u64 {
    let mut cluster = Cluster::new(seed, &[1, 2, 3]);
    cluster.machine(2).sim.disk.cut_power_at(count);
    for id in 1..=3 {
        // Its very first writes may be the ones that fail.
        let _ = cluster.start(id).await;
    }
    let mut offset = -1;
    for number in 0..6 {
        offset = cluster.propose(vec![topic(number)]).await;
    }
    let writes = cluster.machine(2).sim.disk.write_count();
    let crash = if count.is_multiple_of(2) { Crash::PowerLosesAll } else { Crash::PowerLosesSome };
    cluster.kill(2, crash);
    let returned = cluster.restart(2).await;
    until(&returned, offset).await.unwrap_or_else(|| panic!("write {count}: at {}", returned.image().offset));
    assert_eq!(returned.image().topic_count(), 6, "write {count}");
    let offset = cluster.propose(vec![topic(7)]).await;
    cluster.all_reach(offset).await;
    writes
}

#[tokio::test(start_paused = true)]
async fn a_power_cut_at_every_write_of_a_node_loses_nothing() {
    let whole = with_a_power_cut(9, u64::MAX).await;
    assert!(whole > 10, "{whole} writes");
    for count in 1..=whole {
        with_a_power_cut(9 + count / 2 % 2, count).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_far_behind_catches_up_by_a_snapshot() {
    let mut cluster = Cluster::started(7).await;
    let leader = cluster.leader().await.node_id();
    let behind = cluster.followers(leader)[0];
    cluster.propose(vec![topic(1)]).await;
    cluster.kill(behind, Crash::Process);
    // Two snapshots, so that the beginning of the log goes.
    for number in 0..150 {
        cluster.propose(vec![bulky(number % 5, 100 * 1024 + number)]).await;
    }
    let offset = cluster.propose(vec![topic(2)]).await;
    let returned = cluster.restart(behind).await;
    until(&returned, offset).await.expect("the returning node catches up");
    let entries = cluster.machine(behind).sim.disk.read_dir(&file("")).unwrap();
    assert!(entries.iter().any(|entry| entry.name.ends_with(".checkpoint")), "{entries:?}");
    assert_eq!(content(&returned), content(&cluster.leader().await));
    // And it is whole after a restart.
    cluster.kill(behind, Crash::PowerLosesAll);
    let returned = cluster.restart(behind).await;
    until(&returned, offset).await.expect("still there");
}

#[tokio::test(start_paused = true)]
async fn an_emptied_voter_is_kept_out_of_elections_until_it_has_caught_up() {
    let mut cluster = Cluster::started(8).await;
    let offset = cluster.propose(vec![topic(1)]).await;
    cluster.all_reach(offset).await;
    let leader = cluster.leader().await.node_id();
    let (emptied, other) = (cluster.followers(leader)[0], cluster.followers(leader)[1]);
    cluster.kill(emptied, Crash::Process);
    cluster.machine(emptied).sim.disk.remove_dir_all(&file("")).unwrap();
    cluster.machine(emptied).kv.wipe();
    assert!(
        matches!(cluster.start_as(emptied, true).await, Err(QuorumError::Incomplete { .. })),
        "known to have had some"
    );
    // Even with nobody to tell, it does not help an empty quorum into being.
    cluster.kill(leader, Crash::Process);
    let rebuilt = cluster.start(emptied).await.unwrap();
    task::sleep(Duration::from_millis(1500)).await;
    assert_eq!(rebuilt.image().topic_count(), 0);
    assert!(!cluster.nodes[&other].leadership().borrow().is_me, "the empty one has no vote");
    cluster.restart(leader).await;
    until(&rebuilt, offset).await.expect("is given everything");
    assert_eq!(names(&rebuilt.image()), ["topic-1"]);
}
