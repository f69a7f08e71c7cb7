//! The value of an OffsetCommit record. Version 4 is written (flexible, with the topic's id as tag 0), version 1 where the commit
//! named its own retention time; versions 0 to 4 are read.

use super::codec::{DecodeError, Reader, Write};
use crate::base::ids::NO_LEADER_EPOCH;
use crate::base::{LeaderEpoch, Offset, TimestampMs, TopicId};

const VERSION_MAX: i16 = 4;
const VERSION_WITH_EXPIRY: i16 = 1;
const VERSION_WITH_LEADER_EPOCH: i16 = 3;
const VERSION_FLEXIBLE: i16 = 4;
const TAG_TOPIC_ID: u32 = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetValue<'a> {
    pub offset: Offset,
    pub leader_epoch: LeaderEpoch,
    pub metadata: &'a str,
    pub commit_timestamp: TimestampMs,
    /// Only from OffsetCommit v2 to v4 with a retention time, and then the leader epoch is not kept.
    pub expire_timestamp: Option<TimestampMs>,
    /// Zero when the writer did not know it.
    pub topic_id: TopicId,
}

impl<'a> OffsetValue<'a> {
    pub fn decode(bytes: &'a [u8]) -> Result<OffsetValue<'a>, DecodeError> {
        let mut reader = Reader::new(bytes);
        let version = reader.i16("value version")?;
        if !(0..=VERSION_MAX).contains(&version) {
            return Err(DecodeError::UnknownVersion { record: "OffsetCommit", version, known_max: VERSION_MAX });
        }
        reader.set_flexible(version >= VERSION_FLEXIBLE);
        let offset = reader.i64("offset")?;
        let leader_epoch =
            if version >= VERSION_WITH_LEADER_EPOCH { reader.i32("leader epoch")? } else { NO_LEADER_EPOCH };
        let metadata = reader.string("metadata")?;
        let commit_timestamp = reader.i64("commit timestamp")?;
        let expire_timestamp = if version == VERSION_WITH_EXPIRY { reader.i64("expire timestamp")? } else { -1 };
        let mut topic_id = TopicId::ZERO;
        reader.tagged_fields(|tag, bytes| {
            if tag == TAG_TOPIC_ID {
                topic_id = TopicId::from_bytes(Reader::new(bytes).uuid("topic id")?);
            }
            Ok(())
        })?;
        Ok(OffsetValue {
            offset,
            leader_epoch,
            metadata,
            commit_timestamp,
            expire_timestamp: (expire_timestamp != -1).then_some(expire_timestamp),
            topic_id,
        })
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        match self.expire_timestamp {
            Some(expire_timestamp) => {
                out.put_i16(VERSION_WITH_EXPIRY);
                out.put_i64(self.offset);
                out.put_string(self.metadata);
                out.put_i64(self.commit_timestamp);
                out.put_i64(expire_timestamp);
            }
            None => {
                out.put_i16(VERSION_FLEXIBLE);
                out.put_i64(self.offset);
                out.put_i32(self.leader_epoch);
                out.put_compact_string(self.metadata);
                out.put_i64(self.commit_timestamp);
                self.encode_tags(out);
            }
        }
    }

    fn encode_tags(&self, out: &mut Vec<u8>) {
        if self.topic_id.is_zero() {
            out.put_unsigned_varint(0);
        } else {
            out.put_unsigned_varint(1);
            out.put_unsigned_varint(TAG_TOPIC_ID);
            out.put_unsigned_varint(16);
            out.extend_from_slice(self.topic_id.0.as_bytes());
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::coordinator::group::record::{OffsetKey, Record};
    use proptest::prelude::*;

    pub fn hex(text: &str) -> Vec<u8> {
        text.as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap_or("00"), 16).unwrap_or(0))
            .collect()
    }

    fn encoded(record: &Record<'_>) -> (Vec<u8>, Option<Vec<u8>>) {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        record.encode_key(&mut key);
        let has_value = record.encode_value(&mut value);
        (key, has_value.then_some(value))
    }

    // The bytes below were read from the topic that Apache Kafka 4.4.0 wrote.

    #[test]
    fn a_commit_is_written_as_kafka_4_4_writes_it() {
        let topic_id = TopicId::from_bytes(hex("8e144bb6101d4a63a58a6b77a1eced00").try_into().unwrap_or_default());
        let key = OffsetKey { group: "grpx-a", topic: "grpx-t", partition: 0 };
        let value = OffsetValue {
            offset: 5,
            leader_epoch: 3,
            metadata: "note",
            commit_timestamp: 0x1a2_27ee_929d,
            expire_timestamp: None,
            topic_id,
        };
        let record = Record::Offset { key, value: Some(value) };
        let key_bytes = hex("00010006677270782d610006677270782d7400000000");
        let value_bytes =
            hex("0004000000000000000500000003056e6f7465000001a227ee929d0100108e144bb6101d4a63a58a6b77a1eced00");
        assert_eq!(encoded(&record), (key_bytes.clone(), Some(value_bytes.clone())));
        assert_eq!(Record::decode(&key_bytes, Some(&value_bytes)), Ok(Some(record)));
    }

    #[test]
    fn a_commit_with_a_retention_time_is_written_in_version_1() {
        let value = OffsetValue {
            offset: 55,
            leader_epoch: -1,
            metadata: "",
            commit_timestamp: 0x1a2_27ee_92a2,
            expire_timestamp: Some(0x1a2_27f0_1942),
            topic_id: TopicId::ZERO,
        };
        let bytes = hex("000100000000000000370000000001a227ee92a2000001a227f01942");
        let mut out = Vec::new();
        value.encode(&mut out);
        assert_eq!(out, bytes);
        assert_eq!(OffsetValue::decode(&bytes), Ok(value));
    }

    #[test]
    fn older_versions_are_read() {
        let plain = OffsetValue {
            offset: 9,
            leader_epoch: -1,
            metadata: "m",
            commit_timestamp: 7,
            expire_timestamp: None,
            topic_id: TopicId::ZERO,
        };
        for (version, extra) in [("0000", ""), ("0001", "ffffffffffffffff"), ("0002", "")] {
            let bytes = hex(&format!("{version}000000000000000900016d0000000000000007{extra}"));
            assert_eq!(OffsetValue::decode(&bytes), Ok(plain), "{version}");
        }
        let bytes = hex("000300000000000000090000000400016d0000000000000007");
        assert_eq!(OffsetValue::decode(&bytes), Ok(OffsetValue { leader_epoch: 4, ..plain }));
    }

    #[test]
    fn a_version_from_the_future_is_an_error() {
        assert!(matches!(OffsetValue::decode(&hex("0005")), Err(DecodeError::UnknownVersion { version: 5, .. })));
        assert!(OffsetValue::decode(&hex("ffff")).is_err());
    }

    proptest! {
        #[test]
        fn any_value_round_trips(
            offset: i64, leader_epoch: i32, metadata in ".{0,40}", commit_timestamp: i64,
            expire in proptest::option::of(0i64..), id: [u8; 16],
        ) {
            let topic_id = if expire.is_some() { TopicId::ZERO } else { TopicId::from_bytes(id) };
            let leader_epoch = if expire.is_some() { -1 } else { leader_epoch };
            let value =
                OffsetValue { offset, leader_epoch, metadata: &metadata, commit_timestamp, expire_timestamp: expire, topic_id };
            let mut bytes = Vec::new();
            value.encode(&mut bytes);
            prop_assert_eq!(OffsetValue::decode(&bytes), Ok(value));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = OffsetValue::decode(&bytes);
            let _ = Record::decode(&bytes, Some(&bytes));
        }
    }
}
