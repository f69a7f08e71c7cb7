//! A broker that is gone for good.

use super::elections::{Event, after};
use super::rules::Rules;
use super::{Decision, Refusal};
use crate::base::{BrokerId, ErrorCode};
use crate::metadata::{Image, MetadataRecord};

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
