//! DescribeTopicPartitions (key 75, KIP-966): partitions page by page, with their eligible leader replicas. Topics come in the order
//! of their names; a page ends after so many partitions and names the next one.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::partition_view::{PartitionView, broker_ids};
use crate::api::cluster::text;
use crate::api::{Broker, Refused, RequestContext};
use crate::base::{ErrorCode, PartitionIndex};
use crate::metadata::{Image, PartitionState, Topic, topic_name};
use crate::security::all_operations;
use crate::wire::messages::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};
use crate::wire::messages::{BrokerId, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse};
use crate::wire::table::ResourceKind;

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
        .with_topic_authorized_operations(all_operations(ResourceKind::Topic))
}

fn partition(image: &Image, index: PartitionIndex, state: &PartitionState) -> DescribeTopicPartitionsResponsePartition {
    let view = PartitionView::of(image, state);
    DescribeTopicPartitionsResponsePartition::default()
        .with_error_code(view.error().code())
        .with_partition_index(index)
        .with_leader_id(BrokerId(view.leader))
        .with_leader_epoch(state.leader_epoch)
        .with_replica_nodes(broker_ids(&state.replicas))
        .with_isr_nodes(broker_ids(&view.isr))
        .with_eligible_leader_replicas(Some(broker_ids(&view.elr)))
        .with_last_known_elr(Some(broker_ids(&state.last_known_elr)))
        .with_offline_replicas(broker_ids(&view.offline))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::topics::fixture::image;
    use crate::wire::messages::describe_topic_partitions_request::{self, TopicRequest};

    /// The page as topic, code and partitions, and where the next one begins.
    type Shown = (Vec<(String, i16, Vec<i32>)>, Option<(String, i32)>);

    fn page(topics: &[&str], limit: i32, cursor: Option<(&str, i32)>) -> Shown {
        let named = |name: &&str| TopicRequest::default().with_name(text(name).into());
        let cursor = cursor.map(|(topic, partition)| {
            describe_topic_partitions_request::Cursor::default()
                .with_topic_name(text(topic).into())
                .with_partition_index(partition)
        });
        let request = DescribeTopicPartitionsRequest::default()
            .with_topics(topics.iter().map(named).collect())
            .with_response_partition_limit(limit)
            .with_cursor(cursor);
        let answer = answer(&image(&[("a", 2), ("b", 3), ("c", 1)]), &request, 2000);
        let shown = |topic: &DescribeTopicPartitionsResponseTopic| {
            let name = topic.name.as_ref().map(|name| name.to_string()).unwrap_or_default();
            (name, topic.error_code, topic.partitions.iter().map(|one| one.partition_index).collect())
        };
        let next = answer.next_cursor.map(|next| (next.topic_name.to_string(), next.partition_index));
        (answer.topics.iter().map(shown).collect(), next)
    }

    fn at(topic: &str, partition: i32) -> Option<(String, i32)> {
        Some((topic.into(), partition))
    }

    #[test]
    fn a_page_ends_at_its_limit_and_names_the_next_partition() {
        let all = ["c", "b", "a", "a"];
        assert_eq!(page(&all, 1, None), (vec![("a".into(), 0, vec![0])], at("a", 1)));
        assert_eq!(page(&all, 2, None), (vec![("a".into(), 0, vec![0, 1])], at("b", 0)));
        assert_eq!(page(&all, -1, None).1, at("a", 1));
        let rest = (vec![("a".into(), 0, vec![1]), ("b".into(), 0, vec![0])], at("b", 1));
        assert_eq!(page(&all, 2, Some(("a", 1))), rest);
        assert_eq!(page(&[], 2, Some(("b", 1))), (vec![("b".into(), 0, vec![1, 2])], at("c", 0)));
        assert_eq!(page(&[], 9, Some(("c", 0))), (vec![("c".into(), 0, vec![0])], None));
    }

    #[test]
    fn pages_one_behind_the_other_show_every_partition_once() {
        let mut shown = 0;
        let mut cursor = None;
        loop {
            let (topics, next) = page(&[], 1, cursor.as_ref().map(|(topic, at): &(String, i32)| (topic.as_str(), *at)));
            shown += topics.iter().map(|(_, _, partitions)| partitions.len()).sum::<usize>();
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(shown, 6);
    }

    #[test]
    fn a_cursor_that_cannot_be_refuses_every_topic() {
        for cursor in [("b", 0), ("z", 0), ("a", -1)] {
            assert_eq!(page(&["a"], 2, Some(cursor)), (vec![("a".into(), 42, vec![])], None), "{cursor:?}");
        }
    }

    #[test]
    fn unknown_and_illegal_names_are_told_apart() {
        let expected = vec![("a/b".into(), 17, vec![]), ("none".into(), 3, vec![])];
        assert_eq!(page(&["none", "a/b"], 9, None), (expected, None));
    }
}
