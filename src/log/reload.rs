//! Bringing the producers' state up to the log's end: the newest good snapshot, the batches behind it, and the window of older ones
//! before it, which Kafka's snapshot does not hold.

use std::path::Path;
use std::sync::Arc;

use super::error::{Context, LogError};
use super::names::{self, LOG, SNAPSHOT};
use super::partition_log::Log;
use super::producers::Producers;
use super::scan::{Found, HeaderWalk};
use super::segment::Segment;
use super::shorten::remove_if_there;
use crate::base::Offset;
use crate::host::Disk;
use crate::host::disk::read_file;
use crate::records::BatchHeader;

impl Log {
    /// Loads the newest good snapshot and replays the batches behind it. Damaged and stray snapshots are removed.
    pub(super) fn reload_producers(&mut self) -> Result<(), LogError> {
        let (producers, from) = self.load_snapshot()?;
        self.producers = producers;
        if !self.producers.is_empty() {
            self.refill_producers(from)?;
        }
        let now = self.now();
        let view = self.picture();
        let Some((first, place)) = view.find(from)? else { return Ok(()) };
        for at in first..view.segments.len() {
            let Some(segment) = view.segments.get(at) else { break };
            let start = if at == first { place.position } else { 0 };
            for_each_header(segment, start, view.bytes_of(at), |header| {
                if header.base_offset >= from {
                    self.producers.note(header, now);
                }
            })?;
        }
        Ok(())
    }

    /// The state in the newest good snapshot at or before the log's end, and its offset; else nothing, and the log's start.
    fn load_snapshot(&mut self) -> Result<(Producers, Offset), LogError> {
        let disk = Arc::clone(&self.env.host.disk);
        (self.snapshot_offset, self.previous_snapshot) = (None, None);
        let mut producers = None;
        for offset in snapshot_offsets(&*disk, &self.home.dir())?.into_iter().rev() {
            let path = self.path(&names::offset_file(offset, SNAPSHOT));
            if producers.is_none() && offset <= self.log_end_offset {
                producers = self.read_snapshot(&path)?;
                if producers.is_some() {
                    self.snapshot_offset = Some(offset);
                    continue;
                }
            } else if self.snapshot_offset.is_some() && self.previous_snapshot.is_none() {
                self.previous_snapshot = Some(offset);
                continue;
            } else if self.segments.iter().any(|segment| segment.base_offset() == offset) {
                continue;
            }
            remove_if_there(&*disk, &path)?;
        }
        let start = self.segments.first().map_or(0, |first| first.base_offset());
        Ok((producers.unwrap_or_default(), self.snapshot_offset.unwrap_or(start)))
    }

    /// `None` for a damaged one.
    fn read_snapshot(&self, path: &Path) -> Result<Option<Producers>, LogError> {
        let content = read_file(&*self.env.host.disk, path).context("read", path)?;
        Ok(super::producer_snapshot::decode(&content, self.now()).ok())
    }

    /// Gives restored producers their older batches back, as far as they stand close before the snapshot.
    fn refill_producers(&mut self, snapshot_offset: Offset) -> Result<(), LogError> {
        /// How far back, in bytes of log.
        const LOOK_BACK_BYTES: u64 = 256 * 1024;
        let view = self.picture();
        let (at, position) = match view.find(snapshot_offset)? {
            Some((at, place)) => (at, place.position),
            None => (view.segments.len().saturating_sub(1), view.end_position),
        };
        let mut headers = Vec::new();
        let previous = at.checked_sub(1).map(|at| (at, view.bytes_of(at), LOOK_BACK_BYTES.saturating_sub(position)));
        for (at, end, back) in previous.into_iter().chain([(at, position, LOOK_BACK_BYTES)]) {
            let Some(segment) = view.segments.get(at).filter(|_| back > 0) else { continue };
            let start = segment.batch_start_before(end.saturating_sub(back))?;
            for_each_header(segment, start, end, |header| {
                if header.has_producer() {
                    headers.push(*header);
                }
            })?;
        }
        self.producers.refill(&headers);
        Ok(())
    }
}

/// Shows `visit` the headers from byte `start` to `end`; ends quietly at the first thing that is no batch.
pub(super) fn for_each_header(
    segment: &Segment,
    start: u64,
    end: u64,
    mut visit: impl FnMut(&BatchHeader),
) -> Result<(), LogError> {
    if start >= end {
        return Ok(());
    }
    let file = segment.file()?;
    let mut walk = HeaderWalk::new(&*file, start, end);
    while let Found::Batch(header) = walk.step().context("read", &segment.path(LOG))? {
        visit(&header);
    }
    Ok(())
}

/// The offsets of the snapshots in a directory, ascending.
pub(super) fn snapshot_offsets(disk: &dyn Disk, dir: &Path) -> Result<Vec<Offset>, LogError> {
    let entries = disk.read_dir(dir).context("list", dir)?;
    let offsets = entries.iter().filter_map(|entry| match names::parse_offset_file(&entry.name) {
        Some((offset, SNAPSHOT)) => Some(offset),
        _ => None,
    });
    Ok(offsets.collect())
}
