//! AlterPartition: a leader says who is in sync (KIP-497, KIP-841, KIP-903). It must know the newest state of the partition, and
//! every member it names must be alive under the broker epoch that the leader saw fetching.

use super::elections::{may_lead, record};
use super::partition_change::Change;
use super::rules::Rules;
use super::{Decision, Draft};
use crate::base::rules::{Rule, holds};
use crate::base::{BrokerId, ErrorCode, LeaderEpoch, PartitionIndex, TopicId};
use crate::metadata::{Image, PartitionState, Topic};

/// The member's broker epoch is not known (v2 of the request).
pub const NO_BROKER_EPOCH: i64 = -1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterPartition {
    /// The leader that asks.
    pub broker: BrokerId,
    pub broker_epoch: i64,
    pub topics: Vec<(TopicId, Vec<NewIsr>)>,
}

/// One partition's in-sync set as its leader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewIsr {
    pub partition: PartitionIndex,
    pub leader_epoch: LeaderEpoch,
    pub partition_epoch: i32,
    /// Members with their broker epochs; [`NO_BROKER_EPOCH`] is not checked.
    pub isr: Vec<(BrokerId, i64)>,
    pub recovering: bool,
}

/// Each partition's new state or the reason why not, in the order of the request.
pub type IsrOutcomes = Vec<(TopicId, Vec<(PartitionIndex, Result<PartitionState, ErrorCode>)>)>;

/// Decides an AlterPartition request. A stale broker gets one code for all.
pub fn alter_partition(
    image: &Image,
    rules: &Rules<'_>,
    asked: &AlterPartition,
) -> Decision<Result<IsrOutcomes, ErrorCode>> {
    if image.broker(asked.broker).is_none_or(|broker| broker.epoch != asked.broker_epoch) {
        return Decision::unchanged(Err(ErrorCode::STALE_BROKER_EPOCH));
    }
    let mut draft = Draft::of(image);
    let mut reply = Vec::with_capacity(asked.topics.len());
    for (topic_id, partitions) in &asked.topics {
        let outcomes =
            partitions.iter().map(|new| (new.partition, alter_one(&mut draft, rules, asked, *topic_id, new)));
        reply.push((*topic_id, outcomes.collect()));
    }
    Decision { records: draft.records, reply: Ok(reply) }
}

fn alter_one(
    draft: &mut Draft,
    rules: &Rules<'_>,
    asked: &AlterPartition,
    topic_id: TopicId,
    new: &NewIsr,
) -> Result<PartitionState, ErrorCode> {
    let topic: std::sync::Arc<Topic> = draft.image.topic_by_id(topic_id).ok_or(ErrorCode::UNKNOWN_TOPIC_ID)?.clone();
    let state = topic.partition(new.partition).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    check_epochs(state, asked.broker, new)?;
    check_isr(&draft.image, state, new)?;
    let changed = {
        let acceptable = may_lead(&draft.image, state);
        let mut change = Change::of(state, rules.of(&draft.image, &topic), &acceptable);
        change.isr = new.isr.iter().map(|(id, _)| *id).collect();
        change.recovering = new.recovering;
        change.build()
    };
    let Some(changed) = changed else { return Ok((**state).clone()) };
    let outcome = changed.clone();
    draft.push(record(&topic, new.partition, changed));
    // A reassignment that is done with this may have taken the leadership with it.
    if outcome.leader != asked.broker { Err(ErrorCode::NEW_LEADER_ELECTED) } else { Ok(outcome) }
}

/// A leader that knows more than this node has found a controller of the past; one that knows less must look first.
fn check_epochs(state: &PartitionState, leader: BrokerId, new: &NewIsr) -> Result<(), ErrorCode> {
    if new.leader_epoch > state.leader_epoch || new.partition_epoch > state.partition_epoch {
        return Err(ErrorCode::NOT_CONTROLLER);
    }
    if new.leader_epoch < state.leader_epoch {
        return Err(ErrorCode::FENCED_LEADER_EPOCH);
    }
    if state.leader != leader {
        return Err(ErrorCode::INVALID_REQUEST);
    }
    if new.partition_epoch < state.partition_epoch {
        return Err(ErrorCode::INVALID_UPDATE_VERSION);
    }
    Ok(())
}

fn check_isr(image: &Image, state: &PartitionState, new: &NewIsr) -> Result<(), ErrorCode> {
    let is_set =
        new.isr.iter().enumerate().all(|(at, (id, _))| {
            state.replicas.contains(id) && new.isr.iter().take(at).all(|(earlier, _)| earlier != id)
        });
    let has_leader = new.isr.iter().any(|(id, _)| *id == state.leader);
    let recovers_alone = !new.recovering || new.isr.len() <= 1;
    let begins_recovering = new.recovering && !state.recovering;
    if !is_set || !has_leader || !recovers_alone || begins_recovering {
        return Err(ErrorCode::INVALID_REQUEST);
    }
    let is_newest = |seen: i64, epoch: i64| seen == NO_BROKER_EPOCH || seen == epoch || !holds(Rule::ChecksBrokerEpoch);
    let eligible = |(id, seen): &(BrokerId, i64)| {
        image.broker(*id).is_some_and(|broker| broker.is_active() && is_newest(*seen, broker.epoch))
    };
    if new.isr.iter().all(eligible) { Ok(()) } else { Err(ErrorCode::INELIGIBLE_REPLICA) }
}
