//! Heartbeat: a member is alive, and learns whether it must join again. v3 (KIP-345): instance ids.

use crate::coordinator::group::GroupCoordinator;
use crate::coordinator::group::words::MemberRef;
use crate::wire::messages::{HeartbeatRequest, HeartbeatResponse};

pub fn handle(groups: &GroupCoordinator, request: &HeartbeatRequest) -> HeartbeatResponse {
    let member = MemberRef { member_id: &request.member_id, instance_id: request.group_instance_id.as_deref() };
    let code = groups.heartbeat(&request.group_id, member, request.generation_id);
    HeartbeatResponse::default().with_error_code(code.code())
}
