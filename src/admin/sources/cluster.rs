//! The cluster as the newest metadata image shows it: brokers, topics, leaders.

use std::sync::Arc;

use crate::base::BrokerId;
use crate::metadata::{BrokerRegistration, Image};
use crate::telemetry::Page;
use crate::telemetry::samples::ClusterSample;

pub fn write(image: &Image, node_id: BrokerId, page: &mut Page) {
    let addresses: Vec<_> = image.live_brokers().map(|broker| (broker.id, address(broker))).collect();
    let mut sample = ClusterSample {
        brokers: addresses.iter().map(|(id, address)| (*id, address.as_str())).collect(),
        fenced_brokers: image.brokers().count().saturating_sub(addresses.len()),
        is_controller: image.controller_id == node_id,
        topics: image.topic_count(),
        partitions: image.partition_count(),
        metadata_offset: u64::try_from(image.offset).unwrap_or(0),
        ..ClusterSample::default()
    };
    for topic in image.topics() {
        page.topic(&topic.name, topic.partitions.len());
        for partition in &topic.partitions {
            sample.partitions_without_leader += usize::from(!partition.has_leader());
            let is_preferred = partition.replicas.first() == Some(&partition.leader);
            sample.leaders_not_preferred += usize::from(!is_preferred);
        }
    }
    page.cluster(&sample);
}

/// `host:port` of the first listener. Without an advertised host, clients use the one that they reached the broker by.
fn address(broker: &Arc<BrokerRegistration>) -> String {
    broker.endpoints.first().map_or_else(String::new, |endpoint| format!("{}:{}", endpoint.host, endpoint.port))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::base::TopicId;
    use crate::metadata::{Endpoint, MetadataRecord, PartitionState, Topic};

    fn broker(id: i32, fenced: bool) -> MetadataRecord {
        let endpoint =
            Endpoint { listener: "PLAINTEXT".into(), protocol: "PLAINTEXT".into(), host: "a".into(), port: 9092 };
        MetadataRecord::Broker(BrokerRegistration {
            id,
            incarnation: Uuid::from_u128(7),
            epoch: 1,
            endpoints: vec![endpoint],
            rack: None,
            directories: Vec::new(),
            fenced,
            ..BrokerRegistration::default()
        })
    }

    #[test]
    fn leaders_are_counted_as_the_image_has_them() {
        let mut led_by_second = PartitionState::new(vec![1, 2], Vec::new());
        led_by_second.leader = 2;
        let mut without = PartitionState::new(vec![2, 1], Vec::new());
        without.leader = -1;
        let partitions = [PartitionState::new(vec![1, 2], Vec::new()), led_by_second, without];
        let topic = Topic {
            name: "t".into(),
            id: TopicId::from_bytes([7; 16]),
            partitions: partitions.into_iter().map(Arc::new).collect(),
        };
        let mut image = Image::empty();
        for (offset, record) in (0..).zip([broker(1, false), broker(2, true), topic.to_record()]) {
            image.apply(offset, &record).unwrap();
        }
        image.controller_id = 1;
        let mut page = Page::default();
        write(&image, 1, &mut page);
        let text = page.finish();
        for line in [
            "kafka_brokers 1",
            "kafka_broker_info{id=\"1\",address=\"a:9092\"} 1",
            "kafka_controller_kafkacontroller_fencedbrokercount 1",
            "kafka_controller_kafkacontroller_activecontrollercount 1",
            "kafka_controller_kafkacontroller_globalpartitioncount 3",
            "kafka_controller_kafkacontroller_offlinepartitionscount 1",
            "kafka_controller_kafkacontroller_preferredreplicaimbalancecount 2",
            "kafka_topic_partitions{topic=\"t\"} 3",
        ] {
            assert!(text.lines().any(|have| have == line), "{line} is missing in\n{text}");
        }
    }
}
