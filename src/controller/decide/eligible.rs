//! What a change of configs or features means for eligible leader replicas (KIP-966). They are eligible because the high watermark
//! stood still since they left; when a lower minimum lets it move again, they are not any more.

use super::features::ELIGIBLE_LEADER_REPLICAS;
use super::partition_change::Change;
use super::rules::Rules;
use crate::metadata::{Image, MetadataRecord, ResourceKind};

/// The partition changes that must be kept together with `records`. `image` is the one with the records in it.
pub fn consequences(image: &Image, rules: &Rules<'_>, records: &[MetadataRecord]) -> Vec<MetadataRecord> {
    if !records.iter().any(concerns_eligible) {
        return Vec::new();
    }
    let mut changes = Vec::new();
    for topic in image.topics().filter(|topic| topic.partitions.iter().any(|state| !state.elr.is_empty())) {
        let topic_rules = rules.of(image, topic);
        for (index, state) in topic.indexed().filter(|(_, state)| !state.elr.is_empty()) {
            // The leader stays whoever it is: this is not about brokers.
            let as_it_is = |id| id == state.leader;
            let change = Change::of(state, topic_rules, &as_it_is).build();
            changes.extend(change.map(|state| super::elections::record(topic, index, state)));
        }
    }
    changes
}

fn concerns_eligible(record: &MetadataRecord) -> bool {
    match record {
        MetadataRecord::Config { resource, name, .. } => {
            matches!(resource.kind, ResourceKind::Topic | ResourceKind::Broker) && name == "min.insync.replicas"
        }
        MetadataRecord::Feature { name, .. } => name == ELIGIBLE_LEADER_REPLICAS,
        _ => false,
    }
}
