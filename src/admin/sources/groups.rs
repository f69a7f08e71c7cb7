//! The groups that this broker coordinates, and how far behind they are.

use std::collections::BTreeMap;

use crate::base::{Offset, PartitionIndex};
use crate::coordinator::group::GroupCoordinator;
use crate::replica::Partitions;
use crate::telemetry::Page;
use crate::telemetry::samples::{GroupOffsetSample, GroupSample};

pub fn write(groups: &GroupCoordinator, partitions: &Partitions, page: &mut Page) {
    page.no_groups();
    groups.for_each_group(|group, state, members| page.group(&GroupSample { group, state, members }));
    // Copied out first: the coordinator is locked while it lists, and commits wait for it.
    let mut committed: BTreeMap<(String, PartitionIndex), Vec<(String, Offset)>> = BTreeMap::new();
    groups.for_each_offset(|group, topic, partition, offset| {
        committed.entry((topic.to_owned(), partition)).or_default().push((group.to_owned(), offset));
    });
    for ((topic, partition), of_groups) in &committed {
        let found = partitions.partition(topic, *partition);
        let high_watermark = found.and_then(|found| found.view_if_open().map(|view| found.readable_below(&view)));
        for (group, offset) in of_groups {
            page.group_offset(&GroupOffsetSample {
                group,
                topic,
                partition: *partition,
                committed: *offset,
                high_watermark,
            });
        }
    }
}
