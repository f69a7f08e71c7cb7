//! Whether a log still says what was written to it: a walk over whole segments that looks at every batch's checksum, in steps of so many
//! bytes. It changes nothing. Each step opens the file anew and for itself, so the shared descriptors stay with readers, and tells the
//! system that what it reads is not wanted again.
//!
//! The base offset is not in a checksum's cover; but batches follow one another without gaps, where nothing is compacted, so one that
//! does not fit between its neighbours is damaged, too. Nor is the leader epoch; but the log's table says which one it must be. Behind a
//! damaged header nobody can tell where the next batch begins: the rest of that segment is not looked at.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::error::{Context, LogError};
use super::names::LOG;
use super::partition_log::Log;
use super::scan::{CheckedWalk, Found, HeaderWalk};
use super::segment::Segment;
use super::view::LogView;
use crate::base::{LeaderEpoch, Offset};
use crate::host::{Disk, DiskFile, OpenMode};
use crate::records::BatchHeader;

/// A batch that is not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where the batch begins that belongs there: everything below is sound. The log may start behind it, inside the batch.
    pub offset: Offset,
    /// Everything that is lost lies below, as far as the headers tell.
    pub end: Offset,
    pub segment_base: Offset,
    /// The batch's first byte in its file.
    pub position: u64,
    pub path: PathBuf,
    pub reason: String,
}

impl Damage {
    /// Whether something is lost that lies at `offset` or behind it.
    pub fn reaches_above(&self, offset: Offset) -> bool {
        self.end > offset
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "offset {} at byte {} of {}: {}", self.offset, self.position, self.path.display(), self.reason)
    }
}

/// What one step saw.
#[derive(Debug, Default)]
pub struct Looked {
    pub bytes: u64,
    pub damage: Vec<Damage>,
    /// There is nothing more to look at.
    pub done: bool,
}

/// A walk over a picture of a log.
pub struct DamageWalk {
    disk: Arc<dyn Disk>,
    view: Arc<LogView>,
    /// What is damaged below is nobody's concern.
    from: Offset,
    up_to: Offset,
    /// Of the segment in `view`.
    at: usize,
    position: u64,
    /// The offset that the batch at `position` must begin with.
    expected: Offset,
    /// Of the batch before, when the table says another one: if this one has it, too, that is the same damage, perhaps of the table.
    wrong_epoch: Option<LeaderEpoch>,
}

/// Where a segment's walk stands.
struct InSegment<'a> {
    segment: &'a Segment,
    file: &'a dyn DiskFile,
    end: u64,
    /// Where the next segment begins.
    next_base: Offset,
}

impl DamageWalk {
    /// Looks at the batches that end at or below `up_to`, from the one that holds `from` on. Those before it are only looked at where that
    /// tells more of it.
    pub fn new(disk: Arc<dyn Disk>, view: Arc<LogView>, from: Offset, up_to: Offset) -> DamageWalk {
        let from = from.max(view.log_start_offset);
        let up_to = up_to.min(view.log_end_offset);
        let above = view.segments.partition_point(|segment| segment.base_offset() <= from);
        let at = above.saturating_sub(1);
        let expected = view.segments.get(at).map_or(0, |segment| segment.base_offset());
        let mut walk = DamageWalk { disk, view, from, up_to, at, position: 0, expected, wrong_epoch: None };
        // Where the way there is damaged itself, the walk begins before it.
        let begin = if walk.view.may_have_gaps { walk.begin(from) } else { walk.begin_without_gaps(from) };
        if let Ok(Some(begin)) = begin {
            (walk.at, walk.position, walk.expected) = begin;
        }
        walk
    }

    /// Segment, byte and offset to begin with: of the last batch that ends at or below `from` and follows those before it. What a batch says
    /// of its own base is in no checksum's cover, so the one that holds `from` must be seen to follow that one.
    fn begin_without_gaps(&self, from: Offset) -> Result<Option<(usize, u64, Offset)>, LogError> {
        let at = self.view.segments.partition_point(|segment| segment.base_offset() <= from).saturating_sub(1);
        let Some(segment) = self.view.segments.get(at) else { return Ok(None) };
        let bytes = self.view.bytes_of(at);
        let leads_there = segment.locate(from, bytes)?.map_or(bytes, |place| place.position);
        let start = segment.batch_start_before(leads_there.saturating_sub(1))?;
        let (mut begin, mut expected) = ((start, segment.base_offset()), (start == 0).then(|| segment.base_offset()));
        let file = segment.file()?;
        let mut walk = HeaderWalk::new(&*file, start, bytes);
        loop {
            let position = walk.position;
            match walk.step().context("read", &segment.path(LOG))? {
                Found::Batch(header)
                    if expected.is_none_or(|expected| expected == header.base_offset)
                        && header.next_offset() <= from =>
                {
                    (begin, expected) = ((position, header.base_offset), Some(header.next_offset()));
                }
                _ => break,
            }
        }
        Ok((begin.0 == 0 || expected.is_some()).then_some((at, begin.0, begin.1)))
    }

    /// The same where gaps are no damage, so that the batch that holds `from` is seen to follow the one in front of it: what it says
    /// of its own base is in no checksum's cover. `None`: nobody can tell but by walking through the segment.
    fn begin(&self, from: Offset) -> Result<Option<(usize, u64, Offset)>, LogError> {
        let Some((at, place)) = self.view.find(from)?.filter(|(_, place)| place.base_offset <= from) else {
            return Ok(None);
        };
        let Some(segment) = self.view.segments.get(at) else { return Ok(None) };
        if place.position == 0 {
            return Ok(Some((at, 0, segment.base_offset())));
        }
        let (bytes, next_offset) = (self.view.bytes_of(at), place.last_offset.saturating_add(1));
        let before = segment.locate(place.base_offset.saturating_sub(1), bytes)?;
        if let Some(before) = before.filter(|before| before.position < place.position) {
            return Ok(Some((at, before.position, before.base_offset)));
        }
        // Compaction has left a gap, or the batch does not say what it should: then it seems to reach into the next one.
        let next_base = match segment.locate(next_offset, bytes)? {
            Some(next) => next.base_offset,
            None => self.next_base(at).min(self.view.log_end_offset),
        };
        Ok((next_offset <= next_base).then_some((at, place.position, place.base_offset)))
    }

    /// Where the segment behind begins.
    fn next_base(&self, at: usize) -> Offset {
        self.view.segments.get(at + 1).map_or(Offset::MAX, |next| next.base_offset())
    }

    /// Everything below is sound, as far as the walk has come and told of nothing.
    pub fn checked_below(&self) -> Offset {
        self.expected
    }

    /// Goes on for about `bytes_max` bytes; a batch is looked at whole.
    ///
    /// # Errors
    /// Storage errors. A file that is gone is none: retention has taken it.
    pub fn step(&mut self, bytes_max: u64) -> Result<Looked, LogError> {
        let mut looked = Looked::default();
        while !looked.done && looked.bytes < bytes_max {
            let before = self.position;
            let Some(segment) = self.view.segments.get(self.at).cloned() else {
                looked.done = true;
                break;
            };
            if self.expected >= self.up_to {
                looked.done = true;
                break;
            }
            let end = self.view.bytes_of(self.at);
            if before >= end {
                looked.damage.extend(self.gap_behind(&segment, end));
                self.enter_next();
                continue;
            }
            let path = segment.path(LOG);
            match self.disk.open(&path, OpenMode::Read) {
                Ok(file) => {
                    file.will_read_once();
                    let place = InSegment { segment: &segment, file: &*file, end, next_base: self.next_base(self.at) };
                    let went_on = self.walk(&place, bytes_max - looked.bytes, &mut looked.damage)?;
                    looked.bytes += went_on.saturating_sub(before);
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => self.enter_next(),
                Err(error) => return Err(error).context("open", &path),
            }
        }
        Ok(looked)
    }

    fn enter_next(&mut self) {
        self.at += 1;
        self.position = 0;
        if let Some(next) = self.view.segments.get(self.at) {
            self.expected = next.base_offset();
        }
    }

    /// A segment that was walked through to its end, byte `end`, ends where the next one begins, or the log.
    fn gap_behind(&self, segment: &Segment, end: u64) -> Option<Damage> {
        let next = self.view.segments.get(self.at + 1).map_or(self.view.log_end_offset, |next| next.base_offset());
        if self.view.may_have_gaps || self.expected >= next.min(self.up_to) || next <= self.from {
            return None;
        }
        let reason = format!("there is nothing from there to offset {next}");
        let (segment_base, path) = (segment.base_offset(), segment.path(LOG));
        Some(Damage { offset: self.expected, end: next, segment_base, position: end, path, reason })
    }

    /// Walks in one segment. Returns the byte that was reached in it.
    fn walk(&mut self, place: &InSegment<'_>, bytes_max: u64, found: &mut Vec<Damage>) -> Result<u64, LogError> {
        let enough = self.position.saturating_add(bytes_max);
        let mut walk = CheckedWalk::new(place.file, self.position, place.end);
        while self.position < enough && self.expected < self.up_to {
            let reason = match walk.step().context("read", &place.segment.path(LOG))? {
                Found::End => break,
                Found::Batch(header) if header.next_offset() > self.up_to && header.base_offset == self.expected => {
                    self.expected = self.up_to;
                    break;
                }
                Found::Batch(header) if self.fits(place, &header, walk.position)? => {
                    let wrong = self.epoch_instead(&header);
                    let is_known = self.wrong_epoch == Some(header.partition_leader_epoch);
                    self.wrong_epoch = wrong.map(|_| header.partition_leader_epoch);
                    match wrong {
                        Some(epoch) if !is_known => {
                            format!("the batch claims leader epoch {}, not {epoch}", header.partition_leader_epoch)
                        }
                        _ => {
                            (self.position, self.expected) = (walk.position, header.next_offset());
                            continue;
                        }
                    }
                }
                Found::Batch(header) => format!("the batch claims offset {}", header.base_offset),
                Found::Broken(reason) => reason,
            };
            let behind = self.behind(place)?;
            let damage = Damage {
                offset: self.expected,
                end: behind.map_or(place.next_base, |(_, expected)| expected),
                segment_base: place.segment.base_offset(),
                position: self.position,
                path: place.segment.path(LOG),
                reason,
            };
            if damage.reaches_above(self.from) {
                found.push(damage);
            }
            match behind {
                Some((position, expected)) => {
                    (self.position, self.expected) = (position, expected);
                    walk.position = position;
                }
                None => {
                    self.enter_next();
                    return Ok(place.end);
                }
            }
        }
        let reached = self.position;
        if reached >= place.end {
            found.extend(self.gap_behind(place.segment, place.end));
            self.enter_next();
        }
        Ok(reached)
    }

    /// Whether a batch with a right checksum stands where it belongs. Compaction leaves gaps; but no batch reaches into the next one.
    fn fits(&self, place: &InSegment<'_>, header: &BatchHeader, behind: u64) -> Result<bool, LogError> {
        if header.base_offset == self.expected || !self.view.may_have_gaps {
            return Ok(header.base_offset == self.expected);
        }
        let reaches_no_further = match self.peek(place, behind)? {
            Found::Batch(next) => header.next_offset() <= next.base_offset,
            Found::End => header.next_offset() <= place.next_base.min(self.view.log_end_offset),
            Found::Broken(_) => false,
        };
        Ok(header.base_offset > self.expected && reaches_no_further)
    }

    /// What the log's table says of the epoch of a batch, when the batch says something else. The first entry begins where the log does,
    /// perhaps inside the batch.
    fn epoch_instead(&self, header: &BatchHeader) -> Option<LeaderEpoch> {
        let epoch = self.view.epochs.epoch_at(header.base_offset.max(self.view.log_start_offset))?;
        (epoch != header.partition_leader_epoch).then_some(epoch)
    }

    fn peek(&self, place: &InSegment<'_>, position: u64) -> Result<Found, LogError> {
        HeaderWalk::new(place.file, position, place.end).peek().context("read", &place.segment.path(LOG))
    }

    /// Where the batch behind a damaged one begins, when the damaged header still leads there.
    fn behind(&self, place: &InSegment<'_>) -> Result<Option<(u64, Offset)>, LogError> {
        let Found::Batch(damaged) = self.peek(place, self.position)? else { return Ok(None) };
        let position = self.position + damaged.size_bytes() as u64;
        Ok(match self.peek(place, position)? {
            Found::Batch(next) if next.base_offset > self.expected && next.base_offset < place.next_base => {
                Some((position, next.base_offset))
            }
            _ => None,
        })
    }
}

impl Log {
    /// Whether the damage is there still, when nobody writes.
    pub fn confirms(&self, damage: &Damage) -> Result<bool, LogError> {
        let view = self.view();
        let Some(at) = view.segments.iter().position(|segment| segment.base_offset() == damage.segment_base) else {
            return Ok(false);
        };
        if damage.position > view.bytes_of(at) {
            return Ok(false);
        }
        let (disk, from, up_to) = (Arc::clone(&self.env.host.disk), view.log_start_offset, view.log_end_offset);
        let (position, expected) = (damage.position, damage.offset);
        let looked = DamageWalk { disk, view, from, up_to, at, position, expected, wrong_epoch: None }.step(1)?;
        let is_there = |found: &Damage| (found.segment_base, found.position) == (damage.segment_base, damage.position);
        Ok(looked.damage.first().is_some_and(is_there))
    }

    /// The last batch as damage, when somebody knows that it is not what was written.
    pub fn last_batch_as_damage(&self, reason: String) -> Result<Option<Damage>, LogError> {
        let view = self.view();
        for (at, segment) in view.segments.iter().enumerate().rev() {
            let bytes = view.bytes_of(at);
            if bytes == 0 {
                continue;
            }
            let place = segment.locate(view.log_end_offset - 1, bytes)?;
            return Ok(place.map(|place| Damage {
                offset: place.base_offset,
                end: view.log_end_offset,
                segment_base: segment.base_offset(),
                position: place.position,
                path: segment.path(LOG),
                reason,
            }));
        }
        Ok(None)
    }

    /// Takes everything from a damaged batch on away. Never because of the damage alone: somebody else has it all. When the log starts
    /// inside the batch, an empty log is left that starts where it did.
    pub fn cut_damage(&mut self, damage: &Damage) -> Result<(), LogError> {
        let start = self.log_start_offset;
        if damage.offset < start {
            return self.truncate_fully_and_start_at(start);
        }
        self.truncate_at(damage.segment_base, damage.position, damage.offset)
    }
}
