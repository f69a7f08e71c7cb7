//! DeleteTopics (key 20).
//! v3 tells when deletion is switched off, v5 adds sentences (KIP-599), v6 ids (KIP-516).

use std::sync::Arc;

use crate::api::cluster::{message, quorum_refusal, text};
use crate::api::{Broker, Refused, RequestContext};
use crate::base::{ErrorCode, TopicId};
use crate::controller::Refusal;
use crate::controller::decide::delete_topics::{DeleteOutcome, TopicRef};
use crate::wire::messages::delete_topics_response::DeletableTopicResult;
use crate::wire::messages::{DeleteTopicsRequest, DeleteTopicsResponse};

pub async fn handle(
    broker: &Arc<Broker>,
    context: &RequestContext,
    request: DeleteTopicsRequest,
) -> Result<DeleteTopicsResponse, Refused> {
    let version = context.api_version;
    let topics = wanted(&request, version);
    let outcomes = if broker.options.delete_topic_enable {
        match broker.controller.delete_topics(topics.clone()).await {
            Ok(outcomes) => outcomes,
            Err(error) => all_refused(topics, &quorum_refusal(&error)),
        }
    } else {
        let code = if version >= 3 { ErrorCode::TOPIC_DELETION_DISABLED } else { ErrorCode::INVALID_REQUEST };
        all_refused(topics, &Refusal::new(code, "Topic deletion is disabled on this broker (delete.topic.enable)."))
    };
    Ok(DeleteTopicsResponse::default().with_responses(outcomes.into_iter().map(|one| result(one, version)).collect()))
}

fn wanted(request: &DeleteTopicsRequest, version: i16) -> Vec<TopicRef> {
    if version < 6 {
        return request.topic_names.iter().map(|name| TopicRef::named(name.to_string())).collect();
    }
    let named = |topic: &crate::wire::messages::delete_topics_request::DeleteTopicState| TopicRef {
        name: topic.name.as_ref().map(|name| name.to_string()),
        id: TopicId(topic.topic_id),
    };
    request.topics.iter().map(named).collect()
}

fn all_refused(topics: Vec<TopicRef>, refusal: &Refusal) -> Vec<DeleteOutcome> {
    let refused = |topic: TopicRef| DeleteOutcome { name: topic.name, id: topic.id, refusal: Some(refusal.clone()) };
    topics.into_iter().map(refused).collect()
}

fn result(outcome: DeleteOutcome, version: i16) -> DeletableTopicResult {
    let mut result = DeletableTopicResult::default().with_name(outcome.name.as_deref().map(|name| text(name).into()));
    if version >= 6 {
        result.topic_id = outcome.id.0;
    }
    if let Some(refusal) = outcome.refusal {
        result.error_code = refusal.code.code();
        result.error_message = if version >= 5 { message(&refusal) } else { None };
    }
    result
}
