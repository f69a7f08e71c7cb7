//! Creating topics: each one of a request is judged by itself, so that a bad one spoils only its own name.

use std::collections::{BTreeMap, BTreeSet};

use super::placement::{check_manual, initial_state, place};
use super::{Decision, PARTITIONS_PER_REQUEST_MAX, Refusal, TopicDefaults, duplicates};
use crate::base::{BrokerId, ErrorCode, PartitionIndex, TopicId};
use crate::metadata::config::{BrokerLayers, validate_topic};
use crate::metadata::{ConfigOverrides, ConfigResource, Image, MetadataRecord, PartitionState, topic_name};

/// One topic as a client asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTopic {
    pub name: String,
    /// -1: the default, or as many as `assignments` has.
    pub partitions: i32,
    /// -1: the default, or as `assignments` says.
    pub replication_factor: i16,
    /// Replicas by partition, when the client places them itself.
    pub assignments: Vec<(PartitionIndex, Vec<BrokerId>)>,
    /// Names and values; a null value is refused by name.
    pub configs: Vec<(String, Option<String>)>,
}

impl NewTopic {
    /// A topic with the broker's defaults.
    pub fn with_defaults(name: impl Into<String>) -> NewTopic {
        NewTopic { name: name.into(), partitions: -1, replication_factor: -1, assignments: vec![], configs: vec![] }
    }
}

/// What a creation is decided with besides image and request.
pub struct Creation<'a> {
    pub defaults: TopicDefaults,
    /// What the new topics' configs fall back on.
    pub below: BrokerLayers<'a>,
    /// One id for each topic of the request, in its order.
    pub fresh_ids: &'a [TopicId],
    /// Where the placement begins.
    pub start: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedTopic {
    pub id: TopicId,
    pub partitions: i32,
    pub replication_factor: i16,
    pub configs: ConfigOverrides,
}

/// The outcome for one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicOutcome {
    pub name: String,
    pub result: Result<CreatedTopic, Refusal>,
}

/// Decides a CreateTopics request. The caller drops the records when the client only wants to know.
pub fn create_topics(image: &Image, topics: &[NewTopic], with: &Creation<'_>) -> Decision<Vec<TopicOutcome>> {
    let doubled = duplicates(topics.iter().map(|topic| &topic.name));
    let excessive = partitions_asked_for(topics, with.defaults) > PARTITIONS_PER_REQUEST_MAX;
    let mut decision = Decision::unchanged(Vec::with_capacity(topics.len()));
    let mut answered = BTreeSet::new();
    let mut names_taken = BTreeSet::new();
    for (at, topic) in topics.iter().enumerate() {
        let result = if doubled.contains(&topic.name) {
            Err(Refusal::new(ErrorCode::INVALID_REQUEST, "Duplicate topic name."))
        } else if excessive {
            Err(Refusal::new(ErrorCode::POLICY_VIOLATION, "Excessively large number of partitions per request."))
        } else {
            let id = with.fresh_ids.get(at).copied().unwrap_or_default();
            check_name(image, &topic.name, &mut names_taken).and_then(|()| create_one(image, topic, id, with))
        };
        if answered.insert(&topic.name) {
            let result = result.map(|(created, records)| {
                decision.records.extend(records);
                created
            });
            decision.reply.push(TopicOutcome { name: topic.name.clone(), result });
        }
    }
    decision
}

/// How many partitions the whole request asks for.
fn partitions_asked_for(topics: &[NewTopic], defaults: TopicDefaults) -> i64 {
    let of_one = |topic: &NewTopic| match (topic.assignments.len(), topic.partitions) {
        (0, -1) => i64::from(defaults.partitions),
        (0, count) => i64::from(count.max(0)),
        (assigned, _) => i64::try_from(assigned).unwrap_or(i64::MAX),
    };
    topics.iter().map(of_one).fold(0, i64::saturating_add)
}

fn check_name(image: &Image, name: &str, taken: &mut BTreeSet<String>) -> Result<(), Refusal> {
    if name == topic_name::CLUSTER_METADATA {
        let message = format!("Creation of internal topic {name} is prohibited.");
        return Err(Refusal::new(ErrorCode::INVALID_REQUEST, message));
    }
    topic_name::validate(name).map_err(|message| Refusal::new(ErrorCode::INVALID_TOPIC_EXCEPTION, message))?;
    if image.topic(name).is_some() {
        return Err(Refusal::new(ErrorCode::TOPIC_ALREADY_EXISTS, format!("Topic '{name}' already exists.")));
    }
    if let Some(other) = image.colliding_topic(name) {
        let message = format!("Topic '{name}' collides with existing topic: {other}");
        return Err(Refusal::new(ErrorCode::INVALID_TOPIC_EXCEPTION, message));
    }
    if !taken.insert(topic_name::collision_key(name)) {
        let message = format!("Topic '{name}' collides with another topic of this request");
        return Err(Refusal::new(ErrorCode::INVALID_TOPIC_EXCEPTION, message));
    }
    Ok(())
}

fn create_one(
    image: &Image,
    topic: &NewTopic,
    id: TopicId,
    with: &Creation<'_>,
) -> Result<(CreatedTopic, Vec<MetadataRecord>), Refusal> {
    let configs = check_configs(topic, &with.below)?;
    let partitions = place_partitions(image, topic, with)?;
    let created = CreatedTopic {
        id,
        partitions: i32::try_from(partitions.len()).unwrap_or(i32::MAX),
        replication_factor: partitions
            .first()
            .map_or(0, |first| i16::try_from(first.replicas.len()).unwrap_or(i16::MAX)),
        configs,
    };
    let mut records = vec![MetadataRecord::Topic { id, name: topic.name.clone(), partitions }];
    records.extend(created.configs.iter().map(|(name, value)| MetadataRecord::Config {
        resource: ConfigResource::topic(&topic.name),
        name: name.clone(),
        value: Some(value.clone()),
    }));
    Ok((created, records))
}

fn check_configs(topic: &NewTopic, below: &BrokerLayers<'_>) -> Result<ConfigOverrides, Refusal> {
    let nulls: Vec<&str> =
        topic.configs.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| name.as_str()).collect();
    if !nulls.is_empty() {
        let message = format!("Null value not supported for topic configs: {}", nulls.join(","));
        return Err(Refusal::new(ErrorCode::INVALID_CONFIG, message));
    }
    // Of a name given twice the last value counts.
    let overrides: BTreeMap<String, String> =
        topic.configs.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?))).collect();
    validate_topic(&overrides, below).map_err(|message| Refusal::new(ErrorCode::INVALID_CONFIG, message))?;
    Ok(overrides)
}

fn place_partitions(image: &Image, topic: &NewTopic, with: &Creation<'_>) -> Result<Vec<PartitionState>, Refusal> {
    let replicas =
        if topic.assignments.is_empty() { place_by_count(image, topic, with)? } else { place_by_hand(image, topic)? };
    (0..).zip(replicas).map(|(index, replicas)| initial_state(image, index, replicas)).collect()
}

fn place_by_count(image: &Image, topic: &NewTopic, with: &Creation<'_>) -> Result<Vec<Vec<BrokerId>>, Refusal> {
    if topic.replication_factor < -1 || topic.replication_factor == 0 {
        return Err(Refusal::new(
            ErrorCode::INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ));
    }
    if topic.partitions < -1 || topic.partitions == 0 {
        return Err(Refusal::new(
            ErrorCode::INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        ));
    }
    let factor =
        if topic.replication_factor == -1 { with.defaults.replication_factor } else { topic.replication_factor };
    let count = if topic.partitions == -1 { with.defaults.partitions } else { topic.partitions };
    place(image, usize::try_from(count).unwrap_or(0), factor, with.start)
}

fn place_by_hand(image: &Image, topic: &NewTopic) -> Result<Vec<Vec<BrokerId>>, Refusal> {
    let invalid = |what: &str| {
        let message = format!("A manual partition assignment was specified, but {what} was not set to -1.");
        Refusal::new(ErrorCode::INVALID_REQUEST, message)
    };
    if topic.replication_factor != -1 {
        return Err(invalid("replication factor"));
    }
    if topic.partitions != -1 {
        return Err(invalid("numPartitions"));
    }
    let mut by_index = BTreeMap::new();
    let mut factor = None;
    for (index, replicas) in &topic.assignments {
        if by_index.insert(*index, replicas.clone()).is_some() {
            let message = format!("Found multiple manual partition assignments for partition {index}");
            return Err(Refusal::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, message));
        }
        check_manual(image, replicas, factor)?;
        factor = Some(replicas.len());
    }
    if by_index.keys().copied().ne((0..).take(by_index.len())) {
        let message = "partitions should be a consecutive 0-based integer sequence";
        return Err(Refusal::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, message));
    }
    Ok(by_index.into_values().collect())
}
