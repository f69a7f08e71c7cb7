//! Bytes nobody should send: each gets an error or a closed connection and a line in the log, memory stays flat, the next client works.
//! Trap 61 and the "Bad input".

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use compat_tests::Broker;
use compat_tests::batch::Batch;
use compat_tests::wire::{
    Api, Body, CREATE_TOPICS, Connection, FETCH, JOIN_GROUP, LIST_OFFSETS, METADATA, OFFSET_COMMIT, OFFSET_FETCH,
    PRODUCE, framed, request,
};

use crate::calls::{Fetch, FetchPartition, NONE, produce, produce_body, topic};

const CLOSE_MAX: Duration = Duration::from_secs(5);
const INVALID_TOPIC: i16 = 17;

/// The broker answers a Metadata request on a new connection.
#[track_caller]
fn still_answers(broker: &Broker) {
    let mut answer = broker.connect().call(METADATA, 8, &Body::new().i32(0).bool(false).bool(false).bool(false));
    answer.i32();
    assert_eq!(answer.i32(), 1, "one broker");
}

/// The connection is closed, or at least answers something: what it must not do is hang.
fn ends(connection: &mut Connection) -> bool {
    connection.has_answer_within(CLOSE_MAX) || connection.is_closed_within(CLOSE_MAX)
}

#[test]
fn garbage_closes_the_connection() {
    let broker = Broker::start();
    let lengths = [-1, i32::MIN, i32::MAX, 104_857_601].map(|n: i32| [&n.to_be_bytes()[..], b"junk"].concat());
    let short = [0, 1, 2, 7].map(|n| framed(&vec![0; n]));
    let others = [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
        [&[0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03][..], &[0; 600]].concat(),
        vec![0xff; 5000],
        framed(&[0xff; 5000]),
        framed(&[&request(METADATA, 8, 1, &Body::new())[..8], &[0x7f, 0xff]].concat()),
    ];
    for bytes in lengths.iter().chain(&short).chain(&others) {
        let mut connection = broker.connect();
        connection.send_bytes(bytes);
        assert!(connection.is_closed_within(CLOSE_MAX), "{:02x?}", &bytes[..bytes.len().min(24)]);
    }
    still_answers(&broker);
}

/// Valid requests of many kinds, for cutting and twisting.
fn samples(topic: &str) -> Vec<(Api, i16, Body)> {
    let fetch = |v| Fetch::of(v, topic, [7; 16], &[FetchPartition::from(0, 0)]).body();
    let join = Body::new()
        .string("g")
        .i32(6000)
        .i32(6000)
        .string("")
        .null_string()
        .string("consumer")
        .i32(1)
        .string("range")
        .bytes(b"x");
    let commit = Body::new()
        .string("g")
        .i32(-1)
        .string("")
        .null_string()
        .i32(1)
        .string(topic)
        .i32(1)
        .i32(0)
        .i64(1)
        .i32(-1)
        .null_string();
    let metadata =
        Body::new().compact_array(1).raw(&[0; 16]).compact_string(topic).tags().bool(false).bool(false).tags();
    vec![
        (METADATA, 8, Body::new().i32(1).string(topic).bool(false).bool(false).bool(false)),
        (METADATA, 12, metadata),
        (PRODUCE, 7, produce_body(topic, 0, 1, &Batch::of(["a", "b"]).bytes())),
        (FETCH, 11, fetch(11)),
        (FETCH, 12, fetch(12)),
        (LIST_OFFSETS, 5, Body::new().i32(-1).i8(0).i32(1).string(topic).i32(1).i32(0).i32(-1).i64(-1)),
        (CREATE_TOPICS, 4, Body::new().i32(1).string("../..").i32(1).i16(1).i32(0).i32(0).i32(1000).bool(true)),
        (JOIN_GROUP, 5, join),
        (OFFSET_COMMIT, 7, commit),
        (OFFSET_FETCH, 5, Body::new().string("g").i32(1).string(topic).i32(1).i32(0)),
    ]
}

#[test]
fn requests_cut_at_every_byte_never_hang_or_harm() {
    let broker = Broker::start();
    let name = topic(&broker, "cut", 1, &[]);
    for (api, version, body) in samples(&name) {
        let whole = request(api, version, 1, &body);
        for length in 8..whole.len() {
            let mut connection = broker.connect();
            connection.send_bytes(&framed(&whole[..length]));
            assert!(ends(&mut connection), "api {} version {version} cut to {length} of {}", api.0, whole.len());
        }
    }
    still_answers(&broker);
}

/// A small generator, so that a failure can be run again by its seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

#[test]
fn twisted_requests_never_hang_or_harm() {
    let Some(mut broker) = Broker::owned(&[]) else { return };
    let name = topic(&broker, "twist", 1, &[]);
    let samples = samples(&name);
    let mut random = Random(0x5eed_0001);
    let before = broker.resident_kib();
    for round in 0..1500 {
        let (api, version, body) = &samples[random.below(samples.len())];
        let mut bytes = request(*api, *version, 1, body);
        for _ in 0..=random.below(4) {
            let at = 8 + random.below(bytes.len() - 8);
            match random.below(4) {
                0 => bytes[at] = 0xff,
                1 => bytes[at] = 0x7f,
                2 => bytes[at] ^= 1 << random.below(8),
                _ => bytes.insert(at, random.next() as u8),
            }
        }
        let mut connection = broker.connect();
        connection.send_bytes(&framed(&bytes));
        // A twist may turn acks into 0 or ask for a long wait, both rightly without an answer.
        connection.has_answer_within(Duration::from_millis(100));
        assert!(broker.is_running(), "round {round}: {bytes:02x?}");
    }
    still_answers(&broker);
    let after = broker.resident_kib();
    assert!(after < before + 64 * 1024, "{before} KiB grew to {after} KiB");
}

#[test]
fn huge_counts_and_lengths_cost_no_memory() {
    let Some(broker) = Broker::owned(&[]) else { return };
    let before = broker.resident_kib();
    let cases: Vec<(Api, i16, Body)> = vec![
        (METADATA, 8, Body::new().i32(i32::MAX)),
        (METADATA, 8, Body::new().i32(0x033c_0c00)),
        (METADATA, 12, Body::new().uvarint(u32::MAX)),
        (PRODUCE, 7, Body::new().null_string().i16(-1).i32(1000).i32(i32::MAX)),
        (PRODUCE, 7, Body::new().null_string().i16(-1).i32(1000).i32(1).string("t").i32(i32::MAX)),
        (PRODUCE, 7, Body::new().null_string().i16(-1).i32(1000).i32(1).string("t").i32(1).i32(0).i32(i32::MAX)),
        (FETCH, 11, Body::new().i32(-1).i32(0).i32(0).i32(0).i8(0).i32(0).i32(-1).i32(0).i32(i32::MAX)),
        (CREATE_TOPICS, 4, Body::new().i32(i32::MAX)),
        (JOIN_GROUP, 5, Body::new().string("g").i32(1).i32(1).string("").null_string().string("c").i32(i32::MAX)),
        (OFFSET_FETCH, 6, Body::new().compact_string("g").uvarint(u32::MAX)),
        (METADATA, 12, Body::new().uvarint(1).bool(false).bool(false).uvarint(u32::MAX)),
    ];
    for (api, version, body) in cases {
        for _ in 0..20 {
            let mut connection = broker.connect();
            connection.send_bytes(&framed(&request(api, version, 1, &body)));
            assert!(ends(&mut connection), "api {} version {version}", api.0);
        }
    }
    let after = broker.resident_kib();
    assert!(after < before + 16 * 1024, "{before} KiB grew to {after} KiB");
    still_answers(&broker);
}

/// The figure: 10,000 connections that each declare a 100 MiB frame and send one byte cost under 64 MiB, whether it is the first
/// frame of the connection (and may be refused for that) or comes after a greeting.
#[test]
fn ten_thousand_half_open_frames_cost_under_64_mib() {
    let wanted = 10_000;
    let limit = raise_open_files();
    let count = wanted.min(usize::try_from(limit.saturating_sub(500)).expect("a limit"));
    let Some(broker) = Broker::owned(&[]) else { return };
    still_answers(&broker);
    let before = broker.resident_kib();
    let open: Vec<Connection> = (0..count)
        .map(|n| {
            let mut connection = broker.connect();
            if n % 2 == 0 {
                connection.greet();
            }
            connection.send_bytes(&[&104_857_600i32.to_be_bytes()[..], &[0]].concat());
            connection
        })
        .collect();
    still_answers(&broker);
    let after = broker.resident_kib();
    assert!(after < before + 64 * 1024, "{count} connections: {before} KiB grew to {after} KiB");
    drop(open);
    still_answers(&broker);
}

/// Lets this process, and the broker it starts, hold as many descriptors as the machine allows; gives that number.
fn raise_open_files() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    #[expect(unsafe_code, reason = "getrlimit and setrlimit have no safe wrapper in std")]
    // SAFETY: both take a pointer to a struct of ours that outlives the call.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit), 0);
        limit.rlim_cur = limit.rlim_max;
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &limit), 0);
    }
    limit.rlim_cur
}

/// A connection that sends a frame byte by byte, slowly, holds up nobody.
#[test]
fn slow_senders_hold_up_nobody() {
    let broker = Broker::start();
    let name = topic(&broker, "slow", 1, &[]);
    let whole = framed(&request(METADATA, 8, 1, &Body::new().i32(0).bool(false).bool(false).bool(false)));
    let mut slow: Vec<Connection> = (0..200).map(|_| broker.connect()).collect();
    let (last, first) = whole.split_last().expect("bytes");
    for byte in first {
        slow.iter_mut().for_each(|c| c.send_bytes(&[*byte]));
    }
    assert_eq!(produce(&mut broker.connect(), &name, 0, &Batch::of(["a"])), (NONE, 0));
    for connection in &mut slow {
        connection.send_bytes(&[*last]);
        assert!(connection.has_answer_within(CLOSE_MAX));
    }
}

/// Clients that never read their answers cost a bounded amount.
#[test]
fn clients_that_never_read_cost_bounded_memory() {
    let Some(broker) = Broker::owned(&[]) else { return };
    let name = topic(&broker, "never-read", 1, &[]);
    let mut connection = broker.connect();
    connection.greet();
    for _ in 0..20 {
        assert_eq!(produce(&mut connection, &name, 0, &Batch::of([vec![b'x'; 900_000]])).0, NONE);
    }
    let before = broker.resident_kib();
    let fetch = request(
        FETCH,
        11,
        1,
        &Fetch::of(11, &name, [0; 16], &[FetchPartition { max_bytes: 50 << 20, ..FetchPartition::from(0, 0) }]).body(),
    );
    let deaf: Vec<TcpStream> = (0..20)
        .map(|_| {
            let mut socket = TcpStream::connect(broker.socket_address()).expect("connect");
            socket.set_nonblocking(true).expect("nonblocking");
            // As many as the broker takes; it may stop reading when its answers are not read.
            for _ in 0..50 {
                if socket.write_all(&framed(&fetch)).is_err() {
                    break;
                }
            }
            socket
        })
        .collect();
    compat_tests::wait::stays(Duration::from_secs(2), || true);
    let after = broker.resident_kib();
    assert!(after < before + 256 * 1024, "{} deaf clients: {before} KiB grew to {after} KiB", deaf.len());
    still_answers(&broker);
}

#[test]
fn illegal_topic_names_get_their_error_and_no_directory() {
    let broker = Broker::start();
    let long = "x".repeat(250);
    for name in ["", ".", "..", "a/b", "../../etc", "a\0b", "a b", "é", &long] {
        let mut connection = broker.connect();
        let create = Body::new().i32(1).string(name).i32(1).i16(1).i32(0).i32(0).i32(5000).bool(false);
        let mut answer = connection.call(CREATE_TOPICS, 4, &create);
        answer.i32();
        let codes = answer.array(|r| (r.string(), r.i16(), r.string()));
        assert_eq!((codes[0].0.as_deref(), codes[0].1), (Some(name), INVALID_TOPIC), "CreateTopics {name:?}");
        let auto_create = Body::new().i32(1).string(name).bool(true).bool(false).bool(false);
        let mut answer = connection.call(METADATA, 8, &auto_create);
        answer.i32();
        answer.array(|r| (r.i32(), r.string(), r.i32(), r.string()));
        answer.string();
        answer.i32();
        assert_eq!((answer.i32(), answer.i16()), (1, INVALID_TOPIC), "Metadata {name:?}");
        assert_eq!(
            broker
                .connect()
                .call(PRODUCE, 7, &produce_body(name, 0, -1, &Batch::of(["a"]).bytes()))
                .array(|r| {
                    r.string();
                    r.array(|r| (r.i32(), r.i16(), r.i64(), r.i64(), r.i64()).1)
                })
                .len(),
            1,
            "Produce {name:?}"
        );
    }
    still_answers(&broker);
}

#[test]
fn a_huge_client_id_is_no_problem() {
    let broker = Broker::start();
    let mut connection = broker.connect();
    let head = Body::new().i16(3).i16(8).i32(1).string(&"c".repeat(32_767));
    connection.send_bytes(&framed(&head.i32(0).bool(false).bool(false).bool(false).0));
    assert!(ends(&mut connection));
    still_answers(&broker);
}

/// A small compressed batch that unpacks to a gigabyte is refused or stored without ever being held whole.
#[test]
fn a_decompression_bomb_costs_bounded_memory() {
    let Some(broker) = Broker::owned(&[]) else { return };
    let name = topic(&broker, "bomb", 1, &[]);
    let mut connection = broker.connect();
    connection.greet();
    let before = broker.resident_kib();
    let good = Batch::of(["a"]).bytes();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    // One record that says it is 900 MiB long, and the zeros to go with it.
    let mut head = Vec::new();
    for value in [900 << 20, 0u64, 0, 0] {
        let mut zigzag = value << 1;
        while zigzag >= 0x80 {
            head.push(zigzag as u8 | 0x80);
            zigzag >>= 7;
        }
        head.push(zigzag as u8);
    }
    gzip.write_all(&head).expect("compress");
    for _ in 0..900 {
        gzip.write_all(&[0; 1 << 20]).expect("compress");
    }
    let payload = gzip.finish().expect("compress");
    let mut bomb = [&good[..61], &payload].concat();
    let length = i32::try_from(bomb.len() - 12).expect("small");
    bomb[8..12].copy_from_slice(&length.to_be_bytes());
    bomb[22] = 1; // gzip
    let crc = crc32c::crc32c(&bomb[21..]);
    bomb[17..21].copy_from_slice(&crc.to_be_bytes());
    for _ in 0..3 {
        connection.send(PRODUCE, 7, &produce_body(&name, 0, -1, &bomb));
        assert!(ends(&mut connection));
        connection = broker.connect();
        connection.greet();
    }
    let after = broker.resident_kib();
    assert!(after < before + 128 * 1024, "{before} KiB grew to {after} KiB");
    still_answers(&broker);
}

/// Trap 61: each refusal leaves one line that names the peer and why.
#[test]
fn refusals_are_logged_with_peer_and_reason() {
    let Some(broker) = Broker::owned(&[]) else { return };
    let refusals: [(&str, Vec<u8>, &[&str]); 4] = [
        ("an oversized frame", [&i32::MAX.to_be_bytes()[..], b"x"].concat(), &[]),
        ("an unsupported version", framed(&request(Api(3, i16::MAX), 99, 1, &Body::new())), &["compat", "99"]),
        ("an unknown API", framed(&request(Api(9999, i16::MAX), 0, 1, &Body::new())), &["9999"]),
        ("a cut body", framed(&request(METADATA, 8, 1, &Body::new().i32(5))), &["compat"]),
    ];
    for (what, bytes, words) in refusals {
        let mut socket = TcpStream::connect(broker.socket_address()).expect("connect");
        let peer = socket.local_addr().expect("an address").to_string();
        socket.write_all(&bytes).expect("write");
        let line = compat_tests::until(&format!("a line about {what} from {peer}"), Duration::from_secs(5), || {
            broker.log().lines().find(|l| l.contains(&peer)).map(str::to_string)
        });
        for word in words {
            assert!(line.contains(word), "{what}: {line} does not say {word}");
        }
        // The log limits how many lines a second it gives to refusals.
        compat_tests::wait::stays(Duration::from_millis(1100), || true);
    }
}
