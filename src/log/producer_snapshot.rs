//! The producer snapshot file, `%020d.snapshot`, in Kafka's format (`ProducerSnapshot.json`, version 1): the state of all
//! producers just before the offset in its name. It carries its own CRC, so it needs no sync: a torn one is not used.
//!
//! Kafka writes one entry for each producer, with its last batch. Here a producer has an entry for each batch of its window, the oldest
//! first, so that a repeat is known as such after a start, too. Kafka, which reads them in their order, keeps the last.

use super::producers::{BatchMemory, ProducerEntry, Producers};
use crate::base::{Offset, TimestampMs};

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

/// Entries are in the order of their ids, so that equal states have equal files.
pub fn encode(producers: &Producers) -> Vec<u8> {
    let mut entries: Vec<&ProducerEntry> = producers.iter().collect();
    entries.sort_by_key(|entry| entry.producer_id);
    let count: usize = entries.iter().map(|entry| entry.batches().len().max(1)).sum();
    let mut out = Vec::with_capacity(ENTRIES_AT + 4 + count * ENTRY_BYTES);
    out.extend_from_slice(&VERSION.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&(count as u32).to_be_bytes());
    for entry in entries {
        encode_producer(entry, &mut out);
    }
    let crc = crc_fast::crc32_iscsi(out.get(ENTRIES_AT..).unwrap_or_default());
    if let Some(place) = out.get_mut(2..ENTRIES_AT) {
        place.copy_from_slice(&crc.to_be_bytes());
    }
    out
}

fn encode_producer(entry: &ProducerEntry, out: &mut Vec<u8>) {
    let none = BatchMemory { last_sequence: -1, last_offset: -1, offset_delta: 0, timestamp: -1 };
    let (last, older) = entry.batches().split_last().unwrap_or((&none, &[]));
    for batch in older {
        encode_entry(entry, batch, None, out);
    }
    encode_entry(entry, &BatchMemory { timestamp: entry.last_timestamp, ..*last }, entry.current_txn_first_offset, out);
}

fn encode_entry(entry: &ProducerEntry, batch: &BatchMemory, txn_first_offset: Option<Offset>, out: &mut Vec<u8>) {
    out.extend_from_slice(&entry.producer_id.to_be_bytes());
    out.extend_from_slice(&entry.epoch.to_be_bytes());
    out.extend_from_slice(&batch.last_sequence.to_be_bytes());
    out.extend_from_slice(&batch.last_offset.to_be_bytes());
    out.extend_from_slice(&batch.offset_delta.to_be_bytes());
    out.extend_from_slice(&batch.timestamp.to_be_bytes());
    out.extend_from_slice(&entry.coordinator_epoch.to_be_bytes());
    out.extend_from_slice(&txn_first_offset.unwrap_or(-1).to_be_bytes());
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

#[cfg(test)]
mod tests {
    use super::super::producers::BATCHES_MAX;
    use super::*;
    use proptest::prelude::*;

    fn entries() -> impl Strategy<Value = Vec<ProducerEntry>> {
        let batch = (0..i32::MAX, 0i64..1 << 40, 0..1000i32, any::<i64>());
        let batches = prop::collection::vec(batch, 0..=BATCHES_MAX);
        let entry = (0..i64::MAX, 0..i16::MAX, batches, any::<i32>(), prop::option::of(0..i64::MAX));
        let entry = entry.prop_map(|(id, epoch, batches, coordinator_epoch, txn)| {
            let mut entry = ProducerEntry::new(id, epoch);
            for (last_sequence, last_offset, offset_delta, timestamp) in batches {
                entry.push(BatchMemory { last_sequence, last_offset, offset_delta, timestamp });
            }
            entry.coordinator_epoch = coordinator_epoch;
            entry.current_txn_first_offset = txn;
            entry
        });
        prop::collection::vec(entry, 0..20)
    }

    fn sorted(producers: &Producers) -> Vec<ProducerEntry> {
        let mut all: Vec<ProducerEntry> = producers.iter().cloned().collect();
        all.sort_by_key(|entry| entry.producer_id);
        all
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(entries in entries()) {
            let mut producers = Producers::default();
            entries.into_iter().for_each(|entry| producers.restore(entry));
            let bytes = encode(&producers);
            let decoded = decode(&bytes, 0).unwrap();
            prop_assert_eq!(sorted(&decoded), sorted(&producers));
            prop_assert_eq!(encode(&decoded), bytes);
        }

        #[test]
        fn any_flipped_bit_is_noticed(entries in entries(), at in any::<prop::sample::Index>(), bit in 0u8..8) {
            let mut producers = Producers::default();
            entries.into_iter().for_each(|entry| producers.restore(entry));
            let mut bytes = encode(&producers);
            let at = at.index(bytes.len());
            bytes[at] ^= 1u8 << bit;
            prop_assert!(decode(&bytes, 0).is_err());
        }

        #[test]
        fn no_bytes_are_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes, 0);
        }
    }

    #[test]
    fn the_bytes_are_kafkas() {
        let mut entry = ProducerEntry::new(0x0102, 3);
        entry.push(BatchMemory { last_sequence: 4, last_offset: 5, offset_delta: 1, timestamp: 6 });
        let mut producers = Producers::default();
        producers.restore(entry);
        let bytes = encode(&producers);
        let fields: [&[u8]; 10] = [
            &1i16.to_be_bytes(),
            &crc_fast::crc32_iscsi(&bytes[6..]).to_be_bytes(),
            &1i32.to_be_bytes(),
            &0x0102i64.to_be_bytes(),
            &3i16.to_be_bytes(),
            &4i32.to_be_bytes(),
            &[5i64.to_be_bytes().as_slice(), &1i32.to_be_bytes()].concat(),
            &6i64.to_be_bytes(),
            &(-1i32).to_be_bytes(),
            &(-1i64).to_be_bytes(),
        ];
        assert_eq!(bytes, fields.concat());
    }

    /// Kafka takes the entries into a map one after another: what it keeps of a producer is the last.
    #[test]
    fn a_producers_last_entry_is_the_one_that_kafka_would_write() {
        let batch = |at: i64| BatchMemory { last_sequence: at as i32, last_offset: at, offset_delta: 0, timestamp: at };
        let mut window = ProducerEntry::new(7, 1);
        (0..6).for_each(|at| window.push(batch(at)));
        (window.last_timestamp, window.current_txn_first_offset) = (99, Some(4));
        let mut last = ProducerEntry::new(7, 1);
        last.current_txn_first_offset = Some(4);
        last.push(BatchMemory { timestamp: 99, ..batch(5) });
        let file = |entry| {
            let mut producers = Producers::default();
            producers.restore(entry);
            encode(&producers)
        };
        let (whole, kafkas) = (file(window), file(last));
        assert_eq!(whole.len(), kafkas.len() + 4 * ENTRY_BYTES);
        assert_eq!(whole[whole.len() - ENTRY_BYTES..], kafkas[kafkas.len() - ENTRY_BYTES..]);
    }

    #[test]
    fn an_announced_count_takes_no_memory() {
        let mut bytes = encode(&Producers::default());
        bytes[6..10].copy_from_slice(&u32::MAX.to_be_bytes());
        let crc = crc_fast::crc32_iscsi(&bytes[6..]);
        bytes[2..6].copy_from_slice(&crc.to_be_bytes());
        assert_eq!(decode(&bytes, 0).unwrap_err(), SnapshotError::Length(10));
    }
}
