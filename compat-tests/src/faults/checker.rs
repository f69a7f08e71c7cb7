//! Says what in a history no correct broker could have done. Each rule is a function of its own over the same index.

mod groups;
mod index;
mod leaders;
mod reading;
mod records;
#[cfg(test)]
mod tests;

use std::fmt;

use super::history::Event;
use index::Index;

/// The anomalies, named as in Jepsen's Kafka workload where it has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An acknowledged or once read record is not there at the end.
    LostWrite,
    /// A record of an idempotent producer at two offsets.
    Duplicate,
    /// Two values at one offset.
    InconsistentOffset,
    /// A record was read that was refused.
    G1a,
    /// Acknowledged offsets of an idempotent producer fall.
    NonmonotonicSend,
    NonmonotonicPoll,
    PollSkip,
    /// A record that nobody sent there.
    Phantom,
    CommittedOffsetWentBack,
    TwoLeadersOneEpoch,
    HwWentBackInEpoch,
    /// The log holds the records of an idempotent producer in another order than they were sent.
    FinalOrder,
    DoubleOwnership,
    /// Copies of a partition differ.
    ReplicasDiffer,
}

/// One finding, with what shows it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    pub kind: Kind,
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.text)
    }
}

/// Everything wrong with a history, in a fixed order.
pub fn check(events: &[Event]) -> Vec<Violation> {
    let index = Index::of(events);
    let rules: [fn(&Index<'_>, &mut Findings); 13] = [
        records::lost_write,
        records::duplicate,
        records::inconsistent_offset,
        records::read_of_failed,
        records::phantom,
        records::send_order,
        records::final_order,
        reading::polls,
        groups::committed_went_back,
        groups::double_ownership,
        leaders::two_leaders,
        leaders::high_watermark_went_back,
        leaders::replicas_differ,
    ];
    let mut findings = Findings::default();
    for rule in rules {
        rule(&index, &mut findings);
    }
    findings.0.sort();
    findings.0.dedup();
    findings.0
}

/// What the rules found so far.
#[derive(Default)]
struct Findings(Vec<Violation>);

impl Findings {
    fn add(&mut self, kind: Kind, text: String) {
        self.0.push(Violation { kind, text });
    }
}
