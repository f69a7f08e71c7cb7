//! One broker that we follow: its partitions, its session, and the loop of asking and writing.

use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;

use crate::base::{BrokerId, ErrorCode, LeaderEpoch, MonotonicMs, TopicId};
use crate::host::task;
use crate::replica::flusher::FlushPolicy;
use crate::replica::follower::Position;
use crate::replica::partition::Partition;
use crate::replica::role::{Gathered, Role};
use crate::replica::sync_wait::sync_up_to;
use crate::wire::messages::fetch_request::ReplicaState;
use crate::wire::messages::{BrokerId as WireBrokerId, FetchRequest, FetchResponse};

use super::answer::{Part, Taken, is_news, is_quick, take};
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
            let now = self.now();
            self.find_positions(now).await;
            let wanted = self.wanted(now);
            if wanted.is_empty() {
                self.wait_for_work(now).await;
                continue;
            }
            let damaged = self.damaged(&wanted);
            match self.fetch(wanted, now).await {
                Ok(answer) => {
                    self.note_answered(&damaged, &answer);
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
    async fn find_positions(&mut self, now: MonotonicMs) {
        let is_due = |followed: &Followed| followed.position.is_none() && followed.paused_until <= now;
        let unknown = self.partitions.iter().filter(|(_, followed)| is_due(followed));
        let unknown: Vec<_> =
            unknown.map(|(key, followed)| (*key, followed.partition.clone(), followed.epoch)).collect();
        if unknown.is_empty() {
            return;
        }
        let around = self.around.clone();
        let found = task::blocking(move || {
            let position = |partition: &Partition, epoch| {
                partition.prepare_to_follow(around.files(), epoch).and_then(|_| partition.position(epoch))
            };
            let found = unknown.into_iter().map(|(key, partition, epoch)| {
                let position = position(&partition, epoch);
                if let Err(error) = &position {
                    let partition = &partition.identity.topic_partition;
                    tracing::debug!(%partition, leader_epoch = epoch, %error, "the log does not say where to go on; trying again");
                }
                (key, partition, position.ok())
            });
            found.collect::<Vec<_>>()
        })
        .await;
        self.sync(found.iter().filter_map(|(_, partition, position)| Some((partition, (*position)?)))).await;
        self.keep_starts(found.iter().map(|(_, partition, _)| partition)).await;
        for (key, partition, position) in found {
            match position.filter(|position| self.may_be_said(&partition, *position)) {
                Some(position) => self.note_position(key, position),
                None => self.note_failed(key),
            }
        }
    }

    fn note_position(&mut self, key: Key, position: Position) {
        if let Some(followed) = self.partitions.get_mut(&key) {
            followed.position = Some(position);
        }
    }

    /// Something went as it should.
    fn note_progress(&mut self, key: Key, position: Position) {
        if let Some(followed) = self.partitions.get_mut(&key) {
            followed.position = Some(position);
            followed.failures = 0;
        }
    }

    /// Where the log ends now is not known: some of what was sent may have been written.
    fn note_failed(&mut self, key: Key) {
        let now = self.now();
        let backoff_ms_max = self.around.options.backoff_ms_max;
        self.session.name_again(&key);
        if let Some(followed) = self.partitions.get_mut(&key) {
            followed.position = None;
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
            let mut position = followed.position?;
            position.log_start_offset = position.log_start_offset.min(followed.partition.kept_start());
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

    async fn fetch(&mut self, wanted: IndexMap<Key, Ask>, now: MonotonicMs) -> Result<FetchResponse, FetchFailed> {
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

    /// What is asked of those whose copy is damaged.
    fn damaged(&self, wanted: &IndexMap<Key, Ask>) -> Vec<(Key, Ask)> {
        let is_damaged = |key: &Key| self.partitions.get(key).is_some_and(|followed| followed.partition.is_damaged());
        wanted.iter().filter(|(key, _)| is_damaged(key)).map(|(key, ask)| (*key, *ask)).collect()
    }

    /// The leader knows now how far these copies go.
    fn note_answered(&self, asked: &[(Key, Ask)], answer: &FetchResponse) {
        if answer.error_code != 0 {
            return;
        }
        let was_refused = |key: &Key| {
            let topics = answer.responses.iter().filter(|topic| topic.topic_id == key.0.0);
            let mut parts = topics.flat_map(|topic| &topic.partitions).filter(|part| part.partition_index == key.1);
            parts.any(|part| part.error_code != 0 || part.diverging_epoch.end_offset >= 0)
        };
        for (key, ask) in asked {
            if let Some(followed) = self.partitions.get(key).filter(|_| !was_refused(key)) {
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
        let (quick, slow): (Vec<Part>, Vec<Part>) =
            self.parts(answer).into_iter().partition(|part| is_quick(&part.data));
        let mut taken = taken_over(quick, &self.around);
        if !slow.is_empty() {
            let around = self.around.clone();
            taken.extend(task::blocking(move || taken_over(slow, &around)).await);
        }
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

    async fn note_taken(&mut self, taken: Vec<(Key, Arc<Partition>, Taken)>) {
        let ends = taken.iter().filter_map(|(_, partition, taken)| match taken {
            Taken::At(position) => Some((partition, *position)),
            Taken::Gone | Taken::Failed => None,
        });
        self.sync(ends).await;
        self.keep_starts(taken.iter().map(|(_, partition, _)| partition)).await;
        for (key, partition, taken) in taken {
            match taken {
                Taken::At(position) if self.may_be_said(&partition, position) => self.note_progress(key, position),
                Taken::At(_) | Taken::Failed => self.note_failed(key),
                Taken::Gone => {
                    self.partitions.shift_remove(&key);
                }
            }
        }
    }

    /// Whether a fetch says only what is on the device.
    fn says_what_is_durable(&self) -> bool {
        let options = &self.around.common.options;
        options.flush_policy == FlushPolicy::Sync && options.rules.syncs_before_fetch
    }

    /// What a log holds becomes durable, where the policy asks for it, before a fetch tells the leader of it: what was written just now,
    /// and what nobody waited for while this node led.
    async fn sync<'a>(&self, ends: impl Iterator<Item = (&'a Arc<Partition>, Position)>) {
        if !self.says_what_is_durable() {
            return;
        }
        sync_up_to(&self.around.flusher, ends.map(|(partition, at)| (partition, at.fetch_offset))).await;
    }

    /// Where a log begins is written down, too, before a fetch says so: the leader then tells clients that it is so everywhere.
    async fn keep_starts<'a>(&self, partitions: impl Iterator<Item = &'a Arc<Partition>>) {
        let moved: Vec<_> = partitions.filter(|partition| partition.wants_start_kept()).cloned().collect();
        if !moved.is_empty() {
            let around = self.around.clone();
            task::blocking(move || around.partitions.keep_starts(&moved)).await;
        }
    }

    fn may_be_said(&self, partition: &Partition, position: Position) -> bool {
        !self.says_what_is_durable() || partition.is_durable(position.fetch_offset)
    }

    async fn pause(&mut self) {
        let pause = backoff_ms(self.failures, self.around.options.backoff_ms_max);
        self.failures = self.failures.saturating_add(1);
        task::sleep(Duration::from_millis(pause)).await;
    }
}

fn taken_over(parts: Vec<Part>, around: &Surroundings) -> Vec<(Key, Arc<Partition>, Taken)> {
    let taken = parts.into_iter().map(|part| {
        let taken = take(&part, around.files());
        (part.key, part.partition, taken)
    });
    taken.collect()
}

fn backoff_ms(failures: u32, ms_max: u64) -> u64 {
    FIRST_BACKOFF_MS.saturating_mul(1 << failures.min(10)).min(ms_max.max(1))
}

#[cfg(test)]
mod tests {
    use futures_util::future::BoxFuture;

    use super::*;
    use crate::replica::deletion_tests::new_world;
    use crate::replica::durability_tests::{World, image_on};
    use crate::replica::fetcher::{FetcherOptions, ReplicaFetch};

    struct Nobody;

    impl ReplicaFetch for Nobody {
        fn fetch(&self, _: BrokerId, _: FetchRequest) -> BoxFuture<'static, Result<FetchResponse, FetchFailed>> {
            Box::pin(std::future::pending())
        }
    }

    /// Follows node 2 with everything that the world has.
    fn source(world: &World) -> Source {
        world.partitions.apply(&image_on(1, 1, vec![2, 1]), true);
        let around = Surroundings {
            partitions: world.partitions.clone(),
            common: world.partitions.common().clone(),
            flusher: world.flusher.clone(),
            clock: world.sim.host().clock,
            remote: Arc::new(Nobody),
            options: FetcherOptions::default(),
        };
        let inbox = Arc::new(Gathered::default());
        around.common.following.take().iter().for_each(|partition| inbox.add(partition));
        let mut source = Source::new(2, Arc::new(around), inbox);
        source.take_new();
        source
    }

    #[tokio::test]
    async fn a_partition_that_failed_rests_and_then_its_log_is_asked_anew() {
        let world = new_world();
        let mut source = source(&world);
        let now = source.now();
        source.find_positions(now).await;
        assert_eq!(source.wanted(now).len(), 3);
        let key = *source.partitions.keys().next().unwrap();
        let mut pauses = Vec::new();
        for _ in 0..3 {
            source.note_failed(key);
            assert_eq!(source.partitions[&key].position, None, "what was said of it may be wrong");
            source.find_positions(now).await;
            assert_eq!(source.partitions[&key].position, None, "it rests");
            let until = source.partitions[&key].paused_until;
            pauses.push(until - source.now());
            source.find_positions(until).await;
            assert!(source.wanted(until).contains_key(&key));
        }
        assert_eq!(pauses, [20, 40, 80], "that the log can be asked is no progress");
        let position = source.partitions[&key].position.unwrap();
        source.note_progress(key, position);
        source.note_failed(key);
        assert_eq!(source.partitions[&key].paused_until - source.now(), 20);
    }
}
