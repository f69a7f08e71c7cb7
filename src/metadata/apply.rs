//! Applying records to an image. A record about something that is not there (any more) changes nothing, so that replaying a
//! stretch of the log twice is harmless; a record that contradicts the image is an error, because then the log is not ours.

use std::sync::Arc;

use super::image::ConfigOverrides;
use super::{
    BrokerRegistration, ConfigResource, Image, MetadataRecord, PartitionState, ResourceKind, Topic, topic_name,
};
use crate::base::{BrokerId, PartitionIndex, TopicId};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    #[error("the log makes topic {name} with id {new} while it exists with id {old}")]
    NameTaken { name: String, old: TopicId, new: TopicId },
    #[error("the log adds partition {first} to topic {name}, which has {count}")]
    PartitionGap { name: String, first: PartitionIndex, count: i32 },
    #[error("the log belongs to cluster {theirs}, this is cluster {ours}")]
    OtherCluster { ours: String, theirs: String },
}

impl Image {
    /// Makes the record's change. `offset` is where the record stands in the metadata log.
    pub fn apply(&mut self, offset: i64, record: &MetadataRecord) -> Result<(), ApplyError> {
        match record {
            MetadataRecord::Cluster { cluster_id } => self.set_cluster(cluster_id)?,
            MetadataRecord::Broker(registration) => self.set_broker(registration.clone()),
            MetadataRecord::BrokerFenced { id, fenced } => self.set_fenced(*id, *fenced),
            MetadataRecord::BrokerRemoved { id } => drop(self.brokers.remove(id)),
            MetadataRecord::Topic { id, name, partitions } => self.add_topic(*id, name, partitions)?,
            MetadataRecord::PartitionsAdded { topic_id, first, partitions } => {
                self.add_partitions(*topic_id, *first, partitions)?;
            }
            MetadataRecord::Partition { topic_id, partition, state } => {
                self.change_partition(*topic_id, *partition, |old| *old = state.clone());
            }
            MetadataRecord::LeadershipRenewed { leader } => self.renew_leadership(*leader),
            MetadataRecord::TopicRemoved { id } => self.remove_topic(*id),
            MetadataRecord::Config { resource, name, value } => self.set_config(resource, name, value.as_deref()),
            MetadataRecord::ProducerIds { next, .. } => self.next_producer_id = self.next_producer_id.max(*next),
            MetadataRecord::Feature { name, level } => self.set_feature(name, *level),
            MetadataRecord::ReplicaDirectory { topic_id, partition, broker, directory } => {
                self.change_partition(*topic_id, *partition, |state| set_directory(state, *broker, *directory));
            }
        }
        self.offset = offset;
        Ok(())
    }

    fn set_cluster(&mut self, cluster_id: &str) -> Result<(), ApplyError> {
        if !self.cluster_id.is_empty() && *self.cluster_id != *cluster_id {
            return Err(ApplyError::OtherCluster { ours: self.cluster_id.to_string(), theirs: cluster_id.to_owned() });
        }
        self.cluster_id = cluster_id.into();
        Ok(())
    }

    fn set_broker(&mut self, registration: BrokerRegistration) {
        self.brokers.insert(registration.id, Arc::new(registration));
    }

    fn set_fenced(&mut self, id: BrokerId, fenced: bool) {
        if let Some(broker) = self.brokers.get_mut(&id) {
            Arc::make_mut(broker).fenced = fenced;
        }
    }

    fn add_topic(&mut self, id: TopicId, name: &str, partitions: &[PartitionState]) -> Result<(), ApplyError> {
        match self.topic_id(name) {
            Some(old) if old != id => return Err(ApplyError::NameTaken { name: name.to_owned(), old, new: id }),
            Some(_) => self.forget_topic(id),
            None => {}
        }
        let name: Arc<str> = name.into();
        let partitions: Vec<_> = partitions.iter().map(|state| Arc::new(state.clone())).collect();
        self.partition_count += partitions.len();
        self.topic_ids.insert(name.clone(), id);
        self.collisions.insert(topic_name::collision_key(&name).into(), name.clone());
        self.topics.insert(id, Arc::new(Topic { name, id, partitions }));
        Ok(())
    }

    fn add_partitions(&mut self, id: TopicId, first: i32, added: &[PartitionState]) -> Result<(), ApplyError> {
        let Some(topic) = self.topics.get_mut(&id) else { return Ok(()) };
        let topic = Arc::make_mut(topic);
        let count = topic.partition_count();
        if first < 0 || first > count {
            return Err(ApplyError::PartitionGap { name: topic.name.to_string(), first, count });
        }
        // Those that are there already come from a stretch of the log that is applied a second time.
        let known = usize::try_from(count - first).unwrap_or(0);
        let new: Vec<_> = added.iter().skip(known).map(|state| Arc::new(state.clone())).collect();
        self.partition_count += new.len();
        topic.partitions.extend(new);
        Ok(())
    }

    fn change_partition(&mut self, id: TopicId, index: PartitionIndex, change: impl FnOnce(&mut PartitionState)) {
        let Ok(index) = usize::try_from(index) else { return };
        if let Some(topic) = self.topics.get_mut(&id)
            && index < topic.partitions.len()
            && let Some(state) = Arc::make_mut(topic).partitions.get_mut(index)
        {
            change(Arc::make_mut(state));
        }
    }

    fn renew_leadership(&mut self, leader: BrokerId) {
        let led: Vec<TopicId> = self
            .topics
            .values()
            .filter(|topic| topic.partitions.iter().any(|state| state.leader == leader))
            .map(|topic| topic.id)
            .collect();
        for id in led {
            let Some(topic) = self.topics.get_mut(&id) else { continue };
            for state in &mut Arc::make_mut(topic).partitions {
                if state.leader == leader {
                    let state = Arc::make_mut(state);
                    state.leader_epoch = state.leader_epoch.saturating_add(1);
                    state.partition_epoch = state.partition_epoch.saturating_add(1);
                }
            }
        }
    }

    fn remove_topic(&mut self, id: TopicId) {
        let Some(topic) = self.topics.get(&id).cloned() else { return };
        self.forget_topic(id);
        self.configs.remove(&ConfigResource::new(ResourceKind::Topic, &*topic.name));
    }

    fn forget_topic(&mut self, id: TopicId) {
        if let Some(topic) = self.topics.remove(&id) {
            self.partition_count -= topic.partitions.len();
            self.topic_ids.remove(&*topic.name);
            self.collisions.remove(topic_name::collision_key(&topic.name).as_str());
        }
    }

    fn set_config(&mut self, resource: &ConfigResource, name: &str, value: Option<&str>) {
        let mut values = self.configs.remove(resource).unwrap_or_default();
        let changed: &mut ConfigOverrides = Arc::make_mut(&mut values);
        match value {
            Some(value) => drop(changed.insert(name.to_owned(), value.to_owned())),
            None => drop(changed.remove(name)),
        }
        if !values.is_empty() {
            self.configs.insert(Arc::new(resource.clone()), values);
        }
    }

    fn set_feature(&mut self, name: &str, level: i16) {
        if level > 0 {
            self.features.insert(name.into(), level);
        } else {
            self.features.remove(name);
        }
    }
}

fn set_directory(state: &mut PartitionState, broker: BrokerId, directory: uuid::Uuid) {
    let Some(at) = state.replicas.iter().position(|replica| *replica == broker) else { return };
    if state.directories.len() < state.replicas.len() {
        state.directories.resize(state.replicas.len(), uuid::Uuid::nil());
    }
    if let Some(slot) = state.directories.get_mut(at) {
        *slot = directory;
    }
}
