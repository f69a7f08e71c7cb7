//! Replication quotas (KIP-73): how fast replicas that are catching up may be fetched, so that moving partitions leaves room for clients.
//! Only replicas that the topic's settings name count, and only while they are not in sync.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::base::{BrokerId, MonotonicMs, PartitionIndex};
use crate::metadata::config::ThrottledReplicas;
use crate::metadata::{ConfigResource, Image};

pub const LEADER_RATE: &str = "leader.replication.throttled.rate";
pub const FOLLOWER_RATE: &str = "follower.replication.throttled.rate";
pub const MOVING_RATE: &str = "replica.alter.log.dirs.io.max.bytes.per.second";

/// Bytes per second that mean no limit.
const UNLIMITED: u64 = i64::MAX as u64;

/// What may flow is gathered for up to this long.
const GATHERED_MS_MAX: u64 = 1_000;

/// A bucket that fills with time. What is taken may be more than there is: the next one then waits longer.
#[derive(Debug)]
pub struct Throttle {
    bytes_per_second: AtomicU64,
    bucket: Mutex<Bucket>,
}

#[derive(Debug, Default)]
struct Bucket {
    /// In thousandths of a byte, so that a millisecond of a slow rate counts.
    millibytes: i128,
    filled_ms: MonotonicMs,
}

impl Default for Throttle {
    fn default() -> Throttle {
        Throttle { bytes_per_second: AtomicU64::new(UNLIMITED), bucket: Mutex::default() }
    }
}

impl Throttle {
    /// Takes the rate that the metadata sets for this broker; without one there is no limit.
    pub fn follow(&self, image: &Image, broker: BrokerId, name: &str) {
        let set_on = |resource: &ConfigResource| image.configs(resource).and_then(|values| values.get(name).cloned());
        let set = set_on(&ConfigResource::broker(broker)).or_else(|| set_on(&ConfigResource::broker_default()));
        let rate = set.and_then(|value| value.parse().ok()).unwrap_or(UNLIMITED);
        self.bytes_per_second.store(rate, Ordering::Relaxed);
    }

    /// Whether something may flow now.
    pub fn has_room(&self, now: MonotonicMs) -> bool {
        let rate = self.bytes_per_second.load(Ordering::Relaxed);
        if rate >= UNLIMITED {
            return true;
        }
        let mut bucket = self.bucket.lock();
        bucket.fill(rate, now);
        bucket.millibytes > 0
    }

    pub fn took(&self, bytes: usize, now: MonotonicMs) {
        let rate = self.bytes_per_second.load(Ordering::Relaxed);
        if rate < UNLIMITED {
            let mut bucket = self.bucket.lock();
            bucket.fill(rate, now);
            bucket.millibytes -= bytes as i128 * 1_000;
        }
    }
}

impl Bucket {
    fn fill(&mut self, bytes_per_second: u64, now: MonotonicMs) {
        // Bytes per second are thousandths of a byte per thousandth of a second, times a thousand.
        let elapsed = now.saturating_sub(self.filled_ms).min(GATHERED_MS_MAX);
        let most = i128::from(bytes_per_second) * i128::from(GATHERED_MS_MAX);
        self.millibytes = (self.millibytes + i128::from(bytes_per_second) * i128::from(elapsed)).min(most);
        self.filled_ms = now;
    }
}

/// Whether the topic's setting names this replica.
pub fn names(throttled: &ThrottledReplicas, partition: PartitionIndex, broker: BrokerId) -> bool {
    match throttled {
        ThrottledReplicas::None => false,
        ThrottledReplicas::All => true,
        ThrottledReplicas::Some(replicas) => replicas.contains(&(partition, broker)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::MetadataRecord;

    fn throttle(rate: &str) -> Throttle {
        let mut image = Image::empty();
        let record = MetadataRecord::Config {
            resource: ConfigResource::broker(1),
            name: LEADER_RATE.to_owned(),
            value: Some(rate.to_owned()),
        };
        image.apply(0, &record).unwrap();
        let throttle = Throttle::default();
        throttle.follow(&image, 1, LEADER_RATE);
        throttle
    }

    #[test]
    fn without_a_rate_everything_flows() {
        let throttle = Throttle::default();
        throttle.follow(&Image::empty(), 1, LEADER_RATE);
        throttle.took(usize::MAX, 0);
        assert!(throttle.has_room(0));
    }

    #[test]
    fn what_was_taken_too_much_is_waited_for() {
        let throttle = throttle("1000");
        assert!(throttle.has_room(1_000));
        throttle.took(3_500, 1_000);
        assert_eq!([1_000, 2_000, 3_000, 3_501].map(|now| throttle.has_room(now)), [false, false, false, true]);
    }

    #[test]
    fn a_rate_of_nothing_stops_everything() {
        assert!(!throttle("0").has_room(100_000));
    }

    #[test]
    fn replicas_are_named_by_pairs_or_all() {
        assert!(names(&ThrottledReplicas::All, 3, 1));
        assert!(names(&ThrottledReplicas::Some(vec![(3, 1)]), 3, 1));
        assert!(!names(&ThrottledReplicas::Some(vec![(3, 2)]), 3, 1));
        assert!(!names(&ThrottledReplicas::None, 3, 1));
    }
}
