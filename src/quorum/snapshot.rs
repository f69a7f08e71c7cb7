//! Snapshot files: the image as records, so that the log behind them can go. Named as Kafka names them, by end and epoch, and
//! complete or absent: written aside, synced, renamed. The same bytes go to a node that is too far behind for the log.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::codec::{self, StoredMembers};
use super::machine::Applied;
use super::scan::{Ending, scan};
use super::types::{LogId, StoredMembership, log_id, next_index};
use crate::base::{LeaderEpoch, Offset, TimestampMs};
use crate::host::Disk;
use crate::host::disk::{OpenMode, read_file, write_file_atomically};
use crate::metadata::Image;
use crate::records::{BATCH_HEADER_BYTES, BatchBuilder, BatchHeader, Codec, crc_is_valid};

/// Records in one batch of a snapshot.
const RECORDS_PER_BATCH: usize = 256;

/// A head is shorter than this, however many nodes there are.
const HEAD_BYTES_MAX: usize = 256 * 1024;

const SUFFIX: &str = ".checkpoint";

/// The first record of the file, by which a reader knows that it has all of it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    /// The last entry in it.
    term: u64,
    next_index: u64,
    /// The image's offset.
    offset: Offset,
    members: StoredMembers,
    records: usize,
}

/// A snapshot by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SnapshotId {
    /// Exclusive: the first index that is not in it.
    pub(super) next_index: u64,
    pub(super) term: u64,
}

impl SnapshotId {
    pub(super) fn of(last: Option<LogId>) -> SnapshotId {
        SnapshotId { next_index: next_index(last), term: last.map_or(0, |id| id.leader_id.term) }
    }

    pub(super) fn log_id(self) -> Option<LogId> {
        Some(log_id(self.term, self.next_index.checked_sub(1)?))
    }

    pub(super) fn file_name(self) -> String {
        format!("{:020}-{:010}{SUFFIX}", self.next_index, self.term)
    }

    pub(super) fn parse(name: &str) -> Option<SnapshotId> {
        let (next_index, term) = name.strip_suffix(SUFFIX)?.split_once('-')?;
        Some(SnapshotId { next_index: next_index.parse().ok()?, term: term.parse().ok()? })
    }

    pub(super) fn path(self, dir: &Path) -> PathBuf {
        dir.join(self.file_name())
    }
}

/// A snapshot's content, or where it is.
#[derive(Clone, Debug)]
pub(crate) enum SnapshotData {
    File(PathBuf),
    Bytes(Bytes),
}

impl SnapshotData {
    /// Blocks for the disk.
    pub(super) fn content(&self, disk: &dyn Disk) -> io::Result<Bytes> {
        match self {
            SnapshotData::File(path) => read_file(disk, path).map(Bytes::from),
            SnapshotData::Bytes(bytes) => Ok(bytes.clone()),
        }
    }
}

pub(super) fn encode(applied: &Applied, now: TimestampMs) -> Vec<u8> {
    let id = SnapshotId::of(applied.log_id);
    let epoch = LeaderEpoch::try_from(id.term).unwrap_or(LeaderEpoch::MAX);
    let records = applied.image.to_records();
    let head = Head {
        term: id.term,
        next_index: id.next_index,
        offset: applied.image.offset,
        members: StoredMembers::of(&applied.membership),
        records: records.len(),
    };
    let mut builder = BatchBuilder::new(Codec::None);
    builder.push(now, None, Some(&serde_json::to_vec(&head).unwrap_or_default()), &[]);
    let mut content = builder.finish(0, epoch);
    let mut offset = 1;
    for group in records.chunks(RECORDS_PER_BATCH) {
        content.extend_from_slice(&codec::encode_records(group, offset, epoch, now));
        offset += i64::try_from(group.len()).unwrap_or(0);
    }
    content
}

pub(super) fn write(disk: &dyn Disk, dir: &Path, id: SnapshotId, content: &[u8]) -> io::Result<()> {
    write_file_atomically(disk, &id.path(dir), content)
}

/// What is in a snapshot file and the file's size, or why it cannot be used.
pub(super) fn read(disk: &dyn Disk, dir: &Path, id: SnapshotId) -> Result<(Applied, u64), String> {
    let bytes = read_file(disk, &id.path(dir)).map_err(|error| error.to_string())?;
    let applied = decode(&bytes)?;
    if SnapshotId::of(applied.log_id) != id {
        return Err(format!("holds another snapshot, {}", SnapshotId::of(applied.log_id).file_name()));
    }
    Ok((applied, bytes.len() as u64))
}

pub(super) fn decode(bytes: &[u8]) -> Result<Applied, String> {
    let mut image = Image::empty();
    let mut head: Option<Head> = None;
    let mut count = 0;
    let scanned = scan(bytes, 0, Offset::MAX, |_, batch| match &head {
        None => {
            head = Some(read_head(batch)?);
            Ok(())
        }
        Some(head) => codec::decode_records(batch, |offset, record| {
            count += 1;
            image.apply(head.offset, &record).map_err(|error| codec::BadRecord { offset, what: error.to_string() })
        })
        .map_err(|bad| bad.to_string()),
    })?;
    if let Ending::Torn { position } | Ending::Damaged { position, .. } = scanned.ending {
        return Err(format!("damaged at byte {position}"));
    }
    match head {
        Some(head) if head.records == count => {
            image.offset = head.offset;
            let id = SnapshotId { next_index: head.next_index, term: head.term };
            let membership = head.members.to_stored_membership();
            Ok(Applied { image: Arc::new(image), log_id: id.log_id(), membership })
        }
        Some(head) => Err(format!("holds {count} records of {}", head.records)),
        None => Err("empty".to_owned()),
    }
}

/// The members named in a snapshot file, without reading all of it.
pub(super) fn read_membership(disk: &dyn Disk, path: &Path) -> Result<StoredMembership, String> {
    let file = disk.open(path, OpenMode::Read).map_err(|error| error.to_string())?;
    let mut start = vec![0; HEAD_BYTES_MAX];
    let len = file.read_at(&mut start, 0).map_err(|error| error.to_string())?;
    start.truncate(len);
    let header = start.get(..BATCH_HEADER_BYTES).ok_or("no head")?;
    let size = BatchHeader::parse(header).map_err(|error| error.to_string())?.size_bytes();
    let batch = start.get(..size).filter(|batch| crc_is_valid(batch)).ok_or("the head is damaged")?;
    Ok(read_head(batch)?.members.to_stored_membership())
}

fn read_head(batch: &[u8]) -> Result<Head, String> {
    let records = crate::records::records(batch, batch.len()).map_err(|error| error.to_string())?;
    let record = records.iter().next().ok_or("no head")?.map_err(|error| error.to_string())?;
    serde_json::from_slice(record.value.unwrap_or_default()).map_err(|error| error.to_string())
}
