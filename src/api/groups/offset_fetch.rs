//! OffsetFetch: what groups have committed. Every partition asked for is answered; never committed is -1 without an error, and an
//! unknown topic or group has committed nothing.
//!
//! - v1: an error of the group stands at each partition. v2: at the top, and null topics ask for everything. v8 (KIP-709): several
//!   groups, each with its error. v5 (KIP-320): the leader epoch. v7 (KIP-447): only stable offsets.
//! - v9 (KIP-848): member id and epoch, which a classic group does not look at. v10: topics by id.

use uuid::Uuid;

use crate::api::RequestContext;
use crate::base::ids::{NO_LEADER_EPOCH, NO_OFFSET};
use crate::base::{ErrorCode, PartitionIndex, TopicId};
use crate::coordinator::group::GroupCoordinator;
use crate::coordinator::group::words::{FetchedOffset, FetchedTopic, TopicToFetch};
use crate::metadata::Image;
use crate::wire::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use crate::wire::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions, OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
};
use crate::wire::messages::{OffsetFetchRequest, OffsetFetchResponse, TopicName};

use super::text;

const GROUP_ERROR_VERSION_MIN: i16 = 2;
const SEVERAL_GROUPS_VERSION_MIN: i16 = 8;
const TOPIC_ID_VERSION_MIN: i16 = 10;

pub async fn handle(
    groups: &GroupCoordinator,
    image: &Image,
    context: &RequestContext,
    request: OffsetFetchRequest,
) -> OffsetFetchResponse {
    let version = context.api_version;
    let stable = request.require_stable;
    let answer = async |asked: &OffsetFetchRequestGroup, by_id| fetch(groups, image, asked, by_id, stable).await;
    if version < SEVERAL_GROUPS_VERSION_MIN {
        let asked = single_group(request);
        return to_single(answer(&asked, false).await, &asked, version);
    }
    let mut response = OffsetFetchResponse::default();
    for asked in &request.groups {
        response.groups.push(answer(asked, version >= TOPIC_ID_VERSION_MIN).await);
    }
    response
}

/// The request of v1 to v7 as one group of the later kind.
fn single_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup {
    let topics = request.topics.map(|topics| {
        let one =
            |topic: crate::wire::messages::offset_fetch_request::OffsetFetchRequestTopic| OffsetFetchRequestTopics {
                name: topic.name,
                partition_indexes: topic.partition_indexes,
                ..Default::default()
            };
        topics.into_iter().map(one).collect()
    });
    OffsetFetchRequestGroup { group_id: request.group_id, topics, ..Default::default() }
}

async fn fetch(
    groups: &GroupCoordinator,
    image: &Image,
    asked: &OffsetFetchRequestGroup,
    by_id: bool,
    require_stable: bool,
) -> OffsetFetchResponseGroup {
    let fetched = match &asked.topics {
        Some(topics) => fetch_named(groups, image, &asked.group_id, topics, by_id, require_stable).await,
        None => fetch_all(groups, image, &asked.group_id, by_id, require_stable).await,
    };
    let mut response = OffsetFetchResponseGroup { group_id: asked.group_id.clone(), ..Default::default() };
    match fetched {
        Ok(topics) => response.topics = topics,
        Err(code) => response.error_code = code.code(),
    }
    response
}

async fn fetch_named(
    groups: &GroupCoordinator,
    image: &Image,
    group: &str,
    topics: &[OffsetFetchRequestTopics],
    by_id: bool,
    require_stable: bool,
) -> Result<Vec<OffsetFetchResponseTopics>, ErrorCode> {
    let known = |topic: &OffsetFetchRequestTopics| !by_id || image.topic_by_id(TopicId(topic.topic_id)).is_some();
    let to_fetch: Vec<TopicToFetch<'_>> =
        topics.iter().filter(|topic| known(topic)).map(|topic| to_fetch(image, by_id, topic)).collect();
    let mut fetched = groups.fetch_offsets(group, Some(&to_fetch), require_stable).await?.into_iter();
    let answer = |topic: &OffsetFetchRequestTopics| OffsetFetchResponseTopics {
        partitions: match known(topic).then(|| fetched.next()).flatten() {
            Some(fetched) => fetched.partitions.into_iter().map(to_partition).collect(),
            None => topic.partition_indexes.iter().map(|index| unknown_topic_id(*index)).collect(),
        },
        name: topic.name.clone(),
        topic_id: topic.topic_id,
    };
    Ok(topics.iter().map(answer).collect())
}

fn to_fetch<'a>(image: &'a Image, by_id: bool, topic: &'a OffsetFetchRequestTopics) -> TopicToFetch<'a> {
    let partitions = &topic.partition_indexes;
    let existing = if by_id { image.topic_by_id(TopicId(topic.topic_id)) } else { image.topic(&topic.name) };
    match existing {
        Some(existing) => TopicToFetch { topic: &existing.name, topic_id: existing.id, partitions },
        None => TopicToFetch { topic: &topic.name, topic_id: TopicId::ZERO, partitions },
    }
}

/// By id, a topic that is gone cannot be named, so it is left out.
async fn fetch_all(
    groups: &GroupCoordinator,
    image: &Image,
    group: &str,
    by_id: bool,
    require_stable: bool,
) -> Result<Vec<OffsetFetchResponseTopics>, ErrorCode> {
    let fetched = groups.fetch_offsets(group, None, require_stable).await?;
    let answer = |topic: FetchedTopic| {
        let (name, topic_id) = match by_id {
            true => (TopicName::default(), image.topic_id(&topic.topic)?.0),
            false => (TopicName(text(&topic.topic)), Uuid::nil()),
        };
        let partitions = topic.partitions.into_iter().map(to_partition).collect();
        Some(OffsetFetchResponseTopics { name, topic_id, partitions })
    };
    Ok(fetched.into_iter().filter_map(answer).collect())
}

fn to_partition(fetched: FetchedOffset) -> OffsetFetchResponsePartitions {
    OffsetFetchResponsePartitions {
        partition_index: fetched.partition,
        committed_offset: fetched.offset,
        committed_leader_epoch: fetched.leader_epoch,
        metadata: Some(text(&fetched.metadata)),
        error_code: fetched.error.code(),
    }
}

fn unknown_topic_id(partition_index: PartitionIndex) -> OffsetFetchResponsePartitions {
    failed(partition_index, ErrorCode::UNKNOWN_TOPIC_ID)
}

fn failed(partition_index: PartitionIndex, code: ErrorCode) -> OffsetFetchResponsePartitions {
    OffsetFetchResponsePartitions {
        partition_index,
        committed_offset: NO_OFFSET,
        committed_leader_epoch: NO_LEADER_EPOCH,
        metadata: Some(text("")),
        error_code: code.code(),
    }
}

/// The answer of v1 to v7.
fn to_single(group: OffsetFetchResponseGroup, asked: &OffsetFetchRequestGroup, version: i16) -> OffsetFetchResponse {
    let mut response = OffsetFetchResponse::default();
    let topics = if group.error_code == 0 {
        group.topics
    } else if version >= GROUP_ERROR_VERSION_MIN {
        response.error_code = group.error_code;
        Vec::new()
    } else {
        failed_topics(asked, ErrorCode(group.error_code))
    };
    response.topics = topics.into_iter().map(to_single_topic).collect();
    response
}

fn failed_topics(asked: &OffsetFetchRequestGroup, code: ErrorCode) -> Vec<OffsetFetchResponseTopics> {
    let one = |topic: &OffsetFetchRequestTopics| OffsetFetchResponseTopics {
        name: topic.name.clone(),
        partitions: topic.partition_indexes.iter().map(|index| failed(*index, code)).collect(),
        ..Default::default()
    };
    asked.topics.iter().flatten().map(one).collect()
}

fn to_single_topic(topic: OffsetFetchResponseTopics) -> OffsetFetchResponseTopic {
    let one = |partition: OffsetFetchResponsePartitions| OffsetFetchResponsePartition {
        partition_index: partition.partition_index,
        committed_offset: partition.committed_offset,
        committed_leader_epoch: partition.committed_leader_epoch,
        metadata: partition.metadata,
        error_code: partition.error_code,
    };
    OffsetFetchResponseTopic { name: topic.name, partitions: topic.partitions.into_iter().map(one).collect() }
}
