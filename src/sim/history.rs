//! What happened in a run, held against what must hold as it comes in. Everything noted here is part of the run's trace.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::time::Duration;

use crate::base::Offset;
use crate::host::task::{Moment, moment};

/// A partition by its topic's name. Topics are never made twice in a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub topic: String,
    pub partition: i32,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

/// A record's value, which no other record of the run has: who produced it, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Value {
    pub producer: u32,
    pub number: u32,
}

impl Value {
    pub fn text(self) -> String {
        format!("p{}-{}", self.producer, self.number)
    }

    pub fn parse(text: &[u8]) -> Option<Value> {
        let (producer, number) = std::str::from_utf8(text).ok()?.strip_prefix('p')?.split_once('-')?;
        Some(Value { producer: producer.parse().ok()?, number: number.parse().ok()? })
    }
}

/// Violations beyond so many are not kept.
const VIOLATIONS_MAX: usize = 20;

#[derive(Default)]
struct State {
    violations: Vec<String>,
    counts: BTreeMap<&'static str, u64>,
    trace: DefaultHasher,
    noted: u64,
    records: BTreeMap<Place, Records>,
    lives: BTreeMap<usize, u64>,
}

/// What is known of a partition's records.
#[derive(Default)]
struct Records {
    at: BTreeMap<Offset, Value>,
    acked: BTreeMap<Value, Option<Offset>>,
    /// Up to where a consumer has read what is there for good.
    read_below: Offset,
}

pub struct History {
    began: Moment,
    /// Whether what a consumer read is there for good. Not where a leader may be alone in the in-sync set: then records are seen before they
    /// are synced, and a power cut may take them back (docs/decisions/0011).
    pub reads_bind: bool,
    state: RefCell<State>,
}

/// A log as it was found on a node.
pub type FoundLog = Vec<(Offset, Value)>;

impl History {
    pub fn new(reads_bind: bool) -> History {
        History { began: moment(), reads_bind, state: RefCell::default() }
    }

    pub fn elapsed(&self) -> Duration {
        moment().saturating_duration_since(self.began)
    }

    /// Something that happened.
    pub fn note(&self, what: &str) {
        let mut state = self.state.borrow_mut();
        state.trace.write_u128(self.elapsed().as_nanos());
        state.trace.write(what.as_bytes());
        state.noted += 1;
        tracing::info!(target: "sim", "{what}");
    }

    pub fn count(&self, what: &'static str) {
        *self.state.borrow_mut().counts.entry(what).or_default() += 1;
    }

    pub fn counted(&self, what: &str) -> u64 {
        self.state.borrow().counts.get(what).copied().unwrap_or(0)
    }

    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.state.borrow().counts.clone()
    }

    /// A promise is broken.
    pub fn violated(&self, what: String) {
        self.note(&format!("VIOLATION {what}"));
        let at = self.elapsed();
        let mut state = self.state.borrow_mut();
        if state.violations.len() < VIOLATIONS_MAX {
            state.violations.push(format!("at {at:?}: {what}"));
        }
    }

    pub fn violations(&self) -> Vec<String> {
        self.state.borrow().violations.clone()
    }

    /// The trace so far, and how many notes it has.
    pub fn trace(&self) -> (u64, u64) {
        let state = self.state.borrow();
        (state.trace.finish(), state.noted)
    }

    /// A node's process ended.
    pub fn end_of(&self, node: usize) {
        *self.state.borrow_mut().lives.entry(node).or_default() += 1;
    }

    /// How often a node's process has ended.
    pub fn life_of(&self, node: usize) -> u64 {
        self.state.borrow().lives.get(&node).copied().unwrap_or(0)
    }

    /// A producer was told that records are there for good; without an offset when it was told that they had been there already.
    pub fn acked(&self, place: &Place, base: Option<Offset>, values: &[Value]) {
        self.count("acked batches");
        self.note(&format!("acked {place} {base:?} {} x{}", values[0].text(), values.len()));
        for (offset, value) in (0..).zip(values) {
            let offset = base.map(|base| base + offset);
            if let Some(offset) = offset {
                self.found(place, offset, *value, "was acknowledged");
            }
            let before = self.state.borrow_mut().records.entry(place.clone()).or_default().acked.insert(*value, offset);
            if before.is_some() {
                self.violated(format!("{place}: {} was acknowledged twice", value.text()));
            }
        }
    }

    /// How many records of a partition producers were told of.
    pub fn acked_at(&self, place: &Place) -> usize {
        self.state.borrow().records.get(place).map_or(0, |records| records.acked.len())
    }

    /// A consumer got a record.
    pub fn read(&self, place: &Place, offset: Offset, value: Value, by: &str) {
        self.count("read records");
        if !self.reads_bind {
            return;
        }
        self.found(place, offset, value, by);
        let mut state = self.state.borrow_mut();
        let records = state.records.entry(place.clone()).or_default();
        records.read_below = records.read_below.max(offset + 1);
    }

    /// The power of a leader is cut, which shows records before they are on its device (docs/decisions/0011): what a consumer read from `from` on
    /// may be gone, unless a producer was told of it.
    pub fn unsynced(&self, place: &Place, from: Offset) {
        let mut state = self.state.borrow_mut();
        let Some(records) = state.records.get_mut(place) else { return };
        records.read_below = records.read_below.min(from);
        let acked = &records.acked;
        records.at.retain(|offset, value| *offset < from || acked.contains_key(value));
    }

    /// Where records are known of.
    pub fn places(&self) -> Vec<Place> {
        self.state.borrow().records.keys().cloned().collect()
    }

    /// Whether somebody has read, for good, everything below `position`.
    pub fn is_bound(&self, place: &Place, position: Offset) -> bool {
        let state = self.state.borrow();
        self.reads_bind && state.records.get(place).is_some_and(|records| position <= records.read_below)
    }

    /// (topic, partition, offset) names one record for ever.
    fn found(&self, place: &Place, offset: Offset, value: Value, how: &str) {
        let before = self.state.borrow_mut().records.entry(place.clone()).or_default().at.insert(offset, value);
        if let Some(before) = before.filter(|before| *before != value) {
            let (before, value) = (before.text(), value.text());
            self.violated(format!("inconsistent-offset: {place} offset {offset} was {before} and {how} as {value}"));
        }
    }

    /// The last look at a partition's log, on one of its replicas: nothing that anybody was told of is missing or elsewhere.
    pub fn hold_against(&self, place: &Place, log: &FoundLog, idempotent: impl Fn(u32) -> bool, node: &str) {
        let mut problems = Vec::new();
        let mut first_at: BTreeMap<Value, Offset> = BTreeMap::new();
        for (expected, (offset, value)) in (0..).zip(log) {
            if *offset != expected {
                problems.push(format!("offset {expected} is missing, the next one is {offset}"));
                break;
            }
            if let Some(first) = first_at.get(value) {
                if idempotent(value.producer) {
                    problems.push(format!("duplicate: {} is at {first} and at {offset}", value.text()));
                }
            } else {
                first_at.insert(*value, *offset);
            }
        }
        problems.extend(out_of_order(&first_at));
        let state = self.state.borrow();
        if let Some(known) = state.records.get(place) {
            problems.extend(lost(known, log, &first_at));
        }
        drop(state);
        for problem in problems.into_iter().take(3) {
            self.violated(format!("{place} on {node}: {problem}"));
        }
    }

    /// How many records producers were told of.
    pub fn acked_count(&self) -> usize {
        self.state.borrow().records.values().map(|records| records.acked.len()).sum()
    }
}

/// A producer's records stand in the order in which it sent them.
fn out_of_order(first_at: &BTreeMap<Value, Offset>) -> Vec<String> {
    let pairs = first_at.iter().zip(first_at.iter().skip(1));
    let wrong = pairs.filter(|((one, at), (next, next_at))| one.producer == next.producer && at > next_at);
    wrong
        .map(|((one, at), (next, next_at))| {
            format!("final-order: {} is at {at}, behind {} at {next_at}", one.text(), next.text())
        })
        .collect()
}

fn lost(known: &Records, log: &FoundLog, first_at: &BTreeMap<Value, Offset>) -> Vec<String> {
    let mut problems = Vec::new();
    for value in known.acked.keys().filter(|value| !first_at.contains_key(value)) {
        problems.push(format!("lost-write: {} was acknowledged at {:?} and is gone", value.text(), known.acked[value]));
    }
    for (offset, value) in &known.at {
        match usize::try_from(*offset).ok().and_then(|at| log.get(at)) {
            Some((_, found)) if found == value => {}
            Some((_, found)) => problems.push(format!("offset {offset} was {} and is {}", value.text(), found.text())),
            None if *offset < known.read_below => {
                problems.push(format!("{} was read at {offset} and is gone", value.text()))
            }
            None => problems.push(format!("{} was acknowledged at {offset} and is gone", value.text())),
        }
    }
    problems
}
