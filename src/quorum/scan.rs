//! Reading a log file that may end in the middle of a write. A last write that did not finish was never acknowledged and is cut
//! off; anything else that is wrong means that acknowledged records are gone, and is never repaired in silence.

use super::codec;
use crate::base::Offset;
use crate::records::{BATCH_HEADER_BYTES, BatchHeader, RecordError, crc_is_valid};

/// How a file's batches end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// At a batch's last byte.
    Clean,
    /// With a write that did not finish: bytes from `position` on are to be cut.
    Torn { position: u64 },
    /// With something that no interrupted write leaves behind.
    Damaged { position: u64, what: String },
}

/// The valid batches from the beginning of a file, and how they end.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) ending: Ending,
    pub(super) next_offset: Offset,
}

/// Walks the batches of `bytes`, the first of which must begin at offset `first`. `end_known` is an end that the log is known to
/// have reached: nothing before it can be torn.
pub(super) fn scan<E>(
    bytes: &[u8],
    first: Offset,
    end_known: Offset,
    mut each: impl FnMut(&BatchHeader, &[u8]) -> Result<(), E>,
) -> Result<Scan, E> {
    let mut scan = Scan { ending: Ending::Clean, next_offset: first };
    let mut position = 0;
    while position < bytes.len() {
        let rest = bytes.get(position..).unwrap_or_default();
        match batch_at_start(rest, scan.next_offset) {
            Ok((header, batch)) => {
                each(&header, batch)?;
                scan.next_offset = header.next_offset();
                position += batch.len();
            }
            Err(what) => {
                scan.ending = classify(rest, position as u64, scan.next_offset, end_known, what);
                break;
            }
        }
    }
    Ok(scan)
}

/// The batch that begins the slice, or what is wrong with it.
fn batch_at_start(bytes: &[u8], expected: Offset) -> Result<(BatchHeader, &[u8]), String> {
    if bytes.len() < BATCH_HEADER_BYTES {
        return Err(format!("{} bytes are no batch header", bytes.len()));
    }
    let header = BatchHeader::parse(bytes).map_err(|error: RecordError| error.to_string())?;
    let batch = bytes.get(..header.size_bytes()).ok_or_else(|| "the batch is longer than the file".to_owned())?;
    if !crc_is_valid(batch) {
        return Err("the batch's checksum does not match".to_owned());
    }
    if header.base_offset != expected {
        return Err(format!("the batch begins at offset {}, expected {expected}", header.base_offset));
    }
    Ok((header, batch))
}

fn classify(rest: &[u8], position: u64, next: Offset, end_known: Offset, what: String) -> Ending {
    if next < end_known {
        return Ending::Damaged { position, what: format!("{what}, though the log has reached offset {end_known}") };
    }
    if whole_batch(rest).is_some() || has_batch_behind(rest, next) {
        return Ending::Damaged { position, what: format!("{what}, and valid records follow") };
    }
    Ending::Torn { position }
}

fn whole_batch(bytes: &[u8]) -> Option<BatchHeader> {
    let header = BatchHeader::parse(bytes.get(..BATCH_HEADER_BYTES)?).ok()?;
    crc_is_valid(bytes.get(..header.size_bytes())?).then_some(header)
}

/// Whether anywhere behind the first byte a valid batch begins that was written after offset `next` had been synced. One that was
/// not may well have reached the disk before it.
fn has_batch_behind(bytes: &[u8], next: Offset) -> bool {
    (1..bytes.len()).any(|at| {
        let Some(candidate) = bytes.get(at..) else { return false };
        // Magic 2 at its place rules out nearly every position before a checksum is computed.
        candidate.get(16) == Some(&2)
            && whole_batch(candidate).is_some_and(|header| written_after(&header, candidate, next))
    })
}

fn written_after(header: &BatchHeader, bytes: &[u8], next: Offset) -> bool {
    let batch = bytes.get(..header.size_bytes()).unwrap_or_default();
    let synced_to = codec::entry_key(batch).map(|key| Offset::try_from(key.synced_to).unwrap_or(Offset::MAX));
    header.base_offset >= next && synced_to.is_ok_and(|synced_to| synced_to > next)
}
