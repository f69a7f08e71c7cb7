//! DeleteRecords, and what is left of it when the machines go down.

use super::*;
use crate::base::{ErrorCode, Offset};
use crate::records::{BatchBuilder, Codec};
use crate::replica::Partition;
use crate::wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use crate::wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use crate::wire::messages::{DeleteRecordsRequest, ProduceRequest, StrBytes};

const TOPIC: &str = "log";
const RECORDS: Offset = 10;

async fn serve(world: &World) -> Vec<Node> {
    let nodes = vec![world.start(0).await, world.start(1).await, world.start(2).await];
    for node in &nodes {
        within(30, node.serving()).await.unwrap();
    }
    nodes
}

fn replica(node: &Node) -> Arc<Partition> {
    node.broker().partitions.partition(TOPIC, 0).unwrap()
}

impl World {
    /// Three nodes with a topic of ten records, and the place of its leader.
    async fn with_records(&self) -> (Vec<Node>, usize) {
        let nodes = serve(self).await;
        assert_eq!(within(30, self.ask(NAMES[0], &topic(TOPIC))).await.topics[0].error_code, 0);
        let leads = |node: &Node| node.broker().partitions.partition(TOPIC, 0).is_some_and(|one| one.is_leader());
        let leader = async {
            loop {
                if let Some(leader) = nodes.iter().position(leads) {
                    break leader;
                }
                task::sleep(Duration::from_millis(10)).await;
            }
        };
        let leader = within(30, leader).await;
        let mut batch = BatchBuilder::new(Codec::None);
        for number in 0..RECORDS {
            batch.push(0, None, Some(number.to_string().as_bytes()), &[]);
        }
        let data = PartitionProduceData::default().with_records(Some(batch.finish(0, 0).into()));
        let topic = TopicProduceData::default()
            .with_name(StrBytes::from_static_str(TOPIC).into())
            .with_partition_data(vec![data]);
        let request = ProduceRequest::default().with_acks(-1).with_timeout_ms(20_000).with_topic_data(vec![topic]);
        let answer = within(30, self.ask(NAMES[leader], &request)).await;
        assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
        (nodes, leader)
    }

    /// The answer's error and low watermark.
    async fn delete_before(&self, leader: usize, offset: Offset) -> (ErrorCode, Offset) {
        let partition = DeleteRecordsPartition::default().with_offset(offset);
        let topic = DeleteRecordsTopic::default()
            .with_name(StrBytes::from_static_str(TOPIC).into())
            .with_partitions(vec![partition]);
        let request = DeleteRecordsRequest::default().with_topics(vec![topic]).with_timeout_ms(10_000);
        let answer = within(30, self.ask(NAMES[leader], &request)).await;
        let partition = &answer.topics[0].partitions[0];
        (ErrorCode(partition.error_code), partition.low_watermark)
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_answered_as_deleted_stays_deleted_when_all_machines_go_down() {
    for how in [Crash::Process, Crash::PowerLosesAll] {
        locally(Box::pin(async {
            let world = World::new(21);
            let (nodes, leader) = world.with_records().await;
            assert_eq!(world.delete_before(leader, 7).await, (ErrorCode::NONE, 7));
            drop(nodes);
            for at in 0..NAMES.len() {
                world.net.crash(ip(u8::try_from(at).unwrap() + 1));
                world.machines[at].disk.crash(how);
            }
            let nodes = serve(&world).await;
            let starts: Vec<_> = nodes.iter().map(|node| replica(node).view().unwrap().log_start_offset).collect();
            assert_eq!(starts, [7, 7, 7], "{how:?}");
            for node in nodes {
                within(60, node.stop()).await.unwrap();
            }
        }))
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_written_down_is_not_answered_as_deleted() {
    locally(Box::pin(async {
        let world = World::new(22);
        let (nodes, leader) = world.with_records().await;
        let follower = (leader + 1) % NAMES.len();
        let fill = |at: usize| world.machines[at].disk.set_capacity_bytes(0);
        let empty = |at: usize| world.machines[at].disk.set_capacity_bytes(u64::MAX);
        fill(leader);
        assert_eq!(world.delete_before(leader, 5).await, (ErrorCode::KAFKA_STORAGE_ERROR, -1));
        empty(leader);
        assert_eq!(world.delete_before(leader, 5).await, (ErrorCode::NONE, 5), "there is room again");
        fill(follower);
        assert_eq!(
            world.delete_before(leader, 6).await,
            (ErrorCode::REQUEST_TIMED_OUT, -1),
            "a follower may bring it back"
        );
        empty(follower);
        assert_eq!(world.delete_before(leader, 6).await, (ErrorCode::NONE, 6));
        for node in nodes {
            within(60, node.stop()).await.unwrap();
        }
    }))
    .await;
}
