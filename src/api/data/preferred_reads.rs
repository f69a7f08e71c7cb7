//! Sending consumers to a replica near them (KIP-392): which one, and whom we have sent away lately.
//!
//! A consumer that was sent away and comes back soon could not reach that replica, or does not know what a preferred replica is. It is
//! served here then, instead of being sent away for ever.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::api::Broker;
use crate::base::{BrokerId, MonotonicMs, Offset, PartitionIndex, TopicId};
use crate::replica::Partition;

/// Who comes back within this time is served.
const COMES_BACK_MS: MonotonicMs = 30_000;

/// Consumers times partitions that are remembered. Nobody else is sent away while all of them are fresh.
const REMEMBERED_MAX: usize = 50_000;

/// A connection and the partition it asked for.
type Key = (u64, TopicId, PartitionIndex);

#[derive(Debug, Default)]
pub struct SentAway {
    at_ms: Mutex<HashMap<Key, MonotonicMs>>,
}

impl SentAway {
    /// Whether this consumer may be sent to another replica now; if so, that is remembered.
    pub fn may_send(&self, key: Key, now: MonotonicMs) -> bool {
        let mut at_ms = self.at_ms.lock();
        if at_ms.get(&key).is_some_and(|at| now.saturating_sub(*at) < COMES_BACK_MS) {
            return false;
        }
        if at_ms.len() >= REMEMBERED_MAX {
            at_ms.retain(|_, at| now.saturating_sub(*at) < COMES_BACK_MS);
        }
        let has_room = at_ms.len() < REMEMBERED_MAX;
        if has_room {
            at_ms.insert(key, now);
        }
        has_room
    }
}

/// The live in-sync follower on `rack` that has the most, if it has what the consumer asks for and we are not on that rack ourselves.
pub fn nearest(broker: &Broker, partition: &Partition, rack: &str, offset: Offset) -> Option<BrokerId> {
    if broker.options.rack.as_deref() == Some(rack) {
        return None;
    }
    let image = broker.image();
    let on_rack =
        |id: BrokerId| image.broker(id).is_some_and(|one| one.is_active() && one.rack.as_deref() == Some(rack));
    let near = partition.readable_followers(offset).into_iter().filter(|(id, _)| on_rack(*id));
    near.max_by_key(|(id, end)| (*end, std::cmp::Reverse(*id))).map(|(id, _)| id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_back_soon_is_served_here() {
        let sent = SentAway::default();
        let key = (1, TopicId::ZERO, 0);
        assert!(sent.may_send(key, 10));
        assert!(!sent.may_send(key, 20));
        assert!(sent.may_send((2, TopicId::ZERO, 0), 20));
        assert!(sent.may_send(key, 10 + COMES_BACK_MS), "later it may be sent again");
    }
}
