//! The value of a GroupMetadata record: a classic group as of its last settled generation. Version 3 is written, 0 to 4 are read.

use std::sync::Arc;

use bytes::Bytes;

use super::codec::{DecodeError, Reader, Write};
use crate::base::TimestampMs;

const VERSION_MAX: i16 = 4;
const VERSION_WRITTEN: i16 = 3;
const VERSION_WITH_REBALANCE_TIMEOUT: i16 = 1;
const VERSION_WITH_STATE_TIMESTAMP: i16 = 2;
const VERSION_WITH_INSTANCE_ID: i16 = 3;
const VERSION_FLEXIBLE: i16 = 4;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMetadata {
    /// Empty for a group that nobody has joined yet.
    pub protocol_type: Arc<str>,
    pub generation: i32,
    /// The protocol chosen for this generation; none while there are no members.
    pub protocol: Option<Arc<str>>,
    pub leader: Option<Arc<str>>,
    /// When the group got here; -1 in records older than version 2.
    pub state_timestamp: TimestampMs,
    pub members: Vec<MemberMetadata>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberMetadata {
    pub member_id: Arc<str>,
    pub instance_id: Option<Arc<str>>,
    pub client_id: Arc<str>,
    pub client_host: Arc<str>,
    pub rebalance_timeout_ms: i32,
    pub session_timeout_ms: i32,
    /// What the member said for the group's protocol.
    pub subscription: Bytes,
    pub assignment: Bytes,
}

impl GroupMetadata {
    pub fn decode(bytes: &[u8]) -> Result<GroupMetadata, DecodeError> {
        let mut reader = Reader::new(bytes);
        let version = reader.i16("value version")?;
        if !(0..=VERSION_MAX).contains(&version) {
            return Err(DecodeError::UnknownVersion { record: "GroupMetadata", version, known_max: VERSION_MAX });
        }
        reader.set_flexible(version >= VERSION_FLEXIBLE);
        let protocol_type = reader.string("protocol type")?.into();
        let generation = reader.i32("generation")?;
        let protocol = reader.nullable_string("protocol")?.map(Arc::from);
        let leader = reader.nullable_string("leader")?.map(Arc::from);
        let state_timestamp =
            if version >= VERSION_WITH_STATE_TIMESTAMP { reader.i64("current state timestamp")? } else { -1 };
        let mut members = Vec::new();
        for _ in 0..reader.count("members")? {
            members.push(MemberMetadata::decode(&mut reader, version)?);
        }
        reader.tagged_fields(|_, _| Ok(()))?;
        Ok(GroupMetadata { protocol_type, generation, protocol, leader, state_timestamp, members })
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_i16(VERSION_WRITTEN);
        out.put_string(&self.protocol_type);
        out.put_i32(self.generation);
        out.put_nullable_string(self.protocol.as_deref());
        out.put_nullable_string(self.leader.as_deref());
        out.put_i64(self.state_timestamp);
        out.put_i32(self.members.len() as i32);
        for member in &self.members {
            member.encode(out);
        }
    }
}

impl MemberMetadata {
    fn decode(reader: &mut Reader<'_>, version: i16) -> Result<MemberMetadata, DecodeError> {
        let member_id = reader.string("member id")?.into();
        let instance_id = match version {
            VERSION_WITH_INSTANCE_ID.. => reader.nullable_string("group instance id")?.map(Arc::from),
            _ => None,
        };
        let client_id = reader.string("client id")?.into();
        let client_host = reader.string("client host")?.into();
        let rebalance_timeout_ms =
            if version >= VERSION_WITH_REBALANCE_TIMEOUT { reader.i32("rebalance timeout")? } else { -1 };
        let session_timeout_ms = reader.i32("session timeout")?;
        let member = MemberMetadata {
            member_id,
            instance_id,
            client_id,
            client_host,
            // Before version 1 there was one timeout for both.
            rebalance_timeout_ms: if rebalance_timeout_ms == -1 { session_timeout_ms } else { rebalance_timeout_ms },
            session_timeout_ms,
            subscription: Bytes::copy_from_slice(reader.bytes("subscription")?),
            assignment: Bytes::copy_from_slice(reader.bytes("assignment")?),
        };
        reader.tagged_fields(|_, _| Ok(()))?;
        Ok(member)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.put_string(&self.member_id);
        out.put_nullable_string(self.instance_id.as_deref());
        out.put_string(&self.client_id);
        out.put_string(&self.client_host);
        out.put_i32(self.rebalance_timeout_ms);
        out.put_i32(self.session_timeout_ms);
        out.put_bytes(&self.subscription);
        out.put_bytes(&self.assignment);
    }
}

#[cfg(test)]
mod tests {
    use super::super::offset_commit::tests::hex;
    use super::*;
    use crate::coordinator::group::record::Record;
    use proptest::prelude::*;

    fn empty(generation: i32, protocol_type: &str, state_timestamp: i64) -> GroupMetadata {
        GroupMetadata {
            protocol_type: protocol_type.into(),
            generation,
            protocol: None,
            leader: None,
            state_timestamp,
            members: Vec::new(),
        }
    }

    fn check(value: &GroupMetadata, bytes: &str) {
        let mut out = Vec::new();
        value.encode(&mut out);
        assert_eq!(out, hex(bytes));
        assert_eq!(GroupMetadata::decode(&out).as_ref(), Ok(value));
    }

    // The bytes below were read from the topic that Apache Kafka 4.4.0 wrote.

    #[test]
    fn a_new_group_is_written_as_kafka_4_4_writes_it() {
        check(&empty(0, "", 0x1a2_27ee_928e), "0003000000000000ffffffff000001a227ee928e00000000");
        let mut key = Vec::new();
        Record::Group { group: "grpx-a", value: None }.encode_key(&mut key);
        assert_eq!(key, hex("00020006677270782d61"));
    }

    #[test]
    fn a_group_that_everybody_left_keeps_its_type_and_generation() {
        check(
            &empty(2, "consumer", 0x1a2_27ee_92b0),
            "00030008636f6e73756d657200000002ffffffff000001a227ee92b000000000",
        );
    }

    #[test]
    fn a_stable_group_is_written_as_kafka_4_4_writes_it() {
        let member_id: Arc<str> = "one-b374036f-efa2-4fce-856d-f233c9886901".into();
        let member = MemberMetadata {
            member_id: member_id.clone(),
            instance_id: Some("one".into()),
            client_id: "raw".into(),
            client_host: "/127.0.0.1".into(),
            rebalance_timeout_ms: 10_000,
            session_timeout_ms: 30_000,
            subscription: hex("000000000001000174ffffffff").into(),
            assignment: "all".into(),
        };
        let value = GroupMetadata {
            protocol_type: "consumer".into(),
            generation: 1,
            protocol: Some("range".into()),
            leader: Some(member_id),
            state_timestamp: 0x1a2_27ee_928e,
            members: vec![member],
        };
        check(
            &value,
            "00030008636f6e73756d657200000001000572616e676500286f6e652d62333734303336662d656661322d346663652d383536642d\
             663233336339383836393031000001a227ee928e0000000100286f6e652d62333734303336662d656661322d346663652d383536\
             642d66323333633938383639303100036f6e650003726177000a2f3132372e302e302e3100002710000075300000000d00000000\
             0001000174ffffffff00000003616c6c",
        );
    }

    #[test]
    fn the_first_version_had_one_timeout() {
        let bytes = hex(concat!(
            "0000",
            "000163",
            "00000004",
            "000172",
            "00016d",
            "00000001",
            "00016d",
            "000169",
            "000168",
            "00007530",
            "00000001aa",
            "00000001bb"
        ));
        let group = GroupMetadata::decode(&bytes).map(|group| (group.generation, group.members));
        let member = MemberMetadata {
            member_id: "m".into(),
            instance_id: None,
            client_id: "i".into(),
            client_host: "h".into(),
            rebalance_timeout_ms: 30_000,
            session_timeout_ms: 30_000,
            subscription: hex("aa").into(),
            assignment: hex("bb").into(),
        };
        assert_eq!(group, Ok((4, vec![member])));
    }

    #[test]
    fn version_4_is_flexible() {
        let bytes = hex(concat!("0004", "0263", "00000004", "0272", "00", "0000000000000009", "01", "00"));
        let expected = GroupMetadata { protocol: Some("r".into()), ..empty(4, "c", 9) };
        assert_eq!(GroupMetadata::decode(&bytes), Ok(expected));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, version in 0i16..5) {
            let mut versioned = version.to_be_bytes().to_vec();
            versioned.extend_from_slice(&bytes);
            let _ = GroupMetadata::decode(&versioned);
        }
    }
}
