//! When to campaign. A voter that hears nothing for a while, or learns that its leader is gone, first asks the others whether they
//! would vote for it; only when a majority would, it begins a new term. So a node that has been away, or hears badly, does not
//! disturb a leader whom the others hear.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::core::{Core, is_majority};
use super::rpc::{Answer, Call, Condition, PreVote};
use super::types::Metrics;
use crate::base::BrokerId;
use crate::host::task::{self, Moment, moment};

/// How long an answer about another node's condition is waited for.
const LOOK_TIMEOUT: Duration = Duration::from_millis(300);

/// How long the answers before a campaign are waited for.
const PRE_VOTE_TIMEOUT: Duration = Duration::from_millis(500);

/// How long a campaign may take before the next one is thought of; each one in a row gets twice the time of the one before, since
/// the disks may be slow.
const CAMPAIGN_MS: (u64, u64) = (200, 400);
const CAMPAIGN_DOUBLINGS_MAX: u32 = 4;

/// The pause before a campaign against a leader that is known to be gone, so that not all campaign at once.
const FAST_PAUSE_MS: (u64, u64) = (50, 200);

/// Campaigns in quick succession; after them the usual timers go on.
const FAST_TRIES: usize = 10;

enum Event {
    TakeOver,
    Lost(BrokerId),
    Suspicion,
    Silence,
}

/// Runs until it is dropped.
pub(super) async fn run(core: Arc<Core>) {
    let mut lost = core.links.transport.connection_lost();
    let mut deadline = moment() + election_timeout(&core);
    loop {
        let event = tokio::select! {
            biased;
            () = core.takeover.notified() => Event::TakeOver,
            event = next_loss(&mut lost) => event,
            () = core.suspicion.notified() => Event::Suspicion,
            () = task::sleep_until(deadline) => Event::Silence,
        };
        let metrics = core.metrics();
        if may_campaign(&core, &metrics) {
            core.react(event).await;
        }
        deadline = if may_campaign(&core, &core.metrics()) {
            next_deadline(&core)
        } else {
            moment() + election_timeout(&core)
        };
    }
}

async fn next_loss(lost: &mut broadcast::Receiver<BrokerId>) -> Event {
    match lost.recv().await {
        Ok(id) => Event::Lost(id),
        // Too many at once: the leader may have been among them.
        Err(RecvError::Lagged(_)) => Event::Suspicion,
        Err(RecvError::Closed) => std::future::pending().await,
    }
}

fn election_timeout(core: &Core) -> Duration {
    core.random_pause(core.timing.election_ms_min, core.timing.election_ms_max)
}

/// A leader that speaks moves the deadline on; where none is known, the next try is soon.
fn next_deadline(core: &Core) -> Moment {
    match core.hearing.last() {
        Some((_, at)) => (at + election_timeout(core)).max(moment() + core.timing.heartbeat()),
        None => moment() + core.random_pause(core.timing.heartbeat_ms, 3 * core.timing.heartbeat_ms),
    }
}

fn may_campaign(core: &Core, metrics: &Metrics) -> bool {
    !Core::is_leading(metrics) && core.is_voter(metrics) && !core.storage.is_joining()
}

impl Core {
    async fn react(&self, event: Event) {
        match event {
            Event::TakeOver => {
                if let Some((leader, _)) = self.hearing.last() {
                    self.hearing.forget(leader);
                }
                self.links.is_takeover.store(true, Ordering::Relaxed);
                self.campaign().await;
                self.links.is_takeover.store(false, Ordering::Relaxed);
            }
            Event::Lost(id) => {
                if self.hearing.last().is_some_and(|(leader, _)| leader == id) {
                    self.doubt(id).await;
                }
            }
            Event::Suspicion => {
                if let Some((leader, _)) = self.hearing.last() {
                    self.doubt(leader).await;
                }
            }
            Event::Silence => {
                if self.hearing.live(self.timing.election_min()).is_none() && self.would_win().await {
                    self.campaign().await;
                }
            }
        }
    }

    /// Asks the leader whether it still is one, and goes after its place when it is not there.
    async fn doubt(&self, leader: BrokerId) {
        let asked = moment();
        if self.look(leader).await.is_some_and(|condition| condition.is_leader) {
            return;
        }
        if self.hearing.last().is_some_and(|(heard, at)| heard != leader || at > asked) {
            return;
        }
        tracing::info!(node_id = self.node_id, leader, "the leader of the metadata quorum is gone");
        self.hearing.forget(leader);
        for _ in 0..FAST_TRIES {
            task::sleep(self.random_pause(FAST_PAUSE_MS.0, FAST_PAUSE_MS.1)).await;
            if self.hearing.last().is_some() || (self.would_win().await && self.campaign().await) {
                return;
            }
        }
    }

    pub(super) async fn look(&self, id: BrokerId) -> Option<Condition> {
        let address = self.address_of(&self.metrics(), id)?;
        match task::timeout(LOOK_TIMEOUT, self.links.call(id, &address, &Call::Look)).await {
            Some(Ok(Answer::Look(condition))) => Some(condition),
            _ => None,
        }
    }

    /// Whether a majority would vote for this node now.
    async fn would_win(&self) -> bool {
        let metrics = self.metrics();
        let membership = metrics.membership_config.membership();
        let asked = PreVote {
            candidate: self.node_id,
            term: self.storage.term().saturating_add(1),
            last: self.storage.log.last(),
        };
        let mut agreeing = BTreeSet::from([self.node_id]);
        let mut answers: FuturesUnordered<_> = membership
            .voter_ids()
            .filter(|id| *id != self.node_id)
            .map(|id| async move { (id, self.ask_for_pre_vote(id, asked).await) })
            .collect();
        while !is_majority(membership, &agreeing) {
            match answers.next().await {
                Some((id, true)) => drop(agreeing.insert(id)),
                Some((_, false)) => {}
                None => return false,
            }
        }
        true
    }

    async fn ask_for_pre_vote(&self, id: BrokerId, asked: PreVote) -> bool {
        let Some(address) = self.address_of(&self.metrics(), id) else { return false };
        let answer = task::timeout(PRE_VOTE_TIMEOUT, self.links.call(id, &address, &Call::PreVote(asked))).await;
        matches!(answer, Some(Ok(Answer::PreVote { granted: true })))
    }

    /// Begins a new term. Answers whether there is a leader afterwards, this node or another one.
    pub(super) async fn campaign(&self) -> bool {
        let raft = self.raft();
        tracing::info!(
            node_id = self.node_id,
            term = self.storage.term() + 1,
            "standing for leader of the metadata quorum"
        );
        if raft.trigger().elect().await.is_err() {
            return false;
        }
        let mut metrics = raft.metrics();
        let decided = metrics.wait_for(|metrics| Core::is_leading(metrics) || self.hearing.last().is_some());
        let doublings = self.hearing.count_campaign().min(CAMPAIGN_DOUBLINGS_MAX);
        let timeout = self.random_pause(CAMPAIGN_MS.0, CAMPAIGN_MS.1) * (1 << doublings);
        matches!(task::timeout(timeout, decided).await, Some(Ok(_)))
    }
}
