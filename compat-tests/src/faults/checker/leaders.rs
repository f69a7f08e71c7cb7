//! Rules about leaders and copies: one leader in an epoch, a high watermark that does not fall within one, copies that are alike.

use std::collections::{BTreeMap, BTreeSet};

use super::index::Index;
use super::{Findings, Kind};
use crate::faults::history::Action;

/// From what nodes say of leaders, and from the stored batches: the epoch of a batch never changes, and epochs never fall along a log.
pub fn two_leaders(index: &Index<'_>, findings: &mut Findings) {
    let mut leaders: BTreeMap<(i32, i32), BTreeSet<i32>> = BTreeMap::new();
    let mut epochs: BTreeMap<(i32, i64), BTreeSet<i32>> = BTreeMap::new();
    for event in index.events {
        match event.action {
            Action::Led { partition, leader, epoch } if leader >= 0 => {
                leaders.entry((partition, epoch)).or_default().insert(leader);
            }
            Action::Batch { partition, base, epoch, .. } => {
                epochs.entry((partition, base)).or_default().insert(epoch);
            }
            _ => {}
        }
    }
    for ((partition, epoch), ids) in leaders.iter().filter(|(_, ids)| ids.len() > 1) {
        let text = format!("partition {partition} had leaders {ids:?} in epoch {epoch}");
        findings.add(Kind::TwoLeadersOneEpoch, text);
    }
    for ((partition, base), found) in epochs.iter().filter(|(_, found)| found.len() > 1) {
        let text = format!("the batch at {base} of partition {partition} was of the epochs {found:?}");
        findings.add(Kind::TwoLeadersOneEpoch, text);
    }
    let mut highest: BTreeMap<i32, i32> = BTreeMap::new();
    for ((partition, base), found) in &epochs {
        let highest = highest.entry(*partition).or_insert(-1);
        for epoch in found {
            if epoch < highest {
                let text = format!("the batch at {base} of partition {partition} is of epoch {epoch} after {highest}");
                findings.add(Kind::TwoLeadersOneEpoch, text);
            }
            *highest = (*highest).max(*epoch);
        }
    }
}

/// Each process asks one thing after the other, so its answers are in order.
pub fn high_watermark_went_back(index: &Index<'_>, findings: &mut Findings) {
    let mut highest: BTreeMap<(u32, i32, i32, i32), i64> = BTreeMap::new();
    for event in index.events {
        let Action::HighWatermark { node, partition, epoch, offset } = event.action else { continue };
        let highest = highest.entry((event.process, node, partition, epoch)).or_insert(offset);
        if offset < *highest {
            let text = format!("partition {partition} on {node} in epoch {epoch}: {offset} after {highest}");
            findings.add(Kind::HwWentBackInEpoch, text);
        }
        *highest = offset.max(*highest);
    }
}

/// Last offset, epoch and sum of a batch, and the nodes that serve it so.
type Forms = BTreeMap<(i64, i32, u32), BTreeSet<i32>>;

/// What different nodes serve of one partition: the same batches with the same sums.
pub fn replicas_differ(index: &Index<'_>, findings: &mut Findings) {
    let mut copies: BTreeMap<(i32, i64), Forms> = BTreeMap::new();
    for event in index.events {
        let Action::Batch { node, partition, base, last, epoch, crc } = event.action else { continue };
        copies.entry((partition, base)).or_default().entry((last, epoch, crc)).or_default().insert(node);
    }
    for ((partition, base), forms) in copies.iter().filter(|(_, forms)| forms.len() > 1) {
        let text = format!("partition {partition} at {base}, as (last, epoch, sum) and the nodes with it: {forms:?}");
        findings.add(Kind::ReplicasDiffer, text);
    }
}
