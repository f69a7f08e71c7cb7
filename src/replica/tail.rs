//! Keeps what a start after a crash would have to read below a bound in bytes, however fast records come: when the bytes behind the
//! recovery points pass it, the partitions with most of them are synced and a checkpoint follows. The housekeeper looks at each tick.
//!
//! The bound is passed by what is written until the sync and the checkpoint are done: the time of about three ticks.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::replica::lanes::Flusher;
use crate::replica::partition::Partition;
use crate::replica::partitions::Partitions;

pub(super) struct TailBound {
    bytes_max: u64,
    state: State,
}

#[derive(Default)]
enum State {
    #[default]
    Below,
    /// These are on their way to the device without anybody waiting, so that the flusher's sync, which does wait, is short.
    WritingBack(Vec<Arc<Partition>>),
    Syncing,
}

impl TailBound {
    pub(super) fn new(bytes_max: u64) -> TailBound {
        TailBound { bytes_max, state: State::Below }
    }

    /// Takes the next step, if one is due. `true` when the syncs are done and a checkpoint makes them count.
    pub(super) fn step(&mut self, partitions: &Partitions, flusher: &Flusher) -> bool {
        match std::mem::take(&mut self.state) {
            State::Below => {
                let chosen = choose(tails(partitions), self.bytes_max);
                if !chosen.is_empty() {
                    chosen.iter().for_each(|partition| partition.start_writeback());
                    self.state = State::WritingBack(chosen);
                }
                false
            }
            State::WritingBack(chosen) => {
                flusher.settle(chosen);
                self.state = State::Syncing;
                false
            }
            State::Syncing => {
                let done = !flusher.is_settling();
                if !done {
                    self.state = State::Syncing;
                }
                done
            }
        }
    }
}

/// Bytes behind the recovery point, of each partition that has any. Not on a disk that has failed: it is not synced again.
fn tails(partitions: &Partitions) -> Vec<(u64, Arc<Partition>)> {
    let mut tails = Vec::new();
    for topic in partitions.topics() {
        for partition in topic.partitions.iter().flatten().filter(|partition| !partition.disk_has_failed()) {
            let bytes = partition.with_open_log(|log| log.bytes_since_checkpoint()).unwrap_or(0);
            if bytes > 0 {
                tails.push((bytes, partition.clone()));
            }
        }
    }
    tails
}

/// When all tails together are over the bound: the longest ones, until at most half of the bound is left. Many short tails beside a
/// few long ones then cost no sync each time.
fn choose<T>(mut tails: Vec<(u64, T)>, bytes_max: u64) -> Vec<T> {
    let mut left: u64 = tails.iter().map(|(bytes, _)| bytes).sum();
    if left <= bytes_max {
        return Vec::new();
    }
    tails.sort_unstable_by_key(|(bytes, _)| Reverse(*bytes));
    let mut chosen = Vec::new();
    for (bytes, tail) in tails {
        if left <= bytes_max / 2 {
            break;
        }
        left -= bytes;
        chosen.push(tail);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tails: &[u64], bytes_max: u64, expected: &[u64]) {
        let tails = tails.iter().map(|bytes| (*bytes, *bytes)).collect();
        assert_eq!(choose(tails, bytes_max), expected);
    }

    #[test]
    fn below_the_bound_nothing_is_synced() {
        check(&[], 100, &[]);
        check(&[60, 40], 100, &[]);
    }

    #[test]
    fn the_longest_tails_go_until_half_of_the_bound_is_left() {
        check(&[1, 99, 1, 1], 100, &[99]);
        check(&[30, 50, 40], 100, &[50, 40]);
        check(&[200], 100, &[200]);
        check(&[26, 26, 26, 26], 100, &[26, 26, 26]);
    }
}
