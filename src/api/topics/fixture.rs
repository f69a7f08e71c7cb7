//! A small cluster for tests of this folder.

use uuid::Uuid;

use crate::base::TopicId;
use crate::metadata::{BrokerRegistration, Image, MetadataRecord, PartitionState};

/// Brokers 1 and 2, of which 2 is fenced, and topics by name and number of partitions, all led by broker 1.
pub(super) fn image(topics: &[(&str, usize)]) -> Image {
    let mut image = Image::empty();
    let brokers = [(1, false), (2, true)].map(|(id, fenced)| {
        MetadataRecord::Broker(BrokerRegistration {
            id,
            incarnation: Uuid::nil(),
            epoch: 0,
            endpoints: Vec::new(),
            rack: None,
            directories: Vec::new(),
            fenced,
            ..BrokerRegistration::default()
        })
    });
    let topics = (1..).zip(topics).map(|(number, (name, partitions))| MetadataRecord::Topic {
        id: TopicId(Uuid::from_u128(number)),
        name: (*name).to_owned(),
        partitions: vec![PartitionState::new(vec![1], vec![]); *partitions],
    });
    for record in brokers.into_iter().chain(topics) {
        image.apply(image.offset + 1, &record).expect("records that fit");
    }
    image
}
