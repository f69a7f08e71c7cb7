//! Where a script plays: the cluster, one partition that it is about, and waiting for what it is to lead to.

use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use crate::base::{BrokerId, Offset};
use crate::host::sim::Crash;
use crate::host::task;
use crate::metadata::{Image, PartitionState};
use crate::replica::Partition;
use crate::sim::client::{Client, text};
use crate::sim::cluster::{Cluster, NAMES, NODES};
use crate::sim::history::{History, Place};
use crate::wire::messages::ElectLeadersRequest;
use crate::wire::messages::elect_leaders_request::TopicPartitions;

/// Steps of a script look again after this long.
const PERIOD: Duration = Duration::from_micros(500);

/// How long a script waits for its next step.
const STEP_MAX: Duration = Duration::from_secs(25);

/// The cluster did not come to where the script needs it.
#[derive(Debug)]
pub struct Stuck(pub String);

pub struct Scene {
    pub cluster: Rc<Cluster>,
    pub history: Rc<History>,
    pub admin: Client,
    /// The machines of everybody who writes and reads.
    pub clients: Vec<IpAddr>,
    pub place: Place,
}

impl Scene {
    /// Waits until something holds; whether it did in time.
    pub async fn wait(&self, longest: Duration, holds: impl Fn() -> bool) -> bool {
        let began = self.history.elapsed();
        while !holds() {
            if self.history.elapsed() - began > longest {
                return false;
            }
            task::sleep(PERIOD).await;
        }
        true
    }

    /// # Errors
    /// When it never holds.
    pub async fn until(&self, what: &str, holds: impl Fn() -> bool) -> Result<(), Stuck> {
        if self.wait(STEP_MAX, holds).await {
            self.history.note(&format!("script: {what}"));
            return Ok(());
        }
        let state = self.newest();
        Err(Stuck(format!("{what}: {state:?}")))
    }

    pub async fn pause(&self, ms: u64) {
        task::sleep(Duration::from_millis(ms)).await;
    }

    /// The partition as the newest metadata has it that any node knows.
    fn newest(&self) -> Option<PartitionState> {
        let images = self.cluster.brokers().map(|(_, broker)| broker.image());
        let image = images.max_by_key(|image| image.offset)?;
        image.partition(&self.place.topic, self.place.partition).map(|state| PartitionState::clone(state))
    }

    pub fn state(&self) -> PartitionState {
        self.newest().expect("the topic was made")
    }

    /// The nodes of the partition's replicas, the preferred one first.
    pub fn order(&self) -> [usize; NODES] {
        let replicas: Vec<usize> = self.state().replicas.iter().map(|id| at(*id)).collect();
        replicas.try_into().expect("every node has a replica")
    }

    pub fn is_led_by(&self, node: usize) -> bool {
        self.newest().is_some_and(|state| state.leader == id(node))
    }

    /// Whether exactly these are in sync.
    pub fn are_in_sync(&self, nodes: &[usize]) -> bool {
        self.newest().is_some_and(|state| {
            state.isr.len() == nodes.len() && nodes.iter().all(|node| state.isr.contains(&id(*node)))
        })
    }

    pub fn is_in_sync(&self, node: usize) -> bool {
        self.newest().is_some_and(|state| state.isr.contains(&id(node)))
    }

    /// Under which epoch a node is registered.
    pub fn broker_epoch(&self, node: usize) -> i64 {
        let epoch = |image: &Image| image.broker(id(node)).map_or(-1, |broker| broker.epoch);
        self.cluster.brokers().map(|(_, broker)| epoch(&broker.image())).max().unwrap_or(-1)
    }

    /// Whether a node serves again, in a later run than that of an epoch.
    pub fn is_back(&self, node: usize, since: i64) -> bool {
        let serves =
            |image: &Image| image.broker(id(node)).is_some_and(|broker| broker.epoch > since && broker.is_active());
        self.cluster.brokers().any(|(_, broker)| serves(&broker.image()))
    }

    /// Whether a node is in service, as the metadata of some node has it.
    pub fn is_active(&self, node: usize) -> bool {
        self.cluster.brokers().any(|(_, broker)| broker.image().is_active(id(node)))
    }

    fn replica(&self, node: usize) -> Option<std::sync::Arc<Partition>> {
        self.cluster.broker(node)?.partitions.partition(&self.place.topic, self.place.partition)
    }

    pub fn log_end(&self, node: usize) -> Offset {
        let view = self.replica(node).and_then(|replica| replica.view_if_open());
        view.map_or(0, |view| view.log_end_offset)
    }

    /// Whether a node acts as leader in the newest epoch.
    pub fn leads(&self, node: usize) -> bool {
        let epoch = self.newest().map(|state| state.leader_epoch);
        self.replica(node).is_some_and(|replica| Some(replica.leader_epoch()) == epoch)
    }

    /// Who decides, if somebody is known to.
    pub fn controller(&self) -> Option<usize> {
        self.cluster
            .brokers()
            .find(|(_, broker)| broker.controller.quorum().leadership().borrow().is_me)
            .map(|(at, _)| at)
    }

    pub fn acked(&self) -> usize {
        self.history.acked_at(&self.place)
    }

    /// Waits for so many acknowledgements more.
    pub async fn more_acked(&self, batches: usize) -> Result<(), Stuck> {
        let before = self.acked();
        self.until(&format!("{batches} more are acknowledged"), || self.acked() >= before + batches).await
    }

    /// Nothing is fetched between two nodes; what they say as controllers still gets through.
    pub fn cut_data(&self, one: usize, other: usize) {
        self.history.note(&format!("script: no data between {} and {}", NAMES[one], NAMES[other]));
        self.cluster.cut_data(one, other);
        self.cluster.cut_data(other, one);
    }

    /// Asks for the preferred replica to lead until it does.
    pub async fn elect_preferred(&self) -> Result<(), Stuck> {
        let partitions = TopicPartitions::default()
            .with_topic(text(&self.place.topic).into())
            .with_partitions(vec![self.place.partition]);
        let request = ElectLeadersRequest::default()
            .with_election_type(0)
            .with_topic_partitions(Some(vec![partitions]))
            .with_timeout_ms(3_000);
        for _ in 0..20 {
            if self.is_led_by(self.order()[0]) {
                return Ok(());
            }
            let _ = self.admin.ask_anyone(&request).await;
        }
        Err(Stuck("the preferred replica is elected".to_owned()))
    }

    /// The same as [`Scene::begin`], and the replica at `place` decides about the cluster.
    pub async fn begin_under(&self, place: usize) -> Result<[usize; NODES], Stuck> {
        let order = self.order();
        for _ in 0..20 {
            self.until("somebody decides", || self.controller().is_some()).await?;
            let controller = self.controller().unwrap_or(0);
            if controller == order[place] {
                break;
            }
            self.cluster.crash(controller, Crash::Process).await;
            self.until("it is missed", || !self.is_active(controller)).await?;
            self.cluster.start(controller);
            self.until("all are in sync", || self.is_active(controller) && self.are_in_sync(&order)).await?;
        }
        self.elect_preferred().await?;
        self.begin().await
    }

    /// The partition is led by its preferred replica, everybody is in sync, and it is written to.
    pub async fn begin(&self) -> Result<[usize; NODES], Stuck> {
        let order = self.order();
        self.until("all is well", || self.is_led_by(order[0]) && self.are_in_sync(&order)).await?;
        self.more_acked(5).await?;
        Ok(order)
    }
}

pub fn id(node: usize) -> BrokerId {
    BrokerId::try_from(node + 1).expect("few nodes")
}

pub fn at(id: BrokerId) -> usize {
    usize::try_from(id - 1).expect("a node's id")
}
