//! OffsetDelete v0 (KIP-496): an administrator makes a group forget offsets of topics that it does not subscribe to.

use crate::base::ErrorCode;
use crate::coordinator::group::GroupCoordinator;
use crate::metadata::Image;
use crate::wire::messages::offset_delete_request::OffsetDeleteRequestTopic;
use crate::wire::messages::offset_delete_response::{OffsetDeleteResponsePartition, OffsetDeleteResponseTopic};
use crate::wire::messages::{OffsetDeleteRequest, OffsetDeleteResponse};

pub async fn handle(groups: &GroupCoordinator, image: &Image, request: &OffsetDeleteRequest) -> OffsetDeleteResponse {
    let mut response = OffsetDeleteResponse::default();
    let mut partitions = Vec::new();
    for asked in &request.topics {
        response.topics.push(check_topic(image, asked, &mut partitions));
    }
    if partitions.is_empty() {
        return response;
    }
    match groups.delete_offsets(&request.group_id, &partitions).await {
        Ok(codes) => {
            let accepted = response
                .topics
                .iter_mut()
                .flat_map(|topic| &mut topic.partitions)
                .filter(|partition| partition.error_code == 0);
            accepted.zip(codes).for_each(|(partition, code)| partition.error_code = code.code());
            response
        }
        Err(code) => OffsetDeleteResponse::default().with_error_code(code.code()),
    }
}

fn check_topic<'a>(
    image: &'a Image,
    asked: &'a OffsetDeleteRequestTopic,
    partitions: &mut Vec<(&'a str, i32)>,
) -> OffsetDeleteResponseTopic {
    let check = |index: i32| match image.partition(&asked.name, index) {
        Some(_) => {
            partitions.push((asked.name.as_str(), index));
            ErrorCode::NONE
        }
        None => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
    };
    let indexes = asked.partitions.iter().map(|partition| partition.partition_index);
    let codes: Vec<ErrorCode> = indexes.clone().map(check).collect();
    let answered = indexes.zip(codes).map(|(index, code)| {
        OffsetDeleteResponsePartition::default().with_partition_index(index).with_error_code(code.code())
    });
    OffsetDeleteResponseTopic::default().with_name(asked.name.clone()).with_partitions(answered.collect())
}
