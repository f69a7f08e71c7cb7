//! What a request that appends waits for before it is answered: nothing, or the sync of some of its partitions.

use std::cell::OnceCell;
use std::sync::Arc;

use crate::base::Offset;
use crate::replica::ack::{AckTicket, AckWait};
use crate::replica::flusher::{FlushPolicy, Flusher};
use crate::replica::partition::Partition;

/// `acks=0`: the producer wants no answer, so nothing can wait.
const NO_ANSWER: i16 = 0;
const ALL: i16 = -1;

/// Collects the syncs of one request. No ticket is made for a request that does not wait.
pub struct SyncWait {
    always: bool,
    is_answered: bool,
    ticket: OnceCell<Arc<AckTicket>>,
}

impl SyncWait {
    pub fn new(acks: i16, policy: FlushPolicy) -> SyncWait {
        SyncWait {
            always: acks == ALL && policy == FlushPolicy::Sync,
            is_answered: acks != NO_ANSWER,
            ticket: OnceCell::new(),
        }
    }

    /// Records up to `end` were appended to the partition, now or, being duplicates, before. Asks for the sync that has to follow:
    /// by `flush.policy`, or because `flush.messages` has been reached, whatever the request's `acks` are.
    pub fn appended(&self, flusher: &Flusher, partition: &Arc<Partition>, end: Offset) {
        if !self.always && !partition.flush_is_due(end) {
            return;
        }
        if self.is_answered {
            partition.claim_durable(end, self.ticket.get_or_init(AckTicket::new));
        }
        flusher.request(partition);
    }

    /// What the answer waits for; `None` when it can go now. A sync that has failed already is still waited for, to be told so.
    pub fn seal(self) -> Option<AckWait> {
        let ticket = self.ticket.into_inner()?;
        let all_is_safe = ticket.seal() && !ticket.has_failed();
        (!all_is_safe).then(|| ticket.wait())
    }
}
