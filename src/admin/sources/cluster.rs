//! The cluster as the newest metadata image shows it: brokers, topics, leaders.

use std::net::SocketAddr;

use crate::base::BrokerId;
use crate::metadata::{BrokerRegistration, Image};
use crate::telemetry::Page;
use crate::telemetry::samples::ClusterSample;

/// `bound` is where this node's first listener is bound. `is_controller`: it is the active controller, and a majority hears it.
pub fn write(image: &Image, node_id: BrokerId, is_controller: bool, bound: Option<SocketAddr>, page: &mut Page) {
    let bound_of = |broker: &BrokerRegistration| bound.filter(|_| broker.id == node_id);
    let addresses: Vec<_> = image.live_brokers().map(|broker| (broker.id, address(broker, bound_of(broker)))).collect();
    let mut sample = ClusterSample {
        brokers: addresses.iter().map(|(id, address)| (*id, address.as_str())).collect(),
        fenced_brokers: image.brokers().count().saturating_sub(addresses.len()),
        is_controller,
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

/// `host:port` of the first listener. Without an advertised host, clients use the one that they reached the broker by, and this shows
/// where it is bound.
fn address(broker: &BrokerRegistration, bound: Option<SocketAddr>) -> String {
    match (broker.endpoints.first(), bound) {
        (Some(endpoint), Some(bound)) if endpoint.host.is_empty() => bound.to_string(),
        (Some(endpoint), _) => format!("{}:{}", endpoint.host, endpoint.port),
        (None, _) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use uuid::Uuid;

    use super::*;
    use crate::base::TopicId;
    use crate::metadata::{Endpoint, MetadataRecord, PartitionState, Topic};

    fn broker(id: i32, fenced: bool) -> MetadataRecord {
        broker_at("a", id, fenced)
    }

    fn broker_at(host: &str, id: i32, fenced: bool) -> MetadataRecord {
        let endpoint =
            Endpoint { listener: "PLAINTEXT".into(), protocol: "PLAINTEXT".into(), host: host.into(), port: 9092 };
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
    fn a_broker_that_advertises_nothing_is_shown_where_it_is_bound() {
        let mut image = Image::empty();
        image.apply(0, &broker_at("", 1, false)).unwrap();
        let mut page = Page::default();
        write(&image, 1, false, Some("127.0.0.1:9092".parse().unwrap()), &mut page);
        let text = page.finish();
        assert!(text.contains("kafka_broker_info{id=\"1\",address=\"127.0.0.1:9092\"} 1"), "{text}");
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
        let mut page = Page::default();
        write(&image, 1, true, None, &mut page);
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
