//! Snapshot files: the image as records, so that the log behind them can go. Named as Kafka names them, by end offset and epoch,
//! and complete or absent: written aside, synced, renamed.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::codec;
use super::scan::{Ending, scan};
use crate::base::{LeaderEpoch, Offset, TimestampMs};
use crate::host::Disk;
use crate::host::disk::{read_file, write_file_atomically};
use crate::metadata::Image;
use crate::records::{BatchBuilder, Codec};

/// Records in one batch of a snapshot.
const RECORDS_PER_BATCH: usize = 256;

const SUFFIX: &str = ".checkpoint";

/// The first record of the file, by which a reader knows that it has all of it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    end_offset: Offset,
    records: usize,
}

/// A snapshot by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SnapshotId {
    /// Exclusive: the first offset that is not in it.
    pub(super) end_offset: Offset,
    pub(super) epoch: LeaderEpoch,
}

impl SnapshotId {
    pub(super) fn file_name(self) -> String {
        format!("{:020}-{:010}{SUFFIX}", self.end_offset, self.epoch)
    }

    pub(super) fn parse(name: &str) -> Option<SnapshotId> {
        let (end_offset, epoch) = name.strip_suffix(SUFFIX)?.split_once('-')?;
        Some(SnapshotId { end_offset: end_offset.parse().ok()?, epoch: epoch.parse().ok()? })
    }

    pub(super) fn path(self, dir: &Path) -> PathBuf {
        dir.join(self.file_name())
    }
}

/// Writes the image. Returns the file's size in bytes.
pub(super) fn write(
    disk: &dyn Disk,
    dir: &Path,
    image: &Image,
    epoch: LeaderEpoch,
    now: TimestampMs,
) -> std::io::Result<(SnapshotId, u64)> {
    let id = SnapshotId { end_offset: image.offset + 1, epoch };
    let records = image.to_records();
    let head = Head { end_offset: id.end_offset, records: records.len() };
    let mut builder = BatchBuilder::new(Codec::None);
    builder.push(now, None, Some(&serde_json::to_vec(&head)?), &[]);
    let mut content = builder.finish(0, epoch);
    let mut offset = 1;
    for group in records.chunks(RECORDS_PER_BATCH) {
        content.extend_from_slice(&codec::encode(group, offset, epoch, now));
        offset += i64::try_from(group.len()).unwrap_or(0);
    }
    write_file_atomically(disk, &id.path(dir), &content)?;
    Ok((id, content.len() as u64))
}

/// The image in a snapshot and the file's size, or why it cannot be used.
pub(super) fn read(disk: &dyn Disk, dir: &Path, id: SnapshotId) -> Result<(Image, u64), String> {
    let bytes = read_file(disk, &id.path(dir)).map_err(|error| error.to_string())?;
    let mut image = Image::empty();
    let mut head: Option<Head> = None;
    let mut count = 0;
    let scanned = scan(&bytes, 0, Offset::MAX, |_, batch| match &head {
        None => {
            head = Some(read_head(batch)?);
            Ok(())
        }
        Some(_) => codec::decode(batch, |offset, record| {
            count += 1;
            image
                .apply(id.end_offset - 1, &record)
                .map_err(|error| codec::BadRecord { offset, what: error.to_string() })
        })
        .map_err(|bad| bad.to_string()),
    })?;
    if let Ending::Torn { position } | Ending::Damaged { position, .. } = scanned.ending {
        return Err(format!("damaged at byte {position}"));
    }
    match head {
        Some(head) if head.records == count && head.end_offset == id.end_offset => {
            image.offset = id.end_offset - 1;
            Ok((image, bytes.len() as u64))
        }
        Some(head) => Err(format!("holds {count} records of {}", head.records)),
        None => Err("empty".to_owned()),
    }
}

fn read_head(batch: &[u8]) -> Result<Head, String> {
    let records = crate::records::records(batch, batch.len()).map_err(|error| error.to_string())?;
    let record = records.iter().next().ok_or("no head")?.map_err(|error| error.to_string())?;
    serde_json::from_slice(record.value.unwrap_or_default()).map_err(|error| error.to_string())
}
