//! DescribeTopicPartitions (key 75, KIP-966): partitions page by page, with their eligible leader replicas. Topics come in the order
//! of their names; a page ends after so many partitions and names the next one.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::partition_view::{PartitionView, broker_ids};
use crate::api::cluster::{operations, text};
use crate::api::{Broker, Refused, RequestContext};
use crate::base::{ErrorCode, PartitionIndex};
use crate::metadata::{Image, PartitionState, Topic, topic_name};
use crate::wire::messages::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};
use crate::wire::messages::{BrokerId, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse};

pub async fn handle(
    broker: &Arc<Broker>,
    _: &RequestContext,
    request: DescribeTopicPartitionsRequest,
) -> Result<DescribeTopicPartitionsResponse, Refused> {
    let image = broker.controller.quorum().image();
    Ok(answer(&image, &request, broker.options.request_partitions_max))
}

fn answer(
    image: &Image,
    request: &DescribeTopicPartitionsRequest,
    partitions_max: i32,
) -> DescribeTopicPartitionsResponse {
    let names: BTreeSet<&str> = request.topics.iter().map(|topic| topic.name.as_str()).collect();
    let cursor = request.cursor.as_ref().map(|cursor| (cursor.topic_name.as_str(), cursor.partition_index));
    if let Some((topic, partition)) = cursor
        && (partition < 0 || !(names.is_empty() || names.contains(topic)))
    {
        return refused(request);
    }
    let limit = request.response_partition_limit.min(partitions_max).max(1);
    let mut page = Page { image, left: usize::try_from(limit).unwrap_or(1), topics: Vec::new(), next: None };
    let (first_topic, first_partition) = cursor.unwrap_or(("", 0));
    let from = |name: &str| if name == first_topic { first_partition } else { 0 };
    if names.is_empty() {
        image.topics_from(first_topic).all(|topic| page.add_known(topic, from(&topic.name)));
    } else {
        names.range(first_topic..).all(|name| page.add(name, from(name)));
    }
    DescribeTopicPartitionsResponse::default().with_topics(page.topics).with_next_cursor(page.next)
}

/// A cursor that cannot be: the request is refused topic by topic.
fn refused(request: &DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse {
    let topics = request.topics.iter().map(|topic| {
        DescribeTopicPartitionsResponseTopic::default()
            .with_error_code(ErrorCode::INVALID_REQUEST.code())
            .with_name(Some(topic.name.clone()))
    });
    DescribeTopicPartitionsResponse::default().with_topics(topics.collect())
}

/// One answer while it fills.
struct Page<'a> {
    image: &'a Image,
    /// Partitions that may still be added.
    left: usize,
    topics: Vec<DescribeTopicPartitionsResponseTopic>,
    next: Option<Cursor>,
}

impl Page<'_> {
    /// Adds a topic by name. False when the page is full.
    fn add(&mut self, name: &str, from: PartitionIndex) -> bool {
        if let Some(topic) = self.image.topic(name) {
            return self.add_known(topic, from);
        }
        if self.left == 0 {
            self.stop_at(name, 0);
            return false;
        }
        let error = match topic_name::validate(name) {
            Ok(()) => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            Err(_) => ErrorCode::INVALID_TOPIC_EXCEPTION,
        };
        self.topics.push(described(name).with_error_code(error.code()));
        true
    }

    fn add_known(&mut self, topic: &Topic, from: PartitionIndex) -> bool {
        if self.left == 0 {
            self.stop_at(&topic.name, 0);
            return false;
        }
        let rest = topic.indexed().filter(|(index, _)| *index >= from);
        let partitions: Vec<_> =
            rest.take(self.left).map(|(index, state)| partition(self.image, index, state)).collect();
        self.left -= partitions.len();
        let next = partitions.last().map_or(topic.partition_count(), |last| last.partition_index + 1);
        self.topics.push(described(&topic.name).with_topic_id(topic.id.0).with_partitions(partitions));
        if next < topic.partition_count() {
            self.stop_at(&topic.name, next);
            return false;
        }
        true
    }

    fn stop_at(&mut self, topic: &str, partition: PartitionIndex) {
        self.next = Some(Cursor::default().with_topic_name(text(topic).into()).with_partition_index(partition));
    }
}

fn described(name: &str) -> DescribeTopicPartitionsResponseTopic {
    DescribeTopicPartitionsResponseTopic::default()
        .with_name(Some(text(name).into()))
        .with_is_internal(topic_name::is_internal(name))
        .with_topic_authorized_operations(operations::ON_TOPIC)
}

fn partition(image: &Image, index: PartitionIndex, state: &PartitionState) -> DescribeTopicPartitionsResponsePartition {
    let view = PartitionView::of(image, state);
    DescribeTopicPartitionsResponsePartition::default()
        .with_error_code(view.error().code())
        .with_partition_index(index)
        .with_leader_id(BrokerId(view.leader))
        .with_leader_epoch(state.leader_epoch)
        .with_replica_nodes(broker_ids(&state.replicas))
        .with_isr_nodes(broker_ids(&state.isr))
        .with_eligible_leader_replicas(Some(broker_ids(&state.elr)))
        .with_last_known_elr(Some(broker_ids(&state.last_known_elr)))
        .with_offline_replicas(broker_ids(&view.offline))
}
