//! The Raft log on disk: segments of record batches, one batch per entry. An append is one write and one sync; a snapshot begins a
//! new segment, and segments that two snapshots cover go away. The newest entries stay in memory, since they are read again at
//! once to be applied and sent.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::codec;
use super::error::QuorumError;
use super::snapshot::SnapshotId;
use super::types::{Entry, LogId, log_id, next_index};
use crate::base::TimestampMs;
use crate::host::disk::{Disk, DiskFile, OpenMode};
use crate::host::task;

/// Snapshots kept: the newest, and one to fall back on.
const SNAPSHOTS_KEPT: usize = 2;

/// Bytes of entries kept in memory.
const CACHE_BYTES_MAX: usize = 512 * 1024;

/// A snapshot is due when the log behind the last one is longer than this and than that snapshot.
const SNAPSHOT_AFTER_BYTES: u64 = 4 * 1024 * 1024;

pub(super) fn segment_path(dir: &Path, base: u64) -> PathBuf {
    dir.join(format!("{base:020}.log"))
}

/// The first index in a segment's file name.
pub(super) fn parse_segment_name(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".log")?;
    if digits.len() == 20 { digits.parse().ok() } else { None }
}

/// Where an entry's batch lies in its segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) term: u64,
    pub(super) position: u64,
    pub(super) len: u32,
}

impl Span {
    fn end(self) -> u64 {
        self.position + u64::from(self.len)
    }
}

pub(super) struct Segment {
    /// The index of the first entry.
    pub(super) base: u64,
    pub(super) file: Arc<dyn DiskFile>,
    pub(super) spans: Vec<Span>,
}

impl Segment {
    fn next_index(&self) -> u64 {
        self.base + self.spans.len() as u64
    }

    pub(super) fn bytes(&self) -> u64 {
        self.spans.last().map_or(0, |last| last.end())
    }

    fn span(&self, index: u64) -> Option<Span> {
        self.spans.get(usize::try_from(index.checked_sub(self.base)?).ok()?).copied()
    }
}

/// What is where. Only this is locked while entries are looked up; nothing waits for the disk under its lock.
pub(super) struct View {
    /// In order; the last one is written to.
    pub(super) segments: Vec<Segment>,
    pub(super) snapshots: Vec<SnapshotId>,
    /// The last entry that may be gone.
    pub(super) purged: Option<LogId>,
    /// Entries before this index are agreed on, as far as this node knows.
    pub(super) agreed: u64,
    /// Entries before this index are synced.
    pub(super) synced_to: u64,
    pub(super) cache: VecDeque<(Entry, usize)>,
    pub(super) cache_bytes: usize,
    pub(super) bytes_since_snapshot: u64,
    pub(super) snapshot_bytes: u64,
    /// Set by the first failed sync: what the disk holds is unknown from then on, so nothing is written any more.
    pub(super) failed: Option<String>,
}

impl View {
    pub(super) fn new(segments: Vec<Segment>) -> View {
        View {
            segments,
            snapshots: Vec::new(),
            purged: None,
            agreed: 0,
            synced_to: 0,
            cache: VecDeque::new(),
            cache_bytes: 0,
            bytes_since_snapshot: 0,
            snapshot_bytes: 0,
            failed: None,
        }
    }

    /// Of the entries from `index` on.
    pub(super) fn bytes_from(&self, index: u64) -> u64 {
        let behind = self.segments.iter().map(|segment| {
            let skipped = usize::try_from(index.saturating_sub(segment.base)).unwrap_or(usize::MAX);
            segment.spans.iter().skip(skipped).map(|span| u64::from(span.len)).sum::<u64>()
        });
        behind.sum()
    }

    pub(super) fn last(&self) -> Option<LogId> {
        let segment = self.segments.iter().rev().find(|segment| !segment.spans.is_empty());
        let last =
            segment.and_then(|segment| Some(log_id(segment.spans.last()?.term, segment.next_index().checked_sub(1)?)));
        last.max(self.purged)
    }

    fn segment_of(&self, index: u64) -> Option<&Segment> {
        self.segments.iter().rev().find(|segment| segment.base <= index)
    }

    /// The id of the entry at `index`, when it is here.
    pub(super) fn log_id_at(&self, index: u64) -> Option<LogId> {
        match self.purged {
            Some(purged) if index <= purged.index => (index == purged.index).then_some(purged),
            _ => Some(log_id(self.segment_of(index)?.span(index)?.term, index)),
        }
    }

    fn cache_start(&self) -> Option<u64> {
        self.cache.front().map(|(entry, _)| entry.log_id.index)
    }

    fn remember(&mut self, entry: Entry, bytes: usize) {
        self.cache.push_back((entry, bytes));
        self.cache_bytes += bytes;
        while self.cache_bytes > CACHE_BYTES_MAX && self.cache.len() > 1 {
            let Some((_, bytes)) = self.cache.pop_front() else { break };
            self.cache_bytes -= bytes;
        }
    }

    fn forget_from(&mut self, index: u64) {
        while self.cache.back().is_some_and(|(entry, _)| entry.log_id.index >= index) {
            let Some((_, bytes)) = self.cache.pop_back() else { break };
            self.cache_bytes -= bytes;
        }
    }
}

/// Entries that are read, or what has to be read for them.
enum Found {
    InMemory(Vec<Entry>),
    OnDisk(Vec<(Arc<dyn DiskFile>, Span)>),
}

pub(super) struct MetadataLog {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) dir: PathBuf,
    /// Held by whoever writes, through the sync.
    writing: Mutex<()>,
    pub(super) view: Mutex<View>,
}

impl MetadataLog {
    pub(super) fn new(disk: Arc<dyn Disk>, dir: PathBuf, view: View) -> MetadataLog {
        MetadataLog { disk, dir, writing: Mutex::new(()), view: Mutex::new(view) }
    }

    /// Writes entries behind the last one. `sync` may be false only for what nobody is told of before a later append is synced.
    pub(super) fn append(&self, entries: Vec<Entry>, sync: bool, now: TimestampMs) -> Result<(), QuorumError> {
        let _writing = self.writing.lock();
        let (file, position, synced_to, agreed, next) = {
            let view = self.view.lock();
            if let Some(reason) = &view.failed {
                return Err(QuorumError::Storage(reason.clone()));
            }
            let active = view.segments.last().ok_or(QuorumError::Closed)?;
            (active.file.clone(), active.bytes(), view.synced_to, view.agreed, next_index(view.last()))
        };
        let mut bytes = Vec::new();
        let mut spans = Vec::with_capacity(entries.len());
        for (entry, index) in entries.iter().zip(next..) {
            if entry.log_id.index != index {
                return Err(QuorumError::Storage(format!("entry {} does not follow {index}", entry.log_id)));
            }
            let batch = codec::encode_entry(entry, synced_to, agreed, now);
            let len =
                u32::try_from(batch.len()).map_err(|_| QuorumError::Storage("an entry is too large".to_owned()))?;
            spans.push(Span { term: entry.log_id.leader_id.term, position: position + bytes.len() as u64, len });
            bytes.extend_from_slice(&batch);
        }
        if let Err(error) = file.write_all_at(&bytes, position) {
            return Err(self.undo_write(file.as_ref(), position, &error));
        }
        if sync && let Err(error) = file.sync_data() {
            return Err(self.fail("the sync of the metadata log failed", &error));
        }
        let mut view = self.view.lock();
        view.bytes_since_snapshot += bytes.len() as u64;
        for (entry, span) in entries.into_iter().zip(&spans) {
            view.remember(entry, span.len as usize);
        }
        if let Some(active) = view.segments.last_mut() {
            active.spans.extend(spans);
        }
        if sync {
            view.synced_to = next_index(view.last());
        }
        Ok(())
    }

    /// Takes back a write that did not get through, a full disk for one. When that fails too, the log's end is unknown.
    fn undo_write(&self, file: &dyn DiskFile, position: u64, error: &io::Error) -> QuorumError {
        match file.set_len(position) {
            Ok(()) => QuorumError::storage("the metadata log cannot be written", error),
            Err(_) => self.fail("the metadata log cannot be written or cut back", error),
        }
    }

    pub(super) fn fail(&self, doing: &str, error: &io::Error) -> QuorumError {
        let reason = format!("{doing}: {error}; restart the broker when the disk is well again");
        self.view.lock().failed = Some(reason.clone());
        QuorumError::Storage(reason)
    }

    /// The quorum's leader has another history than what was agreed on here before: a majority was set back to older disks. This node
    /// keeps what it has and takes no part any more.
    pub(super) fn contradicted(&self, index: u64, agreed: u64) -> QuorumError {
        let error = QuorumError::Contradicted { dir: self.dir.clone(), index, agreed };
        self.view.lock().failed = Some(error.to_string());
        error
    }

    pub(super) fn has_failed(&self) -> bool {
        self.view.lock().failed.is_some()
    }

    /// Why nothing is written any more.
    pub(super) fn failure(&self) -> Option<String> {
        self.view.lock().failed.clone()
    }

    pub(super) fn last(&self) -> Option<LogId> {
        self.view.lock().last()
    }

    /// What a start would have to read.
    pub(super) fn bytes(&self) -> u64 {
        let view = self.view.lock();
        view.snapshot_bytes + view.bytes_since_snapshot
    }

    pub(super) fn is_snapshot_due(&self) -> bool {
        let view = self.view.lock();
        view.bytes_since_snapshot >= SNAPSHOT_AFTER_BYTES.max(view.snapshot_bytes) && view.failed.is_none()
    }

    /// The entries of `[from, to)` that are here, at least one if any, and no further one once they make more than `bytes_max`.
    pub(super) async fn read(&self, from: u64, to: u64, bytes_max: usize) -> Result<Vec<Entry>, QuorumError> {
        match self.find(from, to, bytes_max) {
            Found::InMemory(entries) => Ok(entries),
            Found::OnDisk(places) => {
                let dir = self.dir.clone();
                task::blocking(move || {
                    places.iter().map(|(file, span)| read_entry(&dir, file.as_ref(), *span)).collect()
                })
                .await
            }
        }
    }

    fn find(&self, from: u64, to: u64, bytes_max: usize) -> Found {
        let view = self.view.lock();
        let from = from.max(next_index(view.purged));
        let to = to.min(next_index(view.last()));
        let mut bytes = 0usize;
        let mut fits = |len: usize| {
            let fits = bytes == 0 || bytes + len <= bytes_max;
            bytes += len;
            fits
        };
        if view.cache_start().is_some_and(|start| start <= from) {
            let wanted = view.cache.iter().skip_while(|(entry, _)| entry.log_id.index < from);
            let wanted = wanted.take_while(|(entry, len)| entry.log_id.index < to && fits(*len));
            return Found::InMemory(wanted.map(|(entry, _)| entry.clone()).collect());
        }
        let places = (from..to).map_while(|index| {
            let segment = view.segment_of(index)?;
            let span = segment.span(index)?;
            fits(span.len as usize).then(|| (segment.file.clone(), span))
        });
        Found::OnDisk(places.collect())
    }

    /// Removes the entries from `index` on, durably: entries that were never agreed on.
    pub(super) fn truncate(&self, index: u64) -> Result<(), QuorumError> {
        let _writing = self.writing.lock();
        let mut removed = Vec::new();
        let (file, end) = {
            let mut view = self.view.lock();
            view.forget_from(index);
            while view.segments.len() > 1 && view.segments.last().is_some_and(|segment| segment.base >= index) {
                removed.extend(view.segments.pop().map(|segment| segment.base));
            }
            view.synced_to = view.synced_to.min(index);
            let Some(active) = view.segments.last_mut() else { return Err(QuorumError::Closed) };
            let kept = usize::try_from(index.saturating_sub(active.base)).unwrap_or(usize::MAX);
            active.spans.truncate(kept);
            (active.file.clone(), active.bytes())
        };
        let cut = || {
            for base in &removed {
                self.disk.remove_file(&segment_path(&self.dir, *base))?;
            }
            if !removed.is_empty() {
                self.disk.sync_dir(&self.dir)?;
            }
            file.set_len(end)?;
            file.sync_data()
        };
        cut().map_err(|error| self.fail("the metadata log cannot be cut back", &error))?;
        let mut view = self.view.lock();
        view.synced_to = next_index(view.last());
        Ok(())
    }

    /// Begins a new segment, unless the active one is empty.
    pub(super) fn roll(&self) -> io::Result<()> {
        let _writing = self.writing.lock();
        let (base, active, all_synced) = {
            let view = self.view.lock();
            let Some(active) = view.segments.last().filter(|segment| !segment.spans.is_empty()) else { return Ok(()) };
            (active.next_index(), active.file.clone(), view.synced_to >= active.next_index())
        };
        if !all_synced {
            active.sync_data().inspect_err(|error| drop(self.fail("the sync of the metadata log failed", error)))?;
        }
        let file = self.disk.open(&segment_path(&self.dir, base), OpenMode::Truncate)?;
        self.disk.sync_dir(&self.dir)?;
        let mut view = self.view.lock();
        view.synced_to = base;
        view.segments.push(Segment { base, file, spans: Vec::new() });
        Ok(())
    }

    /// Forgets the entries up to `upto`, and removes the segments with nothing else in them.
    pub(super) fn purge(&self, upto: LogId) -> io::Result<()> {
        let beyond = next_index(self.last()) <= upto.index;
        if beyond { self.restart_behind(upto) } else { self.remove_segments_before(upto) }
    }

    fn remove_segments_before(&self, upto: LogId) -> io::Result<()> {
        let _writing = self.writing.lock();
        let mut removed = Vec::new();
        {
            let mut view = self.view.lock();
            view.purged = view.purged.max(Some(upto));
            while view.segments.get(1).is_some_and(|second| second.base <= upto.index.saturating_add(1)) {
                removed.push(view.segments.remove(0).base);
            }
        }
        for base in &removed {
            self.disk.remove_file(&segment_path(&self.dir, *base))?;
        }
        if removed.is_empty() { Ok(()) } else { self.disk.sync_dir(&self.dir) }
    }

    /// The log goes on behind a snapshot of another node; nothing of what is here is needed any more.
    fn restart_behind(&self, upto: LogId) -> io::Result<()> {
        let _writing = self.writing.lock();
        let base = upto.index.saturating_add(1);
        let file = self.disk.open(&segment_path(&self.dir, base), OpenMode::Truncate)?;
        self.disk.sync_dir(&self.dir)?;
        let old = {
            let mut view = self.view.lock();
            view.purged = Some(upto);
            view.synced_to = base;
            view.cache.clear();
            view.cache_bytes = 0;
            view.bytes_since_snapshot = 0;
            std::mem::replace(&mut view.segments, vec![Segment { base, file, spans: Vec::new() }])
        };
        for segment in old.iter().filter(|segment| segment.base != base) {
            self.disk.remove_file(&segment_path(&self.dir, segment.base))?;
        }
        self.disk.sync_dir(&self.dir)
    }

    /// Counts from a new snapshot on, and removes those that are no longer needed. With `alone`, no older one can be fallen back on.
    pub(super) fn note_snapshot(&self, id: SnapshotId, bytes: u64, alone: bool) -> io::Result<()> {
        let kept = if alone { 1 } else { SNAPSHOTS_KEPT };
        let mut removed = Vec::new();
        {
            let mut view = self.view.lock();
            view.snapshots.retain(|known| *known != id);
            view.snapshots.push(id);
            view.snapshots.sort_unstable();
            view.snapshot_bytes = bytes;
            view.bytes_since_snapshot = view.bytes_from(id.next_index);
            while view.snapshots.len() > kept && view.snapshots.first() != Some(&id) {
                removed.push(view.snapshots.remove(0));
            }
        }
        for old in removed {
            self.disk.remove_file(&old.path(&self.dir))?;
        }
        self.disk.sync_dir(&self.dir)
    }

    /// The next try waits until the log has grown as much again.
    pub(super) fn note_snapshot_failed(&self) {
        self.view.lock().bytes_since_snapshot = 0;
    }

    /// Up to where entries are not needed even when the newest snapshot turns out to be damaged.
    pub(super) fn purgeable(&self) -> Option<LogId> {
        let view = self.view.lock();
        if view.snapshots.len() < SNAPSHOTS_KEPT {
            return None;
        }
        let upto = view.snapshots.first()?.log_id()?;
        (Some(upto) > view.purged).then_some(upto)
    }
}

fn read_entry(dir: &Path, file: &dyn DiskFile, span: Span) -> Result<Entry, QuorumError> {
    let mut batch = vec![0; span.len as usize];
    file.read_exact_at(&mut batch, span.position)
        .map_err(|error| QuorumError::storage("the metadata log cannot be read", &error))?;
    if !crate::records::crc_is_valid(&batch) {
        let what = "the checksum does not match any more".to_owned();
        return Err(QuorumError::Damaged { file: dir.to_owned(), position: span.position, index: -1, what });
    }
    match codec::decode_entry(&batch) {
        Ok(decoded) => Ok(decoded.entry),
        Err(bad) => Err(QuorumError::UnknownRecord { file: dir.to_owned(), index: bad.offset, what: bad.what }),
    }
}
