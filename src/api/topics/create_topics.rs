//! CreateTopics (key 19).
//! v4: -1 partitions and replicas mean the broker's defaults (already from v2 on, as in Kafka); v5 answers with counts and configs
//! (KIP-525); v7 with the topic id.

use std::sync::Arc;

use crate::api::cluster::{message, quorum_refusal, text};
use crate::api::{Broker, Refused, RequestContext};
use crate::controller::Refusal;
use crate::controller::decide::create_topics::{CreatedTopic, NewTopic, TopicOutcome};
use crate::metadata::config::{BrokerLayers, describe};
use crate::metadata::{ConfigOverrides, Image};
use crate::wire::messages::create_topics_request::CreatableTopic;
use crate::wire::messages::create_topics_response::{CreatableTopicConfigs, CreatableTopicResult};
use crate::wire::messages::{CreateTopicsRequest, CreateTopicsResponse, StrBytes};

pub async fn handle(
    broker: &Arc<Broker>,
    context: &RequestContext,
    request: CreateTopicsRequest,
) -> Result<CreateTopicsResponse, Refused> {
    let topics: Vec<NewTopic> = request.topics.iter().map(wanted).collect();
    let outcomes = match broker.controller.create_topics(topics, request.validate_only).await {
        Ok(outcomes) => outcomes,
        Err(error) => all_refused(&request, &quorum_refusal(&error)),
    };
    let image = broker.controller.quorum().image();
    let results = outcomes.into_iter().map(|outcome| result(broker, &image, outcome, context.api_version)).collect();
    Ok(CreateTopicsResponse::default().with_topics(results))
}

fn wanted(topic: &CreatableTopic) -> NewTopic {
    let replicas = |ids: &[crate::wire::messages::BrokerId]| ids.iter().map(|id| id.0).collect();
    NewTopic {
        name: topic.name.to_string(),
        partitions: topic.num_partitions,
        replication_factor: topic.replication_factor,
        assignments: topic.assignments.iter().map(|one| (one.partition_index, replicas(&one.broker_ids))).collect(),
        configs: topic
            .configs
            .iter()
            .map(|config| (config.name.to_string(), config.value.as_ref().map(StrBytes::to_string)))
            .collect(),
    }
}

fn all_refused(request: &CreateTopicsRequest, refusal: &Refusal) -> Vec<TopicOutcome> {
    let refused = |topic: &CreatableTopic| TopicOutcome { name: topic.name.to_string(), result: Err(refusal.clone()) };
    request.topics.iter().map(refused).collect()
}

fn result(broker: &Broker, image: &Image, outcome: TopicOutcome, version: i16) -> CreatableTopicResult {
    let name = StrBytes::from_string(outcome.name).into();
    let mut result = CreatableTopicResult::default().with_name(name).with_error_message(None);
    match outcome.result {
        Err(refusal) => {
            result = result.with_error_code(refusal.code.code()).with_error_message(message(&refusal));
            result.configs = Some(Vec::new());
        }
        Ok(created) => fill(&mut result, broker, image, &created, version),
    }
    result
}

/// The fields of success, as far as the version has them.
fn fill(result: &mut CreatableTopicResult, broker: &Broker, image: &Image, created: &CreatedTopic, version: i16) {
    if version >= 5 {
        result.num_partitions = created.partitions;
        result.replication_factor = created.replication_factor;
        result.configs = Some(configs(broker, image, &created.configs));
    }
    if version >= 7 {
        result.topic_id = created.id.0;
    }
}

/// Every topic config with its value and where that comes from.
fn configs(broker: &Broker, image: &Image, overrides: &ConfigOverrides) -> Vec<CreatableTopicConfigs> {
    let properties = &*broker.options.static_properties;
    let below = BrokerLayers::of(image, broker.options.node_id, properties);
    let described = |entry: describe::Entry| {
        CreatableTopicConfigs::default()
            .with_name(text(&entry.name))
            .with_value(entry.value.as_deref().map(text))
            .with_read_only(entry.read_only)
            .with_config_source(entry.source.wire_id())
            .with_is_sensitive(entry.sensitive)
    };
    describe::topic(overrides, &below).into_iter().map(described).collect()
}
