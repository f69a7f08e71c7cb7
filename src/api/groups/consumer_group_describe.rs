//! ConsumerGroupDescribe v0 and v1 (KIP-848): groups of the consumer protocol. There are none yet, so every name is one that is not
//! found, or that belongs to a group of another kind.

use crate::base::ErrorCode;
use crate::coordinator::group::GroupCoordinator;
use crate::wire::messages::consumer_group_describe_response::DescribedGroup;
use crate::wire::messages::{ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, GroupId};

use super::text;

pub fn handle(groups: &GroupCoordinator, request: &ConsumerGroupDescribeRequest) -> ConsumerGroupDescribeResponse {
    let described = request.group_ids.iter().map(|group| describe(groups, group));
    ConsumerGroupDescribeResponse::default().with_groups(described.collect())
}

fn describe(groups: &GroupCoordinator, group: &GroupId) -> DescribedGroup {
    let (code, message) = match groups.describe(group) {
        Err(code) => (code, None),
        Ok(Some(_)) => {
            (ErrorCode::GROUP_ID_NOT_FOUND, Some(format!("{} is not a consumer-protocol group.", group.as_str())))
        }
        Ok(None) => (ErrorCode::GROUP_ID_NOT_FOUND, Some(format!("There is no group {}.", group.as_str()))),
    };
    DescribedGroup::default()
        .with_group_id(group.clone())
        .with_error_code(code.code())
        .with_error_message(message.as_deref().map(text))
}
