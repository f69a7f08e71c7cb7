//! Log directories of brokers (KIP-858): which replica lies where, and what a failed directory means.

use uuid::Uuid;

use super::elections::{Event, after, after_directory_failed, may_lead, record};
use super::partition_change::Change;
use super::rules::Rules;
use super::{Decision, Draft};
use crate::base::{BrokerId, ErrorCode, PartitionIndex, TopicId};
use crate::metadata::{BrokerRegistration, Image, MetadataRecord};

/// Replicas of one broker that lie in one directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryAssignment {
    pub directory: Uuid,
    pub topics: Vec<(TopicId, Vec<PartitionIndex>)>,
}

/// One directory's topics with the outcome of each partition, in the order of the request.
pub type DirectoryOutcome = (Uuid, Vec<(TopicId, Vec<(PartitionIndex, ErrorCode)>)>);

/// Decides an AssignReplicasToDirs request.
pub fn assign_directories(
    image: &Image,
    rules: &Rules<'_>,
    broker: BrokerId,
    epoch: i64,
    assignments: &[DirectoryAssignment],
) -> Decision<Result<Vec<DirectoryOutcome>, ErrorCode>> {
    let Some(registration) = image.broker(broker).filter(|known| known.epoch == epoch) else {
        return Decision::unchanged(Err(ErrorCode::STALE_BROKER_EPOCH));
    };
    let mut draft = Draft::of(image);
    let mut reply = Vec::with_capacity(assignments.len());
    let mut failed = Vec::new();
    for assignment in assignments {
        if !registration.directories.contains(&assignment.directory) {
            failed.push(assignment.directory);
        }
        let mut topics = Vec::with_capacity(assignment.topics.len());
        for (topic_id, partitions) in &assignment.topics {
            let outcomes = partitions.iter().map(|partition| {
                let outcome = check(image, broker, *topic_id, *partition);
                if outcome.is_none() {
                    let lost = lost(&draft.image, rules, registration, *topic_id, *partition);
                    let moved = moved(&draft.image, broker, *topic_id, *partition, assignment.directory);
                    lost.into_iter().chain(moved).for_each(|record| draft.push(record));
                }
                (*partition, outcome)
            });
            topics.push((*topic_id, outcomes.collect()));
        }
        reply.push((assignment.directory, topics));
    }
    if !failed.is_empty() {
        // What was just said to lie in a failed directory leaves its in-sync set.
        draft.extend(after_directory_failed(&draft.image, rules, broker, &failed));
    }
    if !draft.records.is_empty() && draft.image.is_active(broker) {
        // What was not led because its directory was not there can be led now.
        draft.extend(after(&draft.image, rules, Event::Returned(broker)));
    }
    Decision { records: draft.records, reply: Ok(reply) }
}

fn check(image: &Image, broker: BrokerId, topic_id: TopicId, partition: PartitionIndex) -> ErrorCode {
    let Some(topic) = image.topic_by_id(topic_id) else { return ErrorCode::UNKNOWN_TOPIC_ID };
    match topic.partition(partition) {
        None => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        Some(state) if !state.replicas.contains(&broker) => ErrorCode::NOT_LEADER_OR_FOLLOWER,
        Some(_) => ErrorCode::NONE,
    }
}

/// A replica that is made anew because the directory it was in is gone has nothing of what it had: it is not eligible any more.
fn lost(
    image: &Image,
    rules: &Rules<'_>,
    registration: &BrokerRegistration,
    topic_id: TopicId,
    partition: PartitionIndex,
) -> Option<MetadataRecord> {
    let topic = image.topic_by_id(topic_id)?;
    let state = topic.partition(partition)?;
    let before = state.directory_of(registration.id).filter(|directory| !directory.is_nil())?;
    let is_in_sync = state.has_leader() && state.isr.contains(&registration.id);
    if is_in_sync || registration.directories.contains(&before) {
        return None;
    }
    let acceptable = may_lead(image, state);
    let changed = Change::of(state, rules.of(image, topic), &acceptable).distrusting(registration.id).build()?;
    Some(record(topic, partition, changed))
}

fn moved(
    image: &Image,
    broker: BrokerId,
    topic_id: TopicId,
    partition: PartitionIndex,
    directory: Uuid,
) -> Option<MetadataRecord> {
    let state = image.topic_by_id(topic_id)?.partition(partition)?;
    let is_new = state.directory_of(broker) != Some(directory);
    is_new.then_some(MetadataRecord::ReplicaDirectory { topic_id, partition, broker, directory })
}

/// Directories that a broker reports as failed: its replicas there leave their in-sync sets, and it has fewer directories.
pub fn offline_directories(
    image: &Image,
    rules: &Rules<'_>,
    broker: &BrokerRegistration,
    offline: &[Uuid],
) -> Vec<MetadataRecord> {
    let failed: Vec<Uuid> = broker.directories.iter().copied().filter(|one| offline.contains(one)).collect();
    if failed.is_empty() {
        return Vec::new();
    }
    let mut records = after_directory_failed(image, rules, broker.id, &failed);
    let mut left = broker.clone();
    left.directories.retain(|directory| !failed.contains(directory));
    records.push(MetadataRecord::Broker(left));
    records
}
