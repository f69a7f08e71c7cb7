//! What a request that appends waits for before it is answered: nothing, or that some of what it wrote is safe.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;

use crate::log::Appended;
use crate::replica::ack::AckTicket;
use crate::replica::flusher::{FlushPolicy, Flusher};
use crate::replica::partition::Partition;

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

    /// Records were appended to the partition, now or, being duplicates, before. Asks for the sync that has to follow. What is
    /// appended is numbered from 0; the ticket knows it by that number.
    pub fn appended(&self, flusher: &Flusher, partition: &Arc<Partition>, appended: &Appended) {
        let number = self.appended.replace(self.appended.get() + 1);
        let below = appended.last_offset + 1;
        if self.is_acks_all() {
            if partition.is_acked(below) && partition.leader_epoch() == appended.leader_epoch {
                return;
            }
            partition.claim_committed(below, appended.leader_epoch, self.ticket.get_or_init(AckTicket::new), number);
            if self.policy == FlushPolicy::Sync {
                flusher.request(partition);
            }
        }
    }

    /// What the answer waits for; `None` when it can go now. What has failed already is still waited for, to be told so.
    pub fn seal(self) -> Option<Arc<AckTicket>> {
        let ticket = self.ticket.into_inner()?;
        let all_is_safe = ticket.seal() && ticket.has_succeeded();
        (!all_is_safe).then_some(ticket)
    }
}
