//! The immutable picture of the cluster. Cloning costs a few reference counts however many partitions there are; look-ups by
//! name and by id are logarithmic; iteration is in order, so that two nodes and two runs say the same things in the same order.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;

use super::{BrokerRegistration, ConfigResource, MetadataRecord, PartitionState, Topic, topic_name};
use crate::base::ids::NO_BROKER;
use crate::base::{BrokerId, PartitionIndex, ProducerId, TopicId};

/// [`Image::offset`] before the first record.
pub const NO_METADATA: i64 = -1;

/// The configs set on one resource, by name.
pub type ConfigOverrides = BTreeMap<String, String>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Empty until the first record.
    pub cluster_id: Arc<str>,
    /// Offset in the metadata log of the last record in this image; [`NO_METADATA`] before the first.
    pub offset: i64,
    /// The active controller, as the quorum sees it; not part of the records.
    pub controller_id: BrokerId,
    pub(super) brokers: OrdMap<BrokerId, Arc<BrokerRegistration>>,
    pub(super) topics: OrdMap<TopicId, Arc<Topic>>,
    pub(super) topic_ids: OrdMap<Arc<str>, TopicId>,
    /// Names by their [`topic_name::collision_key`].
    pub(super) collisions: OrdMap<Arc<str>, Arc<str>>,
    pub(super) configs: OrdMap<Arc<ConfigResource>, Arc<ConfigOverrides>>,
    pub(super) features: OrdMap<Arc<str>, i16>,
    /// The first producer id that nobody has yet.
    pub next_producer_id: ProducerId,
    /// Partitions of all topics.
    pub(super) partition_count: usize,
}

impl Default for Image {
    fn default() -> Image {
        Image::empty()
    }
}

impl Image {
    pub fn empty() -> Image {
        Image {
            cluster_id: "".into(),
            offset: NO_METADATA,
            controller_id: NO_BROKER,
            brokers: OrdMap::new(),
            topics: OrdMap::new(),
            topic_ids: OrdMap::new(),
            collisions: OrdMap::new(),
            configs: OrdMap::new(),
            features: OrdMap::new(),
            next_producer_id: 0,
            partition_count: 0,
        }
    }

    pub fn topic(&self, name: &str) -> Option<&Arc<Topic>> {
        self.topics.get(self.topic_ids.get(name)?)
    }

    pub fn topic_by_id(&self, id: TopicId) -> Option<&Arc<Topic>> {
        self.topics.get(&id)
    }

    pub fn topic_id(&self, name: &str) -> Option<TopicId> {
        self.topic_ids.get(name).copied()
    }

    pub fn topic_name(&self, id: TopicId) -> Option<&Arc<str>> {
        self.topics.get(&id).map(|topic| &topic.name)
    }

    pub fn partition(&self, name: &str, index: PartitionIndex) -> Option<&Arc<PartitionState>> {
        self.topic(name)?.partition(index)
    }

    /// Topics in the order of their names.
    pub fn topics(&self) -> impl Iterator<Item = &Arc<Topic>> {
        self.topic_ids.values().filter_map(|id| self.topics.get(id))
    }

    /// Topics whose name is `from` or greater, in the order of their names.
    pub fn topics_from<'a>(&'a self, from: &'a str) -> impl Iterator<Item = &'a Arc<Topic>> {
        self.topic_ids
            .range::<_, str>((Bound::Included(from), Bound::Unbounded))
            .filter_map(|(_, id)| self.topics.get(id))
    }

    pub fn topic_count(&self) -> usize {
        self.topics.len()
    }

    pub fn partition_count(&self) -> usize {
        self.partition_count
    }

    /// A topic whose name differs from `name` only by dots and underscores, or is `name` itself.
    pub fn colliding_topic(&self, name: &str) -> Option<&Arc<str>> {
        self.collisions.get(topic_name::collision_key(name).as_str())
    }

    pub fn broker(&self, id: BrokerId) -> Option<&Arc<BrokerRegistration>> {
        self.brokers.get(&id)
    }

    /// Registered brokers by id, fenced ones included.
    pub fn brokers(&self) -> impl Iterator<Item = &Arc<BrokerRegistration>> {
        self.brokers.values()
    }

    /// Brokers that may lead and be told to clients.
    pub fn live_brokers(&self) -> impl Iterator<Item = &Arc<BrokerRegistration>> {
        self.brokers.values().filter(|broker| !broker.fenced)
    }

    pub fn is_live(&self, id: BrokerId) -> bool {
        self.brokers.get(&id).is_some_and(|broker| !broker.fenced)
    }

    /// Whether a broker may lead and be in in-sync sets: neither fenced nor about to stop.
    pub fn is_active(&self, id: BrokerId) -> bool {
        self.brokers.get(&id).is_some_and(|broker| broker.is_active())
    }

    /// Every partition with its topic and index, topics in the order of their names. A walk over the whole image: for decisions
    /// about many partitions, not for requests about one.
    pub fn partitions(&self) -> impl Iterator<Item = (&Arc<Topic>, PartitionIndex, &Arc<PartitionState>)> {
        self.topics().flat_map(|topic| topic.indexed().map(move |(index, state)| (topic, index, state)))
    }

    /// Whether a broker leads anything.
    pub fn leads_something(&self, id: BrokerId) -> bool {
        self.topics.values().any(|topic| topic.partitions.iter().any(|state| state.leader == id))
    }

    /// What is set on a resource; `None` when nothing is.
    pub fn configs(&self, resource: &ConfigResource) -> Option<&Arc<ConfigOverrides>> {
        self.configs.get(resource)
    }

    /// Every resource with something set on it, in order.
    pub fn config_resources(&self) -> impl Iterator<Item = (&ConfigResource, &Arc<ConfigOverrides>)> {
        self.configs.iter().map(|(resource, values)| (&**resource, values))
    }

    /// The finalized level, 0 when the feature is not on.
    pub fn feature(&self, name: &str) -> i16 {
        self.features.get(name).copied().unwrap_or(0)
    }

    /// Finalized features with their levels, by name.
    pub fn features(&self) -> impl Iterator<Item = (&Arc<str>, i16)> {
        self.features.iter().map(|(name, level)| (name, *level))
    }

    /// The maps themselves, for comparing two images without walking what they share.
    pub fn features_by_name(&self) -> &OrdMap<Arc<str>, i16> {
        &self.features
    }

    pub fn brokers_by_id(&self) -> &OrdMap<BrokerId, Arc<BrokerRegistration>> {
        &self.brokers
    }

    pub fn topics_by_id(&self) -> &OrdMap<TopicId, Arc<Topic>> {
        &self.topics
    }

    pub fn configs_by_resource(&self) -> &OrdMap<Arc<ConfigResource>, Arc<ConfigOverrides>> {
        &self.configs
    }

    /// The records that make this image out of an empty one, in an order that applies.
    pub fn to_records(&self) -> Vec<MetadataRecord> {
        let mut records = Vec::with_capacity(self.topics.len() + self.brokers.len() + self.configs.len() + 16);
        if !self.cluster_id.is_empty() {
            records.push(MetadataRecord::Cluster { cluster_id: self.cluster_id.to_string() });
        }
        records.extend(self.features().map(|(name, level)| MetadataRecord::Feature { name: name.to_string(), level }));
        records.extend(self.brokers().map(|broker| MetadataRecord::Broker((**broker).clone())));
        records.extend(self.topics().map(|topic| topic.to_record()));
        for (resource, values) in self.config_resources() {
            records.extend(values.iter().map(|(name, value)| MetadataRecord::Config {
                resource: resource.clone(),
                name: name.clone(),
                value: Some(value.clone()),
            }));
        }
        if self.next_producer_id > 0 {
            records.push(MetadataRecord::ProducerIds { broker: NO_BROKER, next: self.next_producer_id });
        }
        records
    }
}
