//! Rules about readers that were assigned by hand: offsets rise, and nothing that is there is passed over. Gaps in the numbers alone are
//! no error.

use std::collections::BTreeMap;

use super::index::Index;
use super::{Findings, Kind};
use crate::faults::history::{Action, By};

pub fn polls(index: &Index<'_>, findings: &mut Findings) {
    // The offset from which each reader goes on.
    let mut next: BTreeMap<(u32, i32), i64> = BTreeMap::new();
    for event in index.events {
        match event.action {
            Action::Seek { partition, offset } => {
                next.insert((event.process, partition), offset);
            }
            Action::Read { by: By::Strict, partition, offset, .. } => {
                let expected = next.insert((event.process, partition), offset + 1).unwrap_or(offset);
                if offset < expected {
                    let text = format!("reader {} got {offset} of {partition} after {}", event.process, expected - 1);
                    findings.add(Kind::NonmonotonicPoll, text);
                } else if let Some((place, value)) =
                    index.values.range((partition, expected)..(partition, offset)).next()
                {
                    let text = format!("reader {} went past {place:?} with {value:?} to {offset}", event.process);
                    findings.add(Kind::PollSkip, text);
                }
            }
            _ => {}
        }
    }
}
