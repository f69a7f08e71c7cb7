//! Brokers coming and going by hand: a node that makes its cluster, and a broker that is gone for good.

use super::elections::{Event, after};
use super::registration::{MIN_IN_SYNC_DEFAULT, bootstrap};
use super::rules::Rules;
use super::{Decision, Draft, Refusal};
use crate::base::{BrokerId, ErrorCode};
use crate::metadata::{BrokerRegistration, Image, MetadataRecord};

/// A broker at its start. The registration's epoch is chosen here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registering {
    pub registration: BrokerRegistration,
    /// Given to a cluster that has no identity yet.
    pub cluster_id: String,
}

/// The broker's registration without any question, before it the bootstrap records of a cluster that is new, and behind it the next
/// leader epoch of every partition that this broker leads: after a restart an epoch must not name two different ends of one log
/// (KIP-101). For the node that is its own controller; others ask ([`super::registration`]). The reply is the broker epoch.
pub fn register_broker(image: &Image, broker: &Registering) -> Decision<i64> {
    let mut draft = Draft::of(image);
    if image.cluster_id.is_empty() {
        draft.extend(bootstrap(&broker.cluster_id, MIN_IN_SYNC_DEFAULT));
    }
    let id = broker.registration.id;
    let epoch = draft.image.offset.saturating_add(1);
    draft.push(MetadataRecord::Broker(BrokerRegistration { epoch, ..broker.registration.clone() }));
    if image.leads_something(id) {
        draft.push(MetadataRecord::LeadershipRenewed { leader: id });
    }
    Decision { records: draft.records, reply: epoch }
}

/// Takes a broker's registration away, and the broker out of every in-sync set and every eligible one. One that is alive would only
/// register again: it must stop first.
pub fn unregister_broker(image: &Image, rules: &Rules<'_>, id: BrokerId) -> Decision<Option<Refusal>> {
    match image.broker(id) {
        None => {
            let message = format!("Broker ID {id} is not currently registered");
            Decision::unchanged(Some(Refusal::new(ErrorCode::BROKER_ID_NOT_REGISTERED, message)))
        }
        Some(broker) if !broker.fenced => {
            let message = format!("Broker {id} is running; stop it before unregistering it");
            Decision::unchanged(Some(Refusal::new(ErrorCode::INVALID_REQUEST, message)))
        }
        Some(_) => {
            let mut records = after(image, rules, Event::LostData(id));
            records.push(MetadataRecord::BrokerRemoved { id });
            Decision { records, reply: None }
        }
    }
}
