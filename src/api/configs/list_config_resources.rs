//! ListConfigResources: which resources can be, or are, configured.
//!
//! v0 (KIP-714, then ListClientMetricsResources) names client-metrics subscriptions; v1 (KIP-1142) the kinds that are asked for, or
//! all when none is.

use std::sync::Arc;

use super::text;
use crate::api::{Broker, Refused, RequestContext};
use crate::base::ErrorCode;
use crate::metadata::{Image, ResourceKind};
use crate::wire::messages::list_config_resources_response::ConfigResource;
use crate::wire::messages::{ListConfigResourcesRequest, ListConfigResourcesResponse};

const ALL: [ResourceKind; 5] = [
    ResourceKind::Topic,
    ResourceKind::Broker,
    ResourceKind::BrokerLogger,
    ResourceKind::ClientMetrics,
    ResourceKind::Group,
];

pub async fn handle(
    broker: &Arc<Broker>,
    context: &RequestContext,
    request: ListConfigResourcesRequest,
) -> Result<ListConfigResourcesResponse, Refused> {
    Ok(respond(context.api_version, &request, &broker.image()))
}

fn respond(version: i16, request: &ListConfigResourcesRequest, image: &Image) -> ListConfigResourcesResponse {
    let response = ListConfigResourcesResponse::default();
    let Some(kinds) = kinds(version, request) else {
        return response.with_error_code(ErrorCode::UNSUPPORTED_VERSION.code());
    };
    let named = |kind: ResourceKind, name: &str| {
        ConfigResource::default().with_resource_name(text(name)).with_resource_type(kind.id())
    };
    let resources =
        kinds.into_iter().flat_map(|kind| names(kind, image).into_iter().map(move |name| named(kind, &name)));
    response.with_config_resources(resources.collect())
}

/// `None` when a kind is asked for that nobody knows.
fn kinds(version: i16, request: &ListConfigResourcesRequest) -> Option<Vec<ResourceKind>> {
    if version == 0 {
        return Some(vec![ResourceKind::ClientMetrics]);
    }
    if request.resource_types.is_empty() {
        return Some(ALL.to_vec());
    }
    let asked: Option<Vec<ResourceKind>> = request.resource_types.iter().map(|id| ResourceKind::from_id(*id)).collect();
    asked.map(|asked| ALL.into_iter().filter(|kind| asked.contains(kind)).collect())
}

/// Topics and brokers that there are; of groups and subscriptions those that have something set.
fn names(kind: ResourceKind, image: &Image) -> Vec<String> {
    match kind {
        ResourceKind::Topic => image.topics().map(|topic| topic.name.to_string()).collect(),
        ResourceKind::Broker | ResourceKind::BrokerLogger => {
            image.live_brokers().map(|broker| broker.id.to_string()).collect()
        }
        ResourceKind::ClientMetrics | ResourceKind::Group => {
            let configured = image.config_resources().filter(|(resource, _)| resource.kind == kind);
            configured.map(|(resource, _)| resource.name.clone()).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{ConfigResource as Resource, MetadataRecord};

    fn list(version: i16, kinds: &[i8]) -> (i16, Vec<(String, i8)>) {
        let mut image = Image::empty();
        let set = |resource: Resource, name: &str, value: &str| MetadataRecord::Config {
            resource,
            name: name.into(),
            value: Some(value.into()),
        };
        let records = [
            set(Resource::group("g"), "share.isolation.level", "read_committed"),
            set(Resource::new(ResourceKind::ClientMetrics, "m"), "interval.ms", "60000"),
        ];
        for record in records {
            image.apply(image.offset + 1, &record).expect("applies");
        }
        let request = ListConfigResourcesRequest::default().with_resource_types(kinds.to_vec());
        let response = respond(version, &request, &image);
        let resources = response.config_resources.iter();
        (response.error_code, resources.map(|one| (one.resource_name.to_string(), one.resource_type)).collect())
    }

    #[test]
    fn the_first_version_knows_client_metrics_only() {
        assert_eq!(list(0, &[]), (0, vec![("m".into(), 16)]));
    }

    #[test]
    fn kinds_are_listed_as_asked() {
        assert_eq!(list(1, &[32]), (0, vec![("g".into(), 32)]));
        assert_eq!(list(1, &[16, 16]), (0, vec![("m".into(), 16)]));
        assert_eq!(list(1, &[]), (0, vec![("m".into(), 16), ("g".into(), 32)]));
    }

    #[test]
    fn an_unknown_kind_spoils_the_request() {
        for kinds in [&[0][..], &[3], &[4, 77]] {
            assert_eq!(list(1, kinds), (35, vec![]));
        }
    }
}
