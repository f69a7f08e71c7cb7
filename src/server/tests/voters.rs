//! Voters that come and go while a producer writes: one node grows to three, a voter is replaced, and the first node dies.

use std::cell::{Cell, RefCell};

use uuid::Uuid;

use super::*;
use crate::base::{BrokerId, ErrorCode};
use crate::controller::decide::reassignments::Reassignment;
use crate::records::{BatchBuilder, Batches, Codec, records};
use crate::wire::messages::add_raft_voter_request::Listener;
use crate::wire::messages::fetch_request::{FetchPartition, FetchTopic};
use crate::wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use crate::wire::messages::{
    AddRaftVoterRequest, FetchRequest, ProduceRequest, RemoveRaftVoterRequest, StrBytes, UnregisterControllerRequest,
};

const TOPIC: &str = "log";

/// A cluster that begins with node `one`.
const FIRST: [&str; 1] = ["controller.quorum.bootstrap.servers=one:9093"];

impl World {
    /// A node that has no vote yet, serving.
    async fn start_later(&self, at: usize) -> Node {
        let node = self.start_with(at, &FIRST).await;
        within(30, node.serving()).await.unwrap();
        node
    }

    async fn add_voter(&self, through: &str, at: usize, directory: Uuid) -> i16 {
        let door = Listener {
            name: StrBytes::from_static_str("CONTROLLER"),
            host: StrBytes::from_static_str(NAMES[at]),
            port: 9093,
        };
        let request = AddRaftVoterRequest {
            timeout_ms: 30_000,
            voter_id: id(at),
            cluster_id: None,
            voter_directory_id: directory,
            listeners: vec![door],
            ..AddRaftVoterRequest::default()
        };
        within(70, self.ask(through, &request)).await.error_code
    }

    async fn remove_voter(&self, through: &str, at: usize, directory: Uuid) -> i16 {
        let request = RemoveRaftVoterRequest::default()
            .with_voter_id(id(at))
            .with_voter_directory_id(directory)
            .with_cluster_id(None);
        within(30, self.ask(through, &request)).await.error_code
    }

    /// Writes one record; answers whether it was acknowledged.
    async fn write(&self, through: &str, number: usize) -> bool {
        let mut batch = BatchBuilder::new(Codec::None);
        batch.push(0, None, Some(number.to_string().as_bytes()), &[]);
        let data = PartitionProduceData::default().with_index(0).with_records(Some(batch.finish(0, 0).into()));
        let topic = TopicProduceData::default()
            .with_name(StrBytes::from_static_str(TOPIC).into())
            .with_partition_data(vec![data]);
        let request = ProduceRequest::default().with_acks(-1).with_timeout_ms(5_000).with_topic_data(vec![topic]);
        let answer = self.ask(through, &request).await;
        answer.responses[0].partition_responses[0].error_code == 0
    }

    /// Everything that is in the topic, by the node that leads it.
    async fn read_all(&self, through: &str, node: &Node) -> Vec<usize> {
        let topic_id = node.broker().image().topic(TOPIC).unwrap().id.0;
        let mut found = Vec::new();
        let mut offset = 0;
        loop {
            let partition = FetchPartition::default().with_fetch_offset(offset).with_partition_max_bytes(1 << 20);
            let topic = FetchTopic::default().with_topic_id(topic_id).with_partitions(vec![partition]);
            let request = FetchRequest::default().with_max_bytes(1 << 20).with_topics(vec![topic]);
            let answer = within(30, self.ask(through, &request)).await;
            let partition = &answer.responses[0].partitions[0];
            assert_eq!(partition.error_code, 0);
            let bytes = partition.records.clone().unwrap_or_default();
            if bytes.is_empty() {
                assert_eq!(offset, partition.high_watermark, "read to the end");
                return found;
            }
            for batch in Batches::new(&bytes) {
                let (header, batch) = batch.unwrap();
                offset = header.last_offset() + 1;
                let text =
                    |value: Option<&[u8]>| std::str::from_utf8(value.unwrap()).unwrap().parse::<usize>().unwrap();
                found.extend(records(batch, 1 << 20).unwrap().iter().map(|record| text(record.unwrap().value)));
            }
        }
    }
}

fn id(at: usize) -> BrokerId {
    i32::try_from(at).unwrap() + 1
}

fn voters(node: &Node) -> Vec<(BrokerId, Uuid)> {
    let description = node.broker().controller.quorum().describe();
    description.voters.iter().map(|voter| (voter.id, voter.directory_id)).collect()
}

fn directory(node: &Node, at: usize) -> Uuid {
    node.broker().image().broker(id(at)).unwrap().directories[0]
}

/// Until the node knows of exactly these voters.
async fn until_voters(node: &Node, wanted: &[BrokerId]) {
    let known = || voters(node).iter().map(|(id, _)| *id).collect::<Vec<_>>();
    let all = async {
        while known() != wanted {
            task::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(task::timeout(Duration::from_secs(20), all).await.is_some(), "{:?}, not {wanted:?}", known());
}

/// Writing goes on.
async fn until_more_is_written(acknowledged: &RefCell<Vec<usize>>) {
    let wanted = acknowledged.borrow().len() + 10;
    within(20, async {
        while acknowledged.borrow().len() < wanted {
            task::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

async fn until_all_in_sync(node: &Node) {
    let mut images = node.broker().controller.quorum().watch();
    let full = images.wait_for(|image| {
        let partition = image.partition(TOPIC, 0).unwrap();
        partition.isr.len() == 3 && partition.adding.is_empty() && partition.removing.is_empty()
    });
    within(60, full).await.unwrap();
}

/// Grows to three under a producer's hands, and replaces the third by a fresh node of the same id.
async fn come_and_go(world: &World, first: &Node, acknowledged: &RefCell<Vec<usize>>) -> [Node; 2] {
    let second = world.start_later(1).await;
    let third = world.start_later(2).await;
    assert_eq!(voters(first).len(), 1);
    assert_eq!(world.add_voter("one", 1, directory(first, 1)).await, 0);
    assert_eq!(world.add_voter("one", 1, directory(first, 1)).await, ErrorCode::DUPLICATE_VOTER.code());
    let other = Uuid::from_u128(77);
    assert_eq!(world.add_voter("two", 2, other).await, ErrorCode::INVALID_REQUEST.code(), "another directory");
    assert_eq!(world.add_voter("two", 2, directory(first, 2)).await, 0);
    for node in [first, &second, &third] {
        until_voters(node, &[1, 2, 3]).await;
    }
    until_more_is_written(acknowledged).await;
    let spread = vec![Reassignment { partition: 0, replicas: Some(vec![1, 2, 3]) }];
    let outcomes = first.broker().controller.reassign(vec![(TOPIC.to_owned(), spread)], true).await.unwrap();
    assert!(outcomes[0].1[0].1.is_ok(), "{outcomes:?}");
    until_all_in_sync(first).await;
    until_more_is_written(acknowledged).await;

    let old = directory(first, 2);
    assert_eq!(world.remove_voter("two", 2, other).await, ErrorCode::VOTER_NOT_FOUND.code());
    assert_eq!(world.remove_voter("two", 2, old).await, 0);
    for node in [first, &second, &third] {
        until_voters(node, &[1, 2]).await;
    }
    until_more_is_written(acknowledged).await;
    within(60, third.stop()).await.unwrap();
    until_more_is_written(acknowledged).await;
    // A new machine in the old one's place: nothing of it is left.
    let machine = SimHost::on(&world.net, NAMES[2], ip(3), 999);
    let third = world.start_on(&machine, 2, &FIRST).await;
    within(30, third.serving()).await.unwrap();
    let fresh = directory(first, 2);
    assert_ne!(fresh, old);
    assert_eq!(world.add_voter("three", 2, fresh).await, 0);
    for node in [first, &second, &third] {
        until_voters(node, &[1, 2, 3]).await;
        assert_eq!(voters(node)[2], (3, fresh));
    }
    until_all_in_sync(first).await;
    until_more_is_written(acknowledged).await;
    [second, third]
}

#[tokio::test(start_paused = true)]
async fn a_node_grows_to_three_and_a_voter_is_replaced_while_records_are_written() {
    locally(Box::pin(async {
        let world = World::new(5);
        let first = world.start_later(0).await;
        let name = StrBytes::from_static_str(TOPIC);
        let alone = CreatableTopic::default().with_name(name.into()).with_num_partitions(1).with_replication_factor(1);
        let made = CreateTopicsRequest::default().with_topics(vec![alone]).with_timeout_ms(30_000);
        assert_eq!(within(20, world.ask("one", &made)).await.topics[0].error_code, 0);

        let (acknowledged, is_over) = (RefCell::new(Vec::new()), Cell::new(false));
        let writing = async {
            for number in 0.. {
                if is_over.get() {
                    return;
                }
                if world.write("one", number).await {
                    acknowledged.borrow_mut().push(number);
                }
                task::sleep(Duration::from_millis(10)).await;
            }
        };
        let changing = async {
            let others = come_and_go(&world, &first, &acknowledged).await;
            is_over.set(true);
            others
        };
        let ((), [second, third]) = tokio::join!(writing, changing);

        // The two that came later are a majority by themselves.
        world.net.crash(ip(1));
        drop(first);
        // A change that was on its way to the dead one would be answered with REQUEST_TIMED_OUT.
        let mut leadership = second.broker().controller.quorum().leadership();
        within(20, leadership.wait_for(|now| now.leader.is_some_and(|id| id != 1))).await.unwrap();
        let after = CreatableTopic::default()
            .with_name(StrBytes::from_static_str("after").into())
            .with_num_partitions(1)
            .with_replication_factor(2);
        let request = CreateTopicsRequest::default().with_topics(vec![after]).with_timeout_ms(30_000);
        assert_eq!(within(30, world.ask("two", &request)).await.topics[0].error_code, 0);
        let mut images = third.broker().controller.quorum().watch();
        let led = images.wait_for(|image| [2, 3].contains(&image.partition(TOPIC, 0).unwrap().leader));
        let leader = within(30, led).await.unwrap().partition(TOPIC, 0).unwrap().leader;
        let (name, node) = if leader == 2 { ("two", &second) } else { ("three", &third) };
        let found = world.read_all(name, node).await;
        let acknowledged = acknowledged.take();
        let lost: Vec<_> = acknowledged.iter().filter(|number| !found.contains(number)).collect();
        assert!(lost.is_empty(), "{lost:?} of {}", acknowledged.len());
        for node in [second, third] {
            within(60, node.stop()).await.unwrap();
        }
    }))
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_controller_is_unregistered_when_it_neither_votes_nor_runs() {
    locally(Box::pin(async {
        let world = World::new(6);
        let first = world.start_later(0).await;
        let only_controls = ["process.roles=controller", "listeners=CONTROLLER://two:9093", FIRST[0]];
        let second = world.start_with(1, &only_controls).await;
        within(30, second.serving()).await.unwrap();
        let unregister = async |id: BrokerId| {
            let request = UnregisterControllerRequest { controller_id: id };
            ErrorCode(within(30, world.ask("one", &request)).await.error_code)
        };
        assert_eq!(unregister(1).await, ErrorCode::INVALID_REQUEST, "it votes");
        assert_eq!(unregister(2).await, ErrorCode::INVALID_REQUEST, "it runs");
        assert_eq!(unregister(3).await, ErrorCode::CONTROLLER_ID_NOT_REGISTERED);
        within(60, second.stop()).await.unwrap();
        assert_eq!(unregister(2).await, ErrorCode::NONE);
        assert!(first.broker().controller.quorum().describe().observers.is_empty());
        assert_eq!(unregister(2).await, ErrorCode::CONTROLLER_ID_NOT_REGISTERED);
        within(60, first.stop()).await.unwrap();
    }))
    .await;
}
