//! Where the replicas of new partitions go. Leaders are dealt out evenly over the brokers, followers over racks first; the same
//! input always gives the same placement, chance comes in only as the `start` that the driver draws.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::Refusal;
use crate::base::{BrokerId, ErrorCode, PartitionIndex};
use crate::metadata::{BrokerRegistration, Image, PartitionState};

/// Chooses replicas for `count` partitions. `start` varies where the dealing begins.
pub fn place(image: &Image, count: usize, factor: i16, start: usize) -> Result<Vec<Vec<BrokerId>>, Refusal> {
    let brokers = interleaved_by_rack(image);
    let wanted = usize::try_from(factor).unwrap_or(0);
    if wanted > brokers.len() {
        return Err(Refusal::new(
            ErrorCode::INVALID_REPLICATION_FACTOR,
            format!(
                "Unable to replicate the partition {factor} time(s): The target replication factor of {factor} cannot be \
                 reached because only {} broker(s) are registered.",
                brokers.len()
            ),
        ));
    }
    if !brokers.iter().any(|broker| !broker.fenced) {
        return Err(Refusal::new(
            ErrorCode::INVALID_REPLICATION_FACTOR,
            format!("Unable to replicate the partition {factor} time(s): All brokers are currently fenced."),
        ));
    }
    Ok((0..count).map(|index| deal(&brokers, wanted, start, index)).collect())
}

/// Active brokers first; among them one of each rack in turn, so that neighbours stand on different racks. Brokers that are about to
/// stop get nothing new.
fn interleaved_by_rack(image: &Image) -> Vec<&BrokerRegistration> {
    let mut racks: BTreeMap<Option<&str>, Vec<&BrokerRegistration>> = BTreeMap::new();
    for broker in image.brokers().filter(|broker| broker.is_active()) {
        racks.entry(broker.rack.as_deref()).or_default().push(broker);
    }
    let longest = racks.values().map(Vec::len).max().unwrap_or(0);
    let mut order: Vec<_> =
        (0..longest).flat_map(|turn| racks.values().filter_map(move |rack| rack.get(turn).copied())).collect();
    let stays = |broker: &&std::sync::Arc<BrokerRegistration>| broker.fenced && !broker.in_controlled_shutdown;
    order.extend(image.brokers().filter(stays).map(|broker| &**broker));
    order
}

/// The replicas of one partition: the leader by turn, then live brokers of racks that have none yet, then any live one, then
/// fenced ones.
fn deal(brokers: &[&BrokerRegistration], wanted: usize, start: usize, index: usize) -> Vec<BrokerId> {
    let live = brokers.iter().filter(|broker| !broker.fenced).count();
    let turn = start.wrapping_add(index);
    let leader = turn % live.max(1);
    // Each round of leaders begins its followers one place further, so that no two brokers always go together.
    let shift = 1 + (turn / live.max(1)) % brokers.len().max(1);
    let mut chosen: Vec<&BrokerRegistration> = brokers.get(leader).copied().into_iter().take(wanted).collect();
    let others: Vec<_> =
        (0..brokers.len()).filter_map(|step| brokers.get((leader + shift + step) % brokers.len())).collect();
    let on_new_rack = |broker: &BrokerRegistration, chosen: &[&BrokerRegistration]| {
        broker.rack.is_none() || chosen.iter().all(|one| one.rack != broker.rack)
    };
    for (fenced, new_racks_only) in [(false, true), (false, false), (true, false)] {
        for broker in others.iter().filter(|broker| broker.fenced == fenced) {
            let taken = chosen.iter().any(|one| one.id == broker.id);
            if chosen.len() < wanted && !taken && (!new_racks_only || on_new_rack(broker, &chosen)) {
                chosen.push(broker);
            }
        }
    }
    chosen.iter().map(|broker| broker.id).collect()
}

/// Checks replicas that a client named: known brokers, none twice, and as many as `expected` when that is known.
pub fn check_manual(image: &Image, replicas: &[BrokerId], expected: Option<usize>) -> Result<(), Refusal> {
    let refuse = |message: String| Err(Refusal::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, message));
    if replicas.is_empty() {
        return refuse("The manual partition assignment includes an empty replica list.".to_owned());
    }
    for (at, replica) in replicas.iter().enumerate() {
        if image.broker(*replica).is_none() {
            return refuse(format!(
                "The manual partition assignment includes broker {replica}, but no such broker is registered."
            ));
        }
        if replicas.iter().take(at).any(|earlier| earlier == replica) {
            return refuse(format!("The manual partition assignment includes the broker {replica} more than once."));
        }
    }
    match expected {
        Some(expected) if expected != replicas.len() => refuse(format!(
            "The manual partition assignment includes a partition with {} replica(s), but this is not consistent with \
             previous partitions, which have {expected} replica(s).",
            replicas.len()
        )),
        _ => Ok(()),
    }
}

/// The first state of a partition: live replicas are in sync and the first of them leads.
pub fn initial_state(image: &Image, index: PartitionIndex, replicas: Vec<BrokerId>) -> Result<PartitionState, Refusal> {
    let isr: Vec<BrokerId> = replicas.iter().copied().filter(|id| image.is_active(*id)).collect();
    let Some(leader) = isr.first().copied() else {
        return Err(Refusal::new(
            ErrorCode::INVALID_REPLICA_ASSIGNMENT,
            format!("All brokers of the assignment for partition {index} are fenced or shutting down."),
        ));
    };
    let directories = replicas.iter().map(|id| only_directory(image, *id)).collect();
    Ok(PartitionState { isr, leader, ..PartitionState::new(replicas, directories) })
}

/// The directory of a broker that has just one; nil lets a broker with several choose.
pub(super) fn only_directory(image: &Image, id: BrokerId) -> Uuid {
    match image.broker(id).map(|broker| broker.directories.as_slice()) {
        Some([only]) => *only,
        _ => Uuid::nil(),
    }
}
