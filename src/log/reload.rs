//! Bringing the producers' state up to the log's end: the newest good snapshot, the batches behind it, and for a snapshot that Kafka wrote
//! the window of older ones before it, which that does not hold.

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

/// So many are kept where no segment begins; see [`Log::take_snapshot`].
const SNAPSHOTS_KEPT_MAX: usize = 3;

impl Log {
    /// Loads the newest good snapshot at or before `believed` and replays the batches behind it. All others behind it, and damaged and
    /// stray ones, are removed.
    pub(super) fn reload_producers(&mut self, believed: Offset) -> Result<(), LogError> {
        let (producers, from) = self.load_snapshot(believed)?;
        self.producers = producers;
        if self.producers.may_lack_batches() {
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

    /// The state in the newest good snapshot of those that count, and its offset; else nothing, and the log's start. Of a snapshot in
    /// front of the first segment, some of what came behind it is gone: it does not count.
    fn load_snapshot(&mut self, believed: Offset) -> Result<(Producers, Offset), LogError> {
        let disk = Arc::clone(&self.env.host.disk);
        let start = self.segments.first().map_or(0, |first| first.base_offset());
        let counting = start..=believed.min(self.log_end_offset).max(start);
        let mut producers = None;
        self.snapshots.clear();
        for offset in snapshot_offsets(&*disk, &self.home.dir())?.into_iter().rev() {
            let path = self.path(&names::offset_file(offset, SNAPSHOT));
            let counts = counting.contains(&offset);
            if counts && producers.is_none() {
                producers = self.read_snapshot(&path)?;
            }
            let at_segment = self.segments.iter().any(|segment| segment.base_offset() == offset);
            if counts && producers.is_some() && (self.snapshots.len() < SNAPSHOTS_KEPT_MAX || at_segment) {
                self.snapshots.insert(0, offset);
                continue;
            }
            remove_if_there(&*disk, &path)?;
            if offset > *counting.end() {
                // It must not come back beside what is written in its place.
                self.names_unsynced = true;
                self.note_cut_unsynced(Some(self.active.base_offset()));
            }
        }
        Ok((producers.unwrap_or_default(), self.snapshots.last().copied().unwrap_or(start)))
    }

    /// `None` for a damaged one.
    fn read_snapshot(&self, path: &Path) -> Result<Option<Producers>, LogError> {
        let content = read_file(&*self.env.host.disk, path).context("read", path)?;
        Ok(super::producer_snapshot::decode(&content, self.now()).ok())
    }

    /// Gives producers whose older batches the snapshot does not have (Kafka's has the last alone) those back that stand close before it.
    fn refill_producers(&mut self, snapshot_offset: Offset) -> Result<(), LogError> {
        let mut headers = Vec::new();
        for (segment, start, end) in self.just_before(snapshot_offset)?.into_iter().rev() {
            for_each_header(&segment, start, end, |header| {
                if header.has_producer() {
                    headers.push(*header);
                }
            })?;
        }
        self.producers.refill(&headers);
        Ok(())
    }

    /// The last bytes in front of `offset`, as places in segments, the youngest first.
    fn just_before(&self, offset: Offset) -> Result<Vec<(Arc<Segment>, u64, u64)>, LogError> {
        /// How far back, in bytes of log.
        const LOOK_BACK_BYTES: u64 = 256 * 1024;
        let view = self.picture();
        let (at, position) = match view.find(offset)? {
            Some((at, place)) => (at, place.position),
            None => (view.segments.len().saturating_sub(1), view.end_position),
        };
        let mut places = Vec::new();
        let mut back = LOOK_BACK_BYTES;
        for (number, segment) in view.segments.iter().enumerate().take(at + 1).rev() {
            let end = if number == at { position } else { view.bytes_of(number) };
            places.push((Arc::clone(segment), segment.batch_start_before(end.saturating_sub(back))?, end));
            back = back.saturating_sub(end);
            if back == 0 {
                break;
            }
        }
        Ok(places)
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
