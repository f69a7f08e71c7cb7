//! Each fact here was asked of Apache Kafka 4.4; where we differ on purpose, the test says so.

use proptest::prelude::*;

use super::*;
use crate::records::craft::{BASE_TIMESTAMP, batch, body, keyless, large, record, sized, with_payload};
use crate::records::{BatchBuilder, crc_is_valid, records};

const NOW: TimestampMs = 1_000_000_000;
const CODECS: [Codec; 5] = [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];

fn three() -> Vec<Vec<u8>> {
    vec![record(0, 0), record(1, 0), record(2, 0)]
}

fn compacted() -> AppendRules {
    AppendRules { compacted: true, ..AppendRules::default() }
}

fn append_time() -> AppendRules {
    AppendRules { timestamp_type: TimestampType::LogAppendTime, ..AppendRules::default() }
}

fn target(codec: Codec) -> AppendRules {
    let target_codec = TargetCodec::Fixed { codec, level: codec.default_level() };
    AppendRules { target_codec, ..AppendRules::default() }
}

fn code(batch: &[u8], rules: &AppendRules) -> ErrorCode {
    validate(batch, rules, NOW).map_or_else(|error| error.error_code(), |_| ErrorCode::NONE)
}

/// Checks that plain rules answer `expected` for the records in every codec.
#[track_caller]
fn check(records: &[Vec<u8>], change: impl Fn(&mut BatchHeader) + Copy, expected: ErrorCode) {
    for codec in CODECS {
        assert_eq!(code(&batch(records, codec, change), &AppendRules::default()), expected, "{codec}");
    }
}

fn rewritten(batch: &[u8], rules: &AppendRules) -> (BatchHeader, Bytes) {
    match validate(batch, rules, NOW) {
        Ok(Validated::Rewritten { header, bytes }) => {
            assert_eq!(BatchHeader::parse(&bytes), Ok(header), "the header told and the one stored are one");
            assert_eq!(header.size_bytes(), bytes.len());
            assert!(crc_is_valid(&bytes));
            (header, bytes)
        }
        other => panic!("not rewritten: {other:?}"),
    }
}

#[test]
fn an_honest_batch_is_stored_as_received() {
    for codec in CODECS {
        let batch = batch(&three(), codec, |_| {});
        let header = BatchHeader::parse(&batch).unwrap();
        assert_eq!(validate(&batch, &AppendRules::default(), NOW), Ok(Validated::AsReceived(header)), "{codec}");
    }
}

#[test]
fn an_idempotent_transactional_batch_with_a_foreign_epoch_is_stored_as_received() {
    let batch = batch(&three(), Codec::None, |header| {
        (header.producer_id, header.producer_epoch, header.base_sequence) = (7, 1, 12);
        header.attributes = header.attributes.with_transactional(true);
        header.partition_leader_epoch = 77;
    });
    assert!(matches!(validate(&batch, &AppendRules::default(), NOW), Ok(Validated::AsReceived(_))));
}

#[test]
fn counts_that_lie_are_refused_in_every_codec() {
    for (count, last_delta) in
        [(4, 3), (2, 1), (3, 5), (3, 1), (-1, 2), (0, -1), (0, 0), (3, -1), (i32::MAX, i32::MAX - 1)]
    {
        let lie = |header: &mut BatchHeader| (header.record_count, header.last_offset_delta) = (count, last_delta);
        check(&three(), lie, ErrorCode::INVALID_RECORD);
    }
    check(&[], |_| {}, ErrorCode::INVALID_RECORD);
}

#[test]
fn offset_deltas_must_be_the_places_in_the_batch() {
    // Kafka stores the uncompressed ones as they are, so that two records may have one offset, and fails with -1 on the others.
    for deltas in [[0, 2, 1], [0, 0, 1], [1, 2, 3], [0, -1, 2], [0, 1, i32::MAX]] {
        check(&deltas.map(|delta| record(delta, 0)), |_| {}, ErrorCode::INVALID_RECORD);
    }
}

#[test]
fn header_claims_get_kafkas_codes() {
    let plain = |change: fn(&mut BatchHeader)| code(&batch(&three(), Codec::None, change), &AppendRules::default());
    assert_eq!(plain(|header| header.base_offset = 7), ErrorCode::INVALID_RECORD);
    assert_eq!(plain(|header| header.attributes = header.attributes.with_control(true)), ErrorCode::INVALID_RECORD);
    assert_eq!(plain(|header| header.producer_id = 1000), ErrorCode::INVALID_RECORD);
    assert_eq!(plain(|header| header.magic = 3), ErrorCode::CORRUPT_MESSAGE);
    for (producer_id, producer_epoch, base_sequence) in [(-1, -1, 5), (77, -1, 0), (-2, 0, 0)] {
        let batch = batch(&three(), Codec::None, |header| {
            (header.producer_id, header.producer_epoch, header.base_sequence) =
                (producer_id, producer_epoch, base_sequence);
        });
        assert_eq!(code(&batch, &AppendRules::default()), ErrorCode::NONE);
    }
}

#[test]
fn codec_ids_without_a_codec_are_unsupported() {
    for id in 5..8 {
        let batch = batch(&three(), Codec::None, |header| header.attributes.0 |= id);
        assert_eq!(code(&batch, &AppendRules::default()), ErrorCode::UNSUPPORTED_COMPRESSION_TYPE);
    }
}

#[test]
fn a_changed_byte_anywhere_behind_the_crc_is_noticed() {
    let good = batch(&three(), Codec::None, |_| {});
    for at in 17..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        assert_eq!(validate(&bad, &AppendRules::default(), NOW), Err(RecordError::Crc), "byte {at}");
    }
}

#[test]
fn malformed_records_are_refused_in_every_codec() {
    let bodies: [&[u8]; 8] = [
        &[],
        &[0, 0, 0, 0x20, b'k', 0],
        &[0, 0, 0, 1, 1, 1],
        &[0, 0, 0, 1, 1, 10],
        &[0, 0, 0, 1, 1, 0xfe, 0xff, 0xff, 0xff, 0x0f],
        &[0, 0, 0, 1, 1, 2, 1, 0],
        &[0, 0, 0, 1, 1, 0, 0x55],
        &[0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 0x0f, 1, 0],
    ];
    for body in bodies {
        check(&[sized(body)], |_| {}, ErrorCode::INVALID_RECORD);
    }
    // lengths: too long a varint, negative, beyond the batch
    for record in [&[0xff, 0xff, 0xff, 0xff, 0xff, 1][..], &[1], &[0xfe, 0xff, 0xff, 0xff, 0x0f, 1, 2, 3]] {
        check(&[record.to_vec()], |_| {}, ErrorCode::INVALID_RECORD);
    }
}

#[test]
fn odd_but_legal_records_are_taken() {
    let bodies: [&[u8]; 3] = [&[0x7f, 0, 0, 9, 1, 0], &[0, 0, 0, 1, 1, 2, 2, b'h', 9], &[0, 0, 0, 0, 0, 4, 0, 0, 0, 1]];
    for body in bodies {
        check(&[sized(body)], |_| {}, ErrorCode::NONE);
    }
}

#[test]
fn compressed_data_must_be_whole() {
    for codec in CODECS.into_iter().skip(1) {
        let whole = codec.compress(codec.default_level(), &three().concat()).unwrap();
        for payload in [&b""[..], b"garbage garbage garbage", &whole[..whole.len() / 2], &whole[..whole.len() - 1]] {
            let batch = with_payload(3, codec, payload, |_| {});
            assert_eq!(code(&batch, &AppendRules::default()), ErrorCode::INVALID_RECORD, "{codec} {payload:?}");
            assert_eq!(code(&batch, &target(Codec::None)), ErrorCode::INVALID_RECORD, "{codec} {payload:?}");
        }
    }
}

#[test]
fn what_follows_compressed_data_is_ignored_where_java_ignores_it() {
    for codec in [Codec::Gzip, Codec::Lz4] {
        let mut payload = codec.compress(codec.default_level(), &three().concat()).unwrap();
        payload.extend_from_slice(&[b'z'; 20]);
        assert_eq!(
            code(&with_payload(3, codec, &payload, |_| {}), &AppendRules::default()),
            ErrorCode::NONE,
            "{codec}"
        );
    }
}

#[test]
fn a_wrong_max_timestamp_is_corrected() {
    for codec in CODECS {
        for claim in [i64::MIN, -1, 0, 5000, i64::MAX] {
            let batch =
                batch(&[record(0, 0), record(1, 500), record(2, 3)], codec, |header| header.max_timestamp = claim);
            let (header, bytes) = rewritten(&batch, &AppendRules::default());
            assert_eq!((header.max_timestamp, header.base_timestamp), (BASE_TIMESTAMP + 500, BASE_TIMESTAMP));
            assert_eq!(bytes[BATCH_HEADER_BYTES..], batch[BATCH_HEADER_BYTES..]);
        }
    }
}

#[test]
fn records_without_a_timestamp_leave_the_batch_without_one() {
    for delta in [-BASE_TIMESTAMP - 1, -BASE_TIMESTAMP - 5] {
        let batch = batch(&[record(0, delta)], Codec::None, |header| header.max_timestamp = 5);
        assert_eq!(rewritten(&batch, &AppendRules::default()).0.max_timestamp, -1);
    }
}

#[test]
fn a_claim_of_append_time_is_taken_back() {
    for codec in CODECS {
        let batch = batch(&[record(0, 0), record(1, 9)], codec, |header| {
            header.attributes = header.attributes.with_timestamp_type(TimestampType::LogAppendTime);
            header.max_timestamp = i64::MAX;
        });
        let (header, _) = rewritten(&batch, &AppendRules::default());
        assert_eq!((header.timestamp_type(), header.max_timestamp), (TimestampType::CreateTime, BASE_TIMESTAMP + 9));
    }
}

#[test]
fn append_time_stamps_the_batch_and_lifts_the_limits() {
    for codec in CODECS {
        let batch = batch(&[record(0, 0), record(1, 4_102_444_800_000)], codec, |_| {});
        let (header, bytes) = rewritten(&batch, &append_time());
        assert_eq!((header.timestamp_type(), header.max_timestamp), (TimestampType::LogAppendTime, NOW));
        assert_eq!(bytes[BATCH_HEADER_BYTES..], batch[BATCH_HEADER_BYTES..]);
        let times: Vec<_> = records(&bytes, 1000).unwrap().iter().map(|record| record.unwrap().timestamp).collect();
        assert_eq!(times, [NOW, NOW]);
    }
}

#[test]
fn a_claim_of_append_time_is_refused_where_the_broker_sets_it() {
    let batch = batch(&three(), Codec::None, |header| {
        header.attributes = header.attributes.with_timestamp_type(TimestampType::LogAppendTime);
    });
    let error = validate(&batch, &append_time(), NOW).unwrap_err();
    assert_eq!((error.error_code(), error.record_errors().len()), (ErrorCode::INVALID_TIMESTAMP, 3));
}

#[test]
fn timestamps_outside_the_limits_are_named() {
    let rules = AppendRules { before_max_ms: 1000, after_max_ms: 2000, ..AppendRules::default() };
    let at = |timestamp: i64| timestamp - BASE_TIMESTAMP;
    for codec in CODECS {
        let times = [NOW, NOW - 1000, NOW - 1001, NOW + 2000, NOW + 2001, -1, 0];
        let all: Vec<_> = (0i32..).zip(times).map(|(index, time)| record(index, at(time))).collect();
        let error = validate(&batch(&all, codec, |_| {}), &rules, NOW).unwrap_err();
        assert_eq!(error.error_code(), ErrorCode::INVALID_TIMESTAMP);
        let named: Vec<_> = error.record_errors().iter().map(|issue| issue.batch_index).collect();
        assert_eq!(named, [2, 4, 6], "{codec}");
        assert!(error.client_message().is_some());
    }
}

#[test]
fn limits_hold_at_the_ends_of_time() {
    let at = |timestamp: i64| [record(0, timestamp.wrapping_sub(BASE_TIMESTAMP))];
    check(&at(i64::MAX), |_| {}, ErrorCode::INVALID_TIMESTAMP);
    // So far in the past that its age wraps around, in Kafka too.
    check(&at(i64::MIN), |_| {}, ErrorCode::INVALID_TIMESTAMP);
    check(&at(NOW - i64::MAX), |_| {}, ErrorCode::NONE);
}

#[test]
fn compacted_topics_need_keys() {
    let far = 4_102_444_800_000;
    for codec in CODECS {
        let no_keys = batch(&[record(0, 0), keyless(1, 0), keyless(2, 0)], codec, |_| {});
        let error = validate(&no_keys, &compacted(), NOW).unwrap_err();
        assert_eq!(error.error_code(), ErrorCode::INVALID_RECORD);
        assert_eq!(error.record_errors().iter().map(|issue| issue.batch_index).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(code(&no_keys, &AppendRules::default()), ErrorCode::NONE);

        // One wrong timestamp decides the code for all.
        let mixed = batch(&[record(0, far), keyless(1, 0), keyless(2, far)], codec, |_| {});
        let error = validate(&mixed, &compacted(), NOW).unwrap_err();
        assert_eq!(error.error_code(), ErrorCode::INVALID_TIMESTAMP);
        assert_eq!(error.record_errors().len(), 3);

        let empty_key = batch(&[sized(&body(0, 0, Some(b""), None))], codec, |_| {});
        assert_eq!(code(&empty_key, &compacted()), ErrorCode::NONE);
    }
}

#[test]
fn only_so_many_refused_records_are_named() {
    let all: Vec<_> = (0..1500).map(|index| keyless(index, 0)).collect();
    let error = validate(&batch(&all, Codec::None, |_| {}), &compacted(), NOW).unwrap_err();
    let RecordError::Rejected { issues, count, .. } = error else { panic!("{error}") };
    assert_eq!((issues.len(), count), (RECORD_ISSUES_MAX, 1500));
}

#[test]
fn the_size_limit_counts_the_whole_batch_as_it_came() {
    let batch = batch(&[large(0, 500)], Codec::None, |_| {});
    let rules = |batch_bytes_max| AppendRules { batch_bytes_max, ..AppendRules::default() };
    assert_eq!(code(&batch, &rules(batch.len())), ErrorCode::NONE);
    assert_eq!(code(&batch, &rules(batch.len() - 1)), ErrorCode::MESSAGE_TOO_LARGE);
}

#[test]
fn the_decompressed_limit_counts_one_record_of_a_compressed_batch() {
    let rules = AppendRules { decompressed_bytes_max: 1000, ..AppendRules::default() };
    let of_size = |record_bytes: usize| {
        let record = large(0, record_bytes - 7);
        assert_eq!(record.len() - 2, record_bytes, "a length of two bytes");
        record
    };
    let many: Vec<_> = (0..40).map(|index| large(index, 30)).collect();
    for codec in CODECS.into_iter().skip(1) {
        assert_eq!(code(&batch(&[of_size(1000)], codec, |_| {}), &rules), ErrorCode::NONE, "{codec}");
        assert_eq!(code(&batch(&[of_size(1001)], codec, |_| {}), &rules), ErrorCode::INVALID_RECORD, "{codec}");
        assert_eq!(code(&batch(&many, codec, |_| {}), &rules), ErrorCode::NONE, "{codec}");
    }
    assert_eq!(code(&batch(&[of_size(3000)], Codec::None, |_| {}), &rules), ErrorCode::NONE);
}

#[test]
fn records_larger_than_the_walks_buffer_are_walked_too() {
    let all = vec![large(0, 100_000), record(1, 0), large(2, 32 * 1024), large(3, 70_000), record(4, 0)];
    check(&all, |_| {}, ErrorCode::NONE);
    let lying = vec![large(0, 100_000), vec![0xfe, 0xff, 0x7f, 0, 0]];
    check(&lying, |_| {}, ErrorCode::INVALID_RECORD);
}

#[test]
fn a_topics_codec_is_put_around_the_same_records() {
    let all = vec![record(0, 0), large(1, 3000), sized(&[0, 4, 4, 2, b'k', 1, 4, 2, b'a', 0, 2, b'a', 1])];
    for source in CODECS {
        for wanted in CODECS {
            let batch = batch(&all, source, |header| {
                header.max_timestamp += 2;
                (header.producer_id, header.base_sequence) = (5, 6);
            });
            if source == wanted {
                assert!(matches!(validate(&batch, &target(wanted), NOW), Ok(Validated::AsReceived(_))));
                continue;
            }
            let (header, bytes) = rewritten(&batch, &target(wanted));
            assert_eq!(
                (header.codec(), header.record_count, header.max_timestamp),
                (Ok(wanted), 3, BASE_TIMESTAMP + 2)
            );
            assert_eq!((header.producer_id, header.base_sequence), (5, 6));
            let payload = wanted.decompress(&bytes[BATCH_HEADER_BYTES..], 10_000).unwrap();
            assert_eq!(payload, all.concat(), "{source} to {wanted}");
        }
    }
}

#[test]
fn a_copy_in_another_codec_keeps_within_the_size_limit() {
    let batch = batch(&[large(0, 50_000)], Codec::Zstd, |_| {});
    let rules = AppendRules { batch_bytes_max: 1000, ..target(Codec::None) };
    assert_eq!(validate(&batch, &rules, NOW), Err(RecordError::TooLarge { bytes_max: 1000 }));
    let rules = AppendRules { batch_bytes_max: 1000, ..target(Codec::Gzip) };
    assert!(validate(&batch, &rules, NOW).is_ok());
}

#[test]
fn a_decompression_bomb_ends_at_the_bound() {
    // One record that says to be 2 GiB long and to be nearly all value.
    let mut record = vec![0xfe, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0, 1, 0x80, 0xfe, 0xff, 0xff, 0x0f];
    record.resize(DECOMPRESSED_BATCH_BYTES_MAX + 1, 0);
    let payload = Codec::Zstd.compress(1, &record).unwrap();
    assert!(payload.len() < 64 * 1024);
    drop(record);
    let batch = with_payload(1, Codec::Zstd, &payload, |_| {});
    let rules = AppendRules { decompressed_bytes_max: usize::MAX, ..AppendRules::default() };
    assert_eq!(
        validate(&batch, &rules, NOW),
        Err(RecordError::DecompressedTooLarge { bytes_max: DECOMPRESSED_BATCH_BYTES_MAX })
    );
}

#[test]
fn a_batch_cut_or_lengthened_is_truncated() {
    let good = batch(&three(), Codec::None, |_| {});
    for batch in [&good[..good.len() - 1], &[&good[..], b"x"].concat()] {
        assert!(matches!(validate(batch, &AppendRules::default(), NOW), Err(RecordError::Truncated { .. })));
    }
}

proptest! {
    /// Any bytes behind a right CRC: no panic, and what is taken can be read back as it says.
    #[test]
    fn what_is_taken_can_be_read(
        payload in prop::collection::vec(prop_oneof![0u8..16, any::<u8>()], 0..80),
        count in 1usize..6,
        codec in 0i16..5,
        wanted in 0i16..5,
        compress: bool,
        compacted: bool,
    ) {
        let codec = Codec::from_id(codec).unwrap();
        let payload = if compress { codec.compress(codec.default_level(), &payload).unwrap() } else { payload };
        let batch = with_payload(count, codec, &payload, |_| {});
        let rules = AppendRules { compacted, ..target(Codec::from_id(wanted).unwrap()) };
        if let Ok(validated) = validate(&batch, &rules, NOW) {
            let bytes = match &validated {
                Validated::AsReceived(_) => &batch[..],
                Validated::Rewritten { bytes, .. } => bytes,
            };
            let read: Vec<_> = records(bytes, 1 << 20).unwrap().iter().map(|record| record.unwrap().offset).collect();
            prop_assert_eq!(read, (0..count as i64).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_the_builder_makes_is_taken(
        all in prop::collection::vec((0i64..NOW, prop::option::of(any::<[u8; 3]>()), 0usize..2000), 1..20),
        codec in 0i16..5,
        wanted in 0i16..5,
    ) {
        let mut builder = BatchBuilder::new(Codec::from_id(codec).unwrap());
        for (timestamp, key, len) in &all {
            builder.push(*timestamp, key.as_ref().map(|key| &key[..]), Some(&vec![7; *len]), &[(b"h", None)]);
        }
        let batch = builder.finish(0, -1);
        let validated = validate(&batch, &target(Codec::from_id(wanted).unwrap()), NOW).unwrap();
        prop_assert_eq!(matches!(validated, Validated::AsReceived(_)), codec == wanted);
        prop_assert_eq!(validated.header().max_timestamp, all.iter().map(|record| record.0).max().unwrap());
    }
}
