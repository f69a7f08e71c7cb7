//! What the quorum's tasks share: the library's instance, what it stands on, and what this node knows of the others.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bytes::BytesMut;
use openraft::{Config, ServerState, SnapshotPolicy};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use super::error::QuorumError;
use super::hearing::Hearing;
use super::log_store::{LogStore, Storage};
use super::machine::{Machine, Published};
use super::network::{Links, Network};
use super::snapshot::SnapshotId;
use super::types::{Membership, Metrics, Raft, Vote};
use super::voteless::Voteless;
use crate::base::{BrokerId, NodeAddress};
use crate::host::Host;

/// How fast the quorum notices things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuorumTiming {
    /// Time between two words of a leader that has nothing to say.
    pub heartbeat_ms: u64,
    /// A leader that has been silent for less is taken to be alive.
    pub election_ms_min: u64,
    /// A voter that has heard nothing for a time between the two campaigns.
    pub election_ms_max: u64,
}

impl Default for QuorumTiming {
    fn default() -> QuorumTiming {
        QuorumTiming { heartbeat_ms: 200, election_ms_min: 1000, election_ms_max: 2000 }
    }
}

impl QuorumTiming {
    pub(super) fn heartbeat(self) -> Duration {
        Duration::from_millis(self.heartbeat_ms)
    }

    pub(super) fn election_min(self) -> Duration {
        Duration::from_millis(self.election_ms_min)
    }

    pub(super) fn election_max(self) -> Duration {
        Duration::from_millis(self.election_ms_max)
    }
}

/// Who leads, as this node sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leadership {
    /// `None` while nobody is known to lead.
    pub leader: Option<BrokerId>,
    pub leader_address: Option<NodeAddress>,
    /// Kafka's controller epoch. Never goes back, and no two leaders share one.
    pub term: u64,
    /// This node leads, has applied everything of older terms, and a majority heard from it a moment ago.
    pub is_me: bool,
}

impl Leadership {
    /// # Errors
    /// On every node but the one that leads; the error says which one does.
    pub fn must_be_me(&self) -> Result<(), QuorumError> {
        if self.is_me { Ok(()) } else { Err(QuorumError::NotLeader { leader: self.leader }) }
    }
}

/// A snapshot that is on its way here.
pub(super) struct Receiving {
    pub(super) id: SnapshotId,
    pub(super) vote: Vote,
    pub(super) bytes: BytesMut,
}

pub(super) struct Core {
    pub(super) host: Host,
    pub(super) node_id: BrokerId,
    pub(super) timing: QuorumTiming,
    pub(super) storage: Arc<Storage>,
    pub(super) machine: Arc<Machine>,
    pub(super) published: Arc<Published>,
    pub(super) links: Arc<Links>,
    /// The running instance; another one takes its place when the disk had refused and is well again.
    pub(super) raft: watch::Sender<Raft>,
    pub(super) leadership: watch::Sender<Leadership>,
    pub(super) hearing: Hearing,
    /// Somebody thinks that the leader is gone.
    pub(super) suspicion: Notify,
    /// What was last said of a leader that does not reach this node: which one, and where it looks for this node.
    pub(super) unreached: Mutex<Option<(BrokerId, Option<NodeAddress>)>>,
    /// What was last said of nodes that are configured as voters and are none.
    pub(super) voteless: Mutex<Option<Voteless>>,
    /// The leader asks this node to take over.
    pub(super) takeover: Notify,
    pub(super) receiving: tokio::sync::Mutex<Option<Receiving>>,
    pub(super) is_closing: AtomicBool,
    /// Held by whoever changes the members.
    pub(super) changing_members: tokio::sync::Mutex<()>,
    pub(super) last_error: Mutex<Option<QuorumError>>,
    pub(super) disk_failed: watch::Sender<bool>,
}

/// The library's own timers are off: heartbeats and elections are driven from here, where a vote can be refused while a leader is
/// alive and given at once when it is not. That is why its lease is next to nothing.
fn config() -> Arc<Config> {
    #[expect(deprecated, reason = "every field has to be named, or the defaults are parsed as a command line")]
    Arc::new(Config {
        cluster_name: "barnabas".to_owned(),
        election_timeout_min: 1,
        election_timeout_max: 2,
        heartbeat_interval: 1000,
        install_snapshot_timeout: 60_000,
        send_snapshot_timeout: 0,
        max_payload_entries: 300,
        replication_lag_threshold: 1000,
        snapshot_policy: SnapshotPolicy::Never,
        snapshot_max_chunk_size: 1024 * 1024,
        max_in_snapshot_log_to_keep: u64::MAX / 2,
        purge_batch_size: 1,
        enable_tick: true,
        enable_heartbeat: false,
        enable_elect: false,
    })
}

/// Begins an instance of the library on what is kept.
pub(super) async fn start_raft(
    node_id: BrokerId,
    storage: &Arc<Storage>,
    machine: &Arc<Machine>,
    links: &Arc<Links>,
) -> Result<Raft, QuorumError> {
    Raft::new(node_id, config(), Network(links.clone()), LogStore(storage.clone()), machine.handle())
        .await
        .map_err(|fatal| QuorumError::Storage(fatal.to_string()))
}

pub(super) fn is_majority(membership: &Membership, agreeing: &BTreeSet<BrokerId>) -> bool {
    let configs = membership.get_joint_config();
    !configs.is_empty() && configs.iter().all(|voters| voters.intersection(agreeing).count() > voters.len() / 2)
}

impl Core {
    pub(super) fn raft(&self) -> Raft {
        self.raft.borrow().clone()
    }

    pub(super) fn metrics(&self) -> Metrics {
        self.raft.borrow().metrics().borrow().clone()
    }

    pub(super) fn is_voter(&self, metrics: &Metrics) -> bool {
        metrics.membership_config.voter_ids().any(|id| id == self.node_id)
    }

    /// Nobody else's consent is needed. Asks the library itself: right after a start its metrics say nothing yet.
    pub(super) async fn decides_alone(&self) -> bool {
        let (raft, node_id) = (self.raft(), self.node_id);
        let answer = raft.with_raft_state(move |state| state.membership_state.effective().voter_ids().eq([node_id]));
        answer.await.unwrap_or(false)
    }

    /// Nobody else's consent is needed.
    pub(super) fn is_only_voter(&self, metrics: &Metrics) -> bool {
        metrics.membership_config.voter_ids().eq([self.node_id])
    }

    pub(super) fn is_leading(metrics: &Metrics) -> bool {
        metrics.state == ServerState::Leader && metrics.running_state.is_ok()
    }

    /// A number in `[from, to)`, from the host's randomness.
    pub(super) fn random_between(&self, from: u64, to: u64) -> u64 {
        let mut bytes = [0; 8];
        self.host.entropy.fill(&mut bytes);
        from + u64::from_le_bytes(bytes).checked_rem(to.saturating_sub(from)).unwrap_or(0)
    }

    pub(super) fn random_pause(&self, from_ms: u64, to_ms: u64) -> Duration {
        Duration::from_millis(self.random_between(from_ms, to_ms))
    }

    pub(super) fn address_of(&self, metrics: &Metrics, id: BrokerId) -> Option<NodeAddress> {
        self.links.addresses.of(id, metrics.membership_config.membership().get_node(&id))
    }
}
