//! UpdateFeatures (key 57): moves finalized feature levels (KIP-584).
//! v0 says "downgrade allowed", v1 a direction and whether to validate only, v2 has no results per feature any more.

use std::sync::Arc;

use super::{message, quorum_refusal};
use crate::api::{Broker, Refused, RequestContext};
use crate::controller::decide::features::{Direction, FeatureUpdate};
use crate::wire::messages::update_features_request::FeatureUpdateKey;
use crate::wire::messages::update_features_response::UpdatableFeatureResult;
use crate::wire::messages::{StrBytes, UpdateFeaturesRequest, UpdateFeaturesResponse};

/// `UpgradeType` of the protocol; 2 and 3 are safe and unsafe downgrades.
const UPGRADE: i8 = 1;

pub async fn handle(
    broker: &Arc<Broker>,
    context: &RequestContext,
    request: UpdateFeaturesRequest,
) -> Result<UpdateFeaturesResponse, Refused> {
    let version = context.api_version;
    let updates: Vec<_> = request.feature_updates.iter().map(|update| wanted(update, version)).collect();
    let outcome = match broker.controller.update_features(updates, request.validate_only).await {
        Ok(outcome) => outcome,
        Err(error) => Err(quorum_refusal(&error)),
    };
    let mut response = UpdateFeaturesResponse::default().with_error_message(None);
    match outcome {
        Err(refusal) => {
            response = response.with_error_code(refusal.code.code()).with_error_message(message(&refusal));
        }
        Ok(()) if version <= 1 => {
            let done = |update: FeatureUpdateKey| {
                UpdatableFeatureResult::default()
                    .with_feature(update.feature)
                    .with_error_message(Some(StrBytes::from_static_str("NONE")))
            };
            response.results = request.feature_updates.into_iter().map(done).collect();
        }
        Ok(()) => {}
    }
    Ok(response)
}

fn wanted(update: &FeatureUpdateKey, version: i16) -> FeatureUpdate {
    let upgrade = if version == 0 { !update.allow_downgrade } else { update.upgrade_type == UPGRADE };
    FeatureUpdate {
        name: update.feature.to_string(),
        level: update.max_version_level,
        direction: if upgrade { Direction::Upgrade } else { Direction::Downgrade },
    }
}
