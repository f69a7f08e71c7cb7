//! LeaveGroup: members go, or are sent away.
//!
//! - v0 to v2: one member, its error is the answer's. v3 (KIP-345): a list, each with its own error, by member or instance id.
//! - v5 (KIP-800): a reason.

use crate::api::RequestContext;
use crate::base::ErrorCode;
use crate::coordinator::group::GroupCoordinator;
use crate::coordinator::group::words::{Leave, LeavingMember};
use crate::wire::messages::leave_group_request::MemberIdentity;
use crate::wire::messages::leave_group_response::MemberResponse;
use crate::wire::messages::{LeaveGroupRequest, LeaveGroupResponse};

use super::{kept, kept_option};

const LIST_VERSION_MIN: i16 = 3;

pub async fn handle(
    groups: &GroupCoordinator,
    context: &RequestContext,
    request: LeaveGroupRequest,
) -> LeaveGroupResponse {
    let LeaveGroupRequest { group_id, member_id, members, .. } = request;
    if context.api_version >= LIST_VERSION_MIN {
        let left = groups.leave(Leave { group: kept(&group_id), members: members.iter().map(leaving).collect() }).await;
        return to_response(left, members);
    }
    let member = LeavingMember { member_id: kept(&member_id), instance_id: None, reason: None };
    let left = groups.leave(Leave { group: kept(&group_id), members: vec![member] }).await;
    let code = left.map_or_else(|code| code, |codes| codes.into_iter().next().unwrap_or(ErrorCode::NONE));
    LeaveGroupResponse::default().with_error_code(code.code())
}

fn leaving(member: &MemberIdentity) -> LeavingMember {
    LeavingMember {
        member_id: kept(&member.member_id),
        instance_id: kept_option(&member.group_instance_id),
        reason: kept_option(&member.reason),
    }
}

fn to_response(left: Result<Vec<ErrorCode>, ErrorCode>, members: Vec<MemberIdentity>) -> LeaveGroupResponse {
    let codes = match left {
        Ok(codes) => codes,
        Err(code) => return LeaveGroupResponse::default().with_error_code(code.code()),
    };
    let answered = members.into_iter().zip(codes).map(|(member, code)| {
        MemberResponse::default()
            .with_member_id(member.member_id)
            .with_group_instance_id(member.group_instance_id)
            .with_error_code(code.code())
    });
    LeaveGroupResponse::default().with_members(answered.collect())
}
