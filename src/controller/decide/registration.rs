//! A broker registers: who may, under which epoch, and what becomes of the copies it had before (KIP-631, KIP-966).

use std::collections::BTreeSet;

use uuid::Uuid;

use super::elections::{Event, after, after_directory_failed};
use super::features::{initial_features, reason_against_broker};
use super::rules::Rules;
use super::{Decision, Draft, Refusal};
use crate::base::ErrorCode;
use crate::base::rules::{Rule, holds};
use crate::metadata::{BrokerRegistration, ConfigResource, Image, MetadataRecord};

/// What a broker says of itself at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The cluster it belongs to, or, when the cluster has no identity yet, the one it brings. Empty when it has never been in one.
    pub cluster_id: String,
    /// For a cluster without an identity when nobody brings one.
    pub fresh_cluster_id: String,
    /// Epoch and fencing are chosen here.
    pub broker: BrokerRegistration,
    /// The epoch under which it ran before, when it stopped cleanly then.
    pub previous_epoch: Option<i64>,
    /// Former lives that its log directories remember; empty when it claims nothing.
    pub remembered: Vec<Uuid>,
}

/// The first records of a new cluster.
fn bootstrap(cluster_id: &str, rules: &Rules<'_>) -> Vec<MetadataRecord> {
    let mut records = vec![MetadataRecord::Cluster { cluster_id: cluster_id.to_owned() }];
    records.extend(initial_features());
    // With eligible leader replicas on, Kafka keeps the in-sync minimum as a cluster-wide dynamic default (KIP-966): what the first
    // controller was started with.
    records.push(MetadataRecord::Config {
        resource: ConfigResource::broker_default(),
        name: "min.insync.replicas".to_owned(),
        value: Some(rules.fixed.value("min.insync.replicas").unwrap_or("1").to_owned()),
    });
    records
}

/// Decides a registration. The reply is the broker epoch: the offset of the registration's own record, so that it grows with each
/// one and tells what the broker must have seen before it may be unfenced.
///
/// `other_is_alive`: somebody with this id and another incarnation was heard from within his session.
pub fn register(
    image: &Image,
    rules: &Rules<'_>,
    asked: &Registration,
    other_is_alive: bool,
) -> Decision<Result<i64, Refusal>> {
    let mut draft = Draft::of(image);
    if image.cluster_id.is_empty() {
        let brought = [&asked.cluster_id, &asked.fresh_cluster_id].into_iter().find(|id| !id.is_empty());
        draft.extend(bootstrap(brought.map_or("", String::as_str), rules));
    }
    if let Err(refusal) = check(&draft.image, asked, other_is_alive) {
        return Decision::unchanged(Err(refusal));
    }
    let known = draft.image.broker(asked.broker.id).cloned();
    let epoch = match known {
        Some(known) if known.incarnation == asked.broker.incarnation => amend(&mut draft, &known, &asked.broker),
        known => begin_incarnation(&mut draft, rules, asked, known.map(|known| known.epoch)),
    };
    Decision { records: draft.records, reply: Ok(epoch) }
}

/// The same process says something new of itself, or says it again because the answer was lost.
fn amend(draft: &mut Draft, known: &BrokerRegistration, asked: &BrokerRegistration) -> i64 {
    let amended = BrokerRegistration {
        epoch: known.epoch,
        fenced: known.fenced,
        in_controlled_shutdown: known.in_controlled_shutdown,
        ..asked.clone()
    };
    if amended != *known {
        draft.push(MetadataRecord::Broker(amended));
    }
    known.epoch
}

fn begin_incarnation(draft: &mut Draft, rules: &Rules<'_>, asked: &Registration, known_epoch: Option<i64>) -> i64 {
    let id = asked.broker.id;
    // Whoever is alone in the cluster has nobody to catch up with, and nobody could take over from it: it leads again at once.
    let alone = draft.image.brokers().all(|broker| broker.id == id);
    if !alone {
        let stopped_cleanly = known_epoch.is_some() && known_epoch == asked.previous_epoch;
        let event =
            if stopped_cleanly || !holds(Rule::UncleanRestartLeaves) { Event::Left(id) } else { Event::LostData(id) };
        draft.extend(after(&draft.image, rules, event));
    }
    let before = draft.image.broker(id).map(|known| known.directories.clone()).unwrap_or_default();
    let epoch = draft.image.offset.saturating_add(1);
    let broker = BrokerRegistration { epoch, fenced: !alone, in_controlled_shutdown: false, ..asked.broker.clone() };
    draft.push(MetadataRecord::Broker(broker));
    if alone {
        // After a restart an epoch must not name two different ends of one log (KIP-101).
        if draft.image.leads_something(id) {
            draft.push(MetadataRecord::LeadershipRenewed { leader: id });
        }
        // What lies in a directory that it has no more waits for that.
        let gone: Vec<uuid::Uuid> = before.into_iter().filter(|one| !asked.broker.directories.contains(one)).collect();
        if !gone.is_empty() {
            draft.extend(after_directory_failed(&draft.image, rules, id, &gone));
        }
        draft.extend(after(&draft.image, rules, Event::Returned(id)));
    }
    epoch
}

/// Whether the broker's directories do not remember the life that was registered last: somebody put an older copy of them back.
fn is_set_back(image: &Image, asked: &Registration) -> bool {
    let last = image.broker(asked.broker.id).map(|known| known.incarnation);
    !asked.remembered.is_empty() && last.is_some_and(|last| !asked.remembered.contains(&last))
}

fn check(image: &Image, asked: &Registration, other_is_alive: bool) -> Result<(), Refusal> {
    let broker = &asked.broker;
    if !asked.cluster_id.is_empty() && *asked.cluster_id != *image.cluster_id {
        let sentence = format!("Expected cluster ID {}, but got cluster ID {}", image.cluster_id, asked.cluster_id);
        return Err(Refusal::new(ErrorCode::INCONSISTENT_CLUSTER_ID, sentence));
    }
    let is_another = image.broker(broker.id).is_some_and(|known| known.incarnation != broker.incarnation);
    if is_another && other_is_alive {
        let sentence = format!(
            "Another broker with id {} is alive. If this one was just restarted, it can register as soon as the session of its \
             former process ends",
            broker.id
        );
        return Err(Refusal::new(ErrorCode::DUPLICATE_BROKER_REGISTRATION, sentence));
    }
    if is_another && is_set_back(image, asked) {
        let sentence = format!("The log directories of broker {} are older than its last registration", broker.id);
        return Err(Refusal::new(ErrorCode::STALE_BROKER_EPOCH, sentence));
    }
    check_directories(image, broker)?;
    match reason_against_broker(image, broker) {
        Some(sentence) => Err(Refusal::new(ErrorCode::UNSUPPORTED_VERSION, sentence)),
        None => Ok(()),
    }
}

fn check_directories(image: &Image, broker: &BrokerRegistration) -> Result<(), Refusal> {
    let refuse = |sentence: String| Err(Refusal::new(ErrorCode::INVALID_REGISTRATION, sentence));
    if broker.directories.is_empty() {
        return refuse("No directories specified in request".to_owned());
    }
    let mut seen = BTreeSet::new();
    for directory in &broker.directories {
        // Kafka keeps the first hundred ids for its own meanings.
        if directory.as_u128() < 100 {
            return refuse("Reserved directory ID in request".to_owned());
        }
        if !seen.insert(directory) {
            return refuse("Duplicate directory ID in request".to_owned());
        }
        let owner = image.brokers().find(|other| other.id != broker.id && other.directories.contains(directory));
        if let Some(owner) = owner {
            return refuse(format!("Broker {} is already registered with directory {directory}", owner.id));
        }
    }
    Ok(())
}
