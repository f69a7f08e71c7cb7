//! The logs on this broker, with what the image says of their replicas.

use crate::base::{BrokerId, Offset, PartitionIndex};
use crate::log::LogView;
use crate::metadata::{Image, PartitionState};
use crate::replica::{Partitions, TopicReplicas};
use crate::telemetry::Page;
use crate::telemetry::samples::{InSyncSample, LogDirSample, PartitionSample};

pub fn write(partitions: &Partitions, image: &Image, node_id: BrokerId, page: &mut Page) {
    page.no_partitions();
    let offline = partitions.failure().is_some();
    let mut topics = partitions.topics();
    topics.sort_by(|a, b| a.name.cmp(&b.name));
    for topic in topics {
        let Some(cluster_topic) = image.topic_by_id(topic.id) else {
            continue;
        };
        for (index, state) in cluster_topic.indexed() {
            let led_here = state.leader == node_id;
            // A scrape opens no logs: the housekeeper does, at its own pace.
            let partition = topic.partition(index);
            match partition.map(|partition| (partition, partition.view_if_open().filter(|_| !offline))) {
                Some((partition, Some(view))) => {
                    let high_watermark = partition.readable_below(&view);
                    page.partition(&sample(&topic, index, &view, high_watermark, state, led_here));
                }
                Some((_, None)) => {
                    page.partition_without_log(led_here.then(|| in_sync(&topic, state)).as_ref(), offline);
                }
                None => {}
            }
        }
    }
    let dir = partitions.log_dir();
    let space = partitions.disk().space(dir).ok();
    page.log_dir(&LogDirSample {
        dir: &dir.to_string_lossy(),
        offline,
        space_bytes: space.map(|space| (space.free_bytes, space.total_bytes)),
    });
}

fn in_sync(topic: &TopicReplicas, state: &PartitionState) -> InSyncSample {
    let (replicas, in_sync) = (state.replicas.len(), state.isr.len());
    // More than there are is never asked for.
    let min_in_sync = usize::try_from(topic.config.min_insync_replicas).unwrap_or(0).min(replicas);
    InSyncSample { replicas, in_sync, min_in_sync }
}

fn sample<'a>(
    topic: &'a TopicReplicas,
    partition: PartitionIndex,
    view: &LogView,
    high_watermark: Offset,
    state: &PartitionState,
    led_here: bool,
) -> PartitionSample<'a> {
    let InSyncSample { replicas, in_sync, min_in_sync } = in_sync(topic, state);
    PartitionSample {
        topic: &topic.name,
        partition,
        size_bytes: view.size_bytes(),
        segments: view.segments.len(),
        log_start_offset: view.log_start_offset,
        log_end_offset: view.log_end_offset,
        high_watermark,
        leader: state.leader,
        led_here,
        leader_is_preferred: state.replicas.first() == Some(&state.leader),
        replicas,
        in_sync,
        min_in_sync,
    }
}
