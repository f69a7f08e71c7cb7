//! The shape table against two judges that know nothing of it: bytes written by Apache Kafka's own codec, and the decoder of
//! `kafka-protocol`. And the bodies that would kill a broker which trusted either the sender or the decoder.

use barnabas::wire::decode::{DecodeError, decode_and_drop, decode_request};
use barnabas::wire::messages::{self, FetchRequest, MetadataRequest, ProduceRequest, RequestBody};
use barnabas::wire::shape::sample::{Fill, body};
use barnabas::wire::shape::{ELEMENTS_MAX, Field, Kind, Scalar, ShapeFault};
use barnabas::wire::table::{APIS, Api, keys, lookup};
use bytes::Bytes;
use kafka_protocol::messages::{ApiKey, RequestKind};

const FACTS: &str = include_str!("wire_facts/requests.txt");

fn facts() -> impl Iterator<Item = (&'static Api, i16, Vec<u8>)> {
    FACTS.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let [key, version, hex] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        (lookup(key.parse().unwrap()).unwrap(), version.parse().unwrap(), from_hex(hex))
    })
}

fn from_hex(hex: &str) -> Vec<u8> {
    let hex = hex.trim_matches('-').replace(' ', "");
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn every_version() -> impl Iterator<Item = (&'static Api, i16)> {
    APIS.iter().flat_map(|api| (api.version_min..=api.version_max).map(move |version| (api, version)))
}

/// Newest version that the crate's decoder really reads, where it is not the newest of Kafka 4.4 (`ApiKey::valid_versions` of the crate
/// claims one more for the offsets). Those versions are read by our own messages.
fn carried_by_crate(api: &Api) -> Option<i16> {
    Some(match api.key {
        keys::LIST_OFFSETS => 10,
        keys::OFFSET_COMMIT | keys::OFFSET_FETCH => 9,
        keys::API_VERSIONS | keys::DESCRIBE_LOG_DIRS => 4,
        keys::TXN_OFFSET_COMMIT => 5,
        keys::DELETE_GROUPS => 2,
        keys::WRITE_TXN_MARKERS | keys::SHARE_FETCH | keys::SHARE_ACKNOWLEDGE => 1,
        keys::ADD_RAFT_VOTER | keys::WRITE_SHARE_GROUP_STATE => 0,
        keys::READ_SHARE_GROUP_STATE_SUMMARY | keys::DESCRIBE_SHARE_GROUP_OFFSETS => 0,
        _ => return ApiKey::try_from(api.key).is_ok().then_some(i16::MAX),
    })
}

#[test]
fn table_and_kafka_write_the_same_bytes_for_every_api_and_version() {
    let mut seen = Vec::new();
    for (api, version, bytes) in facts() {
        assert_eq!(body(api, version, Fill::Full), bytes, "{} v{version}", api.name);
        assert_eq!(api.check(version, &bytes), Ok(bytes.len()), "{} v{version}", api.name);
        seen.push((api.key, version));
    }
    // What brokers ask controllers is written by one codec and read by the other, see `smallest_bodies_pass_the_check_and_the_decoder`.
    let of_clients = every_version().filter(|(api, _)| !api.is_for_nodes());
    let expected: Vec<_> = of_clients.map(|(api, version)| (api.key, version)).collect();
    seen.sort_unstable();
    assert_eq!(seen, expected, "the file and the table name the same versions");
}

#[test]
fn smallest_bodies_pass_the_check_and_the_decoder() {
    for (api, version) in every_version() {
        let bytes = body(api, version, Fill::Minimal);
        assert_eq!(api.check(version, &bytes), Ok(bytes.len()), "{} v{version}", api.name);
        decode_whole(api, version, bytes);
    }
}

#[test]
fn fullest_bodies_pass_the_decoder_to_the_last_byte() {
    for (api, version, bytes) in facts() {
        decode_whole(api, version, bytes);
    }
}

fn decode_whole(api: &Api, version: i16, bytes: Vec<u8>) {
    if let Err(error) = decode_and_drop(api.key, version, Bytes::from(bytes.clone())) {
        panic!("{} v{version}: {error}", api.name);
    }
    if carried_by_crate(api).is_none_or(|newest| newest < version) {
        return;
    }
    let mut bytes = Bytes::from(bytes);
    if let Err(error) = RequestKind::decode(ApiKey::try_from(api.key).unwrap(), &mut bytes, version) {
        panic!("{} v{version}: {error:#}", api.name);
    }
    assert!(bytes.is_empty(), "{} v{version}: {} bytes left", api.name, bytes.len());
}

#[test]
fn a_body_that_ends_early_is_refused_at_every_length() {
    for (api, version, bytes) in facts() {
        for end in 0..bytes.len() {
            assert!(api.check(version, &bytes[..end]).is_err(), "{} v{version} cut at {end}", api.name);
        }
    }
}

#[test]
fn bytes_behind_the_end_do_no_harm() {
    for (api, version, mut bytes) in facts() {
        let whole = bytes.len();
        bytes.extend([0, 0xff, 7]);
        assert_eq!(api.check(version, &bytes), Ok(whole), "{} v{version}", api.name);
    }
}

/// Whatever a flipped byte does: the check refuses it, or the decoder reads it without a panic and without a huge allocation.
#[test]
fn what_passes_the_check_never_harms_the_decoder() {
    for (api, version, bytes) in facts() {
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] = value;
                let _ = decode_and_drop(api.key, version, Bytes::from(bytes));
            }
        }
    }
}

fn refusal<R: RequestBody>(version: i16, hex: &str) -> ShapeFault {
    match decode_request::<R>(version, Bytes::from(from_hex(hex))) {
        Err(DecodeError::Shape(error)) => error.fault,
        Err(other) => panic!("{hex}: refused too late: {other}"),
        Ok(_) => panic!("{hex}: accepted"),
    }
}

/// Each of these makes the decoder alone take gigabytes or abort the process.
#[test]
fn counts_that_lie_are_refused_before_memory_is_taken() {
    let huge = 2_147_483_647;
    assert_eq!(refusal::<MetadataRequest>(8, "7fffffff"), ShapeFault::Count { declared: huge, left: 0 });
    assert_eq!(refusal::<MetadataRequest>(12, "ffffffff0f"), ShapeFault::Count { declared: u32::MAX - 1, left: 0 });
    assert_eq!(refusal::<MetadataRequest>(8, "033c0c00"), ShapeFault::Count { declared: 0x033c_0c00, left: 0 });
    let produce = "ffff 0001 00000000 00000001 0001 61 7fffffff";
    assert_eq!(refusal::<ProduceRequest>(8, produce), ShapeFault::Count { declared: huge, left: 0 });
    let fetch = "ffffffff 00000000 00000000 00000000 00 00000000 00000000 00000000 7fffffff";
    assert_eq!(refusal::<FetchRequest>(11, fetch), ShapeFault::Count { declared: huge, left: 0 });
}

#[test]
fn lengths_that_lie_are_refused() {
    assert_eq!(refusal::<MetadataRequest>(8, "80000000"), ShapeFault::Negative(i32::MIN));
    assert_eq!(refusal::<MetadataRequest>(8, "fffffffe"), ShapeFault::Negative(-2));
    assert_eq!(refusal::<MetadataRequest>(0, "ffffffff"), ShapeFault::Null);
    assert_eq!(refusal::<MetadataRequest>(1, "00000001 ffff"), ShapeFault::Null);
    assert_eq!(refusal::<MetadataRequest>(1, "00000001 8000"), ShapeFault::Negative(-32768));
    assert_eq!(refusal::<MetadataRequest>(1, "00000001 0005 6162"), ShapeFault::Short { needed: 5, left: 2 });
    assert_eq!(refusal::<MetadataRequest>(1, "00000001 0002 fffe"), ShapeFault::NotUtf8);
    assert_eq!(refusal::<MetadataRequest>(12, "ffffffff1f"), ShapeFault::Varint);
    assert_eq!(refusal::<MetadataRequest>(12, "8080808080"), ShapeFault::Varint);
    let records = "00 0001 00000000 02 0261 02 00000000 ffffffff0f";
    assert_eq!(refusal::<ProduceRequest>(9, records), ShapeFault::Short { needed: u32::MAX as usize - 1, left: 0 });
    let long = format!("02 00000000000000000000000000000000 818002 {}", "61".repeat(32_768));
    assert_eq!(refusal::<MetadataRequest>(12, &long), ShapeFault::TextTooLong(32_768));
}

#[test]
fn tagged_fields_that_lie_are_refused() {
    let fetch = "00000000 00000000 00000000 00 00000000 00000000 01 01 01";
    let with = |tags: &str| format!("{fetch} {tags}");
    assert_eq!(refusal::<FetchRequest>(15, &with("ffffffff0f")), ShapeFault::TooManyTags(u32::MAX));
    assert_eq!(
        refusal::<FetchRequest>(15, &with("01 7f ffffffff0f")),
        ShapeFault::Short { needed: u32::MAX as usize, left: 0 }
    );
    let state = "00000001 0000000000000002 00";
    let error = ShapeFault::TagSize { tag: 1, declared: 14, used: 13 };
    assert_eq!(refusal::<FetchRequest>(15, &with(&format!("01 01 0e {state} 00"))), error);
    assert_eq!(
        refusal::<FetchRequest>(15, &with(&format!("01 01 0c {state}"))),
        ShapeFault::Short { needed: 1, left: 0 }
    );
    let whole = decode_request::<FetchRequest>(15, Bytes::from(from_hex(&with(&format!("01 01 0d {state}"))))).unwrap();
    assert_eq!(whole.replica_state.replica_epoch, 2);
}

/// A million empty topic names would be two megabytes on the wire and eighty when decoded.
#[test]
fn the_number_of_objects_in_one_request_is_bounded() {
    let count = u32::try_from(ELEMENTS_MAX).unwrap() + 1;
    let mut bytes = count.to_be_bytes().to_vec();
    bytes.resize(4 + 2 * count as usize, 0);
    let metadata = lookup(keys::METADATA).unwrap();
    assert_eq!(metadata.check(1, &bytes).unwrap_err().fault, ShapeFault::TooManyElements);
}

#[test]
fn versions_outside_the_range_are_refused() {
    for (version, hex) in [(-1, "00"), (14, "00"), (i16::MAX, ""), (i16::MIN, "")] {
        assert_eq!(refusal::<MetadataRequest>(version, hex), ShapeFault::Version(version));
    }
    assert_eq!(refusal::<ProduceRequest>(2, "0000 00000000 00000000"), ShapeFault::Version(2));
}

#[test]
fn record_bytes_stay_a_slice_of_the_frame() {
    let produce = lookup(keys::PRODUCE).unwrap();
    for version in produce.version_min..=produce.version_max {
        let frame = Bytes::from(body(produce, version, Fill::Full));
        let request: ProduceRequest = decode_request(version, frame.clone()).unwrap();
        let records = request.topic_data[0].partition_data[0].records.clone().unwrap();
        assert_eq!(&records[..], [1, 2, 3]);
        assert!(frame.as_ptr_range().contains(&records.as_ptr()), "v{version} copied the records");
    }
}

#[test]
fn api_versions_five_carries_whom_the_client_looks_for() {
    let api = lookup(keys::API_VERSIONS).unwrap();
    let full: messages::ApiVersionsRequest = decode_request(5, Bytes::from(body(api, 5, Fill::Full))).unwrap();
    assert_eq!(full.client_software_name.as_str(), "ab");
    assert_eq!((full.cluster_id.as_deref(), full.node_id), (Some("ab"), 3));
    let least: messages::ApiVersionsRequest = decode_request(4, Bytes::from(body(api, 4, Fill::Minimal))).unwrap();
    assert_eq!((least.cluster_id, least.node_id), (None, -1));
}

/// A name once tagged stays tagged, arrays hold no arrays, and no kind hides from the walk: what the interpreter takes for granted.
#[test]
fn the_table_keeps_the_rules_the_interpreter_relies_on() {
    fn visit(fields: &'static [Field], flexible_from: i16, api: &str) {
        for field in fields {
            let presence = field.presence;
            assert!(presence.since <= presence.until, "{api}.{}", field.name);
            assert!(presence.tag.is_none() || presence.since >= flexible_from, "{api}.{} tagged too early", field.name);
            match field.kind {
                Kind::Struct(inner) | Kind::Structs(inner) => visit(inner, flexible_from, api),
                Kind::Array(scalar) => assert_ne!(scalar, Scalar::Records, "{api}.{}", field.name),
                Kind::One(_) => {}
            }
        }
    }
    for api in &APIS {
        visit(api.request, api.flexible_from, api.name);
    }
}
