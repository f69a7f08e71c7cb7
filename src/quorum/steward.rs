//! The task that keeps house: it says who leads, keeps the followers awake while this node does, has snapshots made, and begins the
//! library anew when the disk had refused and is well again.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::watch;

use super::core::{Core, Leadership, start_raft};
use super::error::QuorumError;
use super::types::{LogId, Metrics, Raft};
use crate::host::task::{self, Moment, moment};

/// The pause before the library is begun anew, and the longest one when that fails.
const REVIVE_AFTER: Duration = Duration::from_millis(20);
const REVIVE_AFTER_MAX: Duration = Duration::from_secs(1);

/// A node without others looks around this often; what happens wakes it anyway.
const IDLE: Duration = Duration::from_secs(3600);

pub(super) struct Steward {
    core: Arc<Core>,
    /// When a majority last heard of this node's leadership.
    acked_at: Option<Moment>,
    next_heartbeat: Moment,
    snapshot_asked: bool,
    purge_asked: Option<LogId>,
    /// Of the last report in the log.
    reported: Leadership,
}

impl Steward {
    pub(super) fn new(core: Arc<Core>) -> Steward {
        Steward {
            core,
            acked_at: None,
            next_heartbeat: moment(),
            snapshot_asked: false,
            purge_asked: None,
            reported: Leadership::default(),
        }
    }

    /// Runs until it is dropped, or the disk cannot be trusted any more.
    pub(super) async fn run(mut self) {
        loop {
            let raft = self.core.raft();
            let error = self.follow(&raft).await;
            self.acked_at = None;
            let is_news = self.core.last_error.lock().replace(error.clone()).as_ref() != Some(&error);
            let term = self.core.leadership.borrow().term;
            self.publish(Leadership { term, ..Leadership::default() });
            if self.core.is_closing.load(Ordering::Relaxed) {
                return;
            }
            if let Some(reason) = self.core.storage.log.failure() {
                tracing::error!("this node takes no part in the metadata quorum any more: {reason}");
                *self.core.last_error.lock() = Some(QuorumError::Storage(reason));
                self.core.disk_failed.send_replace(true);
                return;
            }
            if is_news {
                tracing::warn!(%error, "the metadata quorum begins anew on this node");
            } else {
                tracing::debug!(%error, "the metadata quorum begins anew on this node");
            }
            let _ = raft.shutdown().await;
            drop(raft);
            self.revive().await;
        }
    }

    /// Looks at everything that happens in one instance of the library, until that has ended.
    async fn follow(&mut self, raft: &Raft) -> QuorumError {
        let mut watch: watch::Receiver<Metrics> = raft.metrics();
        let mut seen_at = moment();
        loop {
            let metrics = watch.borrow_and_update().clone();
            if let Err(fatal) = &metrics.running_state {
                return QuorumError::Storage(fatal.to_string());
            }
            self.note_acks(&metrics, seen_at);
            let leadership = self.leadership(&metrics);
            self.publish(leadership);
            self.keep_log_short(raft, &metrics).await;
            let has_others = metrics.membership_config.nodes().count() > 1;
            let now = moment();
            if has_others && Core::is_leading(&metrics) && now >= self.next_heartbeat {
                self.next_heartbeat = now + self.core.timing.heartbeat();
                let _ = raft.trigger().heartbeat().await;
            }
            let wake_at =
                if Core::is_leading(&metrics) { self.next_heartbeat } else { now + self.core.timing.heartbeat() };
            let wake_at = if has_others { wake_at } else { now + IDLE };
            tokio::select! {
                biased;
                changed = watch.changed() => match changed {
                    Ok(()) => seen_at = moment(),
                    Err(_) => return QuorumError::Closed,
                },
                () = task::sleep_until(wake_at) => {}
            }
        }
    }

    fn note_acks(&mut self, metrics: &Metrics, seen_at: Moment) {
        if !Core::is_leading(metrics) {
            self.acked_at = None;
        } else if let Some(millis) = metrics.millis_since_quorum_ack {
            self.acked_at = self.acked_at.max(seen_at.checked_sub(Duration::from_millis(millis)));
        }
    }

    fn leadership(&self, metrics: &Metrics) -> Leadership {
        let core = &self.core;
        let leader = if Core::is_leading(metrics) {
            let is_heard = core.is_only_voter(metrics)
                || self.acked_at.is_some_and(|at| moment().duration_since(at) < core.timing.election_min());
            let has_all = metrics.last_applied.is_some_and(|id| id.leader_id.term == metrics.current_term);
            (is_heard && has_all).then_some(core.node_id)
        } else {
            metrics.current_leader.filter(|leader| core.hearing.live(core.timing.election_max()) == Some(*leader))
        };
        Leadership {
            leader,
            leader_address: leader.and_then(|id| core.address_of(metrics, id)),
            term: metrics.current_term,
            is_me: leader == Some(core.node_id),
        }
    }

    fn publish(&mut self, leadership: Leadership) {
        if let Some(leader) = leadership.leader {
            self.core.published.set_controller(leader);
        }
        if leadership.is_me {
            self.core.hearing.note_leading();
        }
        if (leadership.leader, leadership.term) != (self.reported.leader, self.reported.term) {
            match leadership.leader {
                Some(leader) => tracing::info!(leader, epoch = leadership.term, "the metadata quorum has a leader"),
                None if self.reported.leader.is_some() => {
                    tracing::info!(epoch = leadership.term, "the metadata quorum has no leader")
                }
                None => {}
            }
            self.reported = leadership.clone();
        }
        self.core.leadership.send_if_modified(|known| {
            let changed = *known != leadership;
            *known = leadership;
            changed
        });
    }

    /// Asks for a snapshot when one is due, and for the removal of what two snapshots cover.
    async fn keep_log_short(&mut self, raft: &Raft, metrics: &Metrics) {
        let log = &self.core.storage.log;
        self.core.published.bytes.store(log.bytes(), Ordering::Relaxed);
        let is_due = log.is_snapshot_due();
        if is_due && !self.snapshot_asked {
            let _ = raft.trigger().snapshot().await;
        }
        self.snapshot_asked = is_due;
        if let Some(upto) = log.purgeable()
            && metrics.snapshot >= Some(upto)
            && self.purge_asked != Some(upto)
        {
            self.purge_asked = Some(upto);
            let _ = raft.trigger().purge_log(upto.index).await;
        }
    }

    async fn revive(&self) {
        let core = &self.core;
        let mut pause = REVIVE_AFTER;
        loop {
            task::sleep(pause).await;
            pause = (pause * 2).min(REVIVE_AFTER_MAX);
            match start_raft(core.node_id, &core.storage, &core.machine, &core.links).await {
                Ok(raft) => {
                    core.raft.send_replace(raft);
                    if core.decides_alone().await {
                        let _ = core.raft().trigger().elect().await;
                    }
                    return;
                }
                Err(error) => tracing::warn!(%error, "the metadata quorum cannot begin anew yet"),
            }
        }
    }
}
