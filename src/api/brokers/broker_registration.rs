//! BrokerRegistration (key 62): a broker asks to be let in (KIP-631).
//! v2 names log directories (KIP-858), v3 the epoch before a clean stop (KIP-966).

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use super::check_speaker;
use crate::api::cluster::quorum_refusal;
use crate::api::{Broker, Refused, RequestContext};
use crate::base::ErrorCode;
use crate::controller::decide::registration::Registration;
use crate::metadata::{BrokerRegistration, Endpoint, FeatureRange};
use crate::wire::messages::broker_registration_request::Listener;
use crate::wire::messages::{BrokerRegistrationRequest, BrokerRegistrationResponse};

/// A field of our own: former lives (incarnations) of the broker that its log directories remember, 16 bytes each.
const REMEMBERED: i32 = 30_000;

/// That field, for a request. Without any there is none.
pub fn remembered_field(lives: &[Uuid]) -> BTreeMap<i32, Bytes> {
    if lives.is_empty() {
        return BTreeMap::new();
    }
    BTreeMap::from([(REMEMBERED, lives.iter().flat_map(|life| life.into_bytes()).collect())])
}

fn remembered(request: &BrokerRegistrationRequest) -> Vec<Uuid> {
    let lives = request.unknown_tagged_fields.get(&REMEMBERED).map(|bytes| bytes.chunks_exact(16));
    lives.into_iter().flatten().filter_map(|life| Uuid::from_slice(life).ok()).collect()
}

pub async fn handle(
    broker: &Arc<Broker>,
    context: &RequestContext,
    request: BrokerRegistrationRequest,
) -> Result<BrokerRegistrationResponse, Refused> {
    if let Err(code) = check_speaker(context, request.broker_id.0) {
        return Ok(failed(code));
    }
    Ok(match broker.controller.register(wanted(&request)).await {
        Ok(Ok(epoch)) => BrokerRegistrationResponse::default().with_broker_epoch(epoch),
        Ok(Err(refusal)) => failed(refusal.code),
        Err(error) => failed(quorum_refusal(&error).code),
    })
}

fn failed(code: ErrorCode) -> BrokerRegistrationResponse {
    BrokerRegistrationResponse::default().with_error_code(code.code()).with_broker_epoch(-1)
}

fn wanted(request: &BrokerRegistrationRequest) -> Registration {
    let feature = |feature: &crate::wire::messages::broker_registration_request::Feature| FeatureRange {
        name: feature.name.to_string(),
        min: feature.min_supported_version,
        max: feature.max_supported_version,
    };
    Registration {
        cluster_id: request.cluster_id.to_string(),
        fresh_cluster_id: String::new(),
        broker: BrokerRegistration {
            id: request.broker_id.0,
            incarnation: request.incarnation_id,
            endpoints: request.listeners.iter().map(endpoint).collect(),
            rack: request.rack.as_ref().map(ToString::to_string),
            directories: request.log_dirs.clone(),
            features: request.features.iter().map(feature).collect(),
            ..BrokerRegistration::default()
        },
        previous_epoch: Some(request.previous_broker_epoch).filter(|epoch| *epoch >= 0),
        remembered: remembered(request),
    }
}

fn endpoint(listener: &Listener) -> Endpoint {
    Endpoint {
        listener: listener.name.to_string(),
        protocol: security_protocol(listener.security_protocol).to_owned(),
        host: listener.host.to_string(),
        port: listener.port,
    }
}

/// Kafka's numbers for security protocols.
fn security_protocol(id: i16) -> &'static str {
    match id {
        1 => "SSL",
        2 => "SASL_PLAINTEXT",
        3 => "SASL_SSL",
        _ => "PLAINTEXT",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_directories_remember_arrives() {
        let lives = [Uuid::from_u128(1), Uuid::from_u128(2)];
        let request = BrokerRegistrationRequest::default().with_unknown_tagged_fields(remembered_field(&lives));
        assert_eq!(wanted(&request).remembered, lives);
        assert!(wanted(&BrokerRegistrationRequest::default()).remembered.is_empty());
    }
}
