//! The answer to ApiVersions (KIP-35, 511, 584, 1242): what is served, from the API table, and the features of the cluster.
//! Version 3 hides supported features whose minimum is 0, because its clients cannot read them; version 4 shows them.

use bytes::Bytes;

use super::encode::{EncodeError, encode_response};
use super::messages::api_versions_response::{ApiVersion, FinalizedFeatureKey, SupportedFeatureKey};
use super::messages::{ApiVersionsRequest, ApiVersionsResponse, StrBytes};
use super::table::{self, Api, keys};
use crate::base::ErrorCode;

/// What this binary could do at each feature, and what the cluster has agreed on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features {
    pub supported: Vec<SupportedFeature>,
    pub finalized: Vec<FinalizedFeature>,
    /// Metadata offset at which `finalized` was read; -1 for none.
    pub finalized_epoch: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupportedFeature {
    pub name: StrBytes,
    pub level_min: i16,
    pub level_max: i16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinalizedFeature {
    pub name: StrBytes,
    pub level: i16,
}

/// Whom the client says it talks to (v5) and what software it says it is (v3), judged as Kafka judges it: an odd name or half an address
/// is `INVALID_REQUEST`, another cluster or node is `REBOOTSTRAP_REQUIRED`.
pub fn judge(request: &ApiVersionsRequest, version: i16, cluster_id: &str, node_id: i32) -> ErrorCode {
    let named = is_software_word(&request.client_software_name) && is_software_word(&request.client_software_version);
    if version >= 3 && !named {
        return ErrorCode::INVALID_REQUEST;
    }
    match (request.cluster_id.as_deref(), request.node_id) {
        (None, -1) => ErrorCode::NONE,
        (None, _) | (Some(_), -1) => ErrorCode::INVALID_REQUEST,
        (Some(cluster), node) if cluster == cluster_id && node == node_id => ErrorCode::NONE,
        _ => ErrorCode::REBOOTSTRAP_REQUIRED,
    }
}

/// Letters, digits, dots and dashes, with a letter or digit at both ends (KIP-511).
fn is_software_word(text: &str) -> bool {
    let bytes = text.as_bytes();
    let at_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    at_end(bytes.first())
        && at_end(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
}

/// The answer without an error on a broker's listener.
pub fn served(version: i16, features: &Features) -> ApiVersionsResponse {
    listed(table::served(), version, features)
}

/// The answer without an error on a controller's listener.
pub fn served_by_controllers(version: i16, features: &Features) -> ApiVersionsResponse {
    listed(table::served_by_controllers(), version, features)
}

fn listed(apis: impl Iterator<Item = &'static Api>, version: i16, features: &Features) -> ApiVersionsResponse {
    let mut response = ApiVersionsResponse::default().with_api_keys(apis.map(range).collect());
    if version >= 3 {
        let shown = features.supported.iter().filter(|feature| version >= 4 || feature.level_min > 0);
        response.supported_features = shown.map(supported_key).collect();
        response.finalized_features = features.finalized.iter().map(finalized_key).collect();
        response.finalized_features_epoch = features.finalized_epoch;
    }
    response
}

/// The answer to a request that was understood and refused: it lists no APIs.
pub fn refused(error: ErrorCode) -> ApiVersionsResponse {
    ApiVersionsResponse::default().with_error_code(error.code())
}

/// The whole answer frame to a version that we do not know: always laid out as version 0, naming only the range of ApiVersions, so that
/// the client can ask again on the same connection.
pub fn unsupported_version(api: &Api, correlation_id: i32) -> Result<Bytes, EncodeError> {
    let range = table::lookup(keys::API_VERSIONS).map(range);
    let response = refused(ErrorCode::UNSUPPORTED_VERSION).with_api_keys(range.into_iter().collect());
    encode_response(api, 0, correlation_id, &response)
}

fn range(api: &Api) -> ApiVersion {
    ApiVersion::default().with_api_key(api.key).with_min_version(api.advertised_min).with_max_version(api.version_max)
}

fn supported_key(feature: &SupportedFeature) -> SupportedFeatureKey {
    SupportedFeatureKey::default()
        .with_name(feature.name.clone())
        .with_min_version(feature.level_min)
        .with_max_version(feature.level_max)
}

fn finalized_key(feature: &FinalizedFeature) -> FinalizedFeatureKey {
    FinalizedFeatureKey::default()
        .with_name(feature.name.clone())
        .with_min_version_level(feature.level)
        .with_max_version_level(feature.level)
}
