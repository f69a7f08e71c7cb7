//! IncrementalAlterConfigs (KIP-339): single keys set, deleted, appended to and subtracted from; v1 is flexible.

use std::sync::Arc;

use super::{change, text, told};
use crate::api::{Broker, Refused, RequestContext};
use crate::controller::decide::configs::{self, ConfigChange, Edit, EditOp, ResourceEdits, ResourceOutcome};
use crate::metadata::Image;
use crate::wire::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use crate::wire::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use crate::wire::messages::{IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse};

pub async fn handle(
    broker: &Arc<Broker>,
    context: &RequestContext,
    request: IncrementalAlterConfigsRequest,
) -> Result<IncrementalAlterConfigsResponse, Refused> {
    let resources = resources(&request);
    let names = |edits: &ResourceEdits| edits.edits.iter().map(|edit| edit.name.clone()).collect();
    let keys = resources.iter().map(|one| ((one.kind, one.name.clone()), names(one))).collect();
    let decide =
        move |image: &Image, with: &ConfigChange<'_>| configs::incremental_alter_configs(image, &resources, with);
    Ok(response(&change(broker, context, request.validate_only, &keys, decide).await?))
}

fn resources(request: &IncrementalAlterConfigsRequest) -> Vec<ResourceEdits> {
    let edit = |config: &AlterableConfig| Edit {
        name: config.name.to_string(),
        op: EditOp::from_id(config.config_operation),
        value: config.value.as_ref().map(|value| value.to_string()),
    };
    let resource = |resource: &AlterConfigsResource| ResourceEdits {
        kind: resource.resource_type,
        name: resource.resource_name.to_string(),
        edits: resource.configs.iter().map(edit).collect(),
    };
    request.resources.iter().map(resource).collect()
}

fn response(outcomes: &[ResourceOutcome]) -> IncrementalAlterConfigsResponse {
    let answer = |outcome: &ResourceOutcome| {
        let (code, message) = told(&outcome.result);
        AlterConfigsResourceResponse::default()
            .with_error_code(code)
            .with_error_message(message)
            .with_resource_type(outcome.kind)
            .with_resource_name(text(&outcome.name))
    };
    IncrementalAlterConfigsResponse::default().with_responses(outcomes.iter().map(answer).collect())
}
