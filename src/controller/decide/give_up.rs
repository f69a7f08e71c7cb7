//! A broker gives copies up that are not what was written: nobody counts on them from now on, and whoever has the records leads.

use super::elections::{may_lead, record};
use super::partition_change::{Change, Election};
use super::rules::Rules;
use super::{Decision, Draft};
use crate::base::{BrokerId, ErrorCode, PartitionIndex, TopicId};
use crate::metadata::{Image, PartitionState};

/// One copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnCopy {
    pub topic_id: TopicId,
    pub partition: PartitionIndex,
    /// It lacks records at its end that others may have: better nobody leads until one of those can.
    pub short: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GiveUp {
    pub broker: BrokerId,
    pub broker_epoch: i64,
    pub copies: Vec<OwnCopy>,
}

/// For each copy the partition's new epoch, or why it stays as it is.
pub type GiveUpOutcomes = Vec<Result<i32, ErrorCode>>;

/// Decides what becomes of the partitions. A damaged copy that is the last one to be counted on stays, and the answer is
/// `ELIGIBLE_LEADERS_NOT_AVAILABLE`; one that is short leaves its partition without a leader, for others may have what it lacks and would
/// be cut to its end. Never is anybody elected for it who lacks records.
pub fn give_up(image: &Image, rules: &Rules<'_>, asked: &GiveUp) -> Decision<Result<GiveUpOutcomes, ErrorCode>> {
    if image.broker(asked.broker).is_none_or(|broker| broker.epoch != asked.broker_epoch) {
        return Decision::unchanged(Err(ErrorCode::STALE_BROKER_EPOCH));
    }
    let mut draft = Draft::of(image);
    let outcomes = asked.copies.iter().map(|copy| give_one_up(&mut draft, rules, asked.broker, *copy)).collect();
    Decision { records: draft.records, reply: Ok(outcomes) }
}

fn give_one_up(draft: &mut Draft, rules: &Rules<'_>, broker: BrokerId, copy: OwnCopy) -> Result<i32, ErrorCode> {
    let topic = draft.image.topic_by_id(copy.topic_id).ok_or(ErrorCode::UNKNOWN_TOPIC_ID)?.clone();
    let state = topic.partition(copy.partition).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    if !state.replicas.contains(&broker) {
        return Err(ErrorCode::NOT_LEADER_OR_FOLLOWER);
    }
    let changed = {
        let acceptable = may_lead(&draft.image, state);
        let rules = rules.of(&draft.image, &topic);
        let change = Change::of(state, rules, &acceptable).distrusting(broker).electing(Election::Online);
        if copy.short { change.forsaking() } else { change }.build()
    };
    // Also where nothing changes: what a leader proposed before must not be taken any more.
    let changed = changed.unwrap_or_else(|| PartitionState {
        partition_epoch: state.partition_epoch.saturating_add(1),
        ..(**state).clone()
    });
    let is_last = changed.isr.contains(&broker) || (state.has_leader() && !changed.has_leader() && !copy.short);
    if is_last {
        return Err(ErrorCode::ELIGIBLE_LEADERS_NOT_AVAILABLE);
    }
    let epoch = changed.partition_epoch;
    draft.push(record(&topic, copy.partition, changed));
    Ok(epoch)
}
