//! What brokers coming and going means for the partitions: who leaves the in-sync sets, who leads now. A thousand leaders move in
//! one decision.

use super::partition_change::{Change, Election};
use super::rules::{Rules, TopicRules};
use super::{Decision, Draft, Refusal};
use crate::base::ids::NO_BROKER;
use crate::base::{BrokerId, ErrorCode, PartitionIndex};
use crate::metadata::{Image, MetadataRecord, PartitionState, Topic};

/// Elections in one decision that nobody asked for; the rest comes with the next one.
pub const ELECTIONS_PER_TURN_MAX: usize = 1_000;

/// What happened to a broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It stops, or nobody hears from it. Its copies are complete as far as they go.
    Left(BrokerId),
    /// It lost what was not on its disk, or is gone with its disks: its copies are not eligible any more.
    LostData(BrokerId),
    /// It is there again and may lead.
    Returned(BrokerId),
}

/// The new states of the partitions that the event concerns.
pub fn after(image: &Image, rules: &Rules<'_>, event: Event) -> Vec<MetadataRecord> {
    let concerns = |state: &PartitionState| match event {
        Event::Left(id) => state.leader == id || state.isr.contains(&id),
        Event::LostData(id) => state.leader == id || state.isr.contains(&id) || state.elr.contains(&id),
        Event::Returned(id) => !state.has_leader() && state.replicas.contains(&id),
    };
    changed(
        image,
        rules,
        concerns,
        |change| match event {
            Event::Left(id) => change.without(id),
            Event::LostData(id) => change.distrusting(id),
            Event::Returned(_) => change,
        },
        &|image, id| match event {
            Event::Left(gone) | Event::LostData(gone) => id != gone && image.is_active(id),
            Event::Returned(back) => id == back || image.is_active(id),
        },
    )
}

/// A log directory of a broker failed: its replicas there leave their in-sync sets.
pub fn after_directory_failed(
    image: &Image,
    rules: &Rules<'_>,
    broker: BrokerId,
    failed: &[uuid::Uuid],
) -> Vec<MetadataRecord> {
    let concerns = |state: &PartitionState| {
        (state.leader == broker || state.isr.contains(&broker))
            && state.directory_of(broker).is_some_and(|directory| failed.contains(&directory))
    };
    let mut without = image.clone();
    if let Some(registration) = image.broker(broker) {
        let mut registration = (**registration).clone();
        registration.directories.retain(|directory| !failed.contains(directory));
        // A registration contradicts nothing.
        let _ = without.apply(without.offset, &MetadataRecord::Broker(registration));
    }
    let others = |image: &Image, id| id != broker && image.is_active(id);
    changed(&without, rules, concerns, |change| change.without(broker), &others)
}

/// Applies `edit` to every partition that `concerns` names.
fn changed<'i>(
    image: &'i Image,
    rules: &Rules<'_>,
    concerns: impl Fn(&PartitionState) -> bool,
    edit: impl for<'c> Fn(Change<'c>) -> Change<'c>,
    may_lead: &dyn Fn(&Image, BrokerId) -> bool,
) -> Vec<MetadataRecord> {
    let mut records = Vec::new();
    for topic in image.topics() {
        let mut topic_rules: Option<TopicRules> = None;
        for (index, state) in topic.indexed().filter(|(_, state)| concerns(state)) {
            let rules = *topic_rules.get_or_insert_with(|| rules.of(image, topic));
            let acceptable = |id| may_lead(image, id) && has_its_directory(image, state, id);
            if let Some(state) = edit(Change::of(state, rules, &acceptable)).build() {
                records.push(record(topic, index, state));
            }
        }
    }
    records
}

/// Whether the broker has the directory in which its replica lies. One that is not known yet does no harm.
fn has_its_directory(image: &Image, state: &PartitionState, id: BrokerId) -> bool {
    let Some(directory) = state.directory_of(id).filter(|directory| !directory.is_nil()) else { return true };
    image.broker(id).is_some_and(|broker| broker.directories.contains(&directory))
}

/// Who may lead a partition: an active broker whose directory is there.
pub fn may_lead<'a>(image: &'a Image, state: &'a PartitionState) -> impl Fn(BrokerId) -> bool + 'a {
    move |id| image.is_active(id) && has_its_directory(image, state, id)
}

pub(super) fn record(topic: &Topic, partition: PartitionIndex, state: PartitionState) -> MetadataRecord {
    MetadataRecord::Partition { topic_id: topic.id, partition, state }
}

/// What ElectLeaders asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Preferred,
    Unclean,
}

/// A topic's partitions in the order of the question, each with its outcome.
pub type ElectionOutcomes = Vec<(String, Vec<(PartitionIndex, Result<(), Refusal>)>)>;

/// Decides an ElectLeaders request. `None` means every partition; those that need no election are then left out of the answer.
pub fn elect_leaders(
    image: &Image,
    rules: &Rules<'_>,
    asked: Asked,
    partitions: Option<&[(String, Vec<PartitionIndex>)]>,
) -> Decision<ElectionOutcomes> {
    // What the same request names a second time must see the first election.
    let mut draft = Draft::of(image);
    let mut elect = |name: &str, index: PartitionIndex| {
        let elected = elect_one(&draft.image, rules, asked, name, index)?;
        draft.push(elected);
        Ok(())
    };
    let mut reply = Vec::new();
    match partitions {
        Some(topics) => {
            for (name, indexes) in topics {
                reply.push((name.clone(), indexes.iter().map(|index| (*index, elect(name, *index))).collect()));
            }
        }
        None => {
            for topic in image.topics() {
                let outcomes = topic.indexed().map(|(index, _)| (index, elect(&topic.name, index)));
                let told = |outcome: &Result<(), Refusal>| !matches!(outcome, Err(refusal) if refusal.code == ErrorCode::ELECTION_NOT_NEEDED);
                reply.push((topic.name.to_string(), outcomes.filter(|(_, outcome)| told(outcome)).collect()));
            }
        }
    }
    Decision { records: draft.records, reply }
}

fn elect_one(
    image: &Image,
    rules: &Rules<'_>,
    asked: Asked,
    name: &str,
    index: PartitionIndex,
) -> Result<MetadataRecord, Refusal> {
    let unknown = |sentence: String| Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, sentence);
    let topic = image.topic(name).ok_or_else(|| unknown(format!("No such topic as {name}")))?;
    let state = topic.partition(index).ok_or_else(|| unknown(format!("No such partition as {name}-{index}")))?;
    let (needed, election, unavailable) = match asked {
        Asked::Preferred => {
            let needed = state.leader == NO_BROKER || state.leader != state.preferred_leader();
            (needed, Election::Preferred, ErrorCode::PREFERRED_LEADER_NOT_AVAILABLE)
        }
        Asked::Unclean => (!state.has_leader(), Election::Unclean, ErrorCode::ELIGIBLE_LEADERS_NOT_AVAILABLE),
    };
    if !needed {
        return Err(Refusal::new(ErrorCode::ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."));
    }
    let acceptable = may_lead(image, state);
    match Change::of(state, rules.of(image, topic), &acceptable).electing(election).build() {
        Some(state) => Ok(record(topic, index, state)),
        None if unavailable == ErrorCode::PREFERRED_LEADER_NOT_AVAILABLE => {
            Err(Refusal::new(unavailable, "The preferred leader was not available."))
        }
        None => Err(Refusal::new(unavailable, "Eligible topic partition leaders are not available.")),
    }
}

/// Gives leadership back to preferred replicas that can take it, at most [`ELECTIONS_PER_TURN_MAX`] of them. The reply says whether
/// there may be more.
pub fn balance_leaders(image: &Image, rules: &Rules<'_>) -> Decision<bool> {
    let wants = |_: &TopicRules, state: &PartitionState| {
        let preferred = state.preferred_leader();
        state.leader != preferred && state.isr.contains(&preferred) && image.is_active(preferred)
    };
    some_of(image, rules, Election::Preferred, wants)
}

/// Elects leaders for partitions without one where the topic would rather have a leader that misses records.
pub fn elect_unclean(image: &Image, rules: &Rules<'_>) -> Decision<bool> {
    some_of(image, rules, Election::Unclean, |rules, _| rules.unclean_elections)
}

fn some_of(
    image: &Image,
    rules: &Rules<'_>,
    election: Election,
    wants: impl Fn(&TopicRules, &PartitionState) -> bool,
) -> Decision<bool> {
    let mut records = Vec::new();
    let is_candidate = |state: &PartitionState| match election {
        Election::Unclean => !state.has_leader(),
        _ => state.leader != state.preferred_leader(),
    };
    for topic in image.topics() {
        let mut topic_rules: Option<TopicRules> = None;
        for (index, state) in topic.indexed().filter(|(_, state)| is_candidate(state)) {
            let rules = *topic_rules.get_or_insert_with(|| rules.of(image, topic));
            if !wants(&rules, state) {
                continue;
            }
            if records.len() >= ELECTIONS_PER_TURN_MAX {
                return Decision { records, reply: true };
            }
            let acceptable = may_lead(image, state);
            let change = Change::of(state, rules, &acceptable).electing(election);
            records.extend(change.build().map(|state| record(topic, index, state)));
        }
    }
    Decision { records, reply: false }
}
