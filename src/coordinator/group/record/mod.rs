//! The records of `__consumer_offsets`, byte for byte as Apache Kafka 4.4 writes them, so that tools which read the topic see what
//! they expect and a Kafka data directory can be taken over. A key begins with its type, a value with its version, a null value deletes.

mod codec;
mod group_metadata;
mod offset_commit;

use crate::base::PartitionIndex;

pub use codec::{DecodeError, Reader, Write};
pub use group_metadata::{GroupMetadata, MemberMetadata};
pub use offset_commit::OffsetValue;

const KIND_LEGACY_OFFSET_COMMIT: i16 = 0;
const KIND_OFFSET_COMMIT: i16 = 1;
const KIND_GROUP_METADATA: i16 = 2;

/// One record, borrowed from wherever it was read or decided. `None` as a value is a tombstone.
#[derive(Clone, Debug, PartialEq)]
pub enum Record<'a> {
    Offset { key: OffsetKey<'a>, value: Option<OffsetValue<'a>> },
    Group { group: &'a str, value: Option<GroupMetadata> },
}

/// Whose offset of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetKey<'a> {
    pub group: &'a str,
    pub topic: &'a str,
    pub partition: PartitionIndex,
}

impl<'a> Record<'a> {
    /// `Ok(None)` for a record type that is not ours (the consumer protocol's, share groups', or one that is yet to be invented):
    /// those are passed over.
    pub fn decode(key: &'a [u8], value: Option<&'a [u8]>) -> Result<Option<Record<'a>>, DecodeError> {
        let mut key = Reader::new(key);
        match key.i16("record type")? {
            KIND_LEGACY_OFFSET_COMMIT | KIND_OFFSET_COMMIT => {
                let key = OffsetKey {
                    group: key.string("group")?,
                    topic: key.string("topic")?,
                    partition: key.i32("partition")?,
                };
                Ok(Some(Record::Offset { key, value: value.map(OffsetValue::decode).transpose()? }))
            }
            KIND_GROUP_METADATA => {
                let group = key.string("group")?;
                Ok(Some(Record::Group { group, value: value.map(GroupMetadata::decode).transpose()? }))
            }
            _ => Ok(None),
        }
    }

    pub fn encode_key(&self, out: &mut Vec<u8>) {
        match self {
            Record::Offset { key, .. } => {
                out.put_i16(KIND_OFFSET_COMMIT);
                out.put_string(key.group);
                out.put_string(key.topic);
                out.put_i32(key.partition);
            }
            Record::Group { group, .. } => {
                out.put_i16(KIND_GROUP_METADATA);
                out.put_string(group);
            }
        }
    }

    /// False for a tombstone, which has no value to write.
    pub fn encode_value(&self, out: &mut Vec<u8>) -> bool {
        match self {
            Record::Offset { value: Some(value), .. } => value.encode(out),
            Record::Group { value: Some(value), .. } => value.encode(out),
            Record::Offset { value: None, .. } | Record::Group { value: None, .. } => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_legacy_key_names_an_offset_too() {
        let key = [0, 0, 0, 1, b'g', 0, 1, b't', 0, 0, 0, 7];
        let decoded = Record::decode(&key, None);
        let key = OffsetKey { group: "g", topic: "t", partition: 7 };
        assert_eq!(decoded, Ok(Some(Record::Offset { key, value: None })));
    }

    #[test]
    fn record_types_of_others_are_passed_over() {
        for kind in [3i16, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17, 19, 20, 21, 22, 23, 99] {
            assert_eq!(Record::decode(&kind.to_be_bytes(), Some(&[1, 2, 3])), Ok(None), "{kind}");
        }
    }

    #[test]
    fn a_key_cut_short_is_an_error() {
        assert!(Record::decode(&[0], None).is_err());
        assert!(Record::decode(&[0, 1, 0, 9, b'g'], None).is_err());
    }
}
