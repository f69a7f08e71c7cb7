//! Carries every new image to the parts of this node that act on it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

use crate::api::Broker;
use crate::base::{BrokerId, LeaderEpoch, PartitionIndex};
use crate::host::task;
use crate::metadata::Image;
use crate::server::offsets_log::TOPIC as OFFSETS_TOPIC;

/// Begins behind `before`, which the parts know already.
pub async fn follow_metadata(broker: Arc<Broker>, before: Arc<Image>, mut stopping: watch::Receiver<bool>) {
    let mut images = broker.controller.quorum().watch();
    let mut before = before;
    loop {
        let image = images.borrow_and_update().clone();
        if image.offset != before.offset {
            act(&broker, &before, &image).await;
            before = image;
        }
        tokio::select! {
            _ = stopping.wait_for(|stop| *stop) => return,
            changed = images.changed() => if changed.is_err() { return },
        }
    }
}

async fn act(broker: &Arc<Broker>, before: &Image, image: &Image) {
    let configs_changed = before.config_resources().ne(image.config_resources());
    broker.partitions.apply(image, configs_changed);
    let gone: Vec<_> = before
        .topics()
        .filter(|topic| image.topic_id(&topic.name) != Some(topic.id))
        .map(|topic| (topic.name.clone(), topic.id))
        .collect();
    if !gone.is_empty() {
        broker.groups.topics_deleted(&gone);
    }
    move_groups(broker, before, image).await;
    broker.partitions.note_applied(image.offset);
}

/// Loads and unloads the groups of those partitions of `__consumer_offsets` whose leadership came or went. One that went and came back
/// between two looks has another epoch, and records that this node has not seen.
async fn move_groups(broker: &Arc<Broker>, before: &Image, image: &Image) {
    let node_id = broker.options.node_id;
    let (had, has) = (led(before, node_id), led(image, node_id));
    for (lost, _) in had.iter().filter(|(partition, epoch)| has.get(*partition) != Some(*epoch)) {
        broker.groups.unload(*lost);
    }
    let come = has.iter().filter(|(partition, epoch)| had.get(*partition) != Some(*epoch));
    let loads: Vec<_> = come.map(|(partition, _)| task::spawn(broker.groups.clone().load(*partition))).collect();
    // A new topic is loaded in no time, and whoever asked for it finds its coordinators ready; others are told that it is being loaded.
    if before.topic(OFFSETS_TOPIC).is_none() {
        for load in loads {
            let _ = load.await;
        }
    } else if !loads.is_empty() {
        tokio::task::yield_now().await;
    }
}

/// Partitions of `__consumer_offsets` that this node leads, with their leader epochs.
pub fn led(image: &Image, node_id: BrokerId) -> BTreeMap<PartitionIndex, LeaderEpoch> {
    let topic = image.topic(OFFSETS_TOPIC);
    let partitions = topic.iter().flat_map(|topic| topic.indexed());
    partitions.filter(|(_, state)| state.leader == node_id).map(|(index, state)| (index, state.leader_epoch)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::TopicId;
    use crate::metadata::{MetadataRecord, PartitionState};

    fn image(leaders: &[(BrokerId, LeaderEpoch)]) -> Image {
        let state = |(leader, leader_epoch): &(BrokerId, LeaderEpoch)| PartitionState {
            leader: *leader,
            leader_epoch: *leader_epoch,
            ..PartitionState::new(vec![1, 2], vec![])
        };
        let partitions = leaders.iter().map(state).collect();
        let id = TopicId::from_bytes([1; 16]);
        let mut image = Image::empty();
        image.apply(0, &MetadataRecord::Topic { id, name: OFFSETS_TOPIC.into(), partitions }).unwrap();
        image
    }

    #[test]
    fn a_leadership_that_went_and_came_back_is_another_one() {
        assert_eq!(led(&image(&[(1, 3), (2, 0), (1, 0)]), 1), BTreeMap::from([(0, 3), (2, 0)]));
        assert_ne!(led(&image(&[(1, 3)]), 1), led(&image(&[(1, 5)]), 1));
        assert_eq!(led(&Image::empty(), 1), BTreeMap::new());
    }
}
