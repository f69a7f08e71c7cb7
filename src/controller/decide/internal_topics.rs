//! The topics in which coordinators keep their state. They start with the replication that the cluster can give now, so that a
//! single node works with no settings.

use super::create_topics::{Creation, NewTopic, TopicOutcome, create_topics};
use super::elections::{may_lead, record};
use super::partition_change::Change;
use super::placement::place;
use super::reassignments::{moved_to, with_directories};
use super::rules::Rules;
use super::{Decision, TopicDefaults};
use crate::base::{BrokerId, TopicId};
use crate::metadata::config::BrokerLayers;
use crate::metadata::{ConfigResource, Image, MetadataRecord, Topic, topic_name};

const MIN_ISR: &str = "min.insync.replicas";

/// How an internal topic is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InternalTopic {
    pub name: String,
    pub partitions: i32,
    /// Lowered to the number of live brokers.
    pub replication_factor: i16,
    pub configs: Vec<(String, String)>,
}

impl InternalTopic {
    /// `__consumer_offsets`: compacted, its segments small, its batches as the coordinator writes them.
    pub fn consumer_offsets(partitions: i32, replication_factor: i16, segment_bytes: i32) -> InternalTopic {
        InternalTopic {
            name: topic_name::CONSUMER_OFFSETS.to_owned(),
            partitions,
            replication_factor,
            configs: pairs(&[
                ("cleanup.policy", "compact"),
                ("compression.type", "producer"),
                ("segment.bytes", &segment_bytes.to_string()),
            ]),
        }
    }

    /// `__transaction_state`: compacted, uncompressed, never led by a replica that missed something.
    pub fn transaction_state(
        partitions: i32,
        replication_factor: i16,
        segment_bytes: i32,
        min_isr: i32,
    ) -> InternalTopic {
        InternalTopic {
            name: topic_name::TRANSACTION_STATE.to_owned(),
            partitions,
            replication_factor,
            configs: pairs(&[
                ("cleanup.policy", "compact"),
                ("compression.type", "uncompressed"),
                ("min.insync.replicas", &min_isr.max(1).to_string()),
                ("segment.bytes", &segment_bytes.to_string()),
                ("unclean.leader.election.enable", "false"),
            ]),
        }
    }

    /// `__share_group_state`: deleted by the coordinator itself, not by age.
    pub fn share_group_state(
        partitions: i32,
        replication_factor: i16,
        segment_bytes: i32,
        min_isr: i32,
    ) -> InternalTopic {
        InternalTopic {
            name: topic_name::SHARE_GROUP_STATE.to_owned(),
            partitions,
            replication_factor,
            configs: pairs(&[
                ("cleanup.policy", "delete"),
                ("compression.type", "producer"),
                ("min.insync.replicas", &min_isr.max(1).to_string()),
                ("retention.ms", "-1"),
                ("segment.bytes", &segment_bytes.to_string()),
            ]),
        }
    }
}

fn pairs(entries: &[(&str, &str)]) -> Vec<(String, String)> {
    entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Makes the topic when it is not there. The reply is `None` when it was.
pub fn ensure_internal_topic(
    image: &Image,
    wanted: &InternalTopic,
    below: BrokerLayers<'_>,
    id: TopicId,
    start: usize,
) -> Decision<Option<TopicOutcome>> {
    if image.topic(&wanted.name).is_some() {
        return Decision::unchanged(None);
    }
    let live = i16::try_from(image.brokers().filter(|broker| broker.is_active()).count()).unwrap_or(i16::MAX);
    let replication_factor = wanted.replication_factor.clamp(1, live.max(1));
    // More in-sync replicas than there are replicas would refuse every write.
    let in_reach = |(name, value): &(String, String)| match (name.as_str(), value.parse::<i16>()) {
        ("min.insync.replicas", Ok(count)) => (name.clone(), Some(count.min(replication_factor).to_string())),
        _ => (name.clone(), Some(value.clone())),
    };
    let topic = NewTopic {
        name: wanted.name.clone(),
        partitions: wanted.partitions,
        replication_factor,
        assignments: Vec::new(),
        configs: wanted.configs.iter().map(in_reach).collect(),
    };
    let defaults = TopicDefaults { partitions: wanted.partitions, replication_factor };
    let with = Creation { defaults, below, fresh_ids: &[id], start };
    let decision = create_topics(image, std::slice::from_ref(&topic), &with);
    Decision { records: decision.records, reply: decision.reply.into_iter().next() }
}

/// Brings an internal topic closer to the replication it shall have, now that more brokers are there: a reassignment that adds
/// replicas, and once those are in sync the in-sync minimum that was out of reach before. Nothing while an earlier step is under way.
pub fn raise_internal_topic(image: &Image, rules: &Rules<'_>, wanted: &InternalTopic) -> Decision<()> {
    let Some(topic) = image.topic(&wanted.name) else { return Decision::unchanged(()) };
    if topic.partitions.iter().any(|state| state.is_reassigning()) {
        return Decision::unchanged(());
    }
    let active = image.brokers().filter(|broker| broker.is_active()).count();
    let factor = usize::try_from(wanted.replication_factor).unwrap_or(1).min(active);
    let records = more_replicas(image, rules, topic, factor);
    if !records.is_empty() {
        return Decision { records, reply: () };
    }
    Decision { records: min_isr_in_reach(image, topic, wanted).into_iter().collect(), reply: () }
}

fn more_replicas(image: &Image, rules: &Rules<'_>, topic: &Topic, factor: usize) -> Vec<MetadataRecord> {
    let lacks = |replicas: &[BrokerId]| replicas.len() < factor;
    if !topic.partitions.iter().any(|state| lacks(&state.replicas)) {
        return Vec::new();
    }
    let factor_asked = i16::try_from(factor).unwrap_or(i16::MAX);
    let Ok(placed) = place(image, topic.partitions.len(), factor_asked, 0) else { return Vec::new() };
    let topic_rules = rules.of(image, topic);
    let mut records = Vec::new();
    for ((index, state), ideal) in topic.indexed().zip(placed).filter(|((_, state), _)| lacks(&state.replicas)) {
        let target = target(&state.replicas, ideal, factor);
        let acceptable = may_lead(image, state);
        let change = moved_to(Change::of(state, topic_rules, &acceptable), state, &target);
        records.extend(with_directories(change, image, state).build().map(|state| record(topic, index, state)));
    }
    records
}

/// As a new partition would be placed, leaders spread and all; but what holds the data now stays.
fn target(current: &[BrokerId], ideal: Vec<BrokerId>, factor: usize) -> Vec<BrokerId> {
    if current.iter().all(|id| ideal.contains(id)) {
        return ideal;
    }
    let others = ideal.into_iter().filter(|id| !current.contains(id));
    current.iter().copied().chain(others).take(factor.max(current.len())).collect()
}

/// The in-sync minimum was lowered when the topic was made on fewer brokers.
fn min_isr_in_reach(image: &Image, topic: &Topic, wanted: &InternalTopic) -> Option<MetadataRecord> {
    let (_, value) = wanted.configs.iter().find(|(name, _)| name == MIN_ISR)?;
    let resource = ConfigResource::topic(&*topic.name);
    let set: i16 = image.configs(&resource)?.get(MIN_ISR)?.parse().ok()?;
    let reachable = value.parse::<i16>().ok()?.min(topic.replication_factor());
    (set < reachable).then(|| MetadataRecord::Config {
        resource,
        name: MIN_ISR.to_owned(),
        value: Some(reachable.to_string()),
    })
}
