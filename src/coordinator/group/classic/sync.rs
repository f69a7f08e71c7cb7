//! SyncGroup: the leader brings the assignment, everybody else waits for it. v3 knows instance ids (KIP-345), v5 lets a member say
//! which protocol it believes in (KIP-559).

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;

use super::{ClassicGroup, Phase};
use crate::base::ErrorCode;
use crate::coordinator::group::record::GroupMetadata;
use crate::coordinator::group::words::{
    Decision, Effects, HowToSync, MemberRef, Note, Now, Reply, ReplyTo, Sync, SyncReply,
};

impl ClassicGroup {
    pub fn decide_sync(&self, sync: Sync, reply_to: ReplyTo, now: Now) -> Decision {
        if let Err(code) = self.validate_sync(&sync) {
            return Decision::reply(reply_to, Reply::Sync(SyncReply::refused(code)));
        }
        let brings_assignment = self.phase == Phase::CompletingRebalance && self.is_leader(&sync.member_id);
        let record = brings_assignment.then(|| self.assigned(&sync.assignments, now));
        let how = match self.phase {
            _ if brings_assignment => HowToSync::Assigned,
            Phase::CompletingRebalance => HowToSync::Wait,
            _ => HowToSync::Current,
        };
        // Who asks for an assignment that is there may ask while the record that settles it is still on its way to the other replicas.
        let reply_after_commit = !matches!(how, HowToSync::Wait);
        let then = Some(Note::Sync { sync: Box::new(sync), how, reply_to });
        Decision { record, reply_after_commit, then, replies: Vec::new() }
    }

    fn validate_sync(&self, sync: &Sync) -> Result<(), ErrorCode> {
        self.validate_member(MemberRef { member_id: &sync.member_id, instance_id: sync.instance_id.as_deref() })?;
        if sync.generation != self.generation {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        let contradicts = |said: &Option<Arc<str>>, known: &Option<Arc<str>>| said.is_some() && said != known;
        if contradicts(&sync.protocol_type, &self.protocol_type) || contradicts(&sync.protocol, &self.protocol) {
            return Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        }
        match self.phase {
            Phase::Empty => Err(ErrorCode::UNKNOWN_MEMBER_ID),
            Phase::PreparingRebalance => Err(ErrorCode::REBALANCE_IN_PROGRESS),
            Phase::CompletingRebalance | Phase::Stable => Ok(()),
        }
    }

    /// The record that settles the generation. A member that the leader forgot gets an empty assignment; an assignment for
    /// somebody who is no member goes nowhere.
    fn assigned(&self, assignments: &[(Arc<str>, Bytes)], now: Now) -> GroupMetadata {
        let assignments: HashMap<&str, &Bytes> =
            assignments.iter().map(|(member_id, assignment)| (&**member_id, assignment)).collect();
        let mut metadata = self.metadata(now.timestamp_ms);
        for member in &mut metadata.members {
            member.assignment = assignments.get(&*member.member_id).map(|bytes| (*bytes).clone()).unwrap_or_default();
        }
        metadata
    }

    pub(super) fn note_sync(&mut self, sync: &Sync, how: HowToSync, reply_to: ReplyTo, now: Now) -> Effects {
        let mut effects = Effects::default();
        if let Some(member) = self.members.get_mut(&sync.member_id) {
            member.has_synced = true;
            if let Some(earlier) = member.sync_waits.replace(reply_to) {
                let refused = SyncReply::refused(ErrorCode::REBALANCE_IN_PROGRESS);
                effects.replies.push((earlier, Reply::Sync(refused)));
            }
        }
        if self.members.values().all(|member| member.has_synced) {
            self.sync_deadline_ms = None;
        }
        match how {
            HowToSync::Wait => {}
            HowToSync::Assigned | HowToSync::Current => effects.merge(self.answer_syncs(now)),
        }
        effects
    }

    fn answer_syncs(&mut self, now: Now) -> Effects {
        let mut effects = Effects::default();
        for member in self.members.values_mut() {
            let Some(waiting) = member.sync_waits.take() else { continue };
            member.extend_session(now.monotonic_ms);
            effects.wake_at(member.session_deadline_ms);
            let reply = SyncReply {
                error: ErrorCode::NONE,
                protocol_type: self.protocol_type.clone(),
                protocol: self.protocol.clone(),
                assignment: member.assignment.clone(),
            };
            effects.replies.push((waiting, Reply::Sync(reply)));
        }
        effects
    }
}
