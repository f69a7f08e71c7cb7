//! DescribeAcls (key 29). There is no authorizer: whatever is asked, the answer says so.

use std::sync::Arc;

use crate::api::{Broker, Refused, RequestContext};
use crate::base::ErrorCode;
use crate::wire::messages::{DescribeAclsRequest, DescribeAclsResponse, StrBytes};

pub async fn handle(
    _: &Arc<Broker>,
    _: &RequestContext,
    _: DescribeAclsRequest,
) -> Result<DescribeAclsResponse, Refused> {
    Ok(DescribeAclsResponse::default()
        .with_error_code(ErrorCode::SECURITY_DISABLED.code())
        .with_error_message(Some(StrBytes::from_static_str("No authorizer is configured on this broker"))))
}
