//! Looks at every node every few milliseconds: one leader in each epoch, high watermarks that never go back under one leader, metadata
//! that is the same everywhere and never goes back.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::api::Broker;
use crate::base::ids::NO_BROKER;
use crate::base::{BrokerId, LeaderEpoch, Offset, PartitionIndex, TopicId};
use crate::host::task;
use crate::metadata::{Image, PartitionState, Topic};
use crate::replica::Partition;
use crate::sim::cluster::{Cluster, NAMES};

const PERIOD: Duration = Duration::from_millis(15);

/// A partition in one leader epoch.
type Reign = (TopicId, PartitionIndex, LeaderEpoch);

/// One run of a node's process.
type Run = (usize, u64);

pub struct Observer {
    cluster: Rc<Cluster>,
    /// Who leads, by the metadata.
    appointed: BTreeMap<Reign, BrokerId>,
    /// Who acts as leader.
    acting: BTreeMap<Reign, usize>,
    high_watermarks: BTreeMap<(Run, Reign), Offset>,
    /// Images by their offset.
    images: BTreeMap<i64, Arc<Image>>,
    newest: BTreeMap<Run, Arc<Image>>,
    /// The newest state of each partition that any node knew.
    partition_epochs: BTreeMap<(TopicId, PartitionIndex), i32>,
}

impl Observer {
    pub fn new(cluster: Rc<Cluster>) -> Observer {
        Observer {
            cluster,
            appointed: BTreeMap::new(),
            acting: BTreeMap::new(),
            high_watermarks: BTreeMap::new(),
            images: BTreeMap::new(),
            newest: BTreeMap::new(),
            partition_epochs: BTreeMap::new(),
        }
    }

    /// Never ends.
    pub async fn run(mut self) {
        let cluster = self.cluster.clone();
        loop {
            for (at, broker) in cluster.brokers() {
                let run = (at, cluster.history.life_of(at));
                self.look_at_metadata(run, &broker);
                self.look_at_partitions(run, &broker);
            }
            task::sleep(PERIOD).await;
        }
    }

    fn look_at_metadata(&mut self, run: Run, broker: &Broker) {
        let image = broker.image();
        let before = self.newest.insert(run, image.clone());
        if before.as_ref().is_some_and(|before| Arc::ptr_eq(before, &image)) {
            return;
        }
        let history = self.cluster.history.clone();
        let name = NAMES[run.0];
        if let Some(before) = before {
            if before.offset > image.offset {
                history.violated(format!("metadata of {name} went back from {} to {}", before.offset, image.offset));
            }
            self.compare_epochs(name, &before, &image);
        }
        history.note(&format!("{name} has metadata {}", image.offset));
        match self.images.get(&image.offset) {
            Some(known) if known.to_records() != image.to_records() => {
                history.violated(format!("metadata {} is another on {name} than it was elsewhere", image.offset));
            }
            Some(_) => {}
            None => drop(self.images.insert(image.offset, image.clone())),
        }
        for (topic, index, state) in image.partitions() {
            self.note_state(topic, index, state);
            if state.leader == NO_BROKER {
                continue;
            }
            let reign = (topic.id, index, state.leader_epoch);
            match self.appointed.insert(reign, state.leader) {
                None => {
                    history.count("elections");
                    history.note(&format!(
                        "{}-{index} is led by {} in epoch {}",
                        topic.name, state.leader, state.leader_epoch
                    ));
                }
                Some(other) if other != state.leader => history.violated(format!(
                    "two-leaders-one-epoch: {}-{index} epoch {} is led by {other} and by {}",
                    topic.name, state.leader_epoch, state.leader
                )),
                Some(_) => {}
            }
        }
    }

    /// A partition's epochs go on with the metadata.
    fn compare_epochs(&self, name: &str, before: &Image, image: &Image) {
        for (topic, index, state) in image.partitions() {
            let Some(known) = before.topic_by_id(topic.id).and_then(|topic| topic.partition(index)) else { continue };
            let epochs = |state: &PartitionState| (state.leader_epoch, state.partition_epoch);
            let is_same = known.leader == state.leader && known.isr == state.isr;
            let goes_on = known.leader_epoch <= state.leader_epoch && known.partition_epoch < state.partition_epoch;
            let stays = is_same && epochs(known) == epochs(state);
            if !stays && !goes_on {
                self.cluster.history.violated(format!(
                    "epochs-went-back: {}-{index} was {known:?} and is {state:?} on {name} at {}",
                    topic.name, image.offset
                ));
            }
        }
    }

    fn note_state(&mut self, topic: &Topic, index: PartitionIndex, state: &PartitionState) {
        let known = self.partition_epochs.entry((topic.id, index)).or_insert(-1);
        if state.partition_epoch > *known {
            *known = state.partition_epoch;
            let PartitionState { leader, leader_epoch, isr, elr, partition_epoch, .. } = state;
            self.cluster.history.note(&format!(
                "{}-{index} state {partition_epoch}: leader {leader} epoch {leader_epoch} isr {isr:?} elr {elr:?}",
                topic.name
            ));
        }
    }

    fn look_at_partitions(&mut self, run: Run, broker: &Broker) {
        for topic in broker.partitions.topics() {
            for partition in topic.partitions.iter().flatten().filter(|partition| partition.is_leader()) {
                self.look_at_leader(run, partition);
            }
        }
    }

    fn look_at_leader(&mut self, run: Run, partition: &Partition) {
        let epoch = partition.leader_epoch();
        let reign = (partition.identity.topic_id, partition.identity.topic_partition.partition, epoch);
        let (history, name) = (&self.cluster.history, NAMES[run.0]);
        let place = &partition.identity.topic_partition;
        if let Some(other) = self.acting.insert(reign, run.0).filter(|other| *other != run.0) {
            let other = NAMES[other];
            history.violated(format!("two-leaders-one-epoch: {place} epoch {epoch} is led by {other} and by {name}"));
        }
        let Some(view) = partition.view_if_open() else { return };
        let high_watermark = partition.high_watermark();
        if high_watermark > view.log_end_offset && partition.leader_epoch() == epoch {
            let end = partition.view_if_open().map_or(0, |view| view.log_end_offset);
            if high_watermark > end {
                history.violated(format!("{place} on {name}: high watermark {high_watermark} is above the end {end}"));
            }
        }
        let before = self.high_watermarks.insert((run, reign), high_watermark);
        if let Some(before) = before.filter(|before| *before > high_watermark) {
            history.violated(format!(
                "hw-went-back-in-epoch: {place} on {name} in epoch {epoch}: from {before} to {high_watermark}"
            ));
        }
    }
}
