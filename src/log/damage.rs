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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::base::{TopicId, TopicPartition};
    use crate::host::sim::SimHost;
    use crate::log::{LogEnv, LogIdentity, NewBatch, OpenHow};
    use crate::metadata::config::LogConfig;
    use crate::records::{BatchBuilder, Codec};

    const RECORDS: Offset = 40;

    /// A log of several segments with one record a batch.
    fn log(sim: &SimHost) -> Log {
        log_of(sim, 1)
    }

    fn open(sim: &SimHost, how: OpenHow) -> Log {
        let env = LogEnv::new(sim.host(), 8);
        let identity =
            LogIdentity { topic_partition: TopicPartition::new("t", 0), topic_id: TopicId::from_bytes([1; 16]) };
        let config = LogConfig { segment_bytes: 800, index_interval_bytes: 200, ..LogConfig::default() };
        Log::open(&env, "/t-0".into(), identity, Arc::new(config), how).unwrap().0
    }

    /// After a clean stop.
    fn reopened(sim: &SimHost) -> Log {
        open(sim, OpenHow { clean_shutdown: true, recovery_point: RECORDS, log_start_offset: None })
    }

    fn log_of(sim: &SimHost, records_per_batch: usize) -> Log {
        let mut log = open(sim, OpenHow::default());
        for number in 0..RECORDS {
            let mut builder = BatchBuilder::new(Codec::None);
            for _ in 0..records_per_batch {
                builder.push(1, None, Some(format!("value {number}").as_bytes()), &[]);
            }
            let bytes = builder.finish(0, -1);
            let header = BatchHeader::parse(&bytes).unwrap();
            log.append(&[NewBatch { header, bytes: &bytes }], 1).unwrap();
        }
        assert!(log.segment_count() > 3);
        log
    }

    fn walk(sim: &SimHost, log: &Log, from: Offset, up_to: Offset, step: u64) -> (Vec<Damage>, u64) {
        let mut walk = DamageWalk::new(sim.host().disk, log.view(), from, up_to);
        let (mut found, mut bytes) = (Vec::new(), 0);
        loop {
            let looked = walk.step(step).unwrap();
            found.extend(looked.damage);
            bytes += looked.bytes;
            if looked.done {
                return (found, bytes);
            }
        }
    }

    fn place(log: &Log, offset: Offset) -> (PathBuf, u64) {
        let view = log.view();
        let (at, place) = view.find(offset).unwrap().unwrap();
        (view.segments[at].path(LOG), place.position)
    }

    fn flip(sim: &SimHost, path: &Path, at: u64) {
        sim.disk.corrupt(path, |bytes| bytes[at as usize] ^= 1).unwrap();
    }

    #[test]
    fn a_sound_log_is_read_whole_in_steps_of_any_size() {
        let sim = SimHost::new(1);
        let log = log(&sim);
        for step in [1, 100, 1000, u64::MAX] {
            let (found, bytes) = walk(&sim, &log, 0, Offset::MAX, step);
            assert_eq!(found, []);
            assert_eq!(bytes, log.size_bytes(), "in steps of {step}");
        }
        let (_, some) = walk(&sim, &log, 10, 20, 100);
        assert!(some > 0 && some < log.size_bytes() / 2, "{some}");
    }

    #[test]
    fn a_flipped_bit_is_found_at_its_batch_wherever_it_is() {
        for offset in [0, 1, 9, 17, 20, 25, RECORDS - 1] {
            for byte in [0, 3, 6, 7, 8, 11, 12, 15, 16, 17, 21, 23, 60, 61, 68] {
                let sim = SimHost::new(1);
                let log = log(&sim);
                let (path, position) = place(&log, offset);
                flip(&sim, &path, position + byte);
                let (found, _) = walk(&sim, &log, 0, Offset::MAX, 300);
                let first = found.first().unwrap_or_else(|| panic!("byte {byte} of batch {offset} was not found"));
                assert_eq!((first.offset, first.position), (offset, position), "byte {byte}");
                assert!(log.confirms(first).unwrap(), "byte {byte} of batch {offset}");
            }
        }
    }

    #[test]
    fn behind_a_damaged_record_the_walk_goes_on_and_behind_a_damaged_length_with_the_next_segment() {
        let sim = SimHost::new(1);
        let log = log(&sim);
        let places = [2, 4, 6, 7, 30].map(|offset| place(&log, offset));
        for ((path, position), byte) in places.iter().zip([61, 61, 9, 61, 61]) {
            flip(&sim, path, position + byte);
        }
        let offsets: Vec<Offset> =
            walk(&sim, &log, 0, Offset::MAX, 300).0.into_iter().map(|damage| damage.offset).collect();
        assert_eq!(offsets, [2, 4, 6, 30], "7 lies in the shadow of 6");
    }

    /// A log with records of three offsets missing before the last one, and perhaps a new segment there.
    fn log_with_a_gap(sim: &SimHost, is_rolled: bool) -> Log {
        let mut log = log(sim);
        let mut config = LogConfig::clone(log.config());
        config.cleanup.compact = true;
        log.set_config(Arc::new(config.clone()));
        if is_rolled {
            log.roll(0).unwrap();
        }
        let mut builder = BatchBuilder::new(Codec::None);
        builder.push(1, None, Some(b"behind the gap"), &[]);
        let bytes = builder.finish(RECORDS + 3, 1);
        log.append_as_follower(&[BatchHeader::parse(&bytes).unwrap()], &bytes).unwrap();
        assert_eq!(walk(sim, &log, 0, Offset::MAX, 300).0, [], "compaction leaves gaps");
        config.cleanup.compact = false;
        log.set_config(Arc::new(config));
        log
    }

    #[test]
    fn a_gap_is_damage_where_nothing_is_compacted() {
        for is_rolled in [false, true] {
            for from in [0, RECORDS - 1, RECORDS, RECORDS + 1] {
                let sim = SimHost::new(1);
                let mut log = log_with_a_gap(&sim, is_rolled);
                let found = walk(&sim, &log, from, Offset::MAX, 300).0;
                assert_eq!(found.iter().map(|damage| damage.offset).collect::<Vec<_>>(), [RECORDS], "{from}");
                assert!(log.confirms(&found[0]).unwrap());
                log.cut_damage(&found[0]).unwrap();
                assert_eq!(log.log_end_offset(), RECORDS);
                assert_eq!(walk(&sim, &log, 0, Offset::MAX, 300).0, []);
                assert!(!log.confirms(&found[0]).unwrap());
            }
        }
    }

    #[test]
    fn a_segment_without_its_last_batches_is_damaged_where_it_ends() {
        let sim = SimHost::new(1);
        let mut log = log(&sim);
        let second = log.view().segments[1].base_offset();
        let (path, position) = place(&log, second - 2);
        log.close().unwrap();
        sim.disk.corrupt(&path, |bytes| bytes.truncate(position as usize)).unwrap();
        log = reopened(&sim);
        let found = walk(&sim, &log, 0, Offset::MAX, 300).0;
        assert_eq!(found.iter().map(|damage| damage.offset).collect::<Vec<_>>(), [second - 2]);
        assert!(log.confirms(&found[0]).unwrap());
        log.cut_damage(&found[0]).unwrap();
        assert_eq!((log.log_start_offset(), log.log_end_offset()), (0, second - 2));
        assert_eq!(walk(&sim, &log, 0, Offset::MAX, 300).0, []);
    }

    #[test]
    fn an_epoch_table_that_contradicts_all_batches_is_told_of_once() {
        let sim = SimHost::new(1);
        log(&sim).close().unwrap();
        sim.disk.corrupt(Path::new("/t-0/leader-epoch-checkpoint"), |bytes| bytes[4] = b'0').unwrap();
        let log = reopened(&sim);
        assert_eq!(log.epochs().epoch_at(0), Some(0));
        let found = walk(&sim, &log, 0, Offset::MAX, u64::MAX).0;
        assert_eq!(found.iter().map(|damage| damage.offset).collect::<Vec<_>>(), [0]);
        assert!(log.confirms(&found[0]).unwrap());
    }

    #[test]
    fn a_file_that_is_shorter_than_it_was_is_damaged_where_it_ends() {
        let sim = SimHost::new(1);
        let log = log(&sim);
        let (path, position) = place(&log, 5);
        sim.disk.corrupt(&path, |bytes| bytes.truncate(position as usize + 20)).unwrap();
        let (found, _) = walk(&sim, &log, 0, Offset::MAX, u64::MAX);
        assert_eq!(found.iter().map(|damage| damage.offset).collect::<Vec<_>>(), [5]);
    }

    #[test]
    fn what_was_repaired_or_cut_meanwhile_is_not_confirmed() {
        let sim = SimHost::new(1);
        let mut log = log(&sim);
        let (path, position) = place(&log, 20);
        flip(&sim, &path, position + 61);
        let damage = walk(&sim, &log, 0, Offset::MAX, u64::MAX).0.remove(0);
        flip(&sim, &path, position + 61);
        assert!(!log.confirms(&damage).unwrap());
        flip(&sim, &path, position + 61);
        log.truncate_to(20).unwrap();
        assert!(!log.confirms(&damage).unwrap());
    }

    /// A log of batches of ten records, four of them in the first segment, that starts inside of one.
    fn log_that_starts_at(sim: &SimHost, start: Offset) -> Log {
        let mut log = log_of(sim, 10);
        assert_eq!(log.view().segments[1].base_offset(), 30, "three batches in a segment");
        log.delete_records_before(start).unwrap();
        log
    }

    #[test]
    fn damage_in_the_batch_that_the_log_starts_in_is_found_and_leaves_an_empty_log_that_starts_there() {
        for start in [5, 15, 29, 35] {
            for byte in [3, 7, 9, 17, 61, 68] {
                let sim = SimHost::new(1);
                let mut log = log_that_starts_at(&sim, start);
                let (path, position) = place(&log, start);
                flip(&sim, &path, position + byte);
                let (found, _) = walk(&sim, &log, 0, Offset::MAX, 300);
                let found: Vec<_> = found.into_iter().filter(|damage| log.confirms(damage).unwrap()).collect();
                let first =
                    found.first().unwrap_or_else(|| panic!("byte {byte} of the batch with {start} was not found"));
                assert_eq!((first.offset, first.position), (start / 10 * 10, position), "byte {byte}, {start}");
                log.cut_damage(first).unwrap();
                assert_eq!((log.log_start_offset(), log.log_end_offset()), (start, start), "byte {byte}");
                assert_eq!(walk(&sim, &log, 0, Offset::MAX, 300).0, []);
            }
        }
    }

    #[test]
    fn damage_is_confirmed_until_the_log_starts_behind_it() {
        let sim = SimHost::new(1);
        let mut log = log_that_starts_at(&sim, 11);
        let (path, position) = place(&log, 11);
        flip(&sim, &path, position + 61);
        let damage = walk(&sim, &log, 0, Offset::MAX, 300).0.remove(0);
        for (start, is_confirmed) in [(11, true), (12, true), (19, true), (20, false), (25, false)] {
            log.delete_records_before(start).unwrap();
            assert_eq!(log.confirms(&damage).unwrap(), is_confirmed, "at {start}");
        }
    }

    #[test]
    fn a_damaged_log_is_cut_at_the_damage_and_goes_on_there() {
        for (offset, byte) in [(0, 61), (3, 9), (9, 61), (20, 0), (20, 9), (RECORDS - 1, 61)] {
            let sim = SimHost::new(1);
            let mut log = log(&sim);
            let (path, position) = place(&log, offset);
            flip(&sim, &path, position + byte);
            let damage = walk(&sim, &log, 0, Offset::MAX, u64::MAX).0.remove(0);
            log.cut_damage(&damage).unwrap();
            assert_eq!((log.log_start_offset(), log.log_end_offset()), (0, offset), "byte {byte} of {offset}");
            assert_eq!(walk(&sim, &log, 0, Offset::MAX, u64::MAX).0, []);
            let mut builder = BatchBuilder::new(Codec::None);
            builder.push(1, None, Some(b"again"), &[]);
            let bytes = builder.finish(0, -1);
            let header = BatchHeader::parse(&bytes).unwrap();
            let appended = log.append(&[NewBatch { header, bytes: &bytes }], 1).unwrap();
            assert_eq!(appended.base_offset, offset);
            assert_eq!(walk(&sim, &log, 0, Offset::MAX, u64::MAX).0, []);
        }
    }
}
