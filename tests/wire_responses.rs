//! What we write against two readers that know nothing of our writers: the bytes of Apache Kafka's own codec, and the decoder of
//! `kafka-protocol`.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

use barnabas::base::{ErrorCode, TopicId};
use barnabas::host::DiskFile;
use barnabas::wire::api_versions::{self, Features, FinalizedFeature, SupportedFeature};
use barnabas::wire::encode::{append_response, encode_response};
use barnabas::wire::fetch_response::{
    self, AbortedTransaction, CurrentLeader, DivergingEpoch, FetchReply, NodeEndpoint, PartitionReply, TopicReply,
};
use barnabas::wire::messages::{ApiVersionsRequest, MetadataResponse, StrBytes, TopicName};
use barnabas::wire::response::Piece;
use barnabas::wire::table::{self, Api, keys, lookup};
use bytes::{Buf, Bytes, BytesMut};
use kafka_protocol::messages::api_versions_response::{ApiVersion, FinalizedFeatureKey, SupportedFeatureKey};
use kafka_protocol::messages::{ApiVersionsResponse, FetchResponse};
use kafka_protocol::protocol::Decodable;

const FACTS: &str = include_str!("wire_facts/messages.txt");

fn kafka_response(key: i16, version: i16) -> Bytes {
    let start = format!("response {key} {version} ");
    let hex = FACTS.lines().find_map(|line| line.strip_prefix(&start)).unwrap();
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn api(key: i16) -> &'static Api {
    lookup(key).unwrap()
}

/// A file that is never read: regions are only pointed at.
#[derive(Debug)]
struct Unread;

impl DiskFile for Unread {
    fn len(&self) -> io::Result<u64> {
        Ok(1 << 40)
    }
    fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
        panic!("read")
    }
    fn write_all_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        panic!("written")
    }
    fn write_all_vectored_at(&self, _: &[io::IoSlice<'_>], _: u64) -> io::Result<()> {
        panic!("written")
    }
    fn set_len(&self, _: u64) -> io::Result<()> {
        panic!("cut")
    }
    fn reserve(&self, _: u64) -> io::Result<()> {
        panic!("reserved")
    }
    fn sync_data(&self) -> io::Result<()> {
        panic!("synced")
    }
    fn start_writeback(&self, _: u64, _: u64) -> io::Result<()> {
        panic!("synced")
    }
    fn is_cached(&self, _: u64, _: u64) -> bool {
        true
    }
    fn raw_fd(&self) -> Option<RawFd> {
        None
    }
}

/// One frame out of pieces, file regions as that many bytes of 7.
fn joined(pieces: &[Piece]) -> Bytes {
    let mut bytes = BytesMut::new();
    for piece in pieces {
        match piece {
            Piece::Bytes(content) => bytes.extend_from_slice(content),
            Piece::File { len, .. } => bytes.resize(bytes.len() + len, 7),
        }
    }
    bytes.freeze()
}

/// The body of a frame whose length prefix and correlation id are right.
fn body_of(api: &Api, version: i16, correlation_id: i32, mut frame: Bytes) -> Bytes {
    assert_eq!(frame.get_i32() as usize, frame.len(), "length prefix");
    assert_eq!(frame.get_i32(), correlation_id);
    if api.has_tagged_response_header(version) {
        assert_eq!(frame.get_u8(), 0, "empty tag section of the header");
    }
    frame
}

fn as_in_the_facts() -> FetchReply {
    let partition = || PartitionReply {
        partition: 3,
        error_code: 2,
        high_watermark: 4,
        last_stable_offset: 4,
        log_start_offset: 4,
        diverging_epoch: Some(DivergingEpoch { epoch: 3, end_offset: 4 }),
        current_leader: Some(CurrentLeader { leader_id: 3, leader_epoch: 3 }),
        aborted_transactions: Some(vec![AbortedTransaction { producer_id: 4, first_offset: 4 }; 2]),
        preferred_read_replica: 3,
        records: vec![Piece::Bytes(Bytes::from_static(&[1])), Piece::Bytes(Bytes::from_static(&[2, 3]))],
    };
    let topic = || TopicReply {
        name: TopicName(StrBytes::from_static_str("ab")),
        id: TopicId::from_bytes([0x11; 16]),
        partitions: vec![partition(), partition()],
    };
    let ab = StrBytes::from_static_str("ab");
    let endpoint = NodeEndpoint { node_id: 3, host: ab.clone(), port: 3, rack: Some(ab) };
    FetchReply {
        throttle_time_ms: 3,
        error_code: 2,
        session_id: 3,
        topics: vec![topic(), topic()],
        node_endpoints: vec![endpoint.clone(), endpoint],
    }
}

#[test]
fn fetch_is_written_as_kafka_writes_it_in_every_version() {
    let fetch = api(keys::FETCH);
    for version in fetch.version_min..=fetch.version_max {
        let frame = joined(&fetch_response::encode(version, -559_038_737, as_in_the_facts()).unwrap());
        let body = body_of(fetch, version, -559_038_737, frame);
        assert_eq!(body, kafka_response(keys::FETCH, version), "v{version}");
    }
}

fn two_partitions(records: Vec<Piece>) -> FetchReply {
    let mut data = PartitionReply::refused(1, 0);
    (data.high_watermark, data.last_stable_offset, data.log_start_offset) = (30, 20, 10);
    data.records = records;
    let topic = TopicReply {
        name: TopicName(StrBytes::from_static_str("t")),
        id: TopicId::from_bytes([9; 16]),
        partitions: vec![PartitionReply::refused(0, 1), data],
    };
    FetchReply { topics: vec![topic], ..FetchReply::default() }
}

/// Traps 3 and 4: nothing is no bytes and never null, and no optional field appears by accident.
#[test]
fn an_empty_fetch_has_no_null_records_and_no_optional_fields() {
    let fetch = api(keys::FETCH);
    for version in fetch.version_min..=fetch.version_max {
        let frame = joined(&fetch_response::encode(version, 7, two_partitions(Vec::new())).unwrap());
        let mut body = body_of(fetch, version, 7, frame);
        let response = FetchResponse::decode(&mut body, version).unwrap();
        assert!(body.is_empty());
        assert_eq!((response.error_code, response.session_id, response.throttle_time_ms), (0, 0, 0));
        assert!(response.node_endpoints.is_empty());
        let [refused, data] = &response.responses[0].partitions[..] else { panic!("{response:?}") };
        assert_eq!((refused.error_code, refused.high_watermark, refused.last_stable_offset), (1, -1, -1));
        assert_eq!((data.high_watermark, data.last_stable_offset), (30, 20));
        assert_eq!(data.log_start_offset, if version >= 5 { 10 } else { -1 });
        for partition in [refused, data] {
            assert_eq!(partition.records.as_deref(), Some(&[][..]), "v{version}");
            assert_eq!(partition.aborted_transactions, None);
            assert_eq!(*partition.preferred_read_replica, -1);
            assert_eq!((partition.current_leader.leader_epoch, partition.diverging_epoch.epoch), (-1, -1));
            assert!(partition.unknown_tagged_fields.is_empty());
        }
    }
}

#[test]
fn file_regions_are_pointed_at_and_stand_where_the_records_belong() {
    let file: Arc<dyn DiskFile> = Arc::new(Unread);
    let region = |position, len| Piece::File { file: Arc::clone(&file), position, len };
    let records = || vec![region(5_000_000_000, 200), Piece::Bytes(Bytes::from_static(b"tail")), region(0, 0)];
    for version in 4..=18 {
        let pieces = fetch_response::encode(version, 1, two_partitions(records())).unwrap();
        let shape: Vec<_> = pieces.iter().map(|piece| (matches!(piece, Piece::File { .. }), piece.len())).collect();
        // Everything before the records, the region, the bytes, and in flexible versions the tag sections behind them.
        assert_eq!(&shape[1..3], [(true, 200), (false, 4)], "v{version}");
        assert_eq!(shape.len(), 3 + usize::from(version >= 12), "v{version}");
        assert!(matches!(pieces[1], Piece::File { position: 5_000_000_000, .. }));
        let mut body = body_of(api(keys::FETCH), version, 1, joined(&pieces));
        let response = FetchResponse::decode(&mut body, version).unwrap();
        let expected = [vec![7; 200], b"tail".to_vec()].concat();
        assert_eq!(response.responses[0].partitions[1].records.as_deref(), Some(&expected[..]));
        assert!(body.is_empty());
    }
}

#[test]
fn an_answer_longer_than_a_frame_is_an_error() {
    let file: Arc<dyn DiskFile> = Arc::new(Unread);
    let region = || Piece::File { file: Arc::clone(&file), position: 0, len: 1 << 30 };
    assert!(fetch_response::encode(12, 1, two_partitions(vec![region()])).is_ok());
    let mut reply = two_partitions(vec![region()]);
    reply.topics.push(two_partitions(vec![region()]).topics.remove(0));
    assert!(fetch_response::encode(12, 1, reply).is_err());
    assert!(fetch_response::encode(12, 1, two_partitions(vec![region(), region(), region(), region()])).is_err());
    assert!(fetch_response::encode(19, 1, FetchReply::default()).is_err());
}

fn features() -> Features {
    let supported =
        |name, level_min, level_max| SupportedFeature { name: StrBytes::from_static_str(name), level_min, level_max };
    let finalized = |name, level| FinalizedFeature { name: StrBytes::from_static_str(name), level };
    Features {
        supported: vec![supported("metadata.version", 7, 33), supported("transaction.version", 0, 2)],
        finalized: vec![finalized("metadata.version", 33), finalized("transaction.version", 2)],
        finalized_epoch: 42,
    }
}

fn api_versions_answer(version: i16) -> ApiVersionsResponse {
    let own = api(keys::API_VERSIONS);
    let frame = encode_response(own, version, 5, &api_versions::served(version, &features())).unwrap();
    let mut body = body_of(own, version, 5, frame);
    let response = ApiVersionsResponse::decode(&mut body, version.min(4)).unwrap();
    assert!(body.is_empty());
    response
}

#[test]
fn api_versions_lists_exactly_what_is_served() {
    for version in 0..=5 {
        let response = api_versions_answer(version);
        assert_eq!(response.error_code, 0);
        let listed: Vec<_> =
            response.api_keys.iter().map(|entry| (entry.api_key, entry.min_version, entry.max_version)).collect();
        let served: Vec<_> = table::served().map(|api| (api.key, api.advertised_min, api.version_max)).collect();
        assert_eq!(listed, served);
        assert_eq!(listed[0], (0, 0, 13), "Produce is shown from 0 (KAFKA-18659)");
    }
}

#[test]
fn api_versions_is_written_as_kafka_writes_it_in_every_version() {
    let (own, ab) = (api(keys::API_VERSIONS), || StrBytes::from_static_str("ab"));
    let entry = ApiVersion::default().with_api_key(2).with_min_version(2).with_max_version(2);
    let supported = SupportedFeatureKey::default().with_name(ab()).with_min_version(2).with_max_version(2);
    let finalized = FinalizedFeatureKey::default().with_name(ab()).with_min_version_level(2).with_max_version_level(2);
    for version in 0..=5 {
        let mut response = ApiVersionsResponse::default().with_error_code(2).with_api_keys(vec![entry.clone(); 2]);
        if version >= 1 {
            response.throttle_time_ms = 3;
        }
        if version >= 3 {
            response.supported_features = vec![supported.clone(); 2];
            response.finalized_features = vec![finalized.clone(); 2];
            response.finalized_features_epoch = 4;
        }
        let body = body_of(own, version, 5, encode_response(own, version, 5, &response).unwrap());
        assert_eq!(body, kafka_response(keys::API_VERSIONS, version), "v{version}");
    }
}

#[test]
fn features_with_minimum_zero_are_hidden_from_version_three() {
    let names = |version| -> Vec<String> {
        api_versions_answer(version).supported_features.iter().map(|feature| feature.name.to_string()).collect()
    };
    assert_eq!(names(2), Vec::<String>::new());
    assert_eq!(names(3), ["metadata.version"]);
    for version in [4, 5] {
        assert_eq!(names(version), ["metadata.version", "transaction.version"]);
        let response = api_versions_answer(version);
        assert_eq!(response.finalized_features_epoch, 42);
        let finalized = &response.finalized_features;
        assert_eq!(finalized.len(), 2);
        assert_eq!((finalized[1].min_version_level, finalized[1].max_version_level), (2, 2));
    }
}

#[test]
fn an_unknown_version_of_api_versions_gets_error_35_in_the_layout_of_version_0() {
    let frame = api_versions::unsupported_version(api(keys::API_VERSIONS), 0x2a).unwrap();
    assert_eq!(&frame[..], b"\0\0\0\x10\0\0\0\x2a\0\x23\0\0\0\x01\0\x12\0\0\0\x05");
}

/// The answers of Apache Kafka 4.4 to each combination.
#[test]
fn api_versions_judges_names_and_addresses_as_kafka_does() {
    let ask = |cluster: Option<&'static str>, node_id| {
        let request = ApiVersionsRequest {
            client_software_name: StrBytes::from_static_str("raw"),
            client_software_version: StrBytes::from_static_str("1.0"),
            cluster_id: cluster.map(StrBytes::from_static_str),
            node_id,
        };
        api_versions::judge(&request, 5, "ours", 1)
    };
    assert_eq!(ask(None, -1), ErrorCode::NONE);
    assert_eq!(ask(Some("ours"), 1), ErrorCode::NONE);
    assert_eq!(ask(Some("ours"), -1), ErrorCode::INVALID_REQUEST);
    assert_eq!(ask(Some("other"), -1), ErrorCode::INVALID_REQUEST);
    assert_eq!(ask(None, 1), ErrorCode::INVALID_REQUEST);
    assert_eq!(ask(Some("ours"), 999), ErrorCode::REBOOTSTRAP_REQUIRED);
    assert_eq!(ask(Some("other"), 1), ErrorCode::REBOOTSTRAP_REQUIRED);

    let named = |name, version| {
        let request = ApiVersionsRequest {
            client_software_name: StrBytes::from_static_str(name),
            client_software_version: StrBytes::from_static_str(version),
            ..ApiVersionsRequest::default()
        };
        api_versions::judge(&request, 3, "ours", 1)
    };
    for (name, version) in [("r", "1"), ("apache-kafka-java", "4.4.0-rc.1")] {
        assert_eq!(named(name, version), ErrorCode::NONE, "{name} {version}");
    }
    for (name, version) in
        [("", "1"), ("raw", ""), ("a b", "1"), ("raw", "1_0"), ("-raw", "1"), ("raw-", "1"), ("raw.\u{e9}", "1")]
    {
        assert_eq!(named(name, version), ErrorCode::INVALID_REQUEST, "{name} {version}");
    }
    assert_eq!(api_versions::judge(&ApiVersionsRequest::default(), 2, "ours", 1), ErrorCode::NONE);
}

/// Trap 2: the header of this one answer has no tag section, whatever the version.
#[test]
fn response_headers_have_tags_in_flexible_versions_but_for_api_versions() {
    assert!(!api(keys::API_VERSIONS).has_tagged_response_header(5));
    assert!(api(keys::METADATA).has_tagged_response_header(9));
    assert!(!api(keys::METADATA).has_tagged_response_header(8));
    assert!(!api(keys::OFFSET_DELETE).has_tagged_response_header(0));
}

#[test]
fn answers_are_appended_and_a_failed_one_leaves_nothing_behind() {
    let metadata = api(keys::METADATA);
    let mut buffer = BytesMut::from(&b"before"[..]);
    append_response(&mut buffer, metadata, 1, 9, &MetadataResponse::default()).unwrap();
    let whole = buffer.clone();
    let answer = encode_response(metadata, 1, 9, &MetadataResponse::default()).unwrap();
    assert_eq!(whole, [b"before", &answer[..]].concat());
    assert!(append_response(&mut buffer, metadata, 99, 9, &MetadataResponse::default()).is_err());
    assert_eq!(buffer, whole);
}
