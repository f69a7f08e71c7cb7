//! Rules about what is stored: nothing lost, nothing twice, nothing that nobody sent, in the order of the sends.

use std::collections::{BTreeMap, BTreeSet};

use super::index::{Index, Place};
use super::{Findings, Kind};
use crate::faults::history::Outcome;

/// Stricter than Jepsen's rule: every acknowledged record is in the final read at the offset it was told, and so is every record that
/// any reader was given.
pub fn lost_write(index: &Index<'_>, findings: &mut Findings) {
    if !index.was_read_in_full {
        return;
    }
    for (value, sending) in index.acknowledged() {
        let place = (sending.partition, sending.offset);
        // A producer whose broker only says that it has the record already is not told where.
        let is_there = match sending.offset {
            ..0 => index.seen.get(&value).is_some_and(|places| places.iter().any(|at| index.last.contains_key(at))),
            _ => index.last.get(&place) == Some(&value),
        };
        if !is_there {
            findings.add(Kind::LostWrite, format!("{value} was acknowledged at {place:?} and is not there at the end"));
        }
    }
    for (value, places) in &index.seen {
        for place in places.iter().filter(|place| index.last.get(place) != Some(value)) {
            findings.add(Kind::LostWrite, format!("{value} was read at {place:?} and is not there at the end"));
        }
    }
}

pub fn duplicate(index: &Index<'_>, findings: &mut Findings) {
    for (value, sending) in index.sends.iter().filter(|(_, sending)| sending.idempotent) {
        let mut places: BTreeSet<Place> = index.seen.get(value).cloned().unwrap_or_default();
        if sending.outcome == Outcome::Ok && sending.offset >= 0 {
            places.insert((sending.partition, sending.offset));
        }
        if places.len() > 1 {
            findings.add(Kind::Duplicate, format!("{value} of an idempotent producer is at {places:?}"));
        }
    }
}

pub fn inconsistent_offset(index: &Index<'_>, findings: &mut Findings) {
    for (place, values) in index.values.iter().filter(|(_, values)| values.len() > 1) {
        findings.add(Kind::InconsistentOffset, format!("{place:?} held {values:?}"));
    }
}

pub fn read_of_failed(index: &Index<'_>, findings: &mut Findings) {
    for (value, places) in &index.seen {
        if index.sends.get(value).is_some_and(|sending| sending.outcome == Outcome::Fail) {
            findings.add(Kind::G1a, format!("{value} was refused and read at {places:?}"));
        }
    }
}

pub fn phantom(index: &Index<'_>, findings: &mut Findings) {
    for (value, places) in &index.seen {
        let home = index.sends.get(value).map(|sending| sending.partition);
        for place in places.iter().filter(|place| Some(place.0) != home) {
            findings.add(Kind::Phantom, format!("{value} was read at {place:?} and sent to {home:?}"));
        }
    }
}

/// Only idempotence promises the order of the sends.
pub fn send_order(index: &Index<'_>, findings: &mut Findings) {
    let mut highest: BTreeMap<(u32, i32), (i64, u64)> = BTreeMap::new();
    for (value, sending) in index.acknowledged().filter(|(_, sending)| sending.idempotent && sending.offset >= 0) {
        let lane = (sending.process, sending.partition);
        if let Some((offset, earlier)) = highest.get(&lane).filter(|(offset, _)| *offset >= sending.offset) {
            let text = format!("{value} at {} was sent after {earlier} at {offset} by {lane:?}", sending.offset);
            findings.add(Kind::NonmonotonicSend, text);
        }
        highest.insert(lane, (sending.offset, value));
    }
}

/// The same for what the log holds, acknowledged or not.
pub fn final_order(index: &Index<'_>, findings: &mut Findings) {
    let mut last: BTreeMap<(u32, i32), u64> = BTreeMap::new();
    for (place, value) in &index.last {
        let Some(sending) = index.sends.get(value).filter(|sending| sending.idempotent) else { continue };
        if let Some(before) = last.insert((sending.process, place.0), *value).filter(|before| before > value) {
            findings.add(Kind::FinalOrder, format!("{value} at {place:?} comes after {before}, sent later"));
        }
    }
}
