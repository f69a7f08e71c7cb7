//! Reassignments (KIP-455): a partition gets other replicas while it keeps working. The new ones join the replica list at once and
//! catch up; when all of them are in sync the old ones leave ([`super::partition_change`] sees to that).

use super::elections::{may_lead, record};
use super::partition_change::Change;
use super::placement::check_manual;
use super::rules::Rules;
use super::{Decision, Draft, Refusal};
use crate::base::{BrokerId, ErrorCode, PartitionIndex};
use crate::metadata::{Image, MetadataRecord, PartitionState, Topic};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reassignment {
    pub partition: PartitionIndex,
    /// Where the partition shall be; `None` takes a reassignment back.
    pub replicas: Option<Vec<BrokerId>>,
}

/// A topic's partitions in the order of the request, each with its outcome.
pub type ReassignmentOutcomes = Vec<(String, Vec<(PartitionIndex, Result<(), Refusal>)>)>;

/// Decides an AlterPartitionReassignments request, each partition by itself.
pub fn reassign(
    image: &Image,
    rules: &Rules<'_>,
    topics: &[(String, Vec<Reassignment>)],
    factor_may_change: bool,
) -> Decision<ReassignmentOutcomes> {
    let mut draft = Draft::of(image);
    let mut reply = Vec::with_capacity(topics.len());
    for (name, partitions) in topics {
        let outcomes = partitions.iter().map(|asked| {
            let changed = reassign_one(&draft.image, rules, name, asked, factor_may_change);
            (asked.partition, changed.map(|record| record.into_iter().for_each(|record| draft.push(record))))
        });
        reply.push((name.clone(), outcomes.collect()));
    }
    Decision { records: draft.records, reply }
}

fn reassign_one(
    image: &Image,
    rules: &Rules<'_>,
    name: &str,
    asked: &Reassignment,
    factor_may_change: bool,
) -> Result<Option<MetadataRecord>, Refusal> {
    let index = asked.partition;
    let unknown = |sentence: String| Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, sentence);
    let topic = image.topic(name).ok_or_else(|| unknown(format!("Unable to find a topic named {name}.")))?;
    let state = topic.partition(index).ok_or_else(|| unknown(format!("Unable to find partition {name}:{index}.")))?;
    let acceptable = may_lead(image, state);
    let change = Change::of(state, rules.of(image, topic), &acceptable);
    let change = match &asked.replicas {
        None => cancelled(change, state, rules.of(image, topic).unclean_elections, name, index)?,
        Some(target) => {
            check_manual(image, target, None)?;
            if !factor_may_change {
                check_factor(state, target)?;
            }
            moved_to(change, state, target)
        }
    };
    Ok(with_directories(change, image, state).build().map(|state| record(topic, index, state)))
}

/// The replicas that the partition had, and has again when a reassignment is taken back.
fn before_reassignment(state: &PartitionState) -> Vec<BrokerId> {
    state.replicas.iter().copied().filter(|id| !state.adding.contains(id)).collect()
}

fn check_factor(state: &PartitionState, target: &[BrokerId]) -> Result<(), Refusal> {
    let current = state.replicas.iter().filter(|id| !state.removing.contains(id)).count();
    if current == target.len() {
        return Ok(());
    }
    let sentence = format!("The replication factor is changed from {current} to {}", target.len());
    Err(Refusal::new(ErrorCode::INVALID_REPLICATION_FACTOR, sentence))
}

/// Towards `target`. A reassignment that is under way is replaced: replicas that it was adding and that nobody wants any more leave at
/// once, unless they came into the in-sync set, then they leave when the new ones are there.
pub(super) fn moved_to<'a>(mut change: Change<'a>, state: &PartitionState, target: &[BrokerId]) -> Change<'a> {
    let original = before_reassignment(state);
    let holds_data = |id: &BrokerId| original.contains(id) || state.isr.contains(id);
    let mut removing: Vec<BrokerId> =
        state.replicas.iter().copied().filter(|id| !target.contains(id) && holds_data(id)).collect();
    removing.sort_unstable();
    let mut adding: Vec<BrokerId> = target.iter().copied().filter(|id| !original.contains(id)).collect();
    adding.sort_unstable();
    change.replicas = target.iter().chain(&removing).copied().collect();
    change.adding = adding;
    change.removing = removing;
    change
}

/// Back to the replicas from before. In-sync members that were only being added leave; if nobody else is in sync, that would lose
/// records.
fn cancelled<'a>(
    mut change: Change<'a>,
    state: &PartitionState,
    may_lose_records: bool,
    name: &str,
    index: PartitionIndex,
) -> Result<Change<'a>, Refusal> {
    if !state.is_reassigning() {
        return Err(Refusal::bare(ErrorCode::NO_REASSIGNMENT_IN_PROGRESS));
    }
    change.replicas = before_reassignment(state);
    change.adding.clear();
    change.removing.clear();
    change.isr.retain(|id| !state.adding.contains(id));
    let keeps_a_copy = state.isr.iter().any(|id| !state.adding.contains(id));
    if !keeps_a_copy {
        if !may_lose_records {
            let sentence = format!(
                "Unable to revert partition assignment for {name}:{index} because it would require an unclean leader election."
            );
            return Err(Refusal::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, sentence));
        }
        change.isr = change.replicas.first().copied().into_iter().collect();
    }
    Ok(change)
}

/// New replicas on brokers with one directory lie there; brokers with several choose and say so.
pub(super) fn with_directories<'a>(mut change: Change<'a>, image: &Image, state: &PartitionState) -> Change<'a> {
    if state.directories.is_empty() {
        return change;
    }
    let new = change.replicas.iter().filter(|id| !state.replicas.contains(id));
    change.directories = new.map(|id| (*id, super::placement::only_directory(image, *id))).collect();
    change
}

/// One partition under reassignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ongoing {
    pub partition: PartitionIndex,
    pub replicas: Vec<BrokerId>,
    pub adding: Vec<BrokerId>,
    pub removing: Vec<BrokerId>,
}

/// What is being reassigned, of the named partitions or of all; topics where nothing is are left out.
pub fn list(image: &Image, topics: Option<&[(String, Vec<PartitionIndex>)]>) -> Vec<(String, Vec<Ongoing>)> {
    let of_topic = |topic: &Topic, wanted: Option<&[PartitionIndex]>| -> Option<(String, Vec<Ongoing>)> {
        let ongoing: Vec<Ongoing> = match wanted {
            Some(indexes) => indexes.iter().filter_map(|index| ongoing(*index, topic.partition(*index)?)).collect(),
            None => topic.indexed().filter_map(|(index, state)| ongoing(index, state)).collect(),
        };
        (!ongoing.is_empty()).then(|| (topic.name.to_string(), ongoing))
    };
    match topics {
        None => image.topics().filter_map(|topic| of_topic(topic, None)).collect(),
        Some(topics) => {
            topics.iter().filter_map(|(name, indexes)| of_topic(image.topic(name)?, Some(indexes))).collect()
        }
    }
}

fn ongoing(partition: PartitionIndex, state: &PartitionState) -> Option<Ongoing> {
    state.is_reassigning().then(|| Ongoing {
        partition,
        replicas: state.replicas.clone(),
        adding: state.adding.clone(),
        removing: state.removing.clone(),
    })
}
