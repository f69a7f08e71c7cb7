//! Facts about the controller's decisions: the reply and the exact records.

mod alter_partition;
mod brokers;
mod create_partitions;
mod create_topics;
mod delete_topics;
mod directories;
mod elections;
mod give_up;
mod heartbeat;
mod internal_topics;
mod partition_change;
mod placement;
mod reassignments;
mod registration;
mod walk;

use uuid::Uuid;

use super::Decision;
use super::rules::Rules;
use crate::base::{BrokerId, TopicId};
use crate::metadata::{BrokerRegistration, Endpoint, Image, MetadataRecord, PartitionState};

/// Nothing is set anywhere.
const RULES: Rules<'static> = Rules { node_id: 1, fixed: &() };

/// A broker on a rack, reachable and with one log directory.
fn broker(id: BrokerId, rack: Option<&str>) -> BrokerRegistration {
    BrokerRegistration {
        id,
        incarnation: Uuid::from_u128(1),
        epoch: 1,
        endpoints: vec![Endpoint {
            listener: "PLAINTEXT".into(),
            protocol: "PLAINTEXT".into(),
            host: "h".into(),
            port: 9092,
        }],
        rack: rack.map(str::to_owned),
        directories: vec![directory(id)],
        ..BrokerRegistration::default()
    }
}

fn directory(id: BrokerId) -> Uuid {
    Uuid::from_u128(1000 + u128::from(id.unsigned_abs()))
}

fn image_of(records: &[MetadataRecord]) -> Image {
    let mut image = Image::empty();
    apply(&mut image, records);
    image
}

fn apply(image: &mut Image, records: &[MetadataRecord]) {
    for record in records {
        image.apply(image.offset + 1, record).expect("the record fits the image");
    }
}

/// A cluster of brokers `1..=count` without racks.
fn cluster(count: BrokerId) -> Image {
    let records: Vec<_> = (1..=count).map(|id| MetadataRecord::Broker(broker(id, None))).collect();
    image_of(&records)
}

fn topic_id(number: u128) -> TopicId {
    TopicId(Uuid::from_u128(number))
}

/// A partition on broker 1 of [`cluster`]`(1)`.
fn on_one() -> PartitionState {
    PartitionState::new(vec![1], vec![directory(1)])
}

fn with_topic(image: &mut Image, name: &str, id: u128, partitions: usize) {
    let partitions = vec![on_one(); partitions];
    apply(image, &[MetadataRecord::Topic { id: topic_id(id), name: name.into(), partitions }]);
}

/// The image after a decision.
fn after<R>(image: &Image, decision: &Decision<R>) -> Image {
    let mut image = image.clone();
    apply(&mut image, &decision.records);
    image
}

/// Brokers `1..=count`, eligible leader replicas on, and topic `t` with one partition on all of them, led by the first, at
/// partition epoch 0.
fn replicated(count: BrokerId, min_isr: i16) -> Image {
    let mut image = cluster(count);
    let replicas: Vec<BrokerId> = (1..=count).collect();
    let directories = replicas.iter().map(|id| directory(*id)).collect();
    let partitions = vec![PartitionState::new(replicas, directories)];
    apply(
        &mut image,
        &[
            MetadataRecord::Cluster { cluster_id: "c".into() },
            MetadataRecord::Feature { name: "eligible.leader.replicas.version".into(), level: 1 },
            MetadataRecord::Topic { id: topic_id(1), name: "t".into(), partitions },
            topic_config("min.insync.replicas", &min_isr.to_string()),
        ],
    );
    image
}

/// A config of topic `t`.
fn topic_config(name: &str, value: &str) -> MetadataRecord {
    MetadataRecord::Config {
        resource: crate::metadata::ConfigResource::topic("t"),
        name: name.into(),
        value: Some(value.into()),
    }
}

/// Partition 0 of topic `t`.
fn state(image: &Image) -> PartitionState {
    (**image.partition("t", 0).expect("topic t")).clone()
}

/// Replaces partition 0 of topic `t`.
fn set_state(image: &mut Image, state: PartitionState) {
    apply(image, &[MetadataRecord::Partition { topic_id: topic_id(1), partition: 0, state }]);
}

fn fence_broker(image: &mut Image, id: BrokerId) {
    let records = super::heartbeat::fence(image, &RULES, id);
    apply(image, &records);
}

/// What a partition's change is about, without epochs and directories.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    leader: BrokerId,
    isr: Vec<BrokerId>,
    elr: Vec<BrokerId>,
}

fn shown(image: &Image) -> Shown {
    let state = state(image);
    Shown { leader: state.leader, isr: state.isr, elr: state.elr }
}

fn expect(leader: BrokerId, isr: &[BrokerId], elr: &[BrokerId]) -> Shown {
    Shown { leader, isr: isr.to_vec(), elr: elr.to_vec() }
}
