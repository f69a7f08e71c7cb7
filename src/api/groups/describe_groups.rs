//! DescribeGroups: state and members of classic groups.
//!
//! - v3 (KIP-430): what the asker may do with the group. v4 (KIP-345): instance ids.
//! - Up to v5 an unknown group is Dead without an error, from v6 (KIP-1043) on GROUP_ID_NOT_FOUND with a message.

use crate::api::RequestContext;
use crate::base::ErrorCode;
use crate::coordinator::group::GroupCoordinator;
use crate::coordinator::group::words::{GroupDescription, MemberDescription};
use crate::security::all_operations;
use crate::wire::messages::describe_groups_response::{DescribedGroup, DescribedGroupMember};
use crate::wire::messages::{DescribeGroupsRequest, DescribeGroupsResponse, GroupId};
use crate::wire::table::ResourceKind;

use super::text;

const OPERATIONS_VERSION_MIN: i16 = 3;
const INSTANCE_ID_VERSION_MIN: i16 = 4;
const NOT_FOUND_VERSION_MIN: i16 = 6;

pub fn handle(
    groups: &GroupCoordinator,
    context: &RequestContext,
    request: &DescribeGroupsRequest,
) -> DescribeGroupsResponse {
    let version = context.api_version;
    let describe = |group: &GroupId| {
        let mut described = described(groups.describe(group), group, version).with_group_id(group.clone());
        if version >= OPERATIONS_VERSION_MIN && request.include_authorized_operations {
            described.authorized_operations = all_operations(ResourceKind::Group);
        }
        described
    };
    DescribeGroupsResponse::default().with_groups(request.groups.iter().map(describe).collect())
}

fn described(found: Result<Option<GroupDescription>, ErrorCode>, group: &GroupId, version: i16) -> DescribedGroup {
    match found {
        Ok(Some(description)) => to_described(description, version),
        Ok(None) if version >= NOT_FOUND_VERSION_MIN => DescribedGroup::default()
            .with_group_state(text("Dead"))
            .with_error_code(ErrorCode::GROUP_ID_NOT_FOUND.code())
            .with_error_message(Some(text(&format!("There is no group {}.", group.as_str())))),
        Ok(None) => DescribedGroup::default().with_group_state(text("Dead")),
        Err(code) => DescribedGroup::default().with_error_code(code.code()),
    }
}

fn to_described(description: GroupDescription, version: i16) -> DescribedGroup {
    DescribedGroup::default()
        .with_group_state(text(description.state))
        .with_protocol_type(text(&description.protocol_type))
        .with_protocol_data(text(&description.protocol))
        .with_members(description.members.into_iter().map(|member| to_member(member, version)).collect())
}

fn to_member(member: MemberDescription, version: i16) -> DescribedGroupMember {
    let mut described = DescribedGroupMember::default()
        .with_member_id(text(&member.member_id))
        .with_client_id(text(&member.client_id))
        .with_client_host(text(&member.client_host))
        .with_member_metadata(member.metadata)
        .with_member_assignment(member.assignment);
    if version >= INSTANCE_ID_VERSION_MIN {
        described.group_instance_id = member.instance_id.as_deref().map(text);
    }
    described
}
