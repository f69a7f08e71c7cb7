//! JoinGroup: become a member of a group, or stay one through a rebalance.
//!
//! - v0: the session timeout is the rebalance timeout too. v1 (KIP-62) separates them.
//! - v4 (KIP-394): a new member is sent back with an id first. v5 (KIP-345): instance ids.
//! - v7 (KIP-559): the answer names the protocol type, and no protocol is null. v8 (KIP-800): a reason. v9 (KIP-814): skipAssignment.

use crate::api::RequestContext;
use crate::coordinator::group::GroupCoordinator;
use crate::coordinator::group::words::{Join, JoinReply, JoinedMember, Protocol};
use crate::wire::messages::join_group_response::JoinGroupResponseMember;
use crate::wire::messages::{JoinGroupRequest, JoinGroupResponse};

use super::{kept, kept_bytes, kept_option, text};

pub async fn handle(
    groups: &GroupCoordinator,
    context: &RequestContext,
    request: JoinGroupRequest,
) -> JoinGroupResponse {
    let version = context.api_version;
    let join = to_join(context, &request);
    drop(request);
    to_response(groups.join(join).await, version)
}

fn to_join(context: &RequestContext, request: &JoinGroupRequest) -> Join {
    let version = context.api_version;
    let session_timeout_ms = request.session_timeout_ms;
    Join {
        group: kept(&request.group_id),
        member_id: kept(&request.member_id),
        fresh_member_id: "".into(),
        instance_id: kept_option(&request.group_instance_id),
        client_id: context.client_id_or_empty().into(),
        client_host: context.client_host().into(),
        session_timeout_ms,
        rebalance_timeout_ms: if version >= 1 { request.rebalance_timeout_ms } else { session_timeout_ms },
        protocol_type: kept(&request.protocol_type),
        protocols: request
            .protocols
            .iter()
            .map(|protocol| Protocol { name: kept(&protocol.name), metadata: kept_bytes(&protocol.metadata) })
            .collect(),
        member_id_required: version >= 4,
        skip_assignment_known: version >= 9,
        reason: kept_option(&request.reason),
    }
}

fn to_response(reply: JoinReply, version: i16) -> JoinGroupResponse {
    let mut response = JoinGroupResponse::default()
        .with_error_code(reply.error.code())
        .with_generation_id(reply.generation)
        .with_leader(text(&reply.leader))
        .with_member_id(text(&reply.member_id))
        .with_members(reply.members.iter().map(|member| to_response_member(member, version)).collect());
    response.protocol_name = reply.protocol.as_deref().map(text);
    if version >= 7 {
        response.protocol_type = reply.protocol_type.as_deref().map(text);
    } else {
        response.protocol_name.get_or_insert_default();
    }
    if version >= 9 {
        response.skip_assignment = reply.skip_assignment;
    }
    response
}

fn to_response_member(member: &JoinedMember, version: i16) -> JoinGroupResponseMember {
    let mut response = JoinGroupResponseMember::default()
        .with_member_id(text(&member.member_id))
        .with_metadata(member.metadata.clone());
    if version >= 5 {
        response.group_instance_id = member.instance_id.as_deref().map(text);
    }
    response
}
