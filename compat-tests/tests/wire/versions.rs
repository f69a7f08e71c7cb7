//! ApiVersions and what it promises. Traps 1, 2, 7, 8, 52a, 63.

use std::collections::BTreeMap;
use std::time::Duration;

use compat_tests::Broker;
use compat_tests::wire::{API_VERSIONS, Api, Body, Connection, Reader, framed, request};

use crate::calls::{NONE, UNSUPPORTED_VERSION};

const CLOSE_MAX: Duration = Duration::from_secs(5);

fn ranges_v0(mut answer: Reader) -> (i16, BTreeMap<i16, (i16, i16)>) {
    let error = answer.i16();
    let ranges = answer.array(|r| (r.i16(), (r.i16(), r.i16())));
    answer.end();
    (error, ranges.into_iter().collect())
}

fn advertised(connection: &mut Connection) -> BTreeMap<i16, (i16, i16)> {
    let (error, ranges) = ranges_v0(connection.call(API_VERSIONS, 0, &Body::new()));
    assert_eq!(error, NONE);
    ranges
}

fn v3_body() -> Body {
    Body::new().compact_string("compat-tests").compact_string("1.0").tags()
}

/// Trap 1: answered in version 0, error 35, and the same socket goes on.
#[test]
fn a_newer_api_versions_is_answered_in_version_0_on_a_socket_that_stays() {
    let broker = Broker::start();
    let mut connection = broker.connect();
    for junk in [&b""[..], b"\x00", b"\xff\xff\xff\xff\xff\xff", &[7; 300]] {
        let header_v2 = Body::new().i16(18).i16(99).i32(77).string("new-client").tags();
        connection.send_bytes(&framed(&[&header_v2.0, junk].concat()));
        let mut answer = Reader::new(connection.frame());
        assert_eq!(answer.i32(), 77);
        let (error, ranges) = ranges_v0(answer);
        assert_eq!(error, UNSUPPORTED_VERSION);
        assert_eq!(ranges[&18].0, 0);
        assert!(ranges[&18].1 >= 3, "{ranges:?}");
    }
    let mut answer = connection.call(API_VERSIONS, 3, &v3_body());
    assert_eq!(answer.i16(), NONE);
}

/// Trap 2: the header of the answer has no tags in any version, correlation ids come back as they are.
#[test]
fn api_versions_answers_have_a_plain_header_and_any_correlation_id() {
    let broker = Broker::start();
    let mut connection = broker.connect();
    for correlation in [0, 1, -1, i32::MIN, i32::MAX, 0x1234_5678] {
        for version in 0..=4 {
            connection.number_from(correlation);
            let body = if version >= 3 { v3_body() } else { Body::new() };
            let mut answer = connection.call(API_VERSIONS, version, &body);
            assert_eq!(answer.i16(), NONE);
            let element = |r: &mut Reader| (r.i16(), r.i16(), r.i16());
            let ranges = if version >= 3 {
                answer.compact_array(|r| {
                    let range = element(r);
                    r.tags();
                    range
                })
            } else {
                answer.array(element)
            };
            assert!(ranges.len() > 20, "{ranges:?}");
            assert!(ranges.iter().all(|(_, low, high)| low <= high), "{ranges:?}");
            if version >= 1 {
                answer.i32();
            }
            if version >= 3 {
                answer.tags();
            }
            answer.end();
        }
    }
}

/// Traps 7, 52a and 63: wide enough for old clients, new enough for new ones.
#[test]
fn advertised_ranges_serve_old_and_new_clients() {
    let broker = Broker::start();
    let ranges = advertised(&mut broker.connect());
    let holds = |key: i16, low: i16, high: i16| {
        let (from, to) = ranges[&key];
        assert!(from <= low && high <= to, "api {key}: {from} to {to}, wanted {low} to {high}");
    };
    holds(0, 0, 11); // librdkafka refuses to compress without Produce 0
    holds(1, 4, 17);
    holds(3, 0, 12);
    holds(11, 0, 9); // JoinGroup of old librdkafka
    holds(18, 0, 4);
    holds(22, 0, 4); // InitProducerId
    holds(9, 1, 9);
    holds(8, 2, 9);
    assert_eq!(ranges[&2].0, 1, "ListOffsets 0 has another meaning, so it is not offered");
}

/// Trap 8: outside its range only ApiVersions is answered; everything else closes the connection, and the next one works.
#[test]
fn a_version_just_outside_the_range_closes_the_connection() {
    let broker = Broker::start();
    let ranges = advertised(&mut broker.connect());
    for (key, (low, high)) in ranges.into_iter().filter(|(key, _)| *key != 18) {
        for version in [low - 1, high + 1].into_iter().filter(|v| *v >= 0) {
            let mut connection = broker.connect();
            connection.send_bytes(&framed(&request(Api(key, i16::MAX), version, 5, &Body::new().raw(&[0; 16]))));
            assert!(connection.is_closed_within(CLOSE_MAX), "api {key} version {version}");
        }
    }
    advertised(&mut broker.connect());
}

/// Trap 8: an API nobody knows.
#[test]
fn an_unknown_api_closes_the_connection() {
    let broker = Broker::start();
    for key in [-1, 4, 7, 9999, i16::MAX] {
        let mut connection = broker.connect();
        connection.send_bytes(&framed(&request(Api(key, i16::MAX), 0, 5, &Body::new())));
        assert!(connection.is_closed_within(CLOSE_MAX), "api {key}");
    }
}

/// Trap 7: Produce 0 to 2 are advertised for old clients' sake and not served, as in Kafka.
#[test]
fn produce_below_version_3_closes_the_connection() {
    let broker = Broker::start();
    for version in 0..3 {
        let mut connection = broker.connect();
        let body = Body::new().i16(1).i32(1000).i32(0);
        connection.send_bytes(&framed(&request(Api(0, 9), version, 5, &body)));
        let closed = connection.is_closed_within(CLOSE_MAX);
        assert!(closed, "produce {version}");
    }
}
