//! Proposing in-sync sets: one task that looks at every partition this node leads, now and then for those that fell behind and at once
//! for those that caught up, and sends what should change to the controller in as few requests as possible.
//!
//! A proposal is under way until the metadata shows a newer state of the partition or the controller refuses it for good; meanwhile
//! the high watermark waits for everybody who may be in sync. One that was not answered is sent again: carrying it out twice is refused by
//! its partition epoch.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::base::{BrokerId, ErrorCode, MonotonicMs, PartitionIndex, TopicId};
use crate::host::{Clock, task};
use crate::replica::leader::{IsrChange, Proposal};
use crate::replica::partition::Partition;
use crate::replica::partitions::Partitions;
use crate::replica::role::Common;

/// How often all partitions are looked at; more often when `replica.lag.time.max.ms` is short.
const TICK_MS_MAX: u64 = 1_000;

/// After this long without news a proposal is sent again, and a refused one may be made again.
const RETRY_MS: u64 = 500;

/// After this long nobody waits for an answer any more.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(5);

/// One partition's part of an AlterPartition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsrProposal {
    pub topic_id: TopicId,
    pub topic: Arc<str>,
    pub partition: PartitionIndex,
    /// With this node's own broker epoch filled in.
    pub proposal: Proposal,
}

/// Nobody knows what became of the proposals.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ProposeFailed(pub String);

/// The answers in the order of the proposals.
pub type IsrAnswers = Result<Vec<Result<(), ErrorCode>>, ProposeFailed>;

/// The way to the controller.
pub trait IsrProposals: Send + Sync {
    /// Sends AlterPartition (v3) to the active controller.
    fn propose(&self, proposals: Vec<IsrProposal>) -> BoxFuture<'static, IsrAnswers>;
}

type Key = (TopicId, PartitionIndex);

struct Outstanding {
    partition: Arc<Partition>,
    proposal: Proposal,
    change: IsrChange,
    /// When it may be sent again.
    retry_at: MonotonicMs,
}

pub struct IsrDriver {
    partitions: Arc<Partitions>,
    common: Arc<Common>,
    clock: Arc<dyn Clock>,
    controller: Arc<dyn IsrProposals>,
    outstanding: HashMap<Key, Outstanding>,
    /// Refused lately: not before then again.
    resting: HashMap<Key, MonotonicMs>,
}

impl IsrDriver {
    pub fn new(partitions: Arc<Partitions>, clock: Arc<dyn Clock>, controller: Arc<dyn IsrProposals>) -> IsrDriver {
        let common = partitions.common().clone();
        IsrDriver { partitions, common, clock, controller, outstanding: HashMap::new(), resting: HashMap::new() }
    }

    /// Never ends.
    pub async fn run(mut self) {
        let tick_ms = (self.common.options.lag_ms_max / 2).clamp(1, TICK_MS_MAX);
        let mut next_tick = self.clock.monotonic_ms() + tick_ms;
        loop {
            let now = self.clock.monotonic_ms();
            let pause = Duration::from_millis(next_tick.saturating_sub(now));
            let ticked = task::timeout(pause, self.common.growing.filled()).await.is_none();
            let now = self.clock.monotonic_ms();
            let mut looked_at = self.common.growing.take();
            if ticked || now >= next_tick {
                next_tick = now + tick_ms;
                looked_at = self.led();
            }
            self.round(looked_at, now).await;
        }
    }

    fn led(&self) -> Vec<Arc<Partition>> {
        let mut led = Vec::new();
        for topic in self.partitions.topics() {
            led.extend(topic.partitions.iter().flatten().filter(|partition| partition.is_leader()).cloned());
        }
        led
    }

    /// Looks at some partitions and sends what follows, with what was not answered before.
    pub(super) async fn round(&mut self, looked_at: Vec<Arc<Partition>>, now: MonotonicMs) {
        self.outstanding.retain(|_, one| one.partition.is_isr_pending(&one.proposal));
        self.resting.retain(|_, until| *until > now);
        let mut due: Vec<Key> =
            self.outstanding.iter().filter(|(_, one)| one.retry_at <= now).map(|(key, _)| *key).collect();
        for partition in looked_at {
            let key = (partition.identity.topic_id, partition.identity.topic_partition.partition);
            partition.reconsider();
            if self.resting.contains_key(&key) {
                continue;
            }
            if let Some((proposal, change)) = partition.propose_isr() {
                self.outstanding.insert(key, Outstanding { partition, proposal, change, retry_at: now });
                due.push(key);
            }
        }
        if !due.is_empty() {
            due.sort_unstable();
            self.send(due, now).await;
        }
    }

    async fn send(&mut self, due: Vec<Key>, now: MonotonicMs) {
        let me = (self.common.options.node_id, self.common.broker_epoch());
        let mut proposals = Vec::with_capacity(due.len());
        for key in &due {
            if let Some(one) = self.outstanding.get_mut(key) {
                one.retry_at = now + RETRY_MS;
                proposals.push(described(one, me));
            }
        }
        let answered = task::timeout(ANSWER_WAIT_MAX, self.controller.propose(proposals)).await;
        match answered.unwrap_or_else(|| Err(ProposeFailed("no answer in time".to_owned()))) {
            Ok(answers) => {
                for (key, answer) in due.iter().zip(answers) {
                    self.note_answer(*key, answer);
                }
            }
            Err(error) => tracing::debug!(%error, "proposals of in-sync sets were not answered; sending them again"),
        }
    }

    /// The controller has made the change.
    fn note_done(&self, key: Key) {
        let metrics = &self.partitions.telemetry().replication;
        match self.outstanding.get(&key).map(|one| one.change) {
            Some(IsrChange::Shrinks) => metrics.isr_shrunk(),
            Some(IsrChange::Expands) => metrics.isr_expanded(),
            Some(IsrChange::Stays) | None => {}
        }
    }

    fn note_answer(&mut self, key: Key, answer: Result<(), ErrorCode>) {
        let Err(error) = answer else { return self.note_done(key) };
        self.partitions.telemetry().replication.isr_update_failed();
        let is_final = matches!(
            error,
            ErrorCode::INELIGIBLE_REPLICA | ErrorCode::OPERATION_NOT_ATTEMPTED | ErrorCode::INVALID_REQUEST
        );
        let Some(one) = self.outstanding.get(&key) else { return };
        let partition = &one.partition.identity.topic_partition;
        tracing::debug!(%partition, proposal = ?one.proposal, %error, "the controller refuses an in-sync set");
        if is_final && let Some(one) = self.outstanding.remove(&key) {
            one.partition.note_isr_refused(&one.proposal);
            self.resting.insert(key, self.clock.monotonic_ms() + RETRY_MS);
        }
        // Else our picture is old, or the controller is another one now: the metadata or a later try will tell.
    }
}

fn described(one: &Outstanding, (me, my_epoch): (BrokerId, i64)) -> IsrProposal {
    let identity = &one.partition.identity;
    let mut proposal = one.proposal.clone();
    for (_, epoch) in proposal.isr.iter_mut().filter(|(id, _)| *id == me) {
        *epoch = my_epoch;
    }
    IsrProposal {
        topic_id: identity.topic_id,
        topic: identity.topic_partition.topic.clone(),
        partition: identity.topic_partition.partition,
        proposal,
    }
}
