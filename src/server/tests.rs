//! Whole nodes in one thread, over a simulated network, simulated disks and a clock that jumps: everything but the machine is real.

mod alone;
mod deleting;
mod forwarding;
mod full;
mod voters;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::LocalSet;

use super::Node;
use crate::base::NodeAddress;
use crate::config::{self, BrokerSettings, Sources};
use crate::host::net::Net;
use crate::host::sim::{Crash, RuntimeClock, SimHost, SimNet};
use crate::host::task;
use crate::telemetry::logs::LogControl;
use crate::wire::client::{self, NodeRequest};
use crate::wire::frame::{FrameLimit, next_frame};
use crate::wire::messages::CreateTopicsRequest;
use crate::wire::messages::create_topics_request::CreatableTopic;

const NAMES: [&str; 3] = ["one", "two", "three"];

fn ip(number: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, number))
}

struct World {
    net: SimNet,
    machines: Vec<SimHost>,
    client: Arc<dyn Net>,
}

impl World {
    fn new(seed: u64) -> World {
        task::block_inline();
        let net = SimNet::new(seed);
        let machines =
            (1..).zip(NAMES).map(|(number, name)| SimHost::on(&net, name, ip(number), seed + u64::from(number)));
        World { machines: machines.collect(), client: net.machine("client", ip(9)), net }
    }

    fn settings(&self, at: usize, more: &[&str]) -> BrokerSettings {
        let mut set = vec![
            format!("node.id={}", at + 1),
            format!("listeners=PLAINTEXT://{0}:9092,CONTROLLER://{0}:9093", NAMES[at]),
            "log.dirs=/data".to_owned(),
            "http.listener=".to_owned(),
            "num.network.threads=1".to_owned(),
        ];
        set.extend(more.iter().map(|one| (*one).to_owned()));
        let sources = Sources { set, ..Sources::default() };
        config::load(&sources, &*self.machines[at].disk).unwrap().settings
    }

    /// One of three voters.
    async fn start(&self, at: usize) -> Node {
        self.start_with(at, &["controller.quorum.voters=1@one:9093,2@two:9093,3@three:9093"]).await
    }

    async fn start_with(&self, at: usize, more: &[&str]) -> Node {
        self.start_on(&self.machines[at], at, more).await
    }

    async fn start_on(&self, machine: &SimHost, at: usize, more: &[&str]) -> Node {
        let host = machine.restarted().host_with(Arc::new(RuntimeClock::new(1_700_000_000_000)));
        Node::start(host, self.settings(at, more), LogControl::detached("info").unwrap()).await.unwrap()
    }

    /// Asks a node as a client would.
    async fn ask<Q: NodeRequest>(&self, name: &str, request: &Q) -> Q::Answer {
        let mut stream = self.client.connect(&NodeAddress::new(name, 9092)).await.unwrap();
        stream.write_all(&client::encode_request(7, "client", request).unwrap()).await.unwrap();
        let mut input = BytesMut::new();
        let frame = loop {
            match next_frame(&mut input, FrameLimit::later(1 << 20)).unwrap() {
                Some(frame) => break frame,
                None => assert!(stream.read_buf(&mut input).await.unwrap() > 0, "the connection was closed"),
            }
        };
        let (_, rest) = client::correlation_id(frame).unwrap();
        let body = client::body(rest).unwrap();
        assert!(body.has_remaining());
        Q::read_answer(body).unwrap()
    }
}

fn topic(name: &'static str) -> CreateTopicsRequest {
    let name = crate::wire::messages::StrBytes::from_static_str(name);
    let topic = CreatableTopic::default().with_name(name.into()).with_num_partitions(2).with_replication_factor(3);
    CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(30_000)
}

async fn within<T>(seconds: u64, work: impl Future<Output = T>) -> T {
    task::timeout(Duration::from_secs(seconds), work).await.expect("in time")
}

/// Runs `work` where nodes can run.
async fn locally(work: impl Future<Output = ()>) {
    LocalSet::new().run_until(Box::pin(work)).await;
}

#[tokio::test(start_paused = true)]
async fn three_nodes_in_one_thread_form_a_cluster_and_make_a_topic_through_any_of_them() {
    locally(Box::pin(async {
        let world = World::new(1);
        let nodes = [world.start(0).await, world.start(1).await, world.start(2).await];
        for node in &nodes {
            within(20, node.serving()).await.unwrap();
        }
        for (name, wanted) in NAMES.iter().zip(["a", "b", "c"]) {
            let answer = within(20, world.ask(name, &topic(wanted))).await;
            assert_eq!(answer.topics[0].error_code, 0, "{name}: {answer:?}");
        }
        for node in nodes {
            within(60, node.stop()).await.unwrap();
        }
    }))
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_crashes_is_replaced_as_controller_and_comes_back() {
    locally(Box::pin(async {
        let world = World::new(2);
        let mut nodes = vec![world.start(0).await, world.start(1).await, world.start(2).await];
        for node in &nodes {
            within(20, node.serving()).await.unwrap();
        }
        let leads = |node: &Node| node.broker().is_active_controller();
        let at = nodes.iter().position(leads).expect("somebody is the active controller");
        world.net.crash(ip(u8::try_from(at).unwrap() + 1));
        // What is left over of the process has no network any more.
        let crashed = nodes.remove(at);
        let other = nodes.first().unwrap();
        let name = NAMES.iter().enumerate().find(|(index, _)| *index != at).unwrap().1;
        let answer = within(30, world.ask(name, &topic("after"))).await;
        assert_eq!(answer.topics[0].error_code, 0);
        let id = i32::try_from(at).unwrap() + 1;
        let image = other.broker().image();
        assert!(!image.is_live(id), "its connections broke, so it was fenced");
        assert!(image.topic("after").unwrap().partitions.iter().all(|one| one.leader != id && one.has_leader()));
        drop(crashed);
        world.machines[at].disk.crash(Crash::Process);
        let back = world.start(at).await;
        within(30, back.serving()).await.unwrap();
        // The controller says that it serves before its own image does.
        let mut images = back.broker().controller.quorum().watch();
        within(20, images.wait_for(|image| image.is_live(id))).await.unwrap();
    }))
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_names_another_one_on_its_own_port_joins_that_ones_cluster() {
    locally(Box::pin(async {
        let world = World::new(3);
        let first = world.start_with(0, &["controller.quorum.bootstrap.servers=one:9093"]).await;
        within(20, first.serving()).await.unwrap();
        let second = world.start_with(1, &["controller.quorum.bootstrap.servers=one:9093"]).await;
        within(20, second.serving()).await.unwrap();
        assert_eq!(second.broker().image().cluster_id, first.broker().image().cluster_id);
        let mut images = second.broker().controller.quorum().watch();
        within(20, images.wait_for(|image| image.is_live(1) && image.is_live(2))).await.unwrap();
        let voters = first.broker().controller.quorum().describe().voters;
        assert_eq!(voters.iter().map(|voter| voter.id).collect::<Vec<_>>(), [1]);
        for node in [second, first] {
            within(60, node.stop()).await.unwrap();
        }
    }))
    .await;
}
