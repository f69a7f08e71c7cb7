//! Record batches from a stranger. Nothing may panic, and whatever `validate` takes must be what it says: a right CRC, dense offsets,
//! keys where the topic wants them, records that can be read back.
//!
//! The first bytes choose the topic's rules and how the rest is used: as it is, with the CRC put right (so that the fuzzer gets past
//! it), or as records behind an honest header, compressed or not.

#![no_main]

use barnabas::records::{
    AppendRules, Attributes, BATCH_HEADER_BYTES, BatchHeader, Batches, Codec, TargetCodec, TimestampType, Validated, crc_is_valid,
    records, single_batch, stamp_crc, validate,
};
use libfuzzer_sys::fuzz_target;

const NOW: i64 = 1_700_000_000_000;

/// More than any accepted batch decompresses to here: rules and inputs are small.
const DECOMPRESSED_BYTES_MAX: usize = 1 << 26;

fuzz_target!(|input: &[u8]| {
    let Some((&[mode, rules, codecs], rest)) = input.split_first_chunk::<3>() else { return };
    let rules = rules_from(rules, codecs >> 4);
    match mode % 4 {
        0 => produce(rest, &rules),
        1 => {
            let mut batch = rest.to_vec();
            stamp_crc(&mut batch);
            produce(&batch, &rules);
        }
        2 => produce(&behind_header(rest, codecs, false), &rules),
        _ => produce(&behind_header(rest, codecs, true), &rules),
    }
});

fn codec_from(bits: u8) -> Codec {
    Codec::from_id(i16::from(bits % 5)).unwrap()
}

fn rules_from(bits: u8, codec: u8) -> AppendRules {
    let codec = codec_from(codec);
    AppendRules {
        compacted: bits & 1 != 0,
        timestamp_type: if bits & 2 != 0 { TimestampType::LogAppendTime } else { TimestampType::CreateTime },
        before_max_ms: if bits & 4 != 0 { 1000 } else { i64::MAX },
        target_codec: if bits & 8 != 0 { TargetCodec::Fixed { codec, level: codec.default_level() } } else { TargetCodec::Producer },
        decompressed_bytes_max: if bits & 16 != 0 { 64 } else { 1 << 20 },
        batch_bytes_max: if bits & 32 != 0 { 200 } else { 1 << 20 },
        ..AppendRules::default()
    }
}

/// The first byte of `input` is the number of records, the rest are their bytes.
fn behind_header(input: &[u8], codecs: u8, compress: bool) -> Vec<u8> {
    let (&count, payload) = input.split_first().unwrap_or((&1, &[]));
    let codec = codec_from(codecs);
    let payload = if compress { codec.compress(codec.default_level(), payload).unwrap() } else { payload.to_vec() };
    let header = BatchHeader {
        base_offset: 0,
        batch_length: 49 + payload.len() as i32,
        partition_leader_epoch: -1,
        magic: 2,
        crc: 0,
        attributes: Attributes::default().with_codec(codec),
        last_offset_delta: i32::from(count) - 1,
        base_timestamp: NOW,
        max_timestamp: NOW,
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        record_count: i32::from(count),
    };
    let mut batch = [&header.to_bytes()[..], &payload].concat();
    stamp_crc(&mut batch);
    batch
}

fn produce(bytes: &[u8], rules: &AppendRules) {
    read_all(bytes);
    let Ok((header, batch)) = single_batch(bytes, 9) else { return };
    match validate(batch, rules, NOW) {
        Ok(Validated::AsReceived(stored)) => {
            assert_eq!(stored, header);
            check(batch, &stored, rules);
        }
        Ok(Validated::Rewritten { header: stored, bytes }) => check(&bytes, &stored, rules),
        Err(error) => {
            assert!(error.error_code().is_error());
            let _ = (error.to_string(), error.client_message());
        }
    }
}

/// What a reader does with bytes of which it knows nothing.
fn read_all(bytes: &[u8]) {
    let mut batches = Batches::new(bytes);
    for (header, batch) in batches.by_ref().flatten() {
        assert_eq!(header.size_bytes(), batch.len());
        let _ = (header.last_offset(), header.last_sequence(), header.delete_horizon_ms());
        if let Ok(records) = records(batch, 1 << 16) {
            for record in records.iter().flatten() {
                let _ = record.headers().count();
            }
        }
    }
    assert!(batches.rest().len() <= bytes.len());
}

fn check(batch: &[u8], header: &BatchHeader, rules: &AppendRules) {
    assert_eq!(BatchHeader::parse(batch).as_ref(), Ok(header));
    assert!(crc_is_valid(batch) && batch.len() >= BATCH_HEADER_BYTES && batch.len() <= rules.batch_bytes_max);
    assert_eq!(header.timestamp_type(), rules.timestamp_type);
    let records = records(batch, DECOMPRESSED_BYTES_MAX).unwrap();
    let mut expected = 0;
    let mut max_timestamp = -1;
    for record in &records {
        let record = record.unwrap();
        assert_eq!(record.offset, expected);
        assert!(record.key.is_some() || !rules.compacted);
        assert_eq!(record.headers().count(), record.headers().len());
        max_timestamp = max_timestamp.max(record.timestamp);
        expected += 1;
    }
    assert_eq!((expected, max_timestamp), (header.next_offset(), header.max_timestamp));
}
