//! A history sorted for the rules: sends with their outcomes, every place where a value was seen, the final content.

use std::collections::{BTreeMap, BTreeSet};

use crate::faults::history::{Action, By, Event, Outcome};

/// A partition and an offset.
pub type Place = (i32, i64);

/// One send and what became of it; without a report its outcome is `Info`.
#[derive(Clone, Debug)]
pub struct Sending {
    pub process: u32,
    pub partition: i32,
    pub idempotent: bool,
    pub outcome: Outcome,
    pub offset: i64,
}

pub struct Index<'a> {
    pub events: &'a [Event],
    /// By value; values rise in the order in which one producer sent.
    pub sends: BTreeMap<u64, Sending>,
    /// Where each value was seen by any reader.
    pub seen: BTreeMap<u64, BTreeSet<Place>>,
    /// What was seen, or acknowledged, at each place.
    pub values: BTreeMap<Place, BTreeSet<u64>>,
    /// The full read at the end.
    pub last: BTreeMap<Place, u64>,
    pub was_read_in_full: bool,
}

impl<'a> Index<'a> {
    pub fn of(events: &'a [Event]) -> Index<'a> {
        let mut index = Index {
            events,
            sends: BTreeMap::new(),
            seen: BTreeMap::new(),
            values: BTreeMap::new(),
            last: BTreeMap::new(),
            was_read_in_full: false,
        };
        events.iter().for_each(|event| index.take(event));
        index
    }

    fn take(&mut self, event: &Event) {
        match &event.action {
            Action::Send { partition, value, idempotent } => {
                let (process, partition, idempotent) = (event.process, *partition, *idempotent);
                let sending = Sending { process, partition, idempotent, outcome: Outcome::Info, offset: -1 };
                self.sends.insert(*value, sending);
            }
            Action::Sent { value, outcome, offset, .. } => {
                let Some(sending) = self.sends.get_mut(value) else { return };
                (sending.outcome, sending.offset) = (*outcome, *offset);
                if *outcome == Outcome::Ok && *offset >= 0 {
                    self.values.entry((sending.partition, *offset)).or_default().insert(*value);
                }
            }
            Action::Read { by, partition, offset, value } => {
                let place = (*partition, *offset);
                self.seen.entry(*value).or_default().insert(place);
                self.values.entry(place).or_default().insert(*value);
                if *by == By::Final {
                    self.last.insert(place, *value);
                    self.was_read_in_full = true;
                }
            }
            _ => {}
        }
    }

    /// Sends that were acknowledged.
    pub fn acknowledged(&self) -> impl Iterator<Item = (u64, &Sending)> {
        self.sends.iter().filter(|(_, s)| s.outcome == Outcome::Ok).map(|(value, s)| (*value, s))
    }
}
