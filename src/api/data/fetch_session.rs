//! Fetch sessions (KIP-227): a consumer names its partitions once and afterwards only what changed, and is told only what changed.
//!
//! The cache is bounded; a session outlives its connection. When every slot holds a session used within [`EVICTION_MS`], a newcomer
//! gets its data without a session, as the protocol allows.

use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Weak};

use indexmap::IndexMap;
use parking_lot::Mutex;

use crate::api::data::preferred_reads::SentAway;
use crate::base::{ErrorCode, LeaderEpoch, MonotonicMs, Offset, PartitionIndex, TopicId};
use crate::replica::Waiter;

/// A session unused for this long gives way to a new one (Kafka's `min.incremental.fetch.session.eviction.ms`).
const EVICTION_MS: MonotonicMs = 120_000;

/// Epoch of a request that closes its session or wants none.
const FINAL_EPOCH: i32 = -1;
/// Epoch of a request that names all its partitions.
const INITIAL_EPOCH: i32 = 0;

/// A topic as the request named it: by name up to v12 (the id is zero), by id from v13 on. With an id, the name is only what that id
/// stood for when the topic was named: it does not count in comparisons.
#[derive(Clone, Debug)]
pub struct TopicKey {
    pub name: Arc<str>,
    pub id: TopicId,
}

impl PartialEq for TopicKey {
    fn eq(&self, other: &TopicKey) -> bool {
        self.id == other.id && (!self.id.is_zero() || self.name == other.name)
    }
}

impl Eq for TopicKey {}

impl Hash for TopicKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
        if self.id.is_zero() {
            self.name.hash(state);
        }
    }
}

pub type PartitionKey = (TopicKey, PartitionIndex);

/// What a consumer asks of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub fetch_offset: Offset,
    pub bytes_max: i32,
    pub current_leader_epoch: LeaderEpoch,
    pub last_fetched_epoch: LeaderEpoch,
    pub log_start_offset: Offset,
    /// The high watermark that it was last told in this session; -1 for none.
    pub told_high_watermark: Offset,
}

/// What the consumer was last told of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    pub high_watermark: Offset,
    pub log_start_offset: Offset,
    pub besides: Besides,
}

/// What an answer says besides; all but nothing is told every time it is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Besides {
    Nothing,
    /// An error, or that the logs diverge. Whoever asked takes nothing else over from such an answer, so nothing else counts as told.
    Refusal,
    /// Another replica to read from.
    Redirection,
}

const NOTHING_TOLD: Told = Told { high_watermark: -1, log_start_offset: -1, besides: Besides::Nothing };

type SessionPartitions = IndexMap<PartitionKey, (Wanted, Told)>;

#[derive(Debug)]
struct Session {
    /// The epoch of the next request.
    next_epoch: i32,
    uses_topic_ids: bool,
    partitions: SessionPartitions,
    used_ms: MonotonicMs,
    /// The request of this session that waits for news.
    parked: Weak<Waiter>,
}

impl Session {
    fn wake_parked(&self) {
        if let Some(parked) = self.parked.upgrade() {
            parked.wake();
        }
    }
}

/// One request's part in a session.
#[derive(Debug)]
pub struct SessionRequest {
    pub id: i32,
    pub epoch: i32,
    pub uses_topic_ids: bool,
    /// Of another broker: there is always room for its session.
    pub is_replica: bool,
    pub wanted: Vec<(PartitionKey, Wanted)>,
    pub forgotten: Vec<PartitionKey>,
}

/// The partitions a request stands for, and how its answer must be shaped.
#[derive(Debug, PartialEq, Eq)]
pub struct Resolved {
    /// 0: no session.
    pub session_id: i32,
    /// Only partitions with news are answered.
    pub incremental: bool,
    /// The epoch of the session's next request: until that comes, this one is the newest.
    pub next_epoch: i32,
    pub partitions: Vec<(PartitionKey, Wanted)>,
}

pub struct FetchSessions {
    slots_max: usize,
    sessions: Mutex<HashMap<i32, Session>>,
    /// Consumers that were sent to another replica lately.
    pub(super) sent_away: SentAway,
}

impl FetchSessions {
    pub fn new(slots_max: usize) -> FetchSessions {
        FetchSessions { slots_max, sessions: Mutex::default(), sent_away: SentAway::default() }
    }

    pub fn len(&self) -> usize {
        self.sessions.lock().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Finds out what the request stands for. `new_id` is a random positive number for a session that may be opened.
    pub fn resolve(&self, request: SessionRequest, new_id: i32, now: MonotonicMs) -> Result<Resolved, ErrorCode> {
        match request.epoch {
            FINAL_EPOCH => {
                if request.id != 0 {
                    remove(&mut self.sessions.lock(), request.id);
                }
                Ok(Resolved { session_id: 0, incremental: false, next_epoch: 0, partitions: request.wanted })
            }
            INITIAL_EPOCH => Ok(self.open(request, new_id, now)),
            _ => self.continue_session(request, now),
        }
    }

    fn open(&self, request: SessionRequest, new_id: i32, now: MonotonicMs) -> Resolved {
        let mut sessions = self.sessions.lock();
        if request.id != 0 {
            remove(&mut sessions, request.id);
        }
        let mut session_id = 0;
        if !request.wanted.is_empty() && (request.is_replica || self.has_room(&mut sessions, now)) {
            session_id = new_id.max(1);
            while sessions.contains_key(&session_id) {
                session_id = session_id.checked_add(1).unwrap_or(1);
            }
            let partitions =
                request.wanted.iter().cloned().map(|(key, wanted)| (key, (wanted, NOTHING_TOLD))).collect();
            let session = Session {
                next_epoch: 1,
                uses_topic_ids: request.uses_topic_ids,
                partitions,
                used_ms: now,
                parked: Weak::new(),
            };
            sessions.insert(session_id, session);
        }
        Resolved { session_id, incremental: false, next_epoch: 1, partitions: request.wanted }
    }

    /// The session's request waits for news: whatever comes next in the session ends that wait.
    pub fn park(&self, session_id: i32, waiter: &Arc<Waiter>) {
        if let Some(session) = self.sessions.lock().get_mut(&session_id) {
            session.parked = Arc::downgrade(waiter);
        }
    }

    /// Whether no newer request has come in the session, and it is still there.
    pub fn is_newest(&self, resolved: &Resolved) -> bool {
        resolved.session_id == 0
            || self
                .sessions
                .lock()
                .get(&resolved.session_id)
                .is_some_and(|session| session.next_epoch == resolved.next_epoch)
    }

    fn has_room(&self, sessions: &mut HashMap<i32, Session>, now: MonotonicMs) -> bool {
        if sessions.len() < self.slots_max {
            return true;
        }
        let oldest =
            sessions.iter().min_by_key(|(_, session)| session.used_ms).map(|(id, session)| (*id, session.used_ms));
        match oldest {
            Some((id, used_ms)) if now.saturating_sub(used_ms) > EVICTION_MS => {
                sessions.remove(&id);
                true
            }
            _ => false,
        }
    }

    fn continue_session(&self, request: SessionRequest, now: MonotonicMs) -> Result<Resolved, ErrorCode> {
        let mut sessions = self.sessions.lock();
        let Some(session) = sessions.get_mut(&request.id) else {
            return Err(ErrorCode::FETCH_SESSION_ID_NOT_FOUND);
        };
        if session.next_epoch != request.epoch {
            return Err(ErrorCode::INVALID_FETCH_SESSION_EPOCH);
        }
        if session.uses_topic_ids != request.uses_topic_ids {
            return Err(ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR);
        }
        for (key, wanted) in request.wanted {
            match session.partitions.get_mut(&key) {
                Some((known, told)) => {
                    // A follower drops what it is told in an epoch that is over for it, or could not be taken over; it says so by
                    // naming the partition in another epoch, or with nothing more than before.
                    let same_epoch = known.current_leader_epoch == wanted.current_leader_epoch;
                    if request.is_replica && !(same_epoch && known.fetch_offset != wanted.fetch_offset) {
                        *told = NOTHING_TOLD;
                    }
                    *known = wanted;
                }
                None => {
                    session.partitions.insert(key, (wanted, NOTHING_TOLD));
                }
            }
        }
        for key in &request.forgotten {
            session.partitions.shift_remove(key);
        }
        session.wake_parked();
        session.used_ms = now;
        session.next_epoch = if session.next_epoch == i32::MAX { 1 } else { session.next_epoch + 1 };
        let with_told = |(key, (wanted, told)): (&PartitionKey, &(Wanted, Told))| {
            (key.clone(), Wanted { told_high_watermark: told.high_watermark, ..wanted.clone() })
        };
        let partitions = session.partitions.iter().map(with_told).collect();
        let next_epoch = session.next_epoch;
        let mut session_id = request.id;
        if session.partitions.is_empty() {
            sessions.remove(&request.id);
            session_id = 0;
        }
        Ok(Resolved { session_id, incremental: true, next_epoch, partitions })
    }

    /// Decides which answered partitions an incremental answer names, and remembers what was told. Partitions with records move
    /// to the end of the session's order, so that under small limits every partition gets its turn.
    pub fn news(
        &self,
        session_id: i32,
        answers: &[(PartitionKey, Told, bool /* has records */)],
        incremental: bool,
    ) -> Vec<bool> {
        let mut sessions = self.sessions.lock();
        let Some(session) = sessions.get_mut(&session_id) else {
            return answers.iter().map(|_| true).collect();
        };
        let mut moved = Vec::new();
        let named = answers
            .iter()
            .map(|(key, told, has_records)| {
                let Some((_, before)) = session.partitions.get_mut(key) else { return true };
                let news = *has_records
                    || told.besides != Besides::Nothing
                    || before.high_watermark != told.high_watermark
                    || before.log_start_offset != told.log_start_offset;
                *before = if told.besides == Besides::Refusal { NOTHING_TOLD } else { *told };
                if *has_records {
                    moved.push(key);
                }
                news || !incremental
            })
            .collect();
        move_to_end(&mut session.partitions, &moved);
        named
    }
}

/// One by one where it is a few: each costs a look at everything behind it. Many go in one pass, and keep their order.
fn move_to_end(partitions: &mut SessionPartitions, keys: &[&PartitionKey]) {
    const ONE_BY_ONE_MAX: usize = 8;
    if keys.len() > ONE_BY_ONE_MAX {
        let moving: HashSet<&PartitionKey> = keys.iter().copied().collect();
        let (last, first): (SessionPartitions, SessionPartitions) =
            std::mem::take(partitions).into_iter().partition(|(key, _)| moving.contains(key));
        *partitions = first;
        partitions.extend(last);
        return;
    }
    for key in keys {
        if let Some((key, entry)) = partitions.shift_remove_entry(*key) {
            partitions.insert(key, entry);
        }
    }
}

fn remove(sessions: &mut HashMap<i32, Session>, id: i32) {
    if let Some(session) = sessions.remove(&id) {
        session.wake_parked();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::NO_OFFSET;

    fn key(partition: PartitionIndex) -> PartitionKey {
        (TopicKey { name: "t".into(), id: TopicId::ZERO }, partition)
    }

    fn wanted(fetch_offset: Offset) -> Wanted {
        Wanted {
            fetch_offset,
            bytes_max: 1,
            current_leader_epoch: -1,
            last_fetched_epoch: -1,
            log_start_offset: -1,
            told_high_watermark: NO_OFFSET,
        }
    }

    fn request(id: i32, epoch: i32, partitions: &[PartitionIndex]) -> SessionRequest {
        let wanted = partitions.iter().map(|partition| (key(*partition), wanted(0))).collect();
        SessionRequest { id, epoch, uses_topic_ids: false, is_replica: false, wanted, forgotten: Vec::new() }
    }

    #[test]
    fn a_session_remembers_its_partitions() {
        let sessions = FetchSessions::new(10);
        let first = sessions.resolve(request(0, 0, &[0, 1]), 7, 0);
        assert_eq!(first.map(|first| (first.session_id, first.incremental)), Ok((7, false)));
        let mut next = request(7, 1, &[2]);
        next.forgotten.push(key(0));
        let resolved = sessions.resolve(next, 8, 0);
        let partitions =
            resolved.map(|resolved| resolved.partitions.into_iter().map(|(key, _)| key.1).collect::<Vec<_>>());
        assert_eq!(partitions, Ok(vec![1, 2]));
    }

    #[test]
    fn unknown_ids_wrong_epochs_and_mixed_naming_are_refused() {
        let sessions = FetchSessions::new(10);
        assert_eq!(sessions.resolve(request(99, 1, &[]), 1, 0), Err(ErrorCode::FETCH_SESSION_ID_NOT_FOUND));
        let _ = sessions.resolve(request(0, 0, &[0]), 7, 0);
        assert_eq!(sessions.resolve(request(7, 2, &[]), 1, 0), Err(ErrorCode::INVALID_FETCH_SESSION_EPOCH));
        let mixed = SessionRequest { uses_topic_ids: true, ..request(7, 1, &[]) };
        assert_eq!(sessions.resolve(mixed, 1, 0), Err(ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR));
    }

    #[test]
    fn forgetting_the_last_partition_closes_the_session() {
        let sessions = FetchSessions::new(10);
        let _ = sessions.resolve(request(0, 0, &[0]), 7, 0);
        let mut last = request(7, 1, &[]);
        last.forgotten.push(key(0));
        assert_eq!(sessions.resolve(last, 1, 0).map(|resolved| resolved.session_id), Ok(0));
        assert!(sessions.is_empty());
    }

    #[test]
    fn with_an_id_the_name_does_not_count() {
        let id = TopicId::from_bytes([1; 16]);
        let named = |name: &str, id| TopicKey { name: name.into(), id };
        assert_eq!(named("a", id), named("", id));
        assert_ne!(named("a", TopicId::ZERO), named("b", TopicId::ZERO));
        assert_ne!(named("a", id), named("a", TopicId::ZERO));
    }

    #[test]
    fn only_news_is_told() {
        let sessions = FetchSessions::new(10);
        let _ = sessions.resolve(request(0, 0, &[0]), 7, 0);
        let told = Told { high_watermark: 5, log_start_offset: 0, besides: Besides::Nothing };
        assert_eq!(sessions.news(7, &[(key(0), told, false)], false), [true]);
        assert_eq!(sessions.news(7, &[(key(0), told, false)], true), [false]);
        assert_eq!(sessions.news(7, &[(key(0), told, true)], true), [true]);
        let moved = Told { high_watermark: 6, ..told };
        assert_eq!(sessions.news(7, &[(key(0), moved, false)], true), [true]);
    }

    #[test]
    fn a_follower_that_names_a_partition_again_is_told_again() {
        let ask = |id, epoch, leader_epoch, fetch_offset| {
            let wanted = Wanted { current_leader_epoch: leader_epoch, ..wanted(fetch_offset) };
            SessionRequest { is_replica: true, wanted: vec![(key(0), wanted)], ..request(id, epoch, &[]) }
        };
        let sessions = FetchSessions::new(10);
        let told = Told { high_watermark: 5, log_start_offset: 0, besides: Besides::Nothing };
        let _ = sessions.resolve(ask(0, 0, 1, 4), 7, 0);
        assert_eq!(sessions.news(7, &[(key(0), told, false)], false), [true]);
        for (leader_epoch, fetch_offset, is_told) in
            [(1, 5, false), (3, 5, true), (3, 6, false), (3, 6, true), (4, 8, true)]
        {
            let session = sessions.sessions.lock()[&7].next_epoch;
            let resolved = sessions.resolve(ask(7, session, leader_epoch, fetch_offset), 0, 0).unwrap();
            let known = if is_told { NO_OFFSET } else { 5 };
            assert_eq!(resolved.partitions[0].1.told_high_watermark, known, "it is answered at once, or not");
            assert_eq!(sessions.news(7, &[(key(0), told, false)], true), [is_told]);
            assert_eq!(sessions.news(7, &[(key(0), told, false)], true), [false]);
        }
    }

    #[test]
    fn what_is_said_besides_is_told_every_time_and_with_a_refusal_nothing_else_is() {
        let sessions = FetchSessions::new(10);
        let _ = sessions.resolve(request(0, 0, &[0]), 7, 0);
        let told = Told { high_watermark: 5, log_start_offset: 0, besides: Besides::Nothing };
        assert_eq!(sessions.news(7, &[(key(0), told, false)], false), [true]);
        for besides in [Besides::Redirection, Besides::Refusal] {
            let again = Told { besides, ..told };
            assert_eq!(sessions.news(7, &[(key(0), again, false)], true), [true]);
            assert_eq!(sessions.news(7, &[(key(0), again, false)], true), [true]);
            assert_eq!(sessions.news(7, &[(key(0), told, false)], true), [besides == Besides::Refusal]);
        }
    }

    #[test]
    fn partitions_with_records_go_to_the_end_in_their_order() {
        for moved in [1, 8, 9, 15] {
            let sessions = FetchSessions::new(10);
            let all: Vec<PartitionIndex> = (0..30).collect();
            let _ = sessions.resolve(request(0, 0, &all), 7, 0);
            let told = Told { high_watermark: 5, log_start_offset: 0, besides: Besides::Nothing };
            let has_records = |partition: PartitionIndex| partition % 2 == 0 && partition < 2 * moved;
            let answers: Vec<_> = all.iter().map(|index| (key(*index), told, has_records(*index))).collect();
            sessions.news(7, &answers, true);
            let resolved = sessions.resolve(request(7, 1, &[]), 0, 0).unwrap();
            let order: Vec<PartitionIndex> = resolved.partitions.iter().map(|((_, index), _)| *index).collect();
            let (last, first): (Vec<PartitionIndex>, Vec<PartitionIndex>) =
                all.iter().copied().partition(|index| has_records(*index));
            assert_eq!(order, [first, last].concat());
            assert!(resolved.partitions.iter().all(|(_, wanted)| wanted.told_high_watermark == 5));
        }
    }

    #[test]
    fn the_next_request_of_a_session_ends_the_wait_of_the_one_before() {
        let sessions = FetchSessions::new(10);
        let _ = sessions.resolve(request(0, 0, &[0]), 7, 0);
        let parked = sessions.resolve(request(7, 1, &[]), 0, 0).unwrap();
        let waiter = Waiter::new();
        sessions.park(7, &waiter);
        assert!(sessions.is_newest(&parked));
        let closing = sessions.resolve(request(7, -1, &[]), 0, 0).unwrap();
        assert!(!sessions.is_newest(&parked) && sessions.is_newest(&closing));
        assert!(futures_util::FutureExt::now_or_never(waiter.moved()).is_some(), "it was woken");
    }

    #[test]
    fn another_brokers_session_finds_room_always() {
        let sessions = FetchSessions::new(0);
        assert_eq!(sessions.resolve(request(0, 0, &[0]), 7, 0).map(|resolved| resolved.session_id), Ok(0));
        let replica = SessionRequest { is_replica: true, ..request(0, 0, &[0]) };
        assert_eq!(sessions.resolve(replica, 7, 0).map(|resolved| resolved.session_id), Ok(7));
    }

    #[test]
    fn a_full_cache_serves_newcomers_without_a_session_until_one_is_stale() {
        let sessions = FetchSessions::new(1);
        let _ = sessions.resolve(request(0, 0, &[0]), 7, 0);
        let refused = sessions.resolve(request(0, 0, &[0]), 8, EVICTION_MS);
        assert_eq!(refused.map(|resolved| resolved.session_id), Ok(0));
        let taken = sessions.resolve(request(0, 0, &[0]), 8, EVICTION_MS + 1);
        assert_eq!(taken.map(|resolved| resolved.session_id), Ok(8));
        assert_eq!(sessions.len(), 1);
    }
}
