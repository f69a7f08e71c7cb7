//! AlterConfigs: everything that is set on a resource, replaced (v0 to v2; the incremental form is KIP-339's).

use std::sync::Arc;

use super::{change, text, told};
use crate::api::{Broker, Refused, RequestContext};
use crate::controller::decide::configs::{self, ConfigChange, ResourceOutcome, ResourceValues};
use crate::metadata::Image;
use crate::wire::messages::alter_configs_response::AlterConfigsResourceResponse;
use crate::wire::messages::{AlterConfigsRequest, AlterConfigsResponse};

pub async fn handle(
    broker: &Arc<Broker>,
    context: &RequestContext,
    request: AlterConfigsRequest,
) -> Result<AlterConfigsResponse, Refused> {
    let resources = resources(&request);
    let names = |values: &ResourceValues| values.values.iter().map(|(name, _)| name.clone()).collect();
    let keys = resources.iter().map(|one| ((one.kind, one.name.clone()), names(one))).collect();
    let decide = move |image: &Image, with: &ConfigChange<'_>| configs::alter_configs(image, &resources, with);
    Ok(response(&change(broker, context, request.validate_only, &keys, decide).await?))
}

fn resources(request: &AlterConfigsRequest) -> Vec<ResourceValues> {
    let values = |config: &crate::wire::messages::alter_configs_request::AlterableConfig| {
        (config.name.to_string(), config.value.as_ref().map(|value| value.to_string()))
    };
    let resource = |resource: &crate::wire::messages::alter_configs_request::AlterConfigsResource| ResourceValues {
        kind: resource.resource_type,
        name: resource.resource_name.to_string(),
        values: resource.configs.iter().map(values).collect(),
    };
    request.resources.iter().map(resource).collect()
}

fn response(outcomes: &[ResourceOutcome]) -> AlterConfigsResponse {
    let answer = |outcome: &ResourceOutcome| {
        let (code, message) = told(&outcome.result);
        AlterConfigsResourceResponse::default()
            .with_error_code(code)
            .with_error_message(message)
            .with_resource_type(outcome.kind)
            .with_resource_name(text(&outcome.name))
    };
    AlterConfigsResponse::default().with_responses(outcomes.iter().map(answer).collect())
}
