//! Idempotent producers send up to five batches of a partition without waiting. When this node turns the first ones away because it does
//! not lead yet, and takes over before it reads those behind them, the next one is out of order through no fault of the producer's.
//! OUT_OF_ORDER_SEQUENCE_NUMBER would be the truth, but clients of librdkafka begin a new epoch at it, for all their partitions, and send
//! what they have no answer for again in that epoch, where nobody can tell that it is in the log (confluentinc/librdkafka#4953). So what
//! came behind a batch that was turned away is turned away for the same reason, and all of it comes again in order.
//!
//! A producer that nobody here knows may begin with any sequence; but not behind a batch that was turned away, or that one could never
//! be written.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::base::limits::TURNED_AWAY_PER_CONNECTION_MAX;
use crate::base::{ErrorCode, PartitionIndex, ProducerEpoch, ProducerId, TopicId};
use crate::records::BatchHeader;

/// What was on its way when a batch was turned away has arrived by then.
const REMEMBERED_NANOS: u64 = 10_000_000_000;

/// A partition as requests name it: by name, or from v13 by id.
#[derive(Clone, Copy, Debug)]
pub struct Spot<'a> {
    pub topic: &'a str,
    pub topic_id: TopicId,
    pub partition: PartitionIndex,
}

impl Spot<'_> {
    fn of(self, producer_id: ProducerId) -> Place {
        Place { topic: self.topic.into(), topic_id: self.topic_id, partition: self.partition, producer_id }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Place {
    topic: Box<str>,
    topic_id: TopicId,
    partition: PartitionIndex,
    producer_id: ProducerId,
}

/// The first batch that was turned away and has not come again.
#[derive(Debug)]
struct Missing {
    epoch: ProducerEpoch,
    base_sequence: i32,
    code: ErrorCode,
}

#[derive(Debug, Default)]
struct Noted {
    latest_nanos: u64,
    missing: HashMap<Place, Missing>,
}

/// What was turned away on one connection.
#[derive(Debug, Default)]
pub struct TurnedAway {
    /// Whether anything was, lately; for those who only look.
    any: AtomicBool,
    noted: Mutex<Noted>,
}

impl TurnedAway {
    /// Why a batch of the same producer and epoch that belongs before this one was turned away, and has not come again.
    pub fn before(&self, spot: Spot<'_>, header: &BatchHeader, now_nanos: u64) -> Option<ErrorCode> {
        if !self.any.load(Ordering::Relaxed) || !header.has_producer() {
            return None;
        }
        let mut noted = self.noted.lock();
        if now_nanos.saturating_sub(noted.latest_nanos) > REMEMBERED_NANOS {
            noted.missing.clear();
            self.any.store(false, Ordering::Relaxed);
            return None;
        }
        let missing = noted.missing.get(&spot.of(header.producer_id))?;
        let is_behind = missing.epoch == header.producer_epoch && is_later(header.base_sequence, missing.base_sequence);
        is_behind.then_some(missing.code)
    }

    /// The batch was answered with `code` and not appended.
    pub fn refused(&self, spot: Spot<'_>, header: &BatchHeader, code: ErrorCode, now_nanos: u64) {
        if !header.has_producer() || !comes_again(code) {
            return;
        }
        let (epoch, base_sequence) = (header.producer_epoch, header.base_sequence);
        let mut noted = self.noted.lock();
        let place = spot.of(header.producer_id);
        let known = noted.missing.get(&place);
        if known.is_none() && noted.missing.len() >= TURNED_AWAY_PER_CONNECTION_MAX {
            return;
        }
        if known.is_none_or(|known| known.epoch != epoch || !is_later(base_sequence, known.base_sequence)) {
            noted.missing.insert(place, Missing { epoch, base_sequence, code });
        }
        noted.latest_nanos = now_nanos;
        self.any.store(true, Ordering::Relaxed);
    }

    /// The batch is in the log, and so is what belongs before it.
    pub fn accepted(&self, spot: Spot<'_>, header: &BatchHeader) {
        if !self.any.load(Ordering::Relaxed) || !header.has_producer() {
            return;
        }
        let mut noted = self.noted.lock();
        let place = spot.of(header.producer_id);
        let is_over = |missing: &Missing| {
            missing.epoch != header.producer_epoch || !is_later(missing.base_sequence, header.base_sequence)
        };
        if noted.missing.get(&place).is_some_and(is_over) {
            noted.missing.remove(&place);
            self.any.store(!noted.missing.is_empty(), Ordering::Relaxed);
        }
    }
}

/// Whether a producer sends a batch that was refused with this again as it is.
fn comes_again(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::NOT_LEADER_OR_FOLLOWER
            | ErrorCode::NOT_ENOUGH_REPLICAS
            | ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
            | ErrorCode::UNKNOWN_TOPIC_ID
            | ErrorCode::KAFKA_STORAGE_ERROR
    )
}

/// Whether a sequence comes after another one; behind `i32::MAX` comes 0.
fn is_later(sequence: i32, than: i32) -> bool {
    let ahead = (i64::from(sequence) - i64::from(than)).rem_euclid(1 << 31);
    (1..1 << 30).contains(&ahead)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{BatchBuilder, Codec};

    const NOT_LEADER: ErrorCode = ErrorCode::NOT_LEADER_OR_FOLLOWER;
    const T: Spot<'_> = Spot { topic: "t", topic_id: TopicId::ZERO, partition: 0 };

    fn batch(epoch: ProducerEpoch, base_sequence: i32) -> BatchHeader {
        let mut builder = BatchBuilder::new(Codec::None).with_producer(7, epoch, base_sequence);
        builder.push(0, None, Some(b"x"), &[]);
        BatchHeader::parse(&builder.finish(0, 0)).unwrap()
    }

    #[test]
    fn what_is_behind_a_batch_that_was_turned_away_is_known_until_that_comes_again() {
        let away = TurnedAway::default();
        assert_eq!(away.before(T, &batch(0, 5), 0), None);
        away.refused(T, &batch(0, 3), NOT_LEADER, 0);
        away.refused(T, &batch(0, 4), ErrorCode::KAFKA_STORAGE_ERROR, 0);
        for (base_sequence, expected) in [(2, None), (3, None), (4, Some(NOT_LEADER)), (9, Some(NOT_LEADER))] {
            assert_eq!(away.before(T, &batch(0, base_sequence), 1), expected, "{base_sequence}");
        }
        away.accepted(T, &batch(0, 2));
        assert_eq!(away.before(T, &batch(0, 5), 1), Some(NOT_LEADER), "what is before it says nothing of it");
        away.accepted(T, &batch(0, 3));
        assert_eq!(away.before(T, &batch(0, 5), 1), None);
        assert!(!away.any.load(Ordering::Relaxed));
    }

    #[test]
    fn others_are_not_behind_it() {
        let away = TurnedAway::default();
        away.refused(T, &batch(1, 3), NOT_LEADER, 0);
        assert_eq!(away.before(Spot { partition: 1, ..T }, &batch(1, 5), 0), None);
        assert_eq!(away.before(Spot { topic: "u", ..T }, &batch(1, 5), 0), None);
        assert_eq!(away.before(T, &BatchHeader { producer_id: 8, ..batch(1, 5) }, 0), None);
        assert_eq!(away.before(T, &batch(2, 5), 0), None, "another epoch");
        away.accepted(T, &batch(2, 0));
        assert_eq!(away.before(T, &batch(1, 5), 0), None, "that epoch is over");
    }

    #[test]
    fn what_is_not_sent_again_is_not_waited_for() {
        let away = TurnedAway::default();
        away.refused(T, &batch(0, 3), ErrorCode::INVALID_RECORD, 0);
        assert_eq!(away.before(T, &batch(0, 4), 0), None);
        away.refused(T, &batch(0, 3), NOT_LEADER, 0);
        assert_eq!(away.before(T, &batch(0, 4), REMEMBERED_NANOS), Some(NOT_LEADER));
        assert_eq!(away.before(T, &batch(0, 4), REMEMBERED_NANOS + 1), None, "it was long ago");
        assert!(away.noted.lock().missing.is_empty());
    }

    #[test]
    fn sequences_begin_again_at_0() {
        assert!(is_later(0, i32::MAX) && is_later(3, i32::MAX - 1) && !is_later(i32::MAX, 0) && !is_later(4, 4));
    }

    #[test]
    fn memory_is_bounded() {
        let away = TurnedAway::default();
        for partition in 0..5_000 {
            away.refused(Spot { partition, ..T }, &batch(0, 0), NOT_LEADER, 0);
        }
        assert_eq!(away.noted.lock().missing.len(), TURNED_AWAY_PER_CONNECTION_MAX);
    }
}
