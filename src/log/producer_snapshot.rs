//! The producer snapshot file, `%020d.snapshot`, in Kafka's format (`ProducerSnapshot.json`, version 1): the state of all
//! producers just before the offset in its name. It carries its own CRC, so it needs no sync: a torn one is not used.

use super::producers::{BatchMemory, ProducerEntry, Producers};
use crate::base::TimestampMs;

const VERSION: i16 = 1;
/// Version and CRC; the CRC-32C covers all behind them.
const ENTRIES_AT: usize = 6;
const ENTRY_BYTES: usize = 46;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    #[error("version {0}, expected {VERSION}")]
    Version(i16),
    #[error("the CRC does not match")]
    Crc,
    #[error("{0} bytes do not hold what they announce")]
    Length(usize),
}

/// One batch a producer, its last, as in Kafka. Entries are in the order of their ids, so that equal states have equal files.
pub fn encode(producers: &Producers) -> Vec<u8> {
    let mut entries: Vec<&ProducerEntry> = producers.iter().collect();
    entries.sort_by_key(|entry| entry.producer_id);
    let mut out = Vec::with_capacity(ENTRIES_AT + 4 + entries.len() * ENTRY_BYTES);
    out.extend_from_slice(&VERSION.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&(entries.len() as u32).to_be_bytes());
    for entry in entries {
        encode_entry(entry, &mut out);
    }
    let crc = crc_fast::crc32_iscsi(out.get(ENTRIES_AT..).unwrap_or_default());
    if let Some(place) = out.get_mut(2..ENTRIES_AT) {
        place.copy_from_slice(&crc.to_be_bytes());
    }
    out
}

fn encode_entry(entry: &ProducerEntry, out: &mut Vec<u8>) {
    let none = BatchMemory { last_sequence: -1, last_offset: -1, offset_delta: 0, timestamp: -1 };
    let last = entry.batches().last().copied().unwrap_or(none);
    out.extend_from_slice(&entry.producer_id.to_be_bytes());
    out.extend_from_slice(&entry.epoch.to_be_bytes());
    out.extend_from_slice(&last.last_sequence.to_be_bytes());
    out.extend_from_slice(&last.last_offset.to_be_bytes());
    out.extend_from_slice(&last.offset_delta.to_be_bytes());
    out.extend_from_slice(&entry.last_timestamp.to_be_bytes());
    out.extend_from_slice(&entry.coordinator_epoch.to_be_bytes());
    out.extend_from_slice(&entry.current_txn_first_offset.unwrap_or(-1).to_be_bytes());
}

/// Reads a snapshot. Its producers count as seen `now`.
pub fn decode(bytes: &[u8], now: TimestampMs) -> Result<Producers, SnapshotError> {
    let length = || SnapshotError::Length(bytes.len());
    let mut rest = bytes;
    let version = i16::from_be_bytes(take(&mut rest).ok_or_else(length)?);
    if version != VERSION {
        return Err(SnapshotError::Version(version));
    }
    let crc = u32::from_be_bytes(take(&mut rest).ok_or_else(length)?);
    if crc != crc_fast::crc32_iscsi(rest) {
        return Err(SnapshotError::Crc);
    }
    let count = u32::from_be_bytes(take(&mut rest).ok_or_else(length)?);
    if rest.len() as u64 != u64::from(count) * ENTRY_BYTES as u64 {
        return Err(length());
    }
    let mut producers = Producers::default();
    for bytes in rest.chunks_exact(ENTRY_BYTES) {
        producers.restore(decode_entry(bytes, now).ok_or_else(length)?);
    }
    Ok(producers)
}

fn decode_entry(mut bytes: &[u8], now: TimestampMs) -> Option<ProducerEntry> {
    let rest = &mut bytes;
    let mut entry = ProducerEntry::new(i64::from_be_bytes(take(rest)?), i16::from_be_bytes(take(rest)?));
    let last = BatchMemory {
        last_sequence: i32::from_be_bytes(take(rest)?),
        last_offset: i64::from_be_bytes(take(rest)?),
        offset_delta: i32::from_be_bytes(take(rest)?),
        timestamp: i64::from_be_bytes(take(rest)?),
    };
    entry.coordinator_epoch = i32::from_be_bytes(take(rest)?);
    let txn_first_offset = i64::from_be_bytes(take(rest)?);
    entry.current_txn_first_offset = (txn_first_offset >= 0).then_some(txn_first_offset);
    if last.last_offset >= 0 && last.offset_delta >= 0 && last.last_sequence >= 0 {
        entry.push(last);
    }
    entry.last_timestamp = last.timestamp;
    entry.seen_at = now;
    Some(entry)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*head)
}
