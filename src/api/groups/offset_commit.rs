//! OffsetCommit: where a group stands in its partitions. The coordinator's hot path: names and notes stay slices of the request.
//!
//! - v2 to v4: a retention time, kept with the offset. v6 (KIP-320): the leader epoch. v7 (KIP-345): instance ids.
//! - v9 (KIP-848): an unknown group is GROUP_ID_NOT_FOUND. v10: topics by id.

use crate::api::RequestContext;
use crate::base::{ErrorCode, TopicId};
use crate::coordinator::group::GroupCoordinator;
use crate::coordinator::group::words::{CommitOffsets, MemberRef, OffsetToCommit};
use crate::metadata::{Image, Topic};
use crate::wire::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use crate::wire::messages::offset_commit_response::{OffsetCommitResponsePartition, OffsetCommitResponseTopic};
use crate::wire::messages::{OffsetCommitRequest, OffsetCommitResponse};

const GROUP_ID_NOT_FOUND_VERSION_MIN: i16 = 9;
const TOPIC_ID_VERSION_MIN: i16 = 10;

pub async fn handle(
    groups: &GroupCoordinator,
    image: &Image,
    context: &RequestContext,
    request: &OffsetCommitRequest,
) -> OffsetCommitResponse {
    let by_id = context.api_version >= TOPIC_ID_VERSION_MIN;
    let mut response = OffsetCommitResponse::default();
    response.topics.reserve_exact(request.topics.len());
    let mut offsets = Vec::with_capacity(request.topics.iter().map(|topic| topic.partitions.len()).sum());
    for asked in &request.topics {
        response.topics.push(check_topic(image, by_id, asked, &mut offsets));
    }
    // Nothing that exists is committed: then it does not matter whether the group would have it.
    if offsets.is_empty() {
        return response;
    }
    let commit = CommitOffsets {
        group: &request.group_id,
        generation: request.generation_id_or_member_epoch,
        member: MemberRef { member_id: &request.member_id, instance_id: request.group_instance_id.as_deref() },
        group_id_not_found_known: context.api_version >= GROUP_ID_NOT_FOUND_VERSION_MIN,
        retention_ms: (request.retention_time_ms != -1).then_some(request.retention_time_ms),
        offsets: &offsets,
    };
    fill_in(&mut response, groups.commit_offsets(&commit).await);
    response
}

/// The topic's place in the answer, with an error for what does not exist; what exists is added to `offsets`.
fn check_topic<'a>(
    image: &'a Image,
    by_id: bool,
    asked: &'a OffsetCommitRequestTopic,
    offsets: &mut Vec<OffsetToCommit<'a>>,
) -> OffsetCommitResponseTopic {
    let topic = if by_id { image.topic_by_id(TopicId(asked.topic_id)) } else { image.topic(&asked.name) };
    let unknown = if by_id { ErrorCode::UNKNOWN_TOPIC_ID } else { ErrorCode::UNKNOWN_TOPIC_OR_PARTITION };
    let code_of = |partition: &'a OffsetCommitRequestPartition| match topic {
        None => unknown,
        Some(topic) if topic.partition(partition.partition_index).is_none() => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        Some(topic) => {
            offsets.push(to_offset(topic, partition));
            ErrorCode::NONE
        }
    };
    let codes = asked.partitions.iter().map(code_of);
    let partitions = asked.partitions.iter().zip(codes).map(|(partition, code)| OffsetCommitResponsePartition {
        partition_index: partition.partition_index,
        error_code: code.code(),
    });
    OffsetCommitResponseTopic { partitions: partitions.collect(), name: asked.name.clone(), topic_id: asked.topic_id }
}

fn to_offset<'a>(topic: &'a Topic, partition: &'a OffsetCommitRequestPartition) -> OffsetToCommit<'a> {
    OffsetToCommit {
        topic: &topic.name,
        topic_id: topic.id,
        partition: partition.partition_index,
        offset: partition.committed_offset,
        leader_epoch: partition.committed_leader_epoch,
        metadata: partition.committed_metadata.as_deref().unwrap_or(""),
    }
}

/// The coordinator's codes go to the partitions that have no error yet, in order.
fn fill_in(response: &mut OffsetCommitResponse, committed: Result<Vec<ErrorCode>, ErrorCode>) {
    let accepted = response
        .topics
        .iter_mut()
        .flat_map(|topic| &mut topic.partitions)
        .filter(|partition| partition.error_code == 0);
    match committed {
        Ok(codes) => accepted.zip(codes).for_each(|(partition, code)| partition.error_code = code.code()),
        Err(code) => accepted.for_each(|partition| partition.error_code = code.code()),
    }
}
