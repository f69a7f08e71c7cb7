//! Handlers over a coordinator whose log keeps nothing: what a version's answer looks like, and that each version can be written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::{Bytes, BytesMut};

use super::*;
use crate::api::RequestContext;
use crate::api::context::{ConnectionInfo, Door};
use crate::base::{ErrorCode, Offset, PartitionIndex, TopicId};
use crate::coordinator::group::{AppendRefused, CommitWait, GroupConfig, GroupCoordinator, OffsetsLog, ReadFailed};
use crate::host::sim::SimHost;
use crate::metadata::{Image, MetadataRecord, PartitionState};
use crate::wire::messages::join_group_request::JoinGroupRequestProtocol;
use crate::wire::messages::leave_group_request::MemberIdentity;
use crate::wire::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use crate::wire::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use crate::wire::messages::{
    DeleteGroupsRequest, DescribeGroupsRequest, GroupId, HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest,
    ListGroupsRequest, OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse,
    ResponseBody, SyncGroupRequest, TopicName,
};

const TOPIC_ID: TopicId = TopicId(uuid::Uuid::from_u128(7));

#[derive(Default)]
struct NullLog {
    fenced: AtomicBool,
}

impl OffsetsLog for NullLog {
    fn partitions(&self) -> i32 {
        1
    }

    fn append(&self, _: PartitionIndex, _: Bytes) -> Result<CommitWait, AppendRefused> {
        Ok(Box::pin(std::future::ready(Ok(()))))
    }

    fn read_from(&self, _: PartitionIndex, _: Offset) -> Result<Option<Bytes>, ReadFailed> {
        Ok(None)
    }

    fn log_end(&self, _: PartitionIndex) -> Offset {
        0
    }

    fn may_have_successors(&self) -> bool {
        self.fenced.load(Ordering::SeqCst)
    }
}

fn unloaded() -> Arc<GroupCoordinator> {
    on(Arc::default())
}

fn on(log: Arc<NullLog>) -> Arc<GroupCoordinator> {
    let config = GroupConfig { initial_rebalance_delay_ms: 0, ..GroupConfig::default() };
    Arc::new(GroupCoordinator::new(SimHost::new(3).host(), log, config))
}

async fn loaded() -> Arc<GroupCoordinator> {
    let groups = unloaded();
    groups.clone().load_all().await;
    groups
}

fn context(api_version: i16) -> RequestContext {
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], 9092));
    RequestContext {
        connection: Arc::new(ConnectionInfo::new(1, address, address, "PLAINTEXT".into(), Door::Broker)),
        api_key: 0,
        api_version,
        correlation_id: 1,
        client_id: Some("test".into()),
        received_nanos: 0,
    }
}

/// Topic `t` with two partitions.
fn image() -> Image {
    image_with(TOPIC_ID)
}

fn image_with(id: TopicId) -> Image {
    let partitions = vec![PartitionState::new(vec![1], Vec::new()); 2];
    let mut image = Image::empty();
    let applied = image.apply(1, &MetadataRecord::Topic { id, name: "t".into(), partitions });
    assert!(applied.is_ok());
    image
}

fn group(name: &str) -> GroupId {
    GroupId(text(name))
}

fn topic(name: &str) -> TopicName {
    TopicName(text(name))
}

fn written(response: &impl ResponseBody, version: i16) {
    let mut buffer = BytesMut::new();
    assert_eq!(response.write(version, &mut buffer), Ok(()), "v{version}");
}

fn join_request(group_name: &str, member_id: &str) -> JoinGroupRequest {
    JoinGroupRequest::default()
        .with_group_id(group(group_name))
        .with_member_id(text(member_id))
        .with_session_timeout_ms(30_000)
        .with_rebalance_timeout_ms(10_000)
        .with_protocol_type(text("consumer"))
        .with_protocols(vec![JoinGroupRequestProtocol::default().with_name(text("range"))])
}

#[tokio::test]
async fn every_version_of_joining_syncing_beating_and_leaving_can_be_answered() {
    for version in 0..=9 {
        let groups = loaded().await;
        let mut joined = join_group::handle(&groups, &context(version), join_request("g", "")).await;
        written(&joined, version);
        if version >= 4 {
            assert_eq!(joined.error_code, ErrorCode::MEMBER_ID_REQUIRED.code());
            let again = join_request("g", &joined.member_id);
            joined = join_group::handle(&groups, &context(version), again).await;
            written(&joined, version);
        }
        assert_eq!((joined.error_code, joined.members.len()), (0, 1), "v{version}");
        assert_eq!(joined.protocol_type.is_some(), version >= 7);

        let sync_version = version.min(5);
        let sync = SyncGroupRequest::default()
            .with_group_id(group("g"))
            .with_generation_id(1)
            .with_member_id(joined.member_id.clone())
            .with_protocol_type((sync_version >= 5).then(|| text("consumer")))
            .with_protocol_name((sync_version >= 5).then(|| text("range")));
        let synced = sync_group::handle(&groups, &context(sync_version), sync).await;
        written(&synced, sync_version);
        assert_eq!(synced.error_code, 0);

        let beat = HeartbeatRequest::default()
            .with_group_id(group("g"))
            .with_generation_id(1)
            .with_member_id(joined.member_id.clone());
        assert_eq!(heartbeat::handle(&groups, &beat).error_code, 0);

        for described_in in 0..=6 {
            let request = DescribeGroupsRequest::default()
                .with_groups(vec![group("g"), group("none")])
                .with_include_authorized_operations(true);
            written(&describe_groups::handle(&groups, &context(described_in), &request), described_in);
        }
        for listed_in in 0..=5 {
            written(&list_groups::handle(&groups, &context(listed_in), &ListGroupsRequest::default()), listed_in);
        }

        let leave_version = version.min(5);
        let leaving = MemberIdentity::default().with_member_id(joined.member_id.clone());
        let leave = match leave_version {
            0..=2 => LeaveGroupRequest::default().with_member_id(joined.member_id.clone()),
            _ => LeaveGroupRequest::default().with_members(vec![leaving]),
        };
        let left = leave_group::handle(&groups, &context(leave_version), leave.with_group_id(group("g"))).await;
        written(&left, leave_version);
        assert_eq!(left.error_code, 0);

        let delete = DeleteGroupsRequest::default().with_groups_names(vec![group("g"), group("g"), group("none")]);
        let deleted = delete_groups::handle(&groups, delete).await;
        let codes: Vec<i16> = deleted.results.iter().map(|result| result.error_code).collect();
        assert_eq!(codes, [0, ErrorCode::GROUP_ID_NOT_FOUND.code()]);
        (0..=3).for_each(|version| written(&deleted, version));
    }
}

#[tokio::test]
async fn a_refused_join_has_an_empty_protocol_up_to_v6_and_a_null_one_after() {
    let groups = loaded().await;
    for version in 0..=9 {
        let refused = join_group::handle(&groups, &context(version), join_request("", "")).await;
        assert_eq!(refused.error_code, ErrorCode::INVALID_GROUP_ID.code());
        assert_eq!(refused.protocol_name.as_deref(), (version < 7).then_some(""));
        written(&refused, version);
    }
}

#[tokio::test]
async fn sync_v5_must_name_type_and_protocol() {
    let groups = loaded().await;
    let refused = sync_group::handle(&groups, &context(5), SyncGroupRequest::default().with_group_id(group("g"))).await;
    assert_eq!(refused.error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL.code());
    written(&refused, 5);
}

fn commit_request(version: i16) -> OffsetCommitRequest {
    let partition = |partition_index| OffsetCommitRequestPartition {
        partition_index,
        committed_offset: 40 + i64::from(partition_index),
        committed_leader_epoch: -1,
        committed_metadata: None,
    };
    let mut known = OffsetCommitRequestTopic {
        name: topic("t"),
        partitions: vec![partition(0), partition(9), partition(1)],
        ..Default::default()
    };
    let mut unknown =
        OffsetCommitRequestTopic { name: topic("none"), partitions: vec![partition(0)], ..Default::default() };
    if version >= 10 {
        (known.name, known.topic_id) = (TopicName::default(), TOPIC_ID.0);
        (unknown.name, unknown.topic_id) = (TopicName::default(), uuid::Uuid::from_u128(99));
    }
    OffsetCommitRequest { group_id: group("g"), topics: vec![unknown, known], ..Default::default() }
}

fn commit_codes(response: &OffsetCommitResponse) -> Vec<Vec<i16>> {
    response.topics.iter().map(|topic| topic.partitions.iter().map(|one| one.error_code).collect()).collect()
}

#[tokio::test]
async fn a_commit_answers_each_partition_in_its_place() {
    let (groups, image) = (loaded().await, image());
    for version in 2..=10 {
        let response = offset_commit::handle(&groups, &image, &context(version), &commit_request(version)).await;
        let unknown = if version >= 10 { 100 } else { 3 };
        assert_eq!(commit_codes(&response), [vec![unknown], vec![0, 3, 0]], "v{version}");
        written(&response, version);
    }
}

#[tokio::test]
async fn a_commit_that_the_group_refuses_refuses_what_exists_only() {
    let (groups, image) = (loaded().await, image());
    let request = OffsetCommitRequest { generation_id_or_member_epoch: 5, ..commit_request(8) };
    let response = offset_commit::handle(&groups, &image, &context(8), &request).await;
    assert_eq!(commit_codes(&response), [vec![3], vec![22, 3, 22]]);
    let response = offset_commit::handle(&groups, &image, &context(9), &request).await;
    assert_eq!(commit_codes(&response), [vec![3], vec![69, 3, 69]]);
}

fn fetch_request(version: i16, all: bool) -> OffsetFetchRequest {
    let partition_indexes = vec![1, 5];
    if version < 8 {
        let topics = vec![OffsetFetchRequestTopic { name: topic("t"), partition_indexes }];
        return OffsetFetchRequest { group_id: group("g"), topics: (!all).then_some(topics), ..Default::default() };
    }
    let mut named = OffsetFetchRequestTopics { name: topic("t"), partition_indexes, ..Default::default() };
    if version >= 10 {
        (named.name, named.topic_id) = (TopicName::default(), TOPIC_ID.0);
    }
    let unknown_id = OffsetFetchRequestTopics {
        topic_id: uuid::Uuid::from_u128(99),
        partition_indexes: vec![0],
        ..Default::default()
    };
    let topics = if version >= 10 { vec![unknown_id, named] } else { vec![named] };
    let asked =
        OffsetFetchRequestGroup { group_id: group("g"), topics: (!all).then_some(topics), ..Default::default() };
    OffsetFetchRequest { groups: vec![asked], ..Default::default() }
}

/// Offset and code of each partition, of old and new layout alike.
fn fetched(response: &OffsetFetchResponse) -> Vec<(i64, i16)> {
    let old = response.topics.iter().flat_map(|topic| &topic.partitions);
    let old = old.map(|one| (one.committed_offset, one.error_code));
    let new = response.groups.iter().flat_map(|group| &group.topics).flat_map(|topic| &topic.partitions);
    old.chain(new.map(|one| (one.committed_offset, one.error_code))).collect()
}

#[tokio::test]
async fn every_version_of_fetching_answers_everything_asked_for() {
    let (groups, image) = (loaded().await, image());
    offset_commit::handle(&groups, &image, &context(8), &commit_request(8)).await;
    for version in 1..=10 {
        let response = offset_fetch::handle(&groups, &image, &context(version), fetch_request(version, false)).await;
        written(&response, version);
        let known = [(41, 0), (-1, 0)];
        let expected = if version >= 10 { [&[(-1, 100)][..], &known].concat() } else { known.to_vec() };
        assert_eq!(fetched(&response), expected, "v{version}");
    }
    for version in 2..=10 {
        let response = offset_fetch::handle(&groups, &image, &context(version), fetch_request(version, true)).await;
        written(&response, version);
        assert_eq!(fetched(&response), [(40, 0), (41, 0)], "v{version}");
    }
}

#[tokio::test]
async fn a_group_that_is_not_here_is_an_error_at_the_level_that_the_version_has() {
    assert_not_here(&unloaded()).await;
}

#[tokio::test]
async fn a_broker_that_is_fenced_tells_nobody_what_it_knew() {
    let log = Arc::<NullLog>::default();
    let groups = on(log.clone());
    groups.clone().load_all().await;
    offset_commit::handle(&groups, &image(), &context(8), &commit_request(8)).await;
    log.fenced.store(true, Ordering::SeqCst);
    assert_not_here(&groups).await;
    assert_eq!(groups.describe("g").err(), Some(ErrorCode::NOT_COORDINATOR));
}

async fn assert_not_here(groups: &GroupCoordinator) {
    let image = image();
    let not_here = ErrorCode::NOT_COORDINATOR.code();
    for version in 1..=9 {
        let request = fetch_request(version, false);
        let response = offset_fetch::handle(groups, &image, &context(version), request).await;
        written(&response, version);
        let group_code = response.groups.first().map(|group| group.error_code);
        match version {
            1 => assert_eq!(fetched(&response), [(-1, not_here), (-1, not_here)]),
            2..=7 => assert_eq!((response.error_code, fetched(&response).len()), (not_here, 0)),
            _ => assert_eq!((group_code, fetched(&response).len()), (Some(not_here), 0)),
        }
    }
}

#[tokio::test]
async fn offsets_of_a_former_topic_of_the_same_name_are_not_shown() {
    let (groups, image) = (loaded().await, image());
    offset_commit::handle(&groups, &image, &context(8), &commit_request(8)).await;
    let recreated = image_with(TopicId(uuid::Uuid::from_u128(8)));
    let response = offset_fetch::handle(&groups, &recreated, &context(7), fetch_request(7, false)).await;
    assert_eq!(fetched(&response), [(-1, 0), (-1, 0)]);
}
