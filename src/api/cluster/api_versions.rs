//! ApiVersions (key 18): what this broker serves, and which features are on.
//! v3 names the client's software (KIP-511) and tells features (KIP-584); v4 also shows features that may be off; v5 (KIP-1242)
//! lets the client say whom it believes to talk to.

use std::sync::Arc;

use crate::api::{Broker, ClientSoftware, Door, Refused, RequestContext};
use crate::controller::decide::features::SUPPORTED_FEATURES;
use crate::metadata::Image;
use crate::wire::api_versions::{
    Features, FinalizedFeature, SupportedFeature, judge, refused, served, served_by_controllers,
};
use crate::wire::messages::{ApiVersionsRequest, ApiVersionsResponse, StrBytes};

/// The first version that names the client's library.
const SOFTWARE_VERSION: i16 = 3;

pub async fn handle(
    broker: &Arc<Broker>,
    context: &RequestContext,
    request: ApiVersionsRequest,
) -> Result<ApiVersionsResponse, Refused> {
    let image = broker.controller.quorum().image();
    let error = judge(&request, context.api_version, &image.cluster_id, broker.options.node_id);
    if error.is_error() {
        return Ok(refused(error));
    }
    introduce(broker, context, &request);
    Ok(match context.connection.door {
        Door::Broker => served(context.api_version, &features(&image)),
        Door::Controller => served_by_controllers(context.api_version, &features(&image)),
    })
}

/// Keeps what the client says of its library, for log lines and the count of libraries. Only the first word counts.
fn introduce(broker: &Broker, context: &RequestContext, request: &ApiVersionsRequest) {
    let (name, version) = (&*request.client_software_name, &*request.client_software_version);
    if context.api_version < SOFTWARE_VERSION {
        return;
    }
    let software = ClientSoftware { name: name.into(), version: version.into() };
    if context.connection.software.set(software).is_ok() {
        broker.telemetry.listener(&context.connection.listener).introduced(name, version);
    }
}

fn features(image: &Image) -> Features {
    let supported = SUPPORTED_FEATURES.iter().map(|feature| SupportedFeature {
        name: StrBytes::from_static_str(feature.name),
        level_min: feature.min,
        level_max: feature.max,
    });
    let finalized =
        image.features().map(|(name, level)| FinalizedFeature { name: StrBytes::from_string(name.to_string()), level });
    Features { supported: supported.collect(), finalized: finalized.collect(), finalized_epoch: image.offset }
}
