//! Who votes and who listens. Changes go through the log, one after the other, made by the leader.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use openraft::ChangeMembers;
use openraft::error::{ChangeMembershipError, ClientWriteError, RaftError};

use super::core::Core;
use super::error::QuorumError;
use super::rpc::{Answer, Call};
use super::types::{Metrics, next_index};
use crate::base::{BrokerId, NodeAddress};
use crate::host::task;

/// How long a change of the members may take to be agreed on.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a node may take to get everything before it becomes a voter.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(60);

/// The pause between two looks at a node that catches up.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A new voter may be this many entries behind when it becomes one.
const LAG_MAX: u64 = 100;

/// How long a leader that gives up waits for the next one.
const TAKE_OVER_TIMEOUT: Duration = Duration::from_millis(1500);

type Change = ChangeMembers<BrokerId, NodeAddress>;

impl Core {
    fn must_lead(&self) -> Result<(), QuorumError> {
        self.leadership.borrow().must_be_me()
    }

    async fn change_members(&self, change: Change) -> Result<(), QuorumError> {
        let raft = self.raft();
        match task::timeout(CHANGE_TIMEOUT, raft.change_membership(change, true)).await {
            None => Err(QuorumError::TimedOut),
            Some(Ok(_)) => Ok(()),
            Some(Err(error)) => Err(self.refused_change(error)),
        }
    }

    fn refused_change(&self, error: RaftError<BrokerId, ClientWriteError<BrokerId, NodeAddress>>) -> QuorumError {
        match error {
            RaftError::APIError(ClientWriteError::ForwardToLeader(forward)) => {
                QuorumError::NotLeader { leader: forward.leader_id.filter(|leader| *leader != self.node_id) }
            }
            RaftError::APIError(ClientWriteError::ChangeMembershipError(error)) => {
                let what = match error {
                    ChangeMembershipError::InProgress(_) => "another change is under way".to_owned(),
                    ChangeMembershipError::EmptyMembership(_) => "the last voter cannot be removed".to_owned(),
                    ChangeMembershipError::LearnerNotFound(error) => format!("node {} is not known", error.node_id),
                };
                QuorumError::Membership(what)
            }
            RaftError::Fatal(fatal) => QuorumError::Storage(fatal.to_string()),
        }
    }

    /// Has the node listen to the log from now on, at this address. A voter stays one.
    pub(super) async fn ensure_learner(&self, id: BrokerId, address: NodeAddress) -> Result<(), QuorumError> {
        if is_known_as(&self.metrics(), id, &address) {
            return Ok(());
        }
        let _changing = self.changing_members.lock().await;
        self.must_lead()?;
        let metrics = self.metrics();
        if is_known_as(&metrics, id, &address) {
            return Ok(());
        }
        let nodes = BTreeMap::from([(id, address)]);
        let is_new = metrics.membership_config.membership().get_node(&id).is_none();
        self.change_members(if is_new { ChangeMembers::AddNodes(nodes) } else { ChangeMembers::SetNodes(nodes) }).await
    }

    /// The node does not listen any more; one that is not known is no error.
    pub(super) async fn remove_learner(&self, id: BrokerId) -> Result<(), QuorumError> {
        let _changing = self.changing_members.lock().await;
        self.must_lead()?;
        let metrics = self.metrics();
        if metrics.membership_config.membership().get_node(&id).is_none() {
            return Ok(());
        }
        if metrics.membership_config.voter_ids().any(|voter| voter == id) {
            return Err(QuorumError::Membership(format!(
                "node {id} is a voter; it has to be removed from the voters first"
            )));
        }
        self.change_members(ChangeMembers::RemoveNodes(BTreeSet::from([id]))).await
    }

    /// Makes the node a voter, as soon as it has everything.
    pub(super) async fn add_voter(&self, id: BrokerId, address: NodeAddress) -> Result<(), QuorumError> {
        self.must_lead()?;
        if self.metrics().membership_config.voter_ids().any(|voter| voter == id) {
            return Err(QuorumError::Membership(format!("node {id} is a voter already")));
        }
        self.ensure_learner(id, address).await?;
        if task::timeout(CATCH_UP_TIMEOUT, self.until_caught_up(id)).await.is_none() {
            return Err(QuorumError::Membership(format!("node {id} does not catch up; is it running and reachable?")));
        }
        let _changing = self.changing_members.lock().await;
        self.must_lead()?;
        self.change_members(ChangeMembers::AddVoterIds(BTreeSet::from([id]))).await
    }

    async fn until_caught_up(&self, id: BrokerId) {
        loop {
            let matched = self.metrics().replication.and_then(|matched| matched.get(&id).copied().flatten());
            let end = next_index(self.storage.log.last());
            let is_joining = match self.look(id).await {
                Some(condition) => condition.is_fresh,
                None => true,
            };
            if !is_joining && next_index(matched).saturating_add(LAG_MAX) >= end {
                return;
            }
            task::sleep(LOOK_AGAIN).await;
        }
    }

    /// The node votes no longer; it goes on listening. A leader that removes itself hands over.
    pub(super) async fn remove_voter(&self, id: BrokerId) -> Result<(), QuorumError> {
        let _changing = self.changing_members.lock().await;
        self.must_lead()?;
        let metrics = self.metrics();
        if !metrics.membership_config.voter_ids().any(|voter| voter == id) {
            return Err(QuorumError::Membership(format!("node {id} is not a voter")));
        }
        if self.is_only_voter(&metrics) {
            return Err(QuorumError::Membership("the last voter cannot be removed".to_owned()));
        }
        let remaining: Vec<BrokerId> = metrics.membership_config.voter_ids().filter(|voter| *voter != id).collect();
        let silent = self.silent_of(&remaining).await;
        if (remaining.len() - silent.len()) * 2 <= remaining.len() {
            return Err(QuorumError::Membership(format!(
                "without node {id} the voters {remaining:?} would remain, of which {silent:?} do not answer: no majority could agree on \
                 anything. Bring those back, or remove them first"
            )));
        }
        self.change_members(ChangeMembers::RemoveVoters(BTreeSet::from([id]))).await?;
        if id == self.node_id {
            self.hand_over().await;
        }
        Ok(())
    }

    async fn silent_of(&self, voters: &[BrokerId]) -> Vec<BrokerId> {
        let mut silent = Vec::new();
        for voter in voters {
            if *voter != self.node_id && self.look(*voter).await.is_none() {
                silent.push(*voter);
            }
        }
        silent
    }

    /// Asks the voter that has most of the log to lead, and waits a moment for it.
    pub(super) async fn hand_over(&self) {
        let metrics = self.metrics();
        if !Core::is_leading(&metrics) {
            return;
        }
        let acked = self.links.acked.lock().clone();
        let others = metrics.membership_config.voter_ids().filter(|id| *id != self.node_id);
        let heir = others.max_by_key(|id| acked.get(id).map(|acked| (acked.matched, acked.answered_ms)));
        let Some((heir, address)) = heir.and_then(|id| Some((id, self.address_of(&metrics, id)?))) else { return };
        let asked = task::timeout(TAKE_OVER_TIMEOUT, self.links.call(heir, &address, &Call::TakeOver)).await;
        if !matches!(asked, Some(Ok(Answer::TakeOver))) {
            return;
        }
        let mut watch = self.raft().metrics();
        let _ = task::timeout(TAKE_OVER_TIMEOUT, watch.wait_for(|metrics| !Core::is_leading(metrics))).await;
    }
}

fn is_known_as(metrics: &Metrics, id: BrokerId, address: &NodeAddress) -> bool {
    metrics.membership_config.membership().get_node(&id) == Some(address)
}
