//! A cluster under test: three real processes, each broker and controller, on ports and in directories of their own.

use std::net::Ipv4Addr;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::metadata::Metadata;

use crate::clients::{CALL_MAX, config};
use crate::faults::{Disk, Net};
use crate::{Broker, ports, until};

/// How long a node may take to serve, generous for a debug build on a busy machine.
pub const READY_MAX: Duration = Duration::from_secs(60);

/// Nodes 1 to n.
pub struct Cluster {
    nodes: Vec<Broker>,
}

impl Cluster {
    /// Starts three nodes and waits until all of them serve.
    pub fn start(settings: &[(&str, &str)]) -> Cluster {
        let mut cluster = Cluster::prepared(3, settings);
        cluster.nodes.iter_mut().for_each(Broker::spawn);
        cluster.await_ready();
        cluster
    }

    /// Nodes that know of one another and have not been started.
    pub fn prepared(count: usize, settings: &[(&str, &str)]) -> Cluster {
        Cluster::prepared_at(count, settings, |_| (Ipv4Addr::LOCALHOST, Vec::new()))
    }

    /// Starts three nodes, each in its own namespace of this network.
    pub fn start_in(net: &Net, settings: &[(&str, &str)]) -> Cluster {
        let mut cluster = Cluster::prepared_at(3, settings, |node| (net.address(node), net.prefix(node)));
        cluster.nodes.iter_mut().for_each(Broker::spawn);
        cluster.await_ready();
        cluster
    }

    /// Starts three nodes, each on its own disk.
    pub fn start_on(disks: &[Disk], settings: &[(&str, &str)]) -> Cluster {
        let mut cluster = Cluster::prepared(disks.len(), settings);
        cluster.nodes.iter_mut().zip(disks).for_each(|(node, disk)| node.keep_data_in(disk.data()));
        cluster.nodes.iter_mut().for_each(Broker::spawn);
        cluster.await_ready();
        cluster
    }

    fn prepared_at(count: usize, settings: &[(&str, &str)], place: impl Fn(i32) -> (Ipv4Addr, Vec<String>)) -> Cluster {
        let places: Vec<_> = (1..).take(count).map(place).collect();
        let controllers: Vec<u16> = (0..count).map(|_| ports::free()).collect();
        let voters: Vec<String> =
            controllers.iter().enumerate().map(|(at, port)| format!("{}@{}:{port}", at + 1, places[at].0)).collect();
        let mut nodes = Vec::new();
        for (at, port) in controllers.iter().enumerate() {
            let mut node = Broker::prepared(settings);
            let (host, prefix) = places[at].clone();
            node.place(host.into(), prefix);
            node.set("node.id", &(at + 1).to_string());
            node.set("controller.quorum.voters", &voters.join(","));
            let listeners = format!("PLAINTEXT://{},CONTROLLER://{host}:{port}", node.address());
            node.set("listeners", &listeners);
            nodes.push(node);
        }
        Cluster { nodes }
    }

    /// Of all nodes.
    pub fn addresses(&self) -> String {
        self.nodes.iter().map(Broker::address).collect::<Vec<_>>().join(",")
    }

    pub fn node(&self, id: i32) -> &Broker {
        &self.nodes[Self::at(id)]
    }

    pub fn node_mut(&mut self, id: i32) -> &mut Broker {
        &mut self.nodes[Self::at(id)]
    }

    pub fn ids(&self) -> impl Iterator<Item = i32> + use<> {
        (1..).take(self.nodes.len())
    }

    fn at(id: i32) -> usize {
        usize::try_from(id - 1).expect("a node id")
    }

    /// Waits until every node that runs serves.
    pub fn await_ready(&mut self) {
        for id in self.ids() {
            if self.node(id).is_up() {
                self.await_node(id);
            }
        }
    }

    fn await_node(&mut self, id: i32) {
        let mut last = String::new();
        let deadline = std::time::Instant::now() + READY_MAX;
        loop {
            match self.node(id).readiness() {
                Ok(()) => return,
                Err(why) => last = if why.is_empty() { last } else { why },
            }
            let runs = self.node_mut(id).is_running();
            let log = || self.node(id).log();
            assert!(runs, "node {id} ended while starting:\n{}", log());
            assert!(std::time::Instant::now() < deadline, "node {id} does not serve ({last}):\n{}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Comes back after a kill or a stop.
    pub fn run(&mut self, id: i32) {
        self.node_mut(id).spawn();
        self.await_node(id);
    }

    /// What one client is told by whichever node answers.
    pub fn metadata(&self, topic: &str) -> Option<Metadata> {
        let consumer: BaseConsumer = config(self, &[]).create().expect("a consumer");
        consumer.fetch_metadata(Some(topic), CALL_MAX).ok()
    }

    /// The leader of a partition, once it has one.
    #[track_caller]
    pub fn leader(&self, topic: &str, partition: i32) -> i32 {
        until("a leader", CALL_MAX, || {
            let metadata = self.metadata(topic)?;
            let found = metadata.topics().first()?.partitions().iter().find(|one| one.id() == partition)?;
            (found.leader() >= 0).then(|| found.leader())
        })
    }

    /// Waits until every replica of the topic is in sync.
    #[track_caller]
    pub fn await_full_isr(&self, topic: &str) {
        until("every replica in sync", READY_MAX, || {
            let metadata = self.metadata(topic)?;
            let partitions = metadata.topics().first()?.partitions();
            let full = partitions.iter().all(|one| one.isr().len() == one.replicas().len() && one.leader() >= 0);
            (full && !partitions.is_empty()).then_some(())
        });
    }
}
