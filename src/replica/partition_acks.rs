//! Who waits until what it wrote is safe: below the high watermark, and on this node's device where `flush.policy` asks for it.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::base::{LeaderEpoch, Offset};
use crate::replica::ack::{AckFailure, AckTicket};
use crate::replica::flusher::FlushPolicy;
use crate::replica::partition::Partition;

/// A request's claim on a partition: it is released when everything below `below` is safe.
struct PendingAck {
    below: Offset,
    ticket: Arc<AckTicket>,
    number: usize,
}

/// The claims that are open, the lowest first.
#[derive(Default)]
pub(super) struct PendingAcks {
    /// Wait for the high watermark, and the device if the policy says so.
    committed: Mutex<VecDeque<PendingAck>>,
    /// Wait for this node's device alone.
    synced: Mutex<VecDeque<PendingAck>>,
}

impl Partition {
    /// Everything below is committed and as durable as the policy asks.
    fn acked_below(&self) -> Offset {
        let committed = self.high_watermark();
        let options = &self.common.options;
        match options.flush_policy {
            FlushPolicy::Sync if options.rules.syncs_before_ack => committed.min(self.durable_below()),
            FlushPolicy::Sync | FlushPolicy::Interval | FlushPolicy::Os => committed,
        }
    }

    /// Whether everything below `offset` may be acknowledged to who asked for `acks=all`.
    pub fn is_acked(&self, offset: Offset) -> bool {
        self.acked_below() >= offset
    }

    /// Registers a claim on what was appended in `epoch`, up to `below`: it is released when that is committed and as durable as the
    /// policy asks, or fails with the leadership.
    pub fn claim_committed(&self, below: Offset, epoch: LeaderEpoch, ticket: &Arc<AckTicket>, number: usize) {
        let mut pending = self.pending.committed.lock();
        ticket.claim(number, self.high_watermark() < below);
        // Whoever takes the leadership away stores that first and fails the list afterwards: a claim is either seen by it or sees it.
        if self.leader_epoch() != epoch {
            return ticket.release(number, Err(AckFailure::NotLeader));
        }
        push(&mut pending, PendingAck { below, ticket: ticket.clone(), number });
        release(&mut pending, self.acked_below());
    }

    /// Registers a claim that is released when everything below `below` is on this node's device.
    pub fn claim_synced(&self, below: Offset, ticket: &Arc<AckTicket>, number: usize) {
        let mut pending = self.pending.synced.lock();
        ticket.claim(number, false);
        push(&mut pending, PendingAck { below, ticket: ticket.clone(), number });
        release(&mut pending, self.durable_below());
    }

    /// The high watermark or what is durable has moved: releases who waited for that.
    pub(super) fn settle_acks(&self) {
        release(&mut self.pending.committed.lock(), self.acked_below());
        release(&mut self.pending.synced.lock(), self.durable_below());
    }

    /// Who waits for other nodes will not get what it waits for.
    pub(super) fn fail_acks(&self, failure: AckFailure) {
        fail(&mut self.pending.committed.lock(), failure);
    }

    /// The disk failed, or the partition went away: nobody who waits will get what it waits for.
    pub fn fail_all_acks(&self) {
        let failure = if self.is_retired() { AckFailure::NotLeader } else { AckFailure::Storage };
        self.fail_acks(failure);
        fail(&mut self.pending.synced.lock(), failure);
        self.wake_everybody();
    }

    /// The log was cut: what lay behind its end will not be on the device. Nobody must wait for that, nor behind who does.
    pub(super) fn fail_synced_above(&self, end: Offset) {
        self.pending.synced.lock().retain(|ack| {
            let stays = ack.below <= end;
            if !stays {
                ack.ticket.release(ack.number, Err(AckFailure::NotLeader));
            }
            stays
        });
    }

    pub(super) fn wake_everybody(&self) {
        self.waiters.wake_all();
        self.follower_waiters.wake_all();
    }
}

fn push(pending: &mut VecDeque<PendingAck>, ack: PendingAck) {
    // Requests that gave up leave their claims behind; sweeping when the list would grow keeps it in proportion.
    if pending.len() == pending.capacity() {
        pending.retain(|ack| Arc::strong_count(&ack.ticket) > 1);
    }
    // Nearly always the highest so far. One that is not must not wait for what may never come, as after a cut.
    let at = match pending.back() {
        Some(last) if last.below > ack.below => pending.partition_point(|other| other.below <= ack.below),
        _ => pending.len(),
    };
    pending.insert(at, ack);
}

fn release(pending: &mut VecDeque<PendingAck>, below: Offset) {
    while pending.front().is_some_and(|ack| ack.below <= below) {
        if let Some(ack) = pending.pop_front() {
            ack.ticket.release(ack.number, Ok(()));
        }
    }
}

fn fail(pending: &mut VecDeque<PendingAck>, failure: AckFailure) {
    for ack in pending.drain(..) {
        ack.ticket.release(ack.number, Err(failure));
    }
}
