//! Starting: the image comes from the store when that is good, else from the newest snapshot that can be read, and then from the
//! log behind it. What was acknowledged and is not there stops the start.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::codec;
use super::error::QuorumError;
use super::metalog::{MetadataLog, parse_segment_name, segment_path};
use super::scan::{Ending, Scan, scan};
use super::snapshot::{self, SnapshotId};
use super::state::QuorumState;
use super::store::{self, StoreOpener};
use crate::base::{LeaderEpoch, Offset};
use crate::host::Host;
use crate::host::disk::{Disk, DiskFile, OpenMode, read_file};
use crate::metadata::Image;

/// The metadata log's directory in a log directory.
pub const DIRECTORY: &str = "__cluster_metadata-0";

pub(super) struct Loaded {
    pub(super) log: MetadataLog,
    pub(super) image: Image,
    /// Of the last record; 0 in an empty log.
    pub(super) last_epoch: LeaderEpoch,
}

/// Reads everything under `dir`. `must_exist` says that this node had metadata before.
pub(super) fn load(host: &Host, dir: &Path, must_exist: bool, open_store: &StoreOpener) -> Result<Loaded, QuorumError> {
    let disk = host.disk.as_ref();
    let io = |doing: &'static str| move |error: std::io::Error| QuorumError::storage(doing, &error);
    let files = Files::list(disk, dir).map_err(io("the metadata directory cannot be read"))?;
    let state = QuorumState::load(disk, dir).map_err(io("quorum-state cannot be read"))?;
    let has_run = must_exist || state.is_some() || !files.snapshots.is_empty();
    if files.segments.is_empty() {
        if has_run {
            return Err(QuorumError::Incomplete { dir: dir.to_owned(), what: "there is no log file".to_owned() });
        }
        return create(host, dir).map_err(io("the metadata directory cannot be made"));
    }
    let (image, snapshot_bytes) = starting_image(disk, dir, &files, open_store)?;
    let end_known = state.as_ref().map_or(0, |state| state.end_offset);
    let mut reader = Reader { disk, dir, image, end_known, last_epoch: 0 };
    let (active, position) = reader.read_segments(&files.segments)?;
    let Reader { image, last_epoch, .. } = reader;
    let next_offset = image.offset + 1;
    if next_offset < end_known || (must_exist && next_offset == 0) {
        let what = format!("the log ends at offset {next_offset}, but it has reached {}", end_known.max(1));
        return Err(QuorumError::Incomplete { dir: dir.to_owned(), what });
    }
    let log = MetadataLog {
        disk: host.disk.clone(),
        dir: dir.to_owned(),
        segments: files.segments,
        snapshots: files.snapshots,
        active,
        position,
        next_offset,
        bytes_since_snapshot: position,
        snapshot_bytes,
        failed: None,
    };
    Ok(Loaded { log, image, last_epoch: last_epoch.max(state.map_or(0, |state| state.leader_epoch)) })
}

fn create(host: &Host, dir: &Path) -> std::io::Result<Loaded> {
    host.disk.create_dir_all(dir)?;
    let active = host.disk.open(&segment_path(dir, 0), OpenMode::Create)?;
    host.disk.sync_dir(dir)?;
    if let Some(parent) = dir.parent() {
        host.disk.sync_dir(parent)?;
    }
    let log = MetadataLog {
        disk: host.disk.clone(),
        dir: dir.to_owned(),
        segments: vec![0],
        snapshots: Vec::new(),
        active,
        position: 0,
        next_offset: 0,
        bytes_since_snapshot: 0,
        snapshot_bytes: 0,
        failed: None,
    };
    Ok(Loaded { log, image: Image::empty(), last_epoch: 0 })
}

/// What stands in the directory, each list in order.
struct Files {
    segments: Vec<Offset>,
    snapshots: Vec<SnapshotId>,
    bytes: u64,
}

impl Files {
    fn list(disk: &dyn Disk, dir: &Path) -> std::io::Result<Files> {
        let mut files = Files { segments: Vec::new(), snapshots: Vec::new(), bytes: 0 };
        if !disk.exists(dir) {
            return Ok(files);
        }
        for entry in disk.read_dir(dir)?.into_iter().filter(|entry| !entry.is_dir) {
            if let Some(base) = parse_segment_name(&entry.name) {
                files.segments.push(base);
                files.bytes += entry.len;
            } else if let Some(id) = SnapshotId::parse(&entry.name) {
                files.snapshots.push(id);
                files.bytes += entry.len;
            }
        }
        files.segments.sort_unstable();
        files.snapshots.sort_unstable();
        Ok(files)
    }
}

/// The image to continue from, and the size of the snapshot it came from.
fn starting_image(
    disk: &dyn Disk,
    dir: &Path,
    files: &Files,
    open_store: &StoreOpener,
) -> Result<(Image, u64), QuorumError> {
    let oldest = files.segments.first().copied().unwrap_or(0);
    if files.bytes >= store::WORTH_BYTES
        && let Some(image) = store::load_image(dir, open_store)
        && image.offset + 1 >= oldest
    {
        return Ok((image, files.bytes));
    }
    for id in files.snapshots.iter().rev() {
        match snapshot::read(disk, dir, *id) {
            Ok(found) => return Ok(found),
            Err(what) => tracing::warn!(snapshot = %id.path(dir).display(), what, "a metadata snapshot cannot be read"),
        }
    }
    if oldest > 0 {
        let what = format!("the log begins at offset {oldest} and no snapshot before it can be read");
        return Err(QuorumError::Incomplete { dir: dir.to_owned(), what });
    }
    Ok((Image::empty(), 0))
}

/// Applies the segments one behind the other.
struct Reader<'a> {
    disk: &'a dyn Disk,
    dir: &'a Path,
    image: Image,
    end_known: Offset,
    last_epoch: LeaderEpoch,
}

impl Reader<'_> {
    /// Returns the last segment's file and where its valid part ends; a torn end is cut off.
    fn read_segments(&mut self, segments: &[Offset]) -> Result<(Arc<dyn DiskFile>, u64), QuorumError> {
        let mut expected = segments.first().copied().unwrap_or(0);
        if expected > self.image.offset + 1 {
            let what = format!("records {} to {} are missing", self.image.offset + 1, expected - 1);
            return Err(QuorumError::Incomplete { dir: self.dir.to_owned(), what });
        }
        let mut end = 0;
        for (at, base) in segments.iter().enumerate() {
            let path = segment_path(self.dir, *base);
            if *base != expected {
                let what = format!("the segment at offset {expected} is missing before {}", path.display());
                return Err(QuorumError::Incomplete { dir: self.dir.to_owned(), what });
            }
            let is_last = at + 1 == segments.len();
            if let Some(next) = segments.get(at + 1).filter(|next| **next <= self.image.offset + 1) {
                // Kept only for an older snapshot.
                expected = *next;
                continue;
            }
            let (scanned, len) = self.read_segment(&path, *base, is_last)?;
            expected = scanned.next_offset;
            end = len;
        }
        if expected <= self.image.offset {
            // The store is ahead of the log, so acknowledged records are gone.
            let what = format!("the log ends at offset {expected}, but record {} was applied", self.image.offset);
            return Err(QuorumError::Incomplete { dir: self.dir.to_owned(), what });
        }
        let path = segment_path(self.dir, segments.last().copied().unwrap_or(0));
        let storage = |error: std::io::Error| QuorumError::storage("the metadata log cannot be opened", &error);
        let file = self.disk.open(&path, OpenMode::ReadWrite).map_err(storage)?;
        if file.len().map_err(storage)? > end {
            file.set_len(end).map_err(storage)?;
            file.sync_data().map_err(storage)?;
        }
        Ok((file, end))
    }

    fn read_segment(&mut self, path: &Path, base: Offset, is_last: bool) -> Result<(Scan, u64), QuorumError> {
        let bytes = read_file(self.disk, path)
            .map_err(|error| QuorumError::storage("the metadata log cannot be read", &error))?;
        let end_known = if is_last { self.end_known } else { Offset::MAX };
        let image = &mut self.image;
        let scanned = scan(&bytes, base, end_known, |header, batch| {
            if header.last_offset() <= image.offset {
                return Ok(());
            }
            apply_batch(image, path, batch)
        })?;
        self.last_epoch = self.last_epoch.max(scanned.last_epoch);
        let len = bytes.len() as u64;
        match &scanned.ending {
            Ending::Clean => Ok((scanned, len)),
            Ending::Torn { position } => {
                let position = *position;
                tracing::warn!(
                    file = %path.display(),
                    cut_bytes = len - position,
                    "the metadata log ends in a write that did not finish; it was never acknowledged and is cut off"
                );
                Ok((scanned, position))
            }
            Ending::Damaged { position, what } => Err(QuorumError::Damaged {
                file: path.to_owned(),
                position: *position,
                offset: scanned.next_offset,
                what: what.clone(),
            }),
        }
    }
}

fn apply_batch(image: &mut Image, path: &Path, batch: &[u8]) -> Result<(), QuorumError> {
    let result = codec::decode(batch, |offset, record| {
        if offset <= image.offset {
            return Ok(());
        }
        image.apply(offset, &record).map_err(|error| codec::BadRecord { offset, what: error.to_string() })
    });
    result.map_err(|bad| QuorumError::UnknownRecord { file: PathBuf::from(path), offset: bad.offset, what: bad.what })
}
