//! Brokers coming and going, and the first records of a new cluster.

use super::features::initial_features;
use super::{Decision, Refusal};
use crate::base::{BrokerId, ErrorCode};
use crate::metadata::{BrokerRegistration, ConfigResource, Image, MetadataRecord};

/// A broker at its start. The registration's epoch is chosen here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registering {
    pub registration: BrokerRegistration,
    /// Given to a cluster that has no identity yet.
    pub cluster_id: String,
}

/// The broker's registration, before it the bootstrap records of a cluster that is new, and behind it the next leader epoch of
/// every partition that this broker leads: after a restart an epoch must not name two different ends of one log (KIP-101).
/// The reply is the broker epoch.
pub fn register_broker(image: &Image, broker: &Registering) -> Decision<i64> {
    let mut records = Vec::new();
    if image.cluster_id.is_empty() {
        records.push(MetadataRecord::Cluster { cluster_id: broker.cluster_id.clone() });
        records.extend(initial_features());
        // With eligible leader replicas on, Kafka keeps the in-sync minimum as a cluster-wide dynamic default (KIP-966).
        records.push(MetadataRecord::Config {
            resource: ConfigResource::broker_default(),
            name: "min.insync.replicas".to_owned(),
            value: Some("1".to_owned()),
        });
    }
    let id = broker.registration.id;
    let known = image.broker(id).map_or(-1, |old| old.epoch);
    let epoch = known.max(image.offset).saturating_add(1);
    records.push(MetadataRecord::Broker(BrokerRegistration { epoch, ..broker.registration.clone() }));
    if leads_something(image, id) {
        records.push(MetadataRecord::LeadershipRenewed { leader: id });
    }
    Decision { records, reply: epoch }
}

fn leads_something(image: &Image, id: BrokerId) -> bool {
    image.topics().any(|topic| topic.partitions.iter().any(|partition| partition.leader == id))
}

/// Takes a broker's registration away. One that is alive would only register again: it must stop first.
pub fn unregister_broker(image: &Image, id: BrokerId) -> Decision<Option<Refusal>> {
    match image.broker(id) {
        None => {
            let message = format!("Broker ID {id} is not currently registered");
            Decision::unchanged(Some(Refusal::new(ErrorCode::BROKER_ID_NOT_REGISTERED, message)))
        }
        Some(broker) if !broker.fenced => {
            let message = format!("Broker {id} is running; stop it before unregistering it");
            Decision::unchanged(Some(Refusal::new(ErrorCode::INVALID_REQUEST, message)))
        }
        Some(_) => Decision { records: vec![MetadataRecord::BrokerRemoved { id }], reply: None },
    }
}
