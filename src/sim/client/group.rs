//! Requests that consumers of a group have in common.

use super::{Client, text};
use crate::base::NodeAddress;
use crate::sim::history::Place;
use crate::wire::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use crate::wire::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use crate::wire::messages::{FindCoordinatorRequest, OffsetCommitRequest, OffsetFetchRequest};

pub async fn find_coordinator(client: &Client, group: &str) -> Option<NodeAddress> {
    let request = FindCoordinatorRequest::default().with_key_type(0).with_coordinator_keys(vec![text(group)]);
    let answer = client.ask_anyone(&request).await?;
    let found = answer.coordinators.first().filter(|found| found.error_code == 0)?;
    Some(NodeAddress::new(found.host.to_string(), u16::try_from(found.port).ok()?))
}

/// A commit of nobody in particular.
pub fn commit_request(group: &str, place: &Place, offset: i64) -> OffsetCommitRequest {
    let partition = OffsetCommitRequestPartition {
        partition_index: place.partition,
        committed_offset: offset,
        ..OffsetCommitRequestPartition::default()
    };
    let topic = OffsetCommitRequestTopic {
        name: text(&place.topic).into(),
        partitions: vec![partition],
        ..OffsetCommitRequestTopic::default()
    };
    OffsetCommitRequest { group_id: text(group).into(), topics: vec![topic], ..OffsetCommitRequest::default() }
}

pub fn fetch_request(group: &str, place: &Place) -> OffsetFetchRequest {
    let topic = OffsetFetchRequestTopics {
        name: text(&place.topic).into(),
        partition_indexes: vec![place.partition],
        ..OffsetFetchRequestTopics::default()
    };
    let group = OffsetFetchRequestGroup {
        group_id: text(group).into(),
        topics: Some(vec![topic]),
        ..OffsetFetchRequestGroup::default()
    };
    OffsetFetchRequest { groups: vec![group], require_stable: true, ..OffsetFetchRequest::default() }
}
