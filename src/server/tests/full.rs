//! Nodes whose disks are full, down to the last byte.

use super::*;
use crate::base::TopicPartition;
use crate::controller::decide::create_topics::NewTopic;
use crate::controller::decide::delete_topics::TopicRef;
use crate::host::Disk;
use crate::records::{BatchBuilder, Codec};
use crate::wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use crate::wire::messages::{ProduceRequest, StrBytes};

/// Of each disk.
const BYTES: u64 = 24 << 20;

async fn serve(world: &World) -> Vec<Node> {
    let nodes = vec![world.start(0).await, world.start(1).await, world.start(2).await];
    for node in &nodes {
        within(60, node.serving()).await.unwrap();
    }
    nodes
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            task::sleep(Duration::from_millis(50)).await;
        }
    };
    assert!(task::timeout(Duration::from_secs(120), wait).await.is_some(), "never happened: {what}");
}

fn controller(nodes: &[Node]) -> Option<&Node> {
    nodes.iter().find(|node| node.broker().is_active_controller())
}

async fn make_topic(nodes: &[Node], name: &'static str) {
    until("somebody decides", || controller(nodes).is_some()).await;
    let topic = NewTopic { partitions: 1, replication_factor: 3, ..NewTopic::with_defaults(name) };
    let made = controller(nodes).unwrap().broker().controller.create_topics(vec![topic], false).await.unwrap();
    assert!(made.iter().all(|one| one.result.is_ok()), "{name}");
    until("it is led", || leader(nodes, name).is_some()).await;
}

fn leader(nodes: &[Node], topic: &str) -> Option<usize> {
    let leads = |node: &Node| node.broker().partitions.partition(topic, 0).is_some_and(|one| one.is_leader());
    nodes.iter().position(leads)
}

impl World {
    /// Whether a batch of so many bytes was acknowledged by all.
    async fn write_large(&self, nodes: &[Node], topic: &'static str, bytes: usize) -> bool {
        let Some(leader) = leader(nodes, topic) else { return false };
        let mut batch = BatchBuilder::new(Codec::None);
        batch.push(0, None, Some(&vec![7; bytes]), &[]);
        let data = PartitionProduceData::default().with_records(Some(batch.finish(0, 0).into()));
        let topic = TopicProduceData::default()
            .with_name(StrBytes::from_static_str(topic).into())
            .with_partition_data(vec![data]);
        let request = ProduceRequest::default().with_acks(-1).with_timeout_ms(2_000).with_topic_data(vec![topic]);
        let answer = within(30, self.ask(NAMES[leader], &request)).await;
        answer.responses[0].partition_responses[0].error_code == 0
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_of_full_disks_start_again_and_a_topic_can_be_deleted() {
    locally(Box::pin(async {
        let world = World::new(31);
        world.machines.iter().for_each(|machine| machine.disk.set_capacity_bytes(BYTES));
        let nodes = serve(&world).await;
        make_topic(&nodes, "large").await;
        make_topic(&nodes, "small").await;
        // As fast as a disk fills in life: not within a second.
        while world.write_large(&nodes, "large", 200_000).await {
            task::sleep(Duration::from_millis(100)).await;
        }
        for bytes in [50_000, 5_000, 500, 50, 1] {
            while world.write_large(&nodes, "large", bytes).await {}
        }
        task::sleep(Duration::from_secs(5)).await;
        assert!(!world.write_large(&nodes, "small", 1).await, "what was given up is not for records");
        drop(nodes);
        for (at, machine) in world.machines.iter().enumerate() {
            world.net.crash(ip(u8::try_from(at).unwrap() + 1));
            machine.disk.crash(Crash::Process);
        }
        let nodes = serve(&world).await;
        assert!(!world.write_large(&nodes, "small", 1).await, "the disks are as full as before");
        until("somebody decides", || controller(&nodes).is_some()).await;
        let broker = controller(&nodes).unwrap().broker().clone();
        let deleted = broker.controller.delete_topics(vec![TopicRef::named("large")]).await.unwrap();
        assert!(deleted.iter().all(|one| one.refusal.is_none()));
        let name = TopicPartition::new("large", 0).dir_name();
        until("its files are gone", || {
            world.machines.iter().all(|machine| {
                let entries = machine.disk.read_dir(std::path::Path::new("/data")).unwrap();
                !entries.iter().any(|entry| entry.name.starts_with(&name))
            })
        })
        .await;
        let mut was_written = false;
        for _ in 0..20 {
            was_written = was_written || world.write_large(&nodes, "small", 1).await;
            task::sleep(Duration::from_secs(1)).await;
        }
        assert!(was_written, "everything goes on");
        for node in nodes {
            within(60, node.stop()).await.unwrap();
        }
    }))
    .await;
}
