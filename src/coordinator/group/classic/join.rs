//! JoinGroup: who may join, and what joining does.
//!
//! - v0 to v3: a member without an id gets one with the answer. v4 (KIP-394): it is sent away with an id first.
//! - v5 (KIP-345): instance ids. A static member that comes back without its member id takes its former self's place; in a settled
//!   group whose protocol stays the same nobody else notices. v9 (KIP-814): the leader is then told to skip the assignment.

use std::sync::Arc;

use super::{ClassicGroup, InitialDelay, Member, Phase};
use crate::base::ErrorCode;
use crate::coordinator::group::config::{GroupConfig, NEW_MEMBER_JOIN_TIMEOUT_MS, PENDING_JOINS_MAX};
use crate::coordinator::group::record::GroupMetadata;
use crate::coordinator::group::words::{
    Decision, Effects, HowToJoin, Join, JoinReply, MemberRef, Note, Now, Reply, ReplyTo, SyncReply,
};

impl ClassicGroup {
    /// Decides on a JoinGroup to a group that exists (or was just made for it).
    pub fn decide_join(&self, join: Join, reply_to: ReplyTo, now: Now, config: &GroupConfig) -> Decision {
        match self.how_to_join(&join, config) {
            Ok(how) => {
                let record = self.record_of_replacement(&how, &join, now);
                let reply_after_commit = record.is_some();
                let then = Some(Note::Join { join: Box::new(join), how, reply_to });
                Decision { record, reply_after_commit, then, replies: Vec::new() }
            }
            Err((code, member_id)) => {
                let mut decision = Decision::reply(reply_to, Reply::Join(JoinReply::refused(code, member_id)));
                if code == ErrorCode::GROUP_MAX_SIZE_REACHED && !join.member_id.is_empty() {
                    decision.then = Some(Note::Evict { member_id: join.member_id });
                }
                decision
            }
        }
    }

    fn how_to_join(&self, join: &Join, config: &GroupConfig) -> Result<HowToJoin, (ErrorCode, Arc<str>)> {
        if !self.has_room_for(&join.member_id, config.size_max) {
            return Err((ErrorCode::GROUP_MAX_SIZE_REACHED, "".into()));
        }
        if !self.supports_protocols_of(join) {
            return Err((ErrorCode::INCONSISTENT_GROUP_PROTOCOL, join.member_id.clone()));
        }
        if join.member_id.is_empty() {
            match self.how_a_newcomer_joins(join) {
                HowToJoin::HandOutId if self.pending_joins.len() >= PENDING_JOINS_MAX => {
                    Err((ErrorCode::GROUP_MAX_SIZE_REACHED, "".into()))
                }
                how => Ok(how),
            }
        } else if self.pending_joins.contains_key(&join.member_id) {
            // Only members without an instance id are sent away with an id.
            match join.instance_id {
                None => Ok(HowToJoin::Add { member_id: join.member_id.clone() }),
                Some(_) => Err((ErrorCode::UNKNOWN_MEMBER_ID, join.member_id.clone())),
            }
        } else {
            self.how_a_member_joins(join).map_err(|code| (code, join.member_id.clone()))
        }
    }

    /// While a group prepares, those who wait already are counted rather than its members, so that the last to come are the ones
    /// refused when the bound was lowered.
    fn has_room_for(&self, member_id: &str, size_max: usize) -> bool {
        match self.phase {
            Phase::Empty => true,
            Phase::PreparingRebalance => {
                self.members.get(member_id).is_some_and(Member::is_joining)
                    || self.members.values().filter(|member| member.is_joining()).count() < size_max
            }
            Phase::CompletingRebalance | Phase::Stable => {
                self.members.contains_key(member_id) || self.members.len() < size_max
            }
        }
    }

    fn supports_protocols_of(&self, join: &Join) -> bool {
        if self.phase == Phase::Empty {
            return !join.protocol_type.is_empty() && !join.protocols.is_empty();
        }
        if self.protocol_type.as_ref() != Some(&join.protocol_type) {
            return false;
        }
        if self.members.is_empty() {
            return !join.protocols.is_empty();
        }
        let common = self.common_protocols();
        join.protocols.iter().any(|protocol| common.contains(&*protocol.name))
    }

    fn how_a_newcomer_joins(&self, join: &Join) -> HowToJoin {
        let Some(instance_id) = &join.instance_id else {
            if join.member_id_required {
                return HowToJoin::HandOutId;
            }
            return HowToJoin::Add { member_id: join.fresh_member_id.clone() };
        };
        let Some(old_member_id) = self.static_members.get(instance_id) else {
            return HowToJoin::Add { member_id: join.fresh_member_id.clone() };
        };
        // A settled group that goes on with the same protocol takes the replacement in silence.
        let rebalance = self.phase != Phase::Stable || self.protocol_with(old_member_id, join) != self.protocol;
        // Before v9 the leader is shown under its old id, lest it take itself for the leader and assign again.
        let leader_shown = if join.skip_assignment_known { None } else { self.leader.clone() };
        HowToJoin::Replace { old_member_id: old_member_id.clone(), leader_shown, rebalance }
    }

    /// The protocol that the group would choose if this member had what `join` brings.
    fn protocol_with(&self, member_id: &str, join: &Join) -> Option<Arc<str>> {
        let mut group = self.clone();
        if let Some(member) = group.members.get_mut(member_id) {
            member.protocols.clone_from(&join.protocols);
        }
        group.choose_protocol()
    }

    fn how_a_member_joins(&self, join: &Join) -> Result<HowToJoin, ErrorCode> {
        let who = MemberRef { member_id: &join.member_id, instance_id: join.instance_id.as_deref() };
        self.validate_member(who)?;
        let same_protocols = self.members.get(&join.member_id).is_some_and(|member| member.protocols == join.protocols);
        match self.phase {
            Phase::Empty => Err(ErrorCode::UNKNOWN_MEMBER_ID),
            Phase::PreparingRebalance => Ok(HowToJoin::Update),
            // It may have missed the answer to its first JoinGroup.
            Phase::CompletingRebalance if same_protocols => Ok(HowToJoin::Current),
            // A leader joins again to make the group rebalance, as when a topic has grown.
            Phase::Stable if same_protocols && !self.is_leader(&join.member_id) => Ok(HowToJoin::Current),
            Phase::CompletingRebalance | Phase::Stable => Ok(HowToJoin::Update),
        }
    }

    fn record_of_replacement(&self, how: &HowToJoin, join: &Join, now: Now) -> Option<GroupMetadata> {
        let HowToJoin::Replace { old_member_id, rebalance: false, .. } = how else { return None };
        let mut group = self.clone();
        group.replace_member(old_member_id, join, now);
        Some(group.metadata(self.state_timestamp.unwrap_or(now.timestamp_ms)))
    }

    pub(super) fn note_join(
        &mut self,
        join: Join,
        how: HowToJoin,
        reply_to: ReplyTo,
        now: Now,
        config: &GroupConfig,
    ) -> Effects {
        match how {
            HowToJoin::HandOutId => self.note_id_handed_out(join, reply_to, now),
            HowToJoin::Add { member_id } => self.note_member_added(member_id, join, reply_to, now, config),
            HowToJoin::Update => {
                let mut effects = self.update_member(&join.member_id.clone(), join, reply_to, now);
                effects.merge(self.rebalance_or_go_on(now, config));
                effects
            }
            HowToJoin::Replace { old_member_id, leader_shown, rebalance } => {
                let replaced = Replaced { old_member_id, leader_shown, rebalance };
                self.note_member_replaced(replaced, join, reply_to, now, config)
            }
            HowToJoin::Current => {
                let mut effects = Effects::default();
                effects.replies.push((reply_to, Reply::Join(self.join_reply(&join.member_id))));
                effects
            }
        }
    }

    fn note_id_handed_out(&mut self, join: Join, reply_to: ReplyTo, now: Now) -> Effects {
        let member_id = join.fresh_member_id;
        let deadline_ms = now.monotonic_ms + join.session_timeout_ms.max(0) as u64;
        self.pending_joins.insert(member_id.clone(), deadline_ms);
        let mut effects = Effects::default();
        effects.wake_at(deadline_ms);
        effects.replies.push((reply_to, Reply::Join(JoinReply::refused(ErrorCode::MEMBER_ID_REQUIRED, member_id))));
        effects
    }

    fn note_member_added(
        &mut self,
        member_id: Arc<str>,
        join: Join,
        reply_to: ReplyTo,
        now: Now,
        config: &GroupConfig,
    ) -> Effects {
        if let Some(delay) = &mut self.initial_delay {
            delay.member_added = true;
        }
        let deadline_ms = now.monotonic_ms + NEW_MEMBER_JOIN_TIMEOUT_MS;
        if self.members.is_empty() {
            self.protocol_type = Some(join.protocol_type.clone());
        }
        self.pending_joins.remove(&member_id);
        if let Some(instance_id) = &join.instance_id {
            self.static_members.insert(instance_id.clone(), member_id.clone());
        }
        self.leader.get_or_insert_with(|| member_id.clone());
        let mut member = Member::from_join(join, deadline_ms);
        member.join_waits = Some(reply_to);
        self.members.insert(member_id, member);
        let mut effects = Effects::default();
        effects.wake_at(deadline_ms);
        effects.merge(self.rebalance_or_go_on(now, config));
        effects
    }

    /// Takes over what the member says now. An older JoinGroup of it that still waits is told to come again.
    fn update_member(&mut self, member_id: &str, join: Join, reply_to: ReplyTo, now: Now) -> Effects {
        let mut effects = Effects::default();
        let Some(member) = self.members.get_mut(member_id) else {
            let refused = JoinReply::refused(ErrorCode::UNKNOWN_MEMBER_ID, member_id.into());
            effects.replies.push((reply_to, Reply::Join(refused)));
            return effects;
        };
        if let Some(earlier) = member.join_waits.replace(reply_to) {
            let refused = JoinReply::refused(ErrorCode::REBALANCE_IN_PROGRESS, member_id.into());
            effects.replies.push((earlier, Reply::Join(refused)));
        }
        member.protocols = join.protocols;
        member.session_timeout_ms = join.session_timeout_ms;
        member.rebalance_timeout_ms = join.rebalance_timeout_ms;
        if !member.is_new {
            member.extend_session(now.monotonic_ms);
            effects.wake_at(member.session_deadline_ms);
        }
        effects
    }

    fn note_member_replaced(
        &mut self,
        replaced: Replaced,
        join: Join,
        reply_to: ReplyTo,
        now: Now,
        config: &GroupConfig,
    ) -> Effects {
        let Replaced { old_member_id, leader_shown, rebalance } = replaced;
        let new_member_id = join.fresh_member_id.clone();
        let skip_assignment_known = join.skip_assignment_known;
        let mut effects = self.fence(&old_member_id);
        self.replace_member(&old_member_id, &join, now);
        effects.merge(self.update_member(&new_member_id, join, reply_to, now));
        if rebalance {
            effects.merge(self.rebalance_or_go_on(now, config));
            return effects;
        }
        if let Some(member) = self.members.get_mut(&new_member_id) {
            member.join_waits = None;
        }
        let mut reply = self.join_reply(&new_member_id);
        if skip_assignment_known {
            reply.skip_assignment = self.is_leader(&new_member_id);
        } else {
            reply.leader = leader_shown.unwrap_or_else(|| "".into());
            reply.members.clear();
        }
        effects.replies.push((reply_to, Reply::Join(reply)));
        effects
    }

    /// Whoever still waits under the old member id is told that another took its place.
    fn fence(&mut self, member_id: &str) -> Effects {
        let mut effects = Effects::default();
        if let Some(member) = self.members.get_mut(member_id) {
            if let Some(waiting) = member.join_waits.take() {
                let refused = JoinReply::refused(ErrorCode::FENCED_INSTANCE_ID, member_id.into());
                effects.replies.push((waiting, Reply::Join(refused)));
            }
            if let Some(waiting) = member.sync_waits.take() {
                effects.replies.push((waiting, Reply::Sync(SyncReply::refused(ErrorCode::FENCED_INSTANCE_ID))));
            }
        }
        effects
    }

    /// Puts the restarted static member in its former self's place (in the order of joining too). Harmless when the replayed record
    /// has done so already.
    fn replace_member(&mut self, old_member_id: &str, join: &Join, now: Now) {
        let new_member_id = &join.fresh_member_id;
        if let Some((index, _, old)) = self.members.swap_remove_full(old_member_id) {
            let mut member = Member { is_new: false, ..old };
            member.client_id = join.client_id.clone();
            member.client_host = join.client_host.clone();
            let (last, _) = self.members.insert_full(new_member_id.clone(), member);
            self.members.swap_indices(index, last);
        }
        if let Some(member) = self.members.get_mut(new_member_id) {
            member.protocols.clone_from(&join.protocols);
            member.session_timeout_ms = join.session_timeout_ms;
            member.rebalance_timeout_ms = join.rebalance_timeout_ms;
            member.extend_session(now.monotonic_ms);
        }
        if self.is_leader(old_member_id) {
            self.leader = Some(new_member_id.clone());
        }
        if let Some(instance_id) = &join.instance_id {
            self.static_members.insert(instance_id.clone(), new_member_id.clone());
        }
    }

    /// A group that cannot begin a rebalance is in one: then it may be that this was the last member it waited for.
    pub(super) fn rebalance_or_go_on(&mut self, now: Now, config: &GroupConfig) -> Effects {
        match self.phase {
            Phase::PreparingRebalance => self.go_on_if_all_joined(),
            Phase::Empty => self.prepare_initial_rebalance(now, config),
            Phase::CompletingRebalance | Phase::Stable => self.prepare_rebalance(now),
        }
    }

    pub(super) fn go_on_if_all_joined(&self) -> Effects {
        let complete_join =
            self.phase == Phase::PreparingRebalance && self.initial_delay.is_none() && self.all_joined();
        Effects { complete_join, ..Effects::default() }
    }

    fn prepare_initial_rebalance(&mut self, now: Now, config: &GroupConfig) -> Effects {
        self.phase = Phase::PreparingRebalance;
        self.state_timestamp = Some(now.timestamp_ms);
        let delay_ms = config.initial_rebalance_delay_ms;
        if delay_ms == 0 {
            return Effects { complete_join: true, ..Effects::default() };
        }
        let remaining_ms = self.rebalance_timeout_ms().saturating_sub(delay_ms);
        self.initial_delay = Some(InitialDelay { delay_ms, remaining_ms, member_added: false });
        let deadline_ms = now.monotonic_ms + delay_ms;
        self.join_deadline_ms = Some(deadline_ms);
        Effects { wake_at_ms: Some(deadline_ms), ..Effects::default() }
    }
}

struct Replaced {
    old_member_id: Arc<str>,
    leader_shown: Option<Arc<str>>,
    rebalance: bool,
}

impl Member {
    fn from_join(join: Join, session_deadline_ms: u64) -> Member {
        Member {
            instance_id: join.instance_id,
            client_id: join.client_id,
            client_host: join.client_host,
            session_timeout_ms: join.session_timeout_ms,
            rebalance_timeout_ms: join.rebalance_timeout_ms,
            protocols: join.protocols,
            assignment: Default::default(),
            join_waits: None,
            sync_waits: None,
            has_synced: false,
            is_new: true,
            session_deadline_ms,
        }
    }
}
