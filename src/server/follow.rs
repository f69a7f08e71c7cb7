//! Carries every new image to the parts of this node that act on it.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::watch;

use crate::api::Broker;
use crate::base::{BrokerId, PartitionIndex};
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

/// Loads and unloads the groups of those partitions of `__consumer_offsets` whose leadership came or went.
async fn move_groups(broker: &Arc<Broker>, before: &Image, image: &Image) {
    let node_id = broker.options.node_id;
    let (had, has) = (led(before, node_id), led(image, node_id));
    for lost in had.difference(&has) {
        broker.groups.unload(*lost);
    }
    let loads: Vec<_> =
        has.difference(&had).map(|partition| tokio::spawn(broker.groups.clone().load(*partition))).collect();
    // A new topic is loaded in no time, and whoever asked for it finds its coordinators ready; others are told that it is being loaded.
    if before.topic(OFFSETS_TOPIC).is_none() {
        for load in loads {
            let _ = load.await;
        }
    } else if !loads.is_empty() {
        tokio::task::yield_now().await;
    }
}

/// Partitions of `__consumer_offsets` that this node leads.
pub fn led(image: &Image, node_id: BrokerId) -> BTreeSet<PartitionIndex> {
    let topic = image.topic(OFFSETS_TOPIC);
    let partitions = topic.iter().flat_map(|topic| topic.indexed());
    partitions.filter(|(_, state)| state.leader == node_id).map(|(index, _)| index).collect()
}
