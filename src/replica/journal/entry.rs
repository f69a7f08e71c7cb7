//! The journal's bytes. An entry is a head of fixed size, the partition's directory name, and the bytes, covered by one CRC that also
//! covers the generation: what a former round of the file left behind never looks like an entry of this one.
//!
//! Head, big-endian: crc u32 (of all behind it), generation u64, topic id 16 bytes, segment base offset i64, position u64,
//! length of the name u16, length of the bytes u32.

use crate::base::{Offset, TopicId};

pub const HEAD_BYTES: usize = 4 + 8 + 16 + 8 + 8 + 2 + 4;

/// Longest directory name: a topic name of 249 characters, a dash and a partition number.
const NAME_BYTES_MAX: usize = 320;

/// Largest piece of a segment in one entry.
pub const PIECE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Where a piece of a segment belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub dir_name: String,
    pub topic_id: TopicId,
    /// Names the segment file.
    pub segment_base: Offset,
    /// Byte of the segment file.
    pub position: u64,
}

/// Appends an entry to `buffer`; `fill` gets the room for the bytes.
pub fn push<E>(
    buffer: &mut Vec<u8>,
    generation: u64,
    place: &Place,
    len: usize,
    fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
) -> Result<(), E> {
    let start = buffer.len();
    buffer.extend_from_slice(&[0; 4]);
    buffer.extend_from_slice(&generation.to_be_bytes());
    buffer.extend_from_slice(place.topic_id.0.as_bytes());
    buffer.extend_from_slice(&place.segment_base.to_be_bytes());
    buffer.extend_from_slice(&place.position.to_be_bytes());
    buffer.extend_from_slice(&u16::try_from(place.dir_name.len()).unwrap_or(u16::MAX).to_be_bytes());
    buffer.extend_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes());
    buffer.extend_from_slice(place.dir_name.as_bytes());
    let content = buffer.len();
    buffer.resize(content + len, 0);
    if let Err(error) = fill(&mut buffer[content..]) {
        buffer.truncate(start);
        return Err(error);
    }
    let crc = checksum(&buffer[start + 4..]);
    buffer[start..start + 4].copy_from_slice(&crc.to_be_bytes());
    Ok(())
}

/// The entry at the front of `bytes` if it is whole and of this generation, and how many bytes it takes.
pub fn parse(bytes: &[u8], generation: u64) -> Option<(Place, &[u8], usize)> {
    let head = bytes.get(..HEAD_BYTES)?;
    let crc = u32::from_be_bytes(head.get(..4)?.try_into().ok()?);
    if u64::from_be_bytes(head.get(4..12)?.try_into().ok()?) != generation {
        return None;
    }
    let topic_id = TopicId::from_bytes(head.get(12..28)?.try_into().ok()?);
    let segment_base = Offset::from_be_bytes(head.get(28..36)?.try_into().ok()?);
    let position = u64::from_be_bytes(head.get(36..44)?.try_into().ok()?);
    let name_len = usize::from(u16::from_be_bytes(head.get(44..46)?.try_into().ok()?));
    let len = usize::try_from(u32::from_be_bytes(head.get(46..50)?.try_into().ok()?)).ok()?;
    if name_len > NAME_BYTES_MAX || len > PIECE_BYTES_MAX {
        return None;
    }
    let total = HEAD_BYTES + name_len + len;
    if checksum(bytes.get(4..total)?) != crc {
        return None;
    }
    let dir_name = std::str::from_utf8(bytes.get(HEAD_BYTES..HEAD_BYTES + name_len)?).ok()?.to_owned();
    let place = Place { dir_name, topic_id, segment_base, position };
    Some((place, bytes.get(HEAD_BYTES + name_len..total)?, total))
}

/// How many bytes the entry at the front of `bytes` claims to take, before anything else of it is believed.
pub fn claimed_bytes(head: &[u8]) -> Option<usize> {
    let name_len = usize::from(u16::from_be_bytes(head.get(44..46)?.try_into().ok()?));
    let len = usize::try_from(u32::from_be_bytes(head.get(46..50)?.try_into().ok()?)).ok()?;
    (name_len <= NAME_BYTES_MAX && len <= PIECE_BYTES_MAX).then_some(HEAD_BYTES + name_len + len)
}

pub fn entry_bytes(place: &Place, len: usize) -> usize {
    HEAD_BYTES + place.dir_name.len() + len
}

pub fn checksum(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        Place { dir_name: "orders-3".into(), topic_id: TopicId::from_bytes([7; 16]), segment_base: 40, position: 1234 }
    }

    fn entry(generation: u64, content: &[u8]) -> Vec<u8> {
        let mut buffer = Vec::new();
        let filled: Result<(), ()> = push(&mut buffer, generation, &place(), content.len(), |room| {
            room.copy_from_slice(content);
            Ok(())
        });
        assert_eq!(filled, Ok(()));
        buffer
    }

    #[test]
    fn entries_round_trip() {
        let bytes = entry(9, b"some records");
        assert_eq!(bytes.len(), entry_bytes(&place(), 12));
        assert_eq!(claimed_bytes(&bytes), Some(bytes.len()));
        assert_eq!(parse(&bytes, 9), Some((place(), &b"some records"[..], bytes.len())));
    }

    #[test]
    fn another_generation_is_no_entry() {
        assert_eq!(parse(&entry(9, b"x"), 10), None);
    }

    #[test]
    fn a_flipped_bit_or_a_missing_byte_is_no_entry() {
        let bytes = entry(9, b"some records");
        for at in 0..bytes.len() {
            let mut broken = bytes.clone();
            broken[at] ^= 1;
            assert_eq!(parse(&broken, 9), None, "bit flipped in byte {at}");
            assert_eq!(parse(&bytes[..at], 9), None, "cut at byte {at}");
        }
    }

    #[test]
    fn what_cannot_be_filled_leaves_no_trace() {
        let mut buffer = vec![1, 2];
        assert_eq!(push(&mut buffer, 1, &place(), 5, |_| Err("no")), Err("no"));
        assert_eq!(buffer, [1, 2]);
    }
}
