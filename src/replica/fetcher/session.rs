//! The fetching side of a fetch session (KIP-227): what was asked last of each partition, so that only changes are sent.

use std::collections::HashSet;

use indexmap::IndexMap;

use crate::base::{LeaderEpoch, PartitionIndex, TopicId};
use crate::replica::follower::Position;
use crate::wire::messages::FetchRequest;
use crate::wire::messages::fetch_request::{FetchPartition, FetchTopic, ForgottenTopic};

pub(super) type Key = (TopicId, PartitionIndex);

/// What is asked of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    pub leader_epoch: LeaderEpoch,
    pub position: Position,
    pub bytes_max: i32,
}

/// Epoch of a request that closes its session.
const FINAL_EPOCH: i32 = -1;

#[derive(Debug, Default)]
pub(super) struct Session {
    /// 0 while there is none.
    id: i32,
    next_epoch: i32,
    asked: IndexMap<Key, Ask>,
    /// Of those, the ones whose answer was not taken over.
    dropped: HashSet<Key>,
}

impl Session {
    /// Puts into `request` what the leader has to be told so that it knows `wanted`. The answer, or its absence, must be noted before
    /// the next call.
    pub(super) fn ask(&mut self, request: &mut FetchRequest, wanted: IndexMap<Key, Ask>) {
        request.session_id = self.id;
        request.session_epoch = self.next_epoch;
        if self.next_epoch == 0 {
            request.topics = topics(wanted.iter());
        } else {
            let is_new = |key: &Key, ask: &Ask| self.asked.get(key) != Some(ask) || self.dropped.contains(key);
            request.topics = topics(wanted.iter().filter(|(key, ask)| is_new(key, ask)));
            request.forgotten_topics_data = forgotten(self.asked.keys().filter(|key| !wanted.contains_key(*key)));
        }
        self.asked = wanted;
        self.dropped.clear();
    }

    /// The leader answered without a session error.
    pub(super) fn note_answer(&mut self, session_id: i32) {
        self.id = session_id;
        self.next_epoch = match (session_id, self.next_epoch) {
            (0, _) => 0,
            (_, i32::MAX) => 1,
            (_, epoch) => epoch + 1,
        };
    }

    /// What was answered for the partition was not taken over: it is named again, and then told again.
    pub(super) fn name_again(&mut self, key: &Key) {
        self.dropped.insert(*key);
    }

    /// What the other side knows is not known: the next request begins a new session, and ends the old one.
    pub(super) fn reset(&mut self) {
        self.next_epoch = 0;
        self.asked.clear();
    }

    /// The old session is gone, or nobody knows its number.
    pub(super) fn forget(&mut self) {
        self.id = 0;
        self.reset();
    }

    /// Makes `request` the one that closes the session, if there is one.
    pub(super) fn close(&self, request: &mut FetchRequest) -> bool {
        request.session_id = self.id;
        request.session_epoch = FINAL_EPOCH;
        self.id != 0
    }
}

/// Neighbours of the same topic share an entry.
fn topics<'a>(asks: impl Iterator<Item = (&'a Key, &'a Ask)>) -> Vec<FetchTopic> {
    let mut topics: Vec<FetchTopic> = Vec::new();
    for ((topic, index), ask) in asks {
        let partition = FetchPartition::default()
            .with_partition(*index)
            .with_current_leader_epoch(ask.leader_epoch)
            .with_fetch_offset(ask.position.fetch_offset)
            .with_last_fetched_epoch(ask.position.last_epoch)
            .with_log_start_offset(ask.position.log_start_offset)
            .with_partition_max_bytes(ask.bytes_max);
        match topics.last_mut() {
            Some(last) if last.topic_id == topic.0 => last.partitions.push(partition),
            _ => topics.push(FetchTopic::default().with_topic_id(topic.0).with_partitions(vec![partition])),
        }
    }
    topics
}

fn forgotten<'a>(keys: impl Iterator<Item = &'a Key>) -> Vec<ForgottenTopic> {
    let mut topics: Vec<ForgottenTopic> = Vec::new();
    for (topic, index) in keys {
        match topics.last_mut() {
            Some(last) if last.topic_id == topic.0 => last.partitions.push(*index),
            _ => topics.push(ForgottenTopic::default().with_topic_id(topic.0).with_partitions(vec![*index])),
        }
    }
    topics
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(index: PartitionIndex) -> Key {
        (TopicId::from_bytes([1; 16]), index)
    }

    fn wanted(offsets: &[(PartitionIndex, i64)]) -> IndexMap<Key, Ask> {
        let ask = |offset| Ask {
            leader_epoch: 3,
            position: Position { fetch_offset: offset, last_epoch: 2, log_start_offset: 0 },
            bytes_max: 10,
        };
        offsets.iter().map(|(index, offset)| (key(*index), ask(*offset))).collect()
    }

    fn asked(session: &mut Session, offsets: &[(PartitionIndex, i64)]) -> (i32, i32, Vec<i32>, Vec<i32>) {
        let mut request = FetchRequest::default();
        session.ask(&mut request, wanted(offsets));
        let named = request.topics.iter().flat_map(|topic| topic.partitions.iter().map(|one| one.partition)).collect();
        let forgotten = request.forgotten_topics_data.iter().flat_map(|topic| topic.partitions.clone()).collect();
        (request.session_id, request.session_epoch, named, forgotten)
    }

    #[test]
    fn after_the_first_request_only_changes_are_sent() {
        let mut session = Session::default();
        assert_eq!(asked(&mut session, &[(0, 5), (1, 7)]), (0, 0, vec![0, 1], vec![]));
        session.note_answer(9);
        assert_eq!(asked(&mut session, &[(0, 6), (1, 7)]), (9, 1, vec![0], vec![]));
        session.note_answer(9);
        assert_eq!(asked(&mut session, &[(1, 7), (2, 0)]), (9, 2, vec![2], vec![0]));
    }

    #[test]
    fn what_was_not_taken_over_is_named_again() {
        let mut session = Session::default();
        asked(&mut session, &[(0, 5), (1, 7)]);
        session.note_answer(9);
        session.name_again(&key(1));
        assert_eq!(asked(&mut session, &[(0, 5), (1, 7)]), (9, 1, vec![1], vec![]));
        session.note_answer(9);
        assert_eq!(asked(&mut session, &[(0, 5), (1, 7)]), (9, 2, vec![], vec![]));
        session.note_answer(9);
        session.name_again(&key(1));
        assert_eq!(asked(&mut session, &[(0, 5)]), (9, 3, vec![], vec![1]), "while it rests nothing is sent");
    }

    #[test]
    fn a_reset_names_everything_and_replaces_the_old_session() {
        let mut session = Session::default();
        asked(&mut session, &[(0, 5)]);
        session.note_answer(9);
        session.reset();
        assert_eq!(asked(&mut session, &[(0, 5)]), (9, 0, vec![0], vec![]));
        session.forget();
        assert_eq!(asked(&mut session, &[(0, 5)]), (0, 0, vec![0], vec![]));
    }

    #[test]
    fn a_leader_without_room_for_sessions_is_told_everything_each_time() {
        let mut session = Session::default();
        asked(&mut session, &[(0, 5)]);
        session.note_answer(0);
        assert_eq!(asked(&mut session, &[(0, 5)]), (0, 0, vec![0], vec![]));
    }
}
