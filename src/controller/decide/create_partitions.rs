//! Adding partitions to topics. Existing ones stay as they are; new ones get the topic's replication factor.

use std::collections::BTreeSet;

use super::placement::{check_manual, initial_state, place};
use super::{Decision, PARTITIONS_PER_REQUEST_MAX, Refusal, duplicates};
use crate::base::{BrokerId, ErrorCode};
use crate::metadata::{Image, MetadataRecord, PartitionState, Topic};

/// How many partitions a topic is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MorePartitions {
    pub name: String,
    /// The new total.
    pub count: i32,
    /// Replicas of each added partition, when the client places them itself.
    pub assignments: Option<Vec<Vec<BrokerId>>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionsOutcome {
    pub name: String,
    pub refusal: Option<Refusal>,
}

/// Decides a CreatePartitions request. The caller drops the records when the client only wants to know.
pub fn create_partitions(image: &Image, topics: &[MorePartitions], start: usize) -> Decision<Vec<PartitionsOutcome>> {
    let doubled = duplicates(topics.iter().map(|topic| &topic.name));
    let mut decision = Decision::unchanged(Vec::with_capacity(topics.len()));
    let mut answered = BTreeSet::new();
    for topic in topics.iter().filter(|topic| answered.insert(&topic.name)) {
        let result = if doubled.contains(&topic.name) {
            Err(Refusal::new(ErrorCode::INVALID_REQUEST, "Duplicate topic name."))
        } else {
            grow(image, topic, start)
        };
        let refusal = match result {
            Ok(record) => {
                decision.records.push(record);
                None
            }
            Err(refusal) => Some(refusal),
        };
        decision.reply.push(PartitionsOutcome { name: topic.name.clone(), refusal });
    }
    decision
}

fn grow(image: &Image, asked: &MorePartitions, start: usize) -> Result<MetadataRecord, Refusal> {
    let Some(topic) = image.topic(&asked.name) else {
        return Err(Refusal::bare(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION));
    };
    let current = topic.partition_count();
    let added = check_count(topic, asked.count)?;
    let replicas = match &asked.assignments {
        Some(assignments) => check_assignments(image, topic, added, assignments)?,
        None => place(image, added, topic.replication_factor(), start.wrapping_add(topic.partitions.len()))?,
    };
    let partitions: Result<Vec<PartitionState>, Refusal> =
        (current..).zip(replicas).map(|(index, replicas)| initial_state(image, index, replicas)).collect();
    Ok(MetadataRecord::PartitionsAdded { topic_id: topic.id, first: current, partitions: partitions? })
}

fn check_count(topic: &Topic, count: i32) -> Result<usize, Refusal> {
    let current = topic.partition_count();
    let added = i64::from(count) - i64::from(current);
    if added == 0 {
        let message = format!("Topic already has {current} partition(s).");
        return Err(Refusal::new(ErrorCode::INVALID_PARTITIONS, message));
    }
    if added < 0 {
        let message =
            format!("The topic {} currently has {current} partition(s); {count} would not be an increase.", topic.name);
        return Err(Refusal::new(ErrorCode::INVALID_PARTITIONS, message));
    }
    if added > PARTITIONS_PER_REQUEST_MAX {
        let message = "Excessively large number of additional partitions per request.";
        return Err(Refusal::new(ErrorCode::POLICY_VIOLATION, message));
    }
    Ok(usize::try_from(added).unwrap_or(0))
}

fn check_assignments(
    image: &Image,
    topic: &Topic,
    added: usize,
    assignments: &[Vec<BrokerId>],
) -> Result<Vec<Vec<BrokerId>>, Refusal> {
    if assignments.len() != added {
        let message = format!(
            "Attempted to add {added} additional partition(s), but only {} assignment(s) were specified.",
            assignments.len()
        );
        return Err(Refusal::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, message));
    }
    let factor = usize::try_from(topic.replication_factor()).ok();
    for replicas in assignments {
        check_manual(image, replicas, factor)?;
    }
    Ok(assignments.to_vec())
}
