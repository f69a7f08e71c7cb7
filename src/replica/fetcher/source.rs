//! One broker that we follow: its partitions, its session, and the loop of asking and writing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;

use crate::base::{BrokerId, ErrorCode, LeaderEpoch, MonotonicMs, TopicId};
use crate::host::task;
use crate::replica::ack::AckTicket;
use crate::replica::flusher::FlushPolicy;
use crate::replica::follower::Position;
use crate::replica::partition::Partition;
use crate::replica::role::{Gathered, Role};
use crate::wire::messages::fetch_request::ReplicaState;
use crate::wire::messages::{BrokerId as WireBrokerId, FetchRequest, FetchResponse};

use super::answer::{Part, Taken, is_news, take};
use super::session::{Ask, Key, Session};
use super::{FetchFailed, Surroundings};

/// The first pause after an error; each further one is twice as long, up to `replica.fetch.backoff.ms`.
const FIRST_BACKOFF_MS: u64 = 20;

/// A request that is not answered at once is waiting for news: then the session is closed when there are new partitions to ask for.
const PARKED_AFTER: Duration = Duration::from_millis(5);

/// A partition that is followed.
struct Followed {
    partition: Arc<Partition>,
    epoch: LeaderEpoch,
    /// `None`: to be asked of the log.
    position: Option<Position>,
    failures: u32,
    paused_until: MonotonicMs,
}

pub(super) struct Source {
    leader: BrokerId,
    around: Arc<Surroundings>,
    inbox: Arc<Gathered>,
    partitions: IndexMap<Key, Followed>,
    session: Session,
    failures: u32,
}

impl Source {
    pub(super) fn new(leader: BrokerId, around: Arc<Surroundings>, inbox: Arc<Gathered>) -> Source {
        Source { leader, around, inbox, partitions: IndexMap::new(), session: Session::default(), failures: 0 }
    }

    pub(super) async fn run(mut self) {
        loop {
            self.take_new();
            self.drop_gone();
            self.find_positions().await;
            let now = self.now();
            let wanted = self.wanted(now);
            if wanted.is_empty() {
                self.wait_for_work(now).await;
                continue;
            }
            match self.fetch(&wanted, now).await {
                Ok(answer) => {
                    self.note_answered(&wanted, &answer);
                    self.take_over(answer).await;
                }
                Err(error) => {
                    self.session.reset();
                    tracing::debug!(leader = self.leader, %error, "a fetch was not answered; trying again");
                    self.pause().await;
                }
            }
        }
    }

    fn now(&self) -> MonotonicMs {
        self.around.clock.monotonic_ms()
    }

    fn take_new(&mut self) {
        for partition in self.inbox.take() {
            let Role::Follower { leader, epoch } = partition.role() else { continue };
            if leader == self.leader {
                let key = (partition.identity.topic_id, partition.identity.topic_partition.partition);
                let followed = Followed { partition, epoch, position: None, failures: 0, paused_until: 0 };
                self.partitions.insert(key, followed);
            }
        }
    }

    fn drop_gone(&mut self) {
        self.partitions.retain(|_, followed| followed.partition.follows(followed.epoch));
    }

    /// Asks the logs where they end. May open them, so it happens where blocking is allowed.
    async fn find_positions(&mut self) {
        let unknown = self.partitions.iter().filter(|(_, followed)| followed.position.is_none());
        let unknown: Vec<_> =
            unknown.map(|(key, followed)| (*key, followed.partition.clone(), followed.epoch)).collect();
        if unknown.is_empty() {
            return;
        }
        let flusher = self.around.flusher.clone();
        let found = task::blocking(move || {
            let position = |partition: &Partition, epoch| {
                partition.prepare_to_follow(&flusher, epoch).and_then(|_| partition.position(epoch))
            };
            let found = unknown.into_iter().map(|(key, partition, epoch)| (key, position(&partition, epoch).ok()));
            found.collect::<Vec<_>>()
        })
        .await;
        for (key, position) in found {
            match position {
                Some(position) => self.note_position(key, position),
                None => self.note_failed(key),
            }
        }
    }

    fn note_position(&mut self, key: Key, position: Position) {
        if let Some(followed) = self.partitions.get_mut(&key) {
            followed.position = Some(position);
            followed.failures = 0;
        }
    }

    fn note_failed(&mut self, key: Key) {
        let now = self.now();
        let backoff_ms_max = self.around.options.backoff_ms_max;
        if let Some(followed) = self.partitions.get_mut(&key) {
            followed.paused_until = now + backoff_ms(followed.failures, backoff_ms_max);
            followed.failures = followed.failures.saturating_add(1);
        }
    }

    fn wanted(&self, now: MonotonicMs) -> IndexMap<Key, Ask> {
        let bytes_max = self.around.options.partition_bytes_max;
        let has_room = self.around.common.follower_throttle.has_room(now);
        let may_ask = |followed: &Followed| {
            followed.paused_until <= now && (has_room || !followed.partition.counts_for_follower_quota())
        };
        let asks = self.partitions.iter().filter(|(_, followed)| may_ask(followed)).filter_map(|(key, followed)| {
            let position = followed.position?;
            Some((*key, Ask { leader_epoch: followed.epoch, position, bytes_max }))
        });
        asks.collect()
    }

    /// When the next pause of a partition is over, from now.
    fn next_pause_end_ms(&self, now: MonotonicMs) -> Option<u64> {
        let paused = self.partitions.values().map(|followed| followed.paused_until).filter(|until| *until > now);
        paused.min().map(|until| until - now)
    }

    async fn wait_for_work(&mut self, now: MonotonicMs) {
        let pause = self.next_pause_end_ms(now).map_or(Duration::MAX, Duration::from_millis);
        if self.partitions.is_empty() {
            self.inbox.filled().await;
        } else {
            let _ = task::timeout(pause.min(Duration::from_secs(1)), self.inbox.filled()).await;
        }
    }

    fn request(&self) -> FetchRequest {
        let options = &self.around.options;
        let common = &self.around.common;
        let replica = ReplicaState::default()
            .with_replica_id(WireBrokerId(common.options.node_id))
            .with_replica_epoch(common.broker_epoch());
        FetchRequest::default()
            .with_replica_state(replica)
            .with_min_bytes(options.bytes_min)
            .with_max_bytes(options.response_bytes_max)
    }

    async fn fetch(&mut self, wanted: &IndexMap<Key, Ask>, now: MonotonicMs) -> Result<FetchResponse, FetchFailed> {
        let wait_ms = self.next_pause_end_ms(now).unwrap_or(u64::MAX).min(self.around.options.wait_ms_max);
        let mut request = self.request().with_max_wait_ms(i32::try_from(wait_ms).unwrap_or(i32::MAX));
        self.session.ask(&mut request, wanted);
        let mut answer = self.around.remote.fetch(self.leader, request);
        if let Some(answer) = task::timeout(PARKED_AFTER, &mut answer).await {
            return answer;
        }
        tokio::select! {
            answer = &mut answer => return answer,
            () = self.inbox.filled() => {}
        }
        // New partitions must not wait until the leader has news of the old ones: closing the session ends that wait.
        let mut closing = self.request();
        if !self.session.close(&mut closing) {
            return answer.await;
        }
        let mut closed = self.around.remote.fetch(self.leader, closing);
        let answer = tokio::select! {
            answer = &mut answer => answer,
            _ = &mut closed => answer.await,
        };
        answer.map(|answer| answer.with_session_id(0))
    }

    /// The leader knows now how far each of these copies goes.
    fn note_answered(&self, wanted: &IndexMap<Key, Ask>, answer: &FetchResponse) {
        if answer.error_code != 0 {
            return;
        }
        let was_refused = |key: &Key| {
            let topics = answer.responses.iter().filter(|topic| topic.topic_id == key.0.0);
            let mut parts = topics.flat_map(|topic| &topic.partitions).filter(|part| part.partition_index == key.1);
            parts.any(|part| part.error_code != 0 || part.diverging_epoch.end_offset >= 0)
        };
        for (key, ask) in wanted {
            if let Some(followed) = self.partitions.get(key)
                && followed.partition.is_damaged()
                && !was_refused(key)
            {
                followed.partition.note_fetch_answered(ask.leader_epoch, ask.position.fetch_offset);
            }
        }
    }

    async fn take_over(&mut self, answer: FetchResponse) {
        match ErrorCode(answer.error_code) {
            ErrorCode::NONE => {}
            ErrorCode::FETCH_SESSION_ID_NOT_FOUND
            | ErrorCode::INVALID_FETCH_SESSION_EPOCH
            | ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR => {
                self.session.forget();
                if self.failures > 0 {
                    return self.pause().await;
                }
                self.failures += 1;
                return;
            }
            error => {
                tracing::warn!(leader = self.leader, %error, "a leader refuses our fetches; trying again");
                self.session.forget();
                return self.pause().await;
            }
        }
        self.failures = 0;
        self.session.note_answer(answer.session_id);
        let parts = self.parts(answer);
        if parts.is_empty() {
            return;
        }
        let flusher = self.around.flusher.clone();
        let taken = task::blocking(move || {
            let taken = parts.into_iter().map(|part| (part.key, take(&part, &flusher), part.partition));
            taken.collect::<Vec<_>>()
        })
        .await;
        self.note_taken(taken).await;
    }

    fn parts(&self, answer: FetchResponse) -> Vec<Part> {
        let mut parts = Vec::new();
        for topic in answer.responses {
            for data in topic.partitions {
                let key = (TopicId(topic.topic_id), data.partition_index);
                if let Some(followed) = self.partitions.get(&key).filter(|_| is_news(&data)) {
                    self.note_fetched(followed, data.records.as_ref().map_or(0, |records| records.len()));
                    parts.push(Part { key, partition: followed.partition.clone(), epoch: followed.epoch, data });
                }
            }
        }
        parts
    }

    fn note_fetched(&self, followed: &Followed, bytes: usize) {
        if bytes > 0 && followed.partition.counts_for_follower_quota() {
            self.around.common.follower_throttle.took(bytes, self.now());
        }
    }

    /// What was written becomes durable, where the policy asks for it, before the next fetch tells the leader of it.
    async fn note_taken(&mut self, taken: Vec<(Key, Taken, Arc<Partition>)>) {
        let ticket = AckTicket::new();
        let options = &self.around.common.options;
        let syncs = options.flush_policy == FlushPolicy::Sync && options.rules.syncs_before_fetch;
        let mut numbers = HashMap::new();
        for (number, (key, taken, partition)) in taken.iter().enumerate() {
            if let Taken::At { written_below: Some(below), .. } = taken
                && syncs
            {
                partition.claim_synced(*below, &ticket, number);
                self.around.flusher.request(partition);
                numbers.insert(*key, number);
            }
        }
        if !ticket.seal() {
            ticket.clone().wait().await;
        }
        for (key, taken, _) in taken {
            let is_safe = numbers.get(&key).is_none_or(|number| ticket.outcome(*number).is_ok());
            match taken {
                Taken::At { position, .. } if is_safe => self.note_position(key, position),
                Taken::At { .. } | Taken::Failed => self.note_failed(key),
                Taken::Gone => {
                    self.partitions.shift_remove(&key);
                }
            }
        }
    }

    async fn pause(&mut self) {
        let pause = backoff_ms(self.failures, self.around.options.backoff_ms_max);
        self.failures = self.failures.saturating_add(1);
        task::sleep(Duration::from_millis(pause)).await;
    }
}

fn backoff_ms(failures: u32, ms_max: u64) -> u64 {
    FIRST_BACKOFF_MS.saturating_mul(1 << failures.min(10)).min(ms_max.max(1))
}
