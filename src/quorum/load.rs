//! Starting: the image comes from the store when that is good, else from the newest snapshot that can be read; the log behind it is
//! applied by the library, once it is known to be agreed on. What was acknowledged and is not there stops the start.

use std::path::{Path, PathBuf};

use openraft::EntryPayload;

use super::codec;
use super::error::QuorumError;
use super::hard_state::HardState;
use super::machine::Applied;
use super::metalog::{MetadataLog, Segment, Span, View, parse_segment_name, segment_path};
use super::scan::{Ending, scan};
use super::snapshot::{self, SnapshotId};
use super::store::{self, StoreOpener};
use super::types::{LogId, Membership, next_index};
use crate::base::Offset;
use crate::host::Host;
use crate::host::disk::{Disk, OpenMode, read_file};
use crate::records::BatchHeader;

/// The metadata log's directory in a log directory.
pub const DIRECTORY: &str = "__cluster_metadata-0";

pub(super) struct Loaded {
    pub(super) log: MetadataLog,
    pub(super) hard: HardState,
    pub(super) applied: Applied,
    /// The newest there is, agreed on or not.
    pub(super) membership: Membership,
    /// There was no directory.
    pub(super) is_new: bool,
}

/// What a start has to know of the node.
pub(super) struct Loading<'a> {
    pub(super) host: &'a Host,
    pub(super) dir: &'a Path,
    /// This node had metadata before.
    pub(super) must_exist: bool,
    /// This node may lead with nobody else's consent, if the directory is new.
    pub(super) is_alone: bool,
    pub(super) store: &'a StoreOpener,
}

impl Loading<'_> {
    pub(super) fn load(&self) -> Result<Loaded, QuorumError> {
        let disk = self.host.disk.as_ref();
        let files = Files::list(disk, self.dir)
            .map_err(|error| QuorumError::storage("the metadata directory cannot be read", &error))?;
        let hard = HardState::load(disk, self.dir)?;
        if files.segments.is_empty() {
            // A first start may have been cut short between the two files.
            let has_run = match &hard {
                Some(hard) => !hard.joining || hard.term > 0 || hard.log_end > 0,
                None => self.must_exist,
            };
            if has_run || !files.snapshots.is_empty() {
                return Err(self.incomplete("there is no log file".to_owned()));
            }
            return self
                .create()
                .map_err(|error| QuorumError::storage("the metadata directory cannot be made", &error));
        }
        self.load_from(files, hard)
    }

    fn incomplete(&self, what: String) -> QuorumError {
        QuorumError::Incomplete { dir: self.dir.to_owned(), what }
    }

    /// Where there are others, nobody takes a node with an empty log for one that has never had anything: what it may do is
    /// written down before anything else.
    fn create(&self) -> std::io::Result<Loaded> {
        let disk = self.host.disk.as_ref();
        disk.create_dir_all(self.dir)?;
        let hard = HardState { joining: !self.is_alone, ..HardState::default() };
        let file = disk.open(&segment_path(self.dir, 0), OpenMode::Create)?;
        if self.is_alone {
            disk.sync_dir(self.dir)?;
        } else {
            hard.save(disk, self.dir)?;
        }
        if let Some(parent) = self.dir.parent() {
            disk.sync_dir(parent)?;
        }
        let segments = vec![Segment { base: 0, file, spans: Vec::new() }];
        let log = MetadataLog::new(self.host.disk.clone(), self.dir.to_owned(), View::new(segments));
        Ok(Loaded { log, hard, applied: Applied::default(), membership: Membership::default(), is_new: true })
    }

    fn load_from(&self, mut files: Files, hard: Option<HardState>) -> Result<Loaded, QuorumError> {
        let (applied, snapshot_bytes) = self.starting_point(&mut files)?;
        let log_end = hard.as_ref().map_or(0, |hard| hard.log_end);
        let mut reader = Reader {
            loading: self,
            snapshots: &files.snapshots,
            applied: next_index(applied.log_id),
            log_end,
            agreed: 0,
            membership: applied.membership.membership().clone(),
        };
        let mut view = View::new(reader.read_segments(&files.segments)?);
        let Reader { agreed, membership, .. } = reader;
        view.purged = purged(&view, &files.snapshots);
        view.snapshots = files.snapshots;
        view.synced_to = next_index(view.last());
        view.agreed = agreed.max(next_index(applied.log_id));
        view.snapshot_bytes = snapshot_bytes;
        view.bytes_since_snapshot = view.bytes_from(view.snapshots.last().map_or(0, |id| id.next_index));
        self.check(&view, hard.as_ref(), &applied)?;
        let hard = self.check_vote(&view, hard, membership.nodes().count() == 1)?;
        let log = MetadataLog::new(self.host.disk.clone(), self.dir.to_owned(), view);
        Ok(Loaded { log, hard, applied, membership, is_new: false })
    }

    /// Whether all that must be there is there.
    fn check(&self, view: &View, hard: Option<&HardState>, applied: &Applied) -> Result<(), QuorumError> {
        let end = next_index(view.last());
        let had_something = self.must_exist && !hard.is_some_and(|hard| hard.joining);
        if end == 0 && had_something {
            return Err(self.incomplete("the log is empty, but it was not".to_owned()));
        }
        if let Some(hard) = hard
            && end < hard.log_end
        {
            return Err(self.incomplete(format!("the log ends at index {end}, but it has reached {}", hard.log_end)));
        }
        let held = next_index(applied.log_id).max(view.snapshots.last().map_or(0, |id| id.next_index));
        if end < next_index(applied.log_id) && view.snapshots.last().is_none_or(|id| id.next_index < held) {
            // The store is ahead of the log, so acknowledged records are gone.
            return Err(self.incomplete(format!("the log ends at index {end}, but entry {} was applied", held - 1)));
        }
        Ok(())
    }

    /// A node without any others may have kept its newest term in the log alone.
    fn check_vote(&self, view: &View, hard: Option<HardState>, is_alone: bool) -> Result<HardState, QuorumError> {
        let last_term = view.last().map_or(0, |id| id.leader_id.term);
        let mut hard = match hard {
            Some(hard) => hard,
            None if view.last().is_none() => HardState { joining: !self.is_alone, ..HardState::default() },
            None if is_alone || last_term == 0 => HardState::default(),
            None => return Err(self.incomplete(format!("{} is missing", super::hard_state::FILE))),
        };
        if hard.term < last_term {
            if !is_alone {
                let what = format!(
                    "{} knows of term {}, and the log of term {last_term}: an older file was put back",
                    super::hard_state::FILE,
                    hard.term
                );
                return Err(self.incomplete(what));
            }
            hard.term = last_term;
            hard.voted_for = None;
        }
        Ok(hard)
    }

    /// The image to continue from, and the size of the snapshot it came from.
    fn starting_point(&self, files: &mut Files) -> Result<(Applied, u64), QuorumError> {
        let oldest = files.segments.first().copied().unwrap_or(0);
        if files.bytes >= store::WORTH_BYTES
            && let Some(applied) = store::load_image(self.dir, self.store)
            && next_index(applied.log_id) >= oldest
        {
            return Ok((applied, files.bytes));
        }
        let disk = self.host.disk.as_ref();
        while let Some(id) = files.snapshots.last().copied() {
            match snapshot::read(disk, self.dir, id) {
                Ok(found) => return Ok(found),
                Err(what) => {
                    let path = id.path(self.dir);
                    tracing::warn!(snapshot = %path.display(), what, "a metadata snapshot cannot be read; it is set aside");
                    files.snapshots.pop();
                    let mut aside = path.as_os_str().to_owned();
                    aside.push(".damaged");
                    let _ = disk.rename(&path, &PathBuf::from(aside));
                }
            }
        }
        if oldest > 0 {
            return Err(
                self.incomplete(format!("the log begins at index {oldest} and no snapshot before it can be read"))
            );
        }
        Ok((Applied::default(), 0))
    }
}

fn offset(index: u64) -> Offset {
    Offset::try_from(index).unwrap_or(Offset::MAX)
}

/// What stands in the directory, each list in order.
struct Files {
    segments: Vec<u64>,
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

/// The entries before the first segment are gone; the oldest snapshot that covers them knows the id of its last one.
fn purged(view: &View, snapshots: &[SnapshotId]) -> Option<LogId> {
    let oldest = view.segments.first().map(|segment| segment.base).filter(|base| *base > 0)?;
    snapshots.iter().find(|id| id.next_index >= oldest).and_then(|id| id.log_id())
}

/// Reads the segments one behind the other.
struct Reader<'a> {
    loading: &'a Loading<'a>,
    snapshots: &'a [SnapshotId],
    /// Entries before this index are in the image.
    applied: u64,
    log_end: u64,
    agreed: u64,
    membership: Membership,
}

impl Reader<'_> {
    /// A torn end of the last one is cut off.
    fn read_segments(&mut self, bases: &[u64]) -> Result<Vec<Segment>, QuorumError> {
        let mut expected = bases.first().copied().unwrap_or(0);
        if expected > self.applied {
            let what = format!("entries {} to {} are missing", self.applied, expected - 1);
            return Err(self.loading.incomplete(what));
        }
        let mut segments = Vec::with_capacity(bases.len());
        for (at, base) in bases.iter().enumerate() {
            let path = segment_path(self.loading.dir, *base);
            if *base > expected && self.snapshots.iter().any(|id| id.next_index == *base) {
                self.remove_replaced(&mut segments)?;
            } else if *base != expected {
                let what = format!("the segment at index {expected} is missing before {}", path.display());
                return Err(self.loading.incomplete(what));
            }
            let segment = self.read_segment(&path, *base, at + 1 == bases.len())?;
            expected = segment.base + segment.spans.len() as u64;
            segments.push(segment);
        }
        Ok(segments)
    }

    /// Segments before a gap that a snapshot of another node reaches over: its installation was interrupted here.
    fn remove_replaced(&self, segments: &mut Vec<Segment>) -> Result<(), QuorumError> {
        for segment in segments.drain(..) {
            let path = segment_path(self.loading.dir, segment.base);
            tracing::info!(file = %path.display(), "replaced by a snapshot of another node; removed");
            let removed = self.loading.host.disk.remove_file(&path);
            removed.map_err(|error| QuorumError::storage("a replaced segment cannot be removed", &error))?;
        }
        Ok(())
    }

    fn read_segment(&mut self, path: &Path, base: u64, is_last: bool) -> Result<Segment, QuorumError> {
        let disk = self.loading.host.disk.as_ref();
        let storage = |error: std::io::Error| QuorumError::storage("the metadata log cannot be read", &error);
        let bytes = read_file(disk, path).map_err(storage)?;
        let end_known = if is_last { offset(self.log_end) } else { Offset::MAX };
        let mut spans: Vec<Span> = Vec::new();
        let mut position = 0;
        let scanned = scan(&bytes, offset(base), end_known, |header, batch| {
            let span = self.note_entry(path, header, batch, position)?;
            position += u64::from(span.len);
            spans.push(span);
            Ok::<(), QuorumError>(())
        })?;
        let file = disk.open(path, if is_last { OpenMode::ReadWrite } else { OpenMode::Read }).map_err(storage)?;
        match scanned.ending {
            // A node counts for a majority with what it finds here, so it has to be on the disk.
            Ending::Clean if is_last && !bytes.is_empty() => file.sync_data().map_err(storage)?,
            Ending::Clean => {}
            Ending::Torn { position } => {
                tracing::warn!(
                    file = %path.display(),
                    cut_bytes = bytes.len() as u64 - position,
                    "the metadata log ends in a write that did not finish; it was never acknowledged and is cut off"
                );
                file.set_len(position).and_then(|()| file.sync_data()).map_err(storage)?;
            }
            Ending::Damaged { position, what } => {
                return Err(QuorumError::Damaged { file: path.to_owned(), position, index: scanned.next_offset, what });
            }
        }
        Ok(Segment { base, file, spans })
    }

    /// What is not in the image yet must be understood, so that a start fails here and not in the middle.
    fn note_entry(
        &mut self,
        path: &Path,
        header: &BatchHeader,
        batch: &[u8],
        position: u64,
    ) -> Result<Span, QuorumError> {
        let unknown = |bad: codec::BadRecord| QuorumError::UnknownRecord {
            file: path.to_owned(),
            index: header.base_offset,
            what: bad.what,
        };
        let key = codec::entry_key(batch).map_err(unknown)?;
        if header.base_offset >= offset(self.applied) {
            let decoded = codec::decode_entry(batch).map_err(unknown)?;
            self.agreed = self.agreed.max(decoded.agreed);
            if let EntryPayload::Membership(membership) = decoded.entry.payload {
                self.membership = membership;
            }
        }
        Ok(Span { term: key.term, position, len: u32::try_from(batch.len()).unwrap_or(u32::MAX) })
    }
}
