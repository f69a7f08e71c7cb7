//! What `/metrics` asks for at every scrape: partitions, groups, the cluster, the disk. One pass over what is there, no state of its
//! own.

use std::sync::Arc;

use crate::api::Broker;
use crate::base::{Offset, PartitionIndex};
use crate::metadata::Image;
use crate::replica::{Partition, TopicReplicas};
use crate::telemetry::samples::{ClusterSample, GroupOffsetSample, GroupSample, LogDirSample, PartitionSample};
use crate::telemetry::{Page, ScrapeSource};

pub struct BrokerSource {
    broker: Arc<Broker>,
}

impl BrokerSource {
    pub fn new(broker: Arc<Broker>) -> BrokerSource {
        BrokerSource { broker }
    }

    fn partitions(&self, page: &mut Page, image: &Image) {
        let mut topics = self.broker.partitions.topics();
        topics.sort_by(|a, b| a.name.cmp(&b.name));
        if topics.is_empty() {
            page.no_partitions();
        }
        for topic in topics {
            page.topic(&topic.name, topic.partitions.len());
            for (index, partition) in (0..).zip(&topic.partitions) {
                if let Some(partition) = partition {
                    self.partition(page, image, &topic, index, partition);
                }
            }
        }
    }

    fn partition(
        &self,
        page: &mut Page,
        image: &Image,
        topic: &TopicReplicas,
        index: PartitionIndex,
        partition: &Partition,
    ) {
        let Some(state) = image.partition(&topic.name, index) else { return };
        // A log that nobody has used yet is not opened for a scrape.
        let view = if partition.is_open() { partition.view().ok() } else { None };
        let node = self.broker.options.node_id;
        page.partition(&PartitionSample {
            topic: &topic.name,
            partition: index,
            size_bytes: view.as_ref().map_or(0, |view| view.size_bytes()),
            segments: view.as_ref().map_or(0, |view| view.segments.len()),
            log_start_offset: view.as_ref().map_or(0, |view| view.log_start_offset),
            log_end_offset: view.as_ref().map_or(0, |view| view.log_end_offset),
            high_watermark: view.as_ref().map_or(0, |view| Partition::high_watermark(view)),
            leader: state.leader,
            led_here: state.leader == node,
            leader_is_preferred: state.replicas.first() == Some(&state.leader),
            replicas: state.replicas.len(),
            in_sync: state.isr.len(),
            min_in_sync: usize::try_from(topic.config.min_insync_replicas).unwrap_or(1),
            offline: self.broker.partitions.failure().is_some(),
        });
    }

    fn groups(&self, page: &mut Page) {
        let mut any = false;
        self.broker.groups.for_each_group(|group, state, members| {
            any = true;
            page.group(&GroupSample { group, state, members });
        });
        if !any {
            page.no_groups();
        }
        self.broker.groups.for_each_offset(|group, topic, partition, committed| {
            let high_watermark = self.high_watermark(topic, partition);
            page.group_offset(&GroupOffsetSample { group, topic, partition, committed, high_watermark });
        });
    }

    fn high_watermark(&self, topic: &str, partition: PartitionIndex) -> Option<Offset> {
        let partition = self.broker.partitions.partition(topic, partition)?;
        partition.view().ok().map(|view| Partition::high_watermark(&view))
    }

    fn cluster(&self, page: &mut Page, image: &Image) {
        let address = |broker: &crate::metadata::BrokerRegistration| {
            broker.endpoints.first().map_or_else(String::new, |endpoint| format!("{}:{}", endpoint.host, endpoint.port))
        };
        let addresses: Vec<(i32, String)> = image.live_brokers().map(|broker| (broker.id, address(broker))).collect();
        let states = || image.topics().flat_map(|topic| &topic.partitions);
        page.cluster(&ClusterSample {
            brokers: addresses.iter().map(|(id, address)| (*id, address.as_str())).collect(),
            fenced_brokers: image.brokers().filter(|broker| broker.fenced).count(),
            is_controller: image.controller_id == self.broker.options.node_id,
            topics: image.topic_count(),
            partitions: image.partition_count(),
            partitions_without_leader: states().filter(|state| !state.has_leader()).count(),
            leaders_not_preferred: states().filter(|state| state.replicas.first() != Some(&state.leader)).count(),
            metadata_offset: u64::try_from(image.offset).unwrap_or(0),
        });
    }

    fn log_dir(&self, page: &mut Page) {
        let partitions = &self.broker.partitions;
        let space = partitions.disk().space(partitions.log_dir()).ok();
        page.log_dir(&LogDirSample {
            dir: &partitions.log_dir().display().to_string(),
            offline: partitions.failure().is_some(),
            space_bytes: space.map(|space| (space.free_bytes, space.total_bytes)),
        });
    }
}

impl ScrapeSource for BrokerSource {
    fn scrape(&self, page: &mut Page) {
        let image = self.broker.image();
        self.cluster(page, &image);
        self.partitions(page, &image);
        self.groups(page);
        self.log_dir(page);
    }
}
