//! One thread for each node that asks it, ten times a second, who leads, and where it leads itself, for the high watermark and the
//! batches that were added. At the end the copies of all nodes are read.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::history::{Action, Recorder};
use super::probe::{Part, Probe};

const EVERY: Duration = Duration::from_millis(100);
const COPY_MAX: Duration = Duration::from_secs(30);
const NONE: i16 = 0;

/// The clients' numbers below this are free for others.
pub const FIRST_PROCESS: u32 = 100;

pub fn start(
    node: i32,
    address: SocketAddr,
    topic: String,
    history: Arc<Recorder>,
    over: Arc<AtomicBool>,
) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut watch = Watch::new(node, address, topic, &history);
        while !over.load(Ordering::Relaxed) {
            watch.look();
            std::thread::sleep(EVERY);
        }
    })
}

struct Watch<'a> {
    node: i32,
    process: u32,
    probe: Probe,
    topic: String,
    history: &'a Recorder,
    /// What was last said of each partition, so that only changes are recorded.
    led: BTreeMap<i32, (i32, i32)>,
    next: BTreeMap<i32, i64>,
}

impl<'a> Watch<'a> {
    fn new(node: i32, address: SocketAddr, topic: String, history: &'a Recorder) -> Watch<'a> {
        let process = FIRST_PROCESS + node.unsigned_abs();
        let probe = Probe::new(address);
        Watch { node, process, probe, topic, history, led: BTreeMap::new(), next: BTreeMap::new() }
    }

    fn look(&mut self) {
        let Some(picture) = self.probe.picture(&self.topic) else { return };
        for one in picture.partitions {
            let (partition, leader, epoch) = (one.index, one.leader, one.epoch);
            if self.led.insert(partition, (leader, epoch)) != Some((leader, epoch)) {
                self.history.note(self.process, Action::Led { partition, leader, epoch });
            }
            if leader == self.node {
                self.follow(partition, epoch);
            }
        }
    }

    fn follow(&mut self, partition: i32, epoch: i32) {
        let next = self.next.get(&partition).copied().unwrap_or(0);
        let Some(part) = self.probe.fetch(&self.topic, partition, epoch, next) else { return };
        if part.error == NONE {
            let (node, offset) = (self.node, part.high_watermark);
            self.history.note(self.process, Action::HighWatermark { node, partition, epoch, offset });
            self.record(partition, &part);
        }
    }

    fn record(&mut self, partition: i32, part: &Part) {
        for batch in &part.batches {
            let (node, base, last) = (self.node, batch.base_offset, batch.last_offset);
            assert!(
                batch.crc_is_right,
                "node {node} serves a batch of partition {partition} at {base} with a wrong sum"
            );
            let (epoch, crc) = (batch.leader_epoch, batch.crc);
            self.history.note(self.process, Action::Batch { node, partition, base, last, epoch, crc });
            self.next.insert(partition, last + 1);
        }
    }
}

/// Reads a node's copy of every partition up to these ends; false when the node does not serve a copy that it does not lead.
#[track_caller]
pub fn read_copy(node: i32, address: SocketAddr, topic: &str, ends: &BTreeMap<i32, i64>, history: &Recorder) -> bool {
    let mut watch = Watch::new(node, address, topic.into(), history);
    let began = Instant::now();
    for (partition, end) in ends {
        while watch.next.get(partition).copied().unwrap_or(0) < *end {
            let next = watch.next.get(partition).copied().unwrap_or(0);
            match watch.probe.fetch(topic, *partition, -1, next) {
                Some(part) if part.error == NONE => watch.record(*partition, &part),
                Some(_) if began.elapsed() > COPY_MAX => return false,
                _ => {}
            }
            let at = (node, partition, next, end);
            assert!(began.elapsed() < COPY_MAX + COPY_MAX, "a copy is not served to its end: {at:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    true
}
