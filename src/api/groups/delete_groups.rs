//! DeleteGroups: groups without members go, with their offsets. v3 has room for a message beside each error, which needs none.

use std::collections::HashSet;

use futures_util::future::join_all;

use crate::base::ErrorCode;
use crate::coordinator::group::GroupCoordinator;
use crate::wire::messages::delete_groups_response::DeletableGroupResult;
use crate::wire::messages::{DeleteGroupsRequest, DeleteGroupsResponse, GroupId};

pub async fn handle(groups: &GroupCoordinator, request: DeleteGroupsRequest) -> DeleteGroupsResponse {
    let mut named = HashSet::new();
    let mut names = request.groups_names;
    names.retain(|name| named.insert(name.as_str().to_owned()));
    // Together, so that they share one write to disk.
    let deleted = join_all(names.iter().map(|name| groups.delete_group(name))).await;
    let result = |(group_id, deleted): (GroupId, Result<(), ErrorCode>)| DeletableGroupResult {
        group_id,
        error_code: deleted.err().unwrap_or(ErrorCode::NONE).code(),
        error_message: None,
    };
    DeleteGroupsResponse { results: names.into_iter().zip(deleted).map(result).collect(), ..Default::default() }
}
