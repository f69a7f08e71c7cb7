//! FindCoordinator (key 10): which broker keeps a group, a transactional id or a share partition's state.
//! v1 adds the kind of key, v4 several keys at once (KIP-699), v6 share groups (KIP-932). The first look-up makes the internal topic
//! and answers with its leader at once: clients that do not retry work too.

use std::sync::Arc;

use super::{message, nodes};
use crate::api::{Broker, Refused, RequestContext};
use crate::base::ids::{NO_BROKER, partition_for_key};
use crate::base::{ErrorCode, TopicId};
use crate::controller::Refusal;
use crate::metadata::{Image, topic_name};
use crate::wire::messages::find_coordinator_response::Coordinator;
use crate::wire::messages::{BrokerId, FindCoordinatorRequest, FindCoordinatorResponse, StrBytes};

const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;
const SHARE: i8 = 2;

pub async fn handle(
    broker: &Arc<Broker>,
    context: &RequestContext,
    request: FindCoordinatorRequest,
) -> Result<FindCoordinatorResponse, Refused> {
    let version = context.api_version;
    if version < 4 {
        let found = find(broker, context, request.key_type, request.key).await;
        return Ok(single(found, version));
    }
    let mut coordinators = Vec::with_capacity(request.coordinator_keys.len());
    for key in request.coordinator_keys {
        coordinators.push(find(broker, context, request.key_type, key).await);
    }
    Ok(FindCoordinatorResponse::default().with_coordinators(coordinators))
}

/// The layout before v4.
fn single(found: Coordinator, version: i16) -> FindCoordinatorResponse {
    let mut response = FindCoordinatorResponse::default()
        .with_error_code(found.error_code)
        .with_node_id(found.node_id)
        .with_host(found.host)
        .with_port(found.port);
    if version >= 1 {
        let sentence = found.error_message.filter(|sentence| !sentence.is_empty());
        response.error_message = Some(sentence.unwrap_or_else(|| StrBytes::from_static_str("NONE")));
    }
    response
}

async fn find(broker: &Arc<Broker>, context: &RequestContext, kind: i8, key: StrBytes) -> Coordinator {
    match try_find(broker, context, kind, &key).await {
        Ok(node) => Coordinator::default()
            .with_key(key)
            .with_node_id(BrokerId(node.id))
            .with_host(node.host)
            .with_port(node.port)
            .with_error_message(Some(StrBytes::default())),
        Err(refusal) => Coordinator::default()
            .with_key(key)
            .with_node_id(BrokerId(NO_BROKER))
            .with_port(-1)
            .with_error_code(refusal.code.code())
            .with_error_message(Some(message(&refusal).unwrap_or_default())),
    }
}

async fn try_find(broker: &Arc<Broker>, context: &RequestContext, kind: i8, key: &str) -> Result<nodes::Node, Refusal> {
    let topic = match kind {
        GROUP => topic_name::CONSUMER_OFFSETS,
        // There are no transactions yet, so nothing would use `__transaction_state`. Any broker tells the client so.
        TRANSACTION => return this_node(broker, context),
        SHARE if context.api_version >= 6 => {
            check_share_key(key)?;
            topic_name::SHARE_GROUP_STATE
        }
        other => {
            let sentence = format!("Key type {other} does not exist in version {}", context.api_version);
            return Err(Refusal::new(ErrorCode::INVALID_REQUEST, sentence));
        }
    };
    if let Err(refusal) = broker.ensure_internal_topic(topic).await {
        tracing::warn!(topic, reason = refusal.message, "an internal topic cannot be made");
        return Err(Refusal { code: ErrorCode::COORDINATOR_NOT_AVAILABLE, ..refusal });
    }
    leader(&broker.controller.quorum().image(), broker, context, topic, key)
}

fn this_node(broker: &Broker, context: &RequestContext) -> Result<nodes::Node, Refusal> {
    let image = broker.controller.quorum().image();
    let found = image.broker(broker.options.node_id).and_then(|own| nodes::node(own, &broker.options, context));
    found.ok_or_else(unavailable)
}

fn unavailable() -> Refusal {
    Refusal::new(ErrorCode::COORDINATOR_NOT_AVAILABLE, "The coordinator is not available.")
}

fn leader(
    image: &Image,
    broker: &Broker,
    context: &RequestContext,
    topic: &str,
    key: &str,
) -> Result<nodes::Node, Refusal> {
    let found = image.topic(topic).and_then(|topic| {
        let partition = topic.partition(partition_for_key(key, topic.partition_count()))?;
        let leader = image.broker(partition.leader).filter(|leader| !leader.fenced)?;
        nodes::node(leader, &broker.options, context)
    });
    found.ok_or_else(unavailable)
}

/// `group:topic id:partition`
fn check_share_key(key: &str) -> Result<(), Refusal> {
    let parts: Vec<&str> = key.split(':').collect();
    let ok = match parts.as_slice() {
        [group, topic, partition] => {
            !group.is_empty() && TopicId::parse_base64(topic).is_some() && partition.parse::<i32>().is_ok()
        }
        _ => false,
    };
    if ok {
        return Ok(());
    }
    let sentence = "The key of a share partition is group:topicId:partition";
    Err(Refusal::new(ErrorCode::INVALID_REQUEST, sentence))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_keys_have_three_parts() {
        assert_eq!(check_share_key("g:AAAAAAAAAAAAAAAAAAAAAQ:0"), Ok(()));
        for key in ["", "g", "a:b", ":AAAAAAAAAAAAAAAAAAAAAQ:0", "g:notanid:0", "g:AAAAAAAAAAAAAAAAAAAAAQ:q", "a:b:c:d"]
        {
            assert_eq!(check_share_key(key).unwrap_err().code, ErrorCode::INVALID_REQUEST, "{key}");
        }
    }
}
