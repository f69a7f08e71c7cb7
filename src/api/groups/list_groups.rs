//! ListGroups: the groups that this broker coordinates. v4 (KIP-518): their states, and a filter on them; v5 (KIP-848): their types,
//! and a filter on those. Filters ignore case; one that names nothing known matches nothing.

use crate::api::RequestContext;
use crate::coordinator::group::GroupCoordinator;
use crate::coordinator::group::words::GroupListing;
use crate::wire::messages::list_groups_response::ListedGroup;
use crate::wire::messages::{GroupId, ListGroupsRequest, ListGroupsResponse, StrBytes};

use super::text;

const STATE_VERSION_MIN: i16 = 4;
const TYPE_VERSION_MIN: i16 = 5;

pub fn handle(groups: &GroupCoordinator, context: &RequestContext, request: &ListGroupsRequest) -> ListGroupsResponse {
    let listed = match groups.list() {
        Ok(listed) => listed,
        Err(code) => return ListGroupsResponse::default().with_error_code(code.code()),
    };
    let wanted =
        |group: &GroupListing| passes(&request.states_filter, group.state) && passes(&request.types_filter, group.kind);
    let shown = listed.iter().filter(|group| wanted(group)).map(|group| to_listed(group, context.api_version));
    ListGroupsResponse::default().with_groups(shown.collect())
}

fn passes(filter: &[StrBytes], value: &str) -> bool {
    filter.is_empty() || filter.iter().any(|wanted| wanted.eq_ignore_ascii_case(value))
}

fn to_listed(group: &GroupListing, version: i16) -> ListedGroup {
    let mut listed = ListedGroup::default()
        .with_group_id(GroupId(text(&group.group)))
        .with_protocol_type(text(&group.protocol_type));
    if version >= STATE_VERSION_MIN {
        listed.group_state = StrBytes::from_static_str(group.state);
    }
    if version >= TYPE_VERSION_MIN {
        listed.group_type = StrBytes::from_static_str(group.kind);
    }
    listed
}
