//! SyncGroup: the leader brings the assignment of a generation, every member takes its own away.
//!
//! - v3 (KIP-345): instance ids. v5 (KIP-559): the member must say which protocol type and protocol it believes in, and is told them.

use crate::api::RequestContext;
use crate::base::ErrorCode;
use crate::coordinator::group::GroupCoordinator;
use crate::coordinator::group::words::{Sync, SyncReply};
use crate::wire::messages::{SyncGroupRequest, SyncGroupResponse};

use super::{kept, kept_bytes, kept_option, text};

const PROTOCOL_VERSION_MIN: i16 = 5;

pub async fn handle(
    groups: &GroupCoordinator,
    context: &RequestContext,
    request: SyncGroupRequest,
) -> SyncGroupResponse {
    let version = context.api_version;
    if version >= PROTOCOL_VERSION_MIN && (request.protocol_type.is_none() || request.protocol_name.is_none()) {
        return to_response(SyncReply::refused(ErrorCode::INCONSISTENT_GROUP_PROTOCOL), version);
    }
    let sync = to_sync(&request);
    drop(request);
    to_response(groups.sync(sync).await, version)
}

fn to_sync(request: &SyncGroupRequest) -> Sync {
    Sync {
        group: kept(&request.group_id),
        generation: request.generation_id,
        member_id: kept(&request.member_id),
        instance_id: kept_option(&request.group_instance_id),
        protocol_type: kept_option(&request.protocol_type),
        protocol: kept_option(&request.protocol_name),
        assignments: request
            .assignments
            .iter()
            .map(|assignment| (kept(&assignment.member_id), kept_bytes(&assignment.assignment)))
            .collect(),
    }
}

fn to_response(reply: SyncReply, version: i16) -> SyncGroupResponse {
    let mut response =
        SyncGroupResponse::default().with_error_code(reply.error.code()).with_assignment(reply.assignment);
    if version >= PROTOCOL_VERSION_MIN {
        response.protocol_type = reply.protocol_type.as_deref().map(text);
        response.protocol_name = reply.protocol.as_deref().map(text);
    }
    response
}
