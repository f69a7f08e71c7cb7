//! Figures of a history: how much was done, how fast, and how long writes stood still after a leader was lost.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use super::history::{Action, By, Event, Outcome};

/// What a run amounts to.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub acknowledged: usize,
    pub failed: usize,
    pub unknown: usize,
    /// Errors that the application was told, by name.
    pub errors: BTreeMap<String, usize>,
    pub read_strictly: usize,
    pub read_in_groups: usize,
    pub commits: usize,
    /// Why the idempotent producer's library began a new epoch, and how often.
    pub new_epochs: BTreeMap<String, usize>,
    pub faults: usize,
    pub leader_changes: usize,
    /// From invocation to acknowledgement, sorted.
    pub latencies: Vec<Duration>,
    /// From the loss of a node to the first acknowledgement of an idempotent
    /// record sent after it to a partition that it led, sorted.
    pub outages: Vec<Duration>,
    /// From the loss of a node to the first word of any node that another leads what it led, sorted.
    pub elections: Vec<Duration>,
    /// From a node's start to full ISR, sorted.
    pub recoveries: Vec<Duration>,
}

impl Report {
    pub fn of(events: &[Event]) -> Report {
        let mut report = Report { outages: outages(events), elections: elections(events), ..Report::default() };
        let mut invoked = BTreeMap::new();
        let mut epochs: BTreeSet<(i32, i32)> = BTreeSet::new();
        for event in events {
            match &event.action {
                Action::Send { value, .. } => {
                    invoked.insert(*value, event.at);
                }
                Action::Sent { value, outcome, error, .. } => {
                    match outcome {
                        Outcome::Ok => report.acknowledged += 1,
                        Outcome::Fail => report.failed += 1,
                        Outcome::Info => report.unknown += 1,
                    }
                    if *outcome == Outcome::Ok {
                        report.latencies.extend(invoked.get(value).map(|at| event.at - *at));
                    } else {
                        *report.errors.entry(error.clone()).or_default() += 1;
                    }
                }
                Action::Read { by: By::Strict, .. } => report.read_strictly += 1,
                Action::Read { by: By::Group, .. } => report.read_in_groups += 1,
                Action::Committed { outcome: Outcome::Ok, .. } => report.commits += 1,
                Action::Led { partition, leader, epoch } if *leader >= 0 => {
                    epochs.insert((*partition, *epoch));
                }
                Action::Fault { .. } => report.faults += 1,
                Action::Log { text } => {
                    if let Some(why) = why_new_epoch(text) {
                        *report.new_epochs.entry(why.into()).or_default() += 1;
                    }
                }
                _ => {}
            }
        }
        let partitions: BTreeSet<i32> = epochs.iter().map(|(partition, _)| *partition).collect();
        report.leader_changes = epochs.len() - partitions.len();
        report.latencies.sort_unstable();
        report
    }

    /// A run that did too little shows nothing.
    #[track_caller]
    pub fn assert_not_vacuous(&self, acknowledged: usize, faults: usize, leader_changes: usize) {
        assert!(self.acknowledged >= acknowledged, "vacuous: under {acknowledged} acknowledged records\n{self}");
        assert!(self.faults >= faults, "vacuous: under {faults} faults\n{self}");
        assert!(self.leader_changes >= leader_changes, "vacuous: under {leader_changes} leader changes\n{self}");
        assert!(self.read_strictly > acknowledged / 2, "vacuous: the strict reader saw little\n{self}");
        assert!(self.read_in_groups > 0 && self.commits > 0, "vacuous: the group did nothing\n{self}");
    }
}

/// What librdkafka says of the reason when it is about to begin a new epoch.
fn why_new_epoch(text: &str) -> Option<&str> {
    text.contains("epoch bump for").then(|| text.rsplit(": ").next().unwrap_or(text))
}

/// The value below which this share of a sorted list lies.
pub fn quantile(sorted: &[Duration], share: f64) -> Duration {
    let at = ((sorted.len() as f64 * share) as usize).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or_default()
}

/// Faults that take one node away.
fn loses_leader(name: &str) -> bool {
    (name.starts_with("Kill") && !name.starts_with("KillAll") && name != "KillAhead")
        || name.starts_with("Isolate")
        || matches!(name, "Pause" | "PowerCut" | "DiskFails" | "SyncFails")
}

/// What is known of each partition's newest epoch and its leader.
type Leaders = BTreeMap<i32, (i32, i32)>;

fn elections(events: &[Event]) -> Vec<Duration> {
    let mut leaders = Leaders::new();
    let mut waiting: BTreeMap<i32, (i32, Duration)> = BTreeMap::new();
    let mut found = Vec::new();
    for event in events {
        match &event.action {
            Action::Led { partition, leader, epoch } => {
                let known = leaders.entry(*partition).or_insert((*epoch, *leader));
                *known = (*known).max((*epoch, *leader));
                let lost =
                    waiting.get(partition).filter(|(lost, _)| *leader > 0 && known.1 == *leader && lost != leader);
                if let Some((_, since)) = lost {
                    found.push(event.at - *since);
                    waiting.remove(partition);
                }
            }
            Action::Fault { name, node } if loses_leader(name) => {
                let led = leaders.iter().filter(|(_, (_, leader))| leader == node);
                waiting = led.map(|(partition, _)| (*partition, (*node, event.at))).collect();
            }
            Action::Fault { .. } => waiting.clear(),
            _ => {}
        }
    }
    found.sort_unstable();
    found
}

fn outages(events: &[Event]) -> Vec<Duration> {
    let mut leaders = Leaders::new();
    // Partitions whose leader was killed, since when; and the sends made since then.
    let mut waiting: BTreeMap<i32, Duration> = BTreeMap::new();
    let mut sent: BTreeMap<u64, (i32, Duration)> = BTreeMap::new();
    let mut found = Vec::new();
    for event in events {
        match &event.action {
            Action::Led { partition, leader, epoch } => {
                let known = leaders.entry(*partition).or_insert((*epoch, *leader));
                *known = (*known).max((*epoch, *leader));
            }
            Action::Fault { name, node } if loses_leader(name) => {
                for (partition, _) in leaders.iter().filter(|(_, (_, leader))| leader == node) {
                    waiting.insert(*partition, event.at);
                }
            }
            Action::Fault { .. } => waiting.clear(),
            Action::Send { partition, value, idempotent: true } if waiting.contains_key(partition) => {
                sent.insert(*value, (*partition, event.at));
            }
            Action::Sent { value, outcome: Outcome::Ok, .. } => {
                let Some((partition, invoked)) = sent.get(value) else { continue };
                if let Some(killed) = waiting.get(partition).copied().filter(|killed| killed < invoked) {
                    waiting.remove(partition);
                    found.push(event.at - killed);
                }
            }
            _ => {}
        }
    }
    found.sort_unstable();
    found
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spread = |sorted: &[Duration], shares: &[f64]| -> String {
            let figures: Vec<String> = shares.iter().map(|share| format!("{:.2?}", quantile(sorted, *share))).collect();
            format!("{} ({})", figures.join(" / "), sorted.len())
        };
        let Report { acknowledged, failed, unknown, faults, leader_changes, .. } = self;
        writeln!(f, "records: {acknowledged} acknowledged, {failed} refused, {unknown} unknown {:?}", self.errors)?;
        writeln!(
            f,
            "read: {} strictly, {} in the group, {} commits",
            self.read_strictly, self.read_in_groups, self.commits
        )?;
        writeln!(f, "faults: {faults}, leader changes: {leader_changes}, new producer epochs: {:?}", self.new_epochs)?;
        writeln!(f, "latency p50 / p99 / max: {}", spread(&self.latencies, &[0.5, 0.99, 1.0]))?;
        writeln!(
            f,
            "first write after a leader's loss, median / p90 / worst: {}",
            spread(&self.outages, &[0.5, 0.9, 1.0])
        )?;
        writeln!(f, "new leader after a loss, median / worst: {}", spread(&self.elections, &[0.5, 1.0]))?;
        write!(f, "start to full ISR, median / worst: {}", spread(&self.recoveries, &[0.5, 1.0]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_epoch_is_found_in_what_the_library_logs() {
        let said = "DRAIN: [thrd:x:1/1]: Beginning partition drain in state Assigned for PID{Id:1,Epoch:0} epoch bump for 3 partition(s) \
                    with in-flight requests: skipped sequence numbers";
        assert_eq!(why_new_epoch(said), Some("skipped sequence numbers"));
        assert_eq!(
            why_new_epoch("DRAIN: [thrd:x:1/1]: All partitions drained, bumped epoch to PID{Id:1,Epoch:1}"),
            None
        );
    }
}
