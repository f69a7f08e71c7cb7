//! Facts about the controller's decisions: the reply and the exact records.

mod brokers;
mod create_partitions;
mod create_topics;
mod delete_topics;
mod placement;

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
