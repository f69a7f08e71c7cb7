//! DescribeConfigs: every setting of a resource with its value and where that comes from.
//!
//! v1 synonyms, v3 types and documentation (KIP-569), v4 flexible. Secrets are named and never shown. A list of keys that is null or
//! empty asks for all; keys that nobody knows are left out.

use std::sync::Arc;

use super::{View, text};
use crate::api::{Broker, Refused, RequestContext};
use crate::base::{BrokerId, ErrorCode};
use crate::controller::decide::Refusal;
use crate::metadata::config::ConfigSource;
use crate::metadata::config::describe::{self, Entry};
use crate::metadata::{ConfigOverrides, ConfigResource, ResourceKind, topic_name};
use crate::wire::messages::describe_configs_request::DescribeConfigsResource;
use crate::wire::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use crate::wire::messages::{DescribeConfigsRequest, DescribeConfigsResponse};

pub async fn handle(
    broker: &Arc<Broker>,
    _context: &RequestContext,
    request: DescribeConfigsRequest,
) -> Result<DescribeConfigsResponse, Refused> {
    let image = broker.image();
    Ok(respond(&request, View::of(broker, &image)))
}

fn respond(request: &DescribeConfigsRequest, view: View<'_>) -> DescribeConfigsResponse {
    let results = request.resources.iter().map(|resource| describe_one(request, resource, view)).collect();
    DescribeConfigsResponse::default().with_results(results)
}

fn describe_one(
    request: &DescribeConfigsRequest,
    resource: &DescribeConfigsResource,
    view: View<'_>,
) -> DescribeConfigsResult {
    let result = DescribeConfigsResult::default()
        .with_resource_type(resource.resource_type)
        .with_resource_name(resource.resource_name.clone());
    match entries(resource, view) {
        Ok(entries) => {
            let keys = resource.configuration_keys.as_deref().filter(|keys| !keys.is_empty());
            let wanted = |entry: &Entry| keys.is_none_or(|keys| keys.iter().any(|key| key.as_str() == entry.name));
            let shown = entries.iter().filter(|entry| wanted(entry)).map(|entry| shown(entry, request));
            result.with_error_message(Some(text(""))).with_configs(shown.collect())
        }
        Err(refusal) => {
            result.with_error_code(refusal.code.code()).with_error_message(refusal.message.as_deref().map(text))
        }
    }
}

fn entries(resource: &DescribeConfigsResource, view: View<'_>) -> Result<Vec<Entry>, Refusal> {
    let name = resource.resource_name.as_str();
    let invalid = |message: &str| Err(Refusal::new(ErrorCode::INVALID_REQUEST, message));
    match ResourceKind::from_id(resource.resource_type) {
        Some(ResourceKind::Topic) => topic_entries(name, view),
        Some(ResourceKind::Broker) => broker_entries(resource, view),
        Some(ResourceKind::BrokerLogger) => logger_entries(name, view),
        Some(ResourceKind::ClientMetrics) if name.is_empty() => {
            invalid("Client metrics subscription name must not be empty")
        }
        Some(ResourceKind::ClientMetrics) => {
            Ok(describe::client_metrics(&set_on(ResourceKind::ClientMetrics, name, view)))
        }
        Some(ResourceKind::Group) if name.is_empty() => invalid("Group name must not be empty"),
        Some(ResourceKind::Group) => Ok(describe::group(&set_on(ResourceKind::Group, name, view), &view.layers())),
        None => invalid(&format!("Unknown resource type {}", resource.resource_type)),
    }
}

fn set_on<'a>(kind: ResourceKind, name: &str, view: View<'a>) -> Option<&'a ConfigOverrides> {
    view.image.configs(&ConfigResource::new(kind, name)).map(|values| &**values)
}

fn topic_entries(name: &str, view: View<'_>) -> Result<Vec<Entry>, Refusal> {
    topic_name::validate(name).map_err(|message| Refusal::new(ErrorCode::INVALID_TOPIC_EXCEPTION, message))?;
    if view.image.topic(name).is_none() {
        let message = format!("The topic '{name}' does not exist.");
        return Err(Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, message));
    }
    Ok(describe::topic(&set_on(ResourceKind::Topic, name, view), &view.layers()))
}

fn broker_entries(resource: &DescribeConfigsResource, view: View<'_>) -> Result<Vec<Entry>, Refusal> {
    let name = resource.resource_name.as_str();
    let for_all = view.image.configs(&ConfigResource::broker_default());
    if name.is_empty() {
        return Ok(for_all.map(|set| describe::broker_default(set)).unwrap_or_default());
    }
    let expected = format!("{} or empty string,", view.node_id);
    check_node(name, view.node_id, &expected)?;
    let for_one = view.image.configs(&ConfigResource::broker(view.node_id));
    let dynamic: Vec<&ConfigOverrides> = [for_one, for_all].into_iter().flatten().map(|set| &**set).collect();
    let named: Option<Vec<String>> =
        resource.configuration_keys.as_ref().map(|keys| keys.iter().map(|key| key.as_str().to_owned()).collect());
    Ok(describe::broker(&view.layers(), &dynamic, named.as_deref()))
}

fn check_node(name: &str, node_id: BrokerId, expected: &str) -> Result<(), Refusal> {
    match name.parse::<BrokerId>() {
        Ok(id) if id == node_id => Ok(()),
        Ok(id) => {
            let message = format!("Unexpected broker id, expected {expected} but received {id}");
            Err(Refusal::new(ErrorCode::INVALID_REQUEST, message))
        }
        Err(_) => {
            let message = format!("Broker id must be an integer, but it is: {name}");
            Err(Refusal::new(ErrorCode::INVALID_REQUEST, message))
        }
    }
}

fn logger_entries(name: &str, view: View<'_>) -> Result<Vec<Entry>, Refusal> {
    if name.is_empty() {
        return Err(Refusal::new(ErrorCode::INVALID_REQUEST, "Broker id must not be empty"));
    }
    check_node(name, view.node_id, &view.node_id.to_string())?;
    let entry = |(logger, level): (&str, String)| Entry {
        name: logger.to_owned(),
        value: Some(level),
        source: ConfigSource::BrokerLogger,
        read_only: false,
        sensitive: false,
        synonyms: Vec::new(),
        kind: 0,
        documentation: "",
    };
    Ok(view.log_control.levels().into_iter().map(entry).collect())
}

fn shown(entry: &Entry, request: &DescribeConfigsRequest) -> DescribeConfigsResourceResult {
    let synonyms = if request.include_synonyms { entry.synonyms.as_slice() } else { &[] };
    let synonym = |one: &describe::EntrySynonym| {
        DescribeConfigsSynonym::default()
            .with_name(text(&one.name))
            .with_value(one.value.as_deref().map(text))
            .with_source(one.source.wire_id())
    };
    let documented = request.include_documentation || entry.source == ConfigSource::BrokerLogger;
    DescribeConfigsResourceResult::default()
        .with_name(text(&entry.name))
        .with_value(entry.value.as_deref().map(text))
        .with_read_only(entry.read_only)
        .with_config_source(entry.source.wire_id())
        .with_is_sensitive(entry.sensitive)
        .with_synonyms(synonyms.iter().map(synonym).collect())
        .with_config_type(entry.kind)
        .with_documentation(documented.then(|| text(entry.documentation)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::base::TopicId;
    use crate::metadata::{Image, MetadataRecord, PartitionState};
    use crate::telemetry::logs::LogControl;

    fn image() -> Image {
        let mut image = Image::empty();
        let topic = MetadataRecord::Topic {
            id: TopicId::from_bytes([1; 16]),
            name: "a".into(),
            partitions: vec![PartitionState::new(vec![1], vec![])],
        };
        let default = |name: &str, value: &str| MetadataRecord::Config {
            resource: ConfigResource::broker_default(),
            name: name.into(),
            value: Some(value.into()),
        };
        for record in [topic, default("log.cleaner.backoff.ms", "20000")] {
            image.apply(image.offset + 1, &record).expect("applies");
        }
        image
    }

    fn describe(kind: i8, name: &str, keys: Option<&[&str]>) -> DescribeConfigsResult {
        let resource = DescribeConfigsResource::default()
            .with_resource_type(kind)
            .with_resource_name(text(name))
            .with_configuration_keys(keys.map(|keys| keys.iter().map(|key| text(key)).collect()));
        let request = DescribeConfigsRequest::default().with_resources(vec![resource]).with_include_synonyms(true);
        let fixed = BTreeMap::from([("node.id".to_owned(), "1".to_owned())]);
        let log_control = LogControl::detached("info,barnabas::api=debug").expect("a filter");
        let view = View { image: &image(), node_id: 1, fixed: &fixed, log_control: &log_control };
        respond(&request, view).results.remove(0)
    }

    fn refusal(kind: i8, name: &str) -> (i16, String) {
        let result = describe(kind, name, None);
        assert_eq!(result.configs, []);
        (result.error_code, result.error_message.map(|text| text.to_string()).unwrap_or_default())
    }

    #[test]
    fn all_keys_are_described_when_none_is_named() {
        assert_eq!(describe(2, "a", None).configs.len(), 37);
        assert_eq!(describe(2, "a", Some(&[])).configs.len(), 37);
        assert_eq!(describe(4, "1", None).configs.len(), 350);
        assert_eq!(describe(32, "g", None).configs.len(), 21);
        assert_eq!(describe(16, "m", None).configs.len(), 3);
    }

    #[test]
    fn unknown_keys_are_left_out_and_doubled_ones_shown_once() {
        let result = describe(2, "a", Some(&["retention.ms", "no.such.key", "retention.ms"]));
        assert_eq!(result.configs.iter().map(|config| config.name.as_str()).collect::<Vec<_>>(), ["retention.ms"]);
    }

    #[test]
    fn a_broker_shows_where_a_value_comes_from() {
        let result = describe(4, "1", Some(&["log.cleaner.backoff.ms", "node.id"]));
        let sources: Vec<_> = result
            .configs
            .iter()
            .map(|config| (config.config_source, config.synonyms.iter().map(|one| one.source).collect::<Vec<_>>()))
            .collect();
        assert_eq!(sources, [(3, vec![3, 5]), (4, vec![4, 5])]);
        assert_eq!(describe(4, "", None).configs.len(), 1);
    }

    #[test]
    fn loggers_have_no_type_and_an_empty_sentence() {
        let result = describe(8, "1", Some(&["root"]));
        let root = &result.configs[0];
        assert_eq!((root.config_source, root.config_type, root.documentation.as_deref()), (6, 0, Some("")));
        let api = &describe(8, "1", Some(&["barnabas.api"])).configs[0];
        assert_eq!((root.value.as_deref(), api.value.as_deref()), (Some("INFO"), Some("DEBUG")));
    }

    #[test]
    fn what_cannot_be_described_is_refused() {
        assert_eq!(refusal(2, "none").0, 3);
        assert_eq!(refusal(2, "a/b").0, 17);
        assert_eq!(refusal(2, "").0, 17);
        assert_eq!(
            refusal(4, "77"),
            (42, "Unexpected broker id, expected 1 or empty string, but received 77".to_owned())
        );
        assert_eq!(refusal(4, "one"), (42, "Broker id must be an integer, but it is: one".to_owned()));
        assert_eq!(refusal(8, "77"), (42, "Unexpected broker id, expected 1 but received 77".to_owned()));
        assert_eq!(refusal(8, "").0, 42);
        assert_eq!(refusal(16, "").0, 42);
        assert_eq!(refusal(32, "").0, 42);
        for kind in [0, 1, 3, 5, 64] {
            assert_eq!(refusal(kind, "x").0, 42);
        }
    }
}
