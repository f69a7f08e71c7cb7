//! What a request that appends waits for before it is answered: nothing, or that some of what it wrote is safe.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;
use std::time::Duration;

use crate::base::Offset;
use crate::host::task;
use crate::log::Appended;
use crate::replica::ack::{AckFailure, AckTicket};
use crate::replica::flusher::FlushPolicy;
use crate::replica::lanes::Flusher;
use crate::replica::partition::Partition;

/// `acks=0`: the producer wants no answer, so nothing can wait.
const NO_ANSWER: i16 = 0;
const ALL: i16 = -1;

/// Collects what one request has appended. No ticket is made for a request that does not wait.
pub struct SyncWait {
    acks: i16,
    policy: FlushPolicy,
    appended: Cell<usize>,
    ticket: OnceCell<Arc<AckTicket>>,
}

impl SyncWait {
    pub fn new(acks: i16, policy: FlushPolicy) -> SyncWait {
        SyncWait { acks, policy, appended: Cell::new(0), ticket: OnceCell::new() }
    }

    pub fn is_acks_all(&self) -> bool {
        self.acks == ALL
    }

    /// Records were appended to the partition, now or, being duplicates, before; what is appended is numbered from 0. Asks for the sync
    /// that has to follow: by `flush.policy`, or because `flush.messages` has been reached, whatever the request's `acks` are.
    pub fn appended(&self, flusher: &Flusher, partition: &Arc<Partition>, appended: &Appended) {
        let number = self.appended.replace(self.appended.get() + 1);
        let below = appended.last_offset + 1;
        let mut sync = partition.flush_is_due(below);
        if sync && self.acks != NO_ANSWER {
            partition.claim_synced(below, self.ticket(), sync_claim(number));
        }
        if self.is_acks_all() && !(partition.is_acked(below) && partition.leader_epoch() == appended.leader_epoch) {
            partition.claim_committed(below, appended.leader_epoch, self.ticket(), commit_claim(number));
            sync |= self.policy == FlushPolicy::Sync;
        }
        if sync {
            flusher.request(partition);
        }
    }

    fn ticket(&self) -> &Arc<AckTicket> {
        self.ticket.get_or_init(AckTicket::new)
    }

    /// What the answer waits for; `None` when it can go now. What has failed already is still waited for, to be told so.
    pub fn seal(self) -> Option<Unanswered> {
        let ticket = self.ticket.into_inner()?;
        let all_is_safe = ticket.seal() && ticket.has_succeeded();
        (!all_is_safe).then_some(Unanswered(ticket))
    }
}

/// Waits until these logs are on the device up to these offsets, or are not known to become so: [`Partition::is_durable`] says which.
pub async fn sync_up_to<'a>(flusher: &Flusher, ends: impl Iterator<Item = (&'a Arc<Partition>, Offset)>) {
    let mut ticket = None;
    for (partition, below) in ends.filter(|(partition, below)| !partition.is_durable(*below)) {
        // All under one number: nobody asks the ticket how each of them ended.
        partition.claim_synced(below, ticket.get_or_insert_with(AckTicket::new), 0);
        flusher.request(partition);
    }
    if let Some(ticket) = ticket
        && !ticket.seal()
    {
        ticket.wait().await;
    }
}

fn commit_claim(number: usize) -> usize {
    number * 2
}

fn sync_claim(number: usize) -> usize {
    number * 2 + 1
}

/// A request whose answer waits.
pub struct Unanswered(Arc<AckTicket>);

impl Unanswered {
    /// Waits, but for other nodes no longer than `timeout`: a sync ends by itself, well or not. Whether everything is safe.
    pub async fn wait(&self, timeout: Duration) -> bool {
        match timeout {
            _ if !self.0.waits_for_replicas() => self.0.clone().wait().await,
            // A timer has a least of its own, in which a quick replica would do.
            Duration::ZERO => {}
            timeout => {
                let _ = task::timeout(timeout, self.0.clone().wait()).await;
            }
        }
        self.0.has_succeeded()
    }

    /// How what was appended as the `number`th ended.
    pub fn outcome(&self, number: usize) -> Result<(), AckFailure> {
        self.0.outcome(commit_claim(number)).and(self.0.outcome(sync_claim(number)))
    }
}
