//! The rebalance itself: preparing one, ending its join phase, choosing leader and protocol.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use indexmap::IndexMap;

use super::{ClassicGroup, Member, Phase};
use crate::base::{ErrorCode, TimestampMs};
use crate::coordinator::group::record::{GroupMetadata, MemberMetadata, Reader};
use crate::coordinator::group::words::{Decision, Effects, JoinReply, Note, Now, Reply, SyncReply};

impl ClassicGroup {
    /// Calls everybody to join again. Those who wait for an assignment that will not come are told so.
    pub(super) fn prepare_rebalance(&mut self, now: Now) -> Effects {
        let mut effects = Effects::default();
        if self.phase == Phase::CompletingRebalance {
            for member in self.members.values_mut() {
                member.assignment.clear();
                if let Some(waiting) = member.sync_waits.take() {
                    member.extend_session(now.monotonic_ms);
                    effects.wake_at(member.session_deadline_ms);
                    let refused = SyncReply::refused(ErrorCode::REBALANCE_IN_PROGRESS);
                    effects.replies.push((waiting, Reply::Sync(refused)));
                }
            }
        }
        self.sync_deadline_ms = None;
        self.phase = Phase::PreparingRebalance;
        self.state_timestamp = Some(now.timestamp_ms);
        if self.all_joined() {
            effects.complete_join = true;
        } else {
            effects.wake_at(self.wait_for_joins(now));
        }
        effects
    }

    fn wait_for_joins(&mut self, now: Now) -> u64 {
        let deadline_ms = now.monotonic_ms + self.rebalance_timeout_ms();
        self.join_deadline_ms = Some(deadline_ms);
        deadline_ms
    }

    /// Ends the join phase. Members who did not come are dropped, except static ones, which are kept for as long as their session
    /// lasts. Nobody left: the group is empty, durably. Only absent static members left: wait on.
    pub fn decide_complete_join(&self, now: Now) -> Decision {
        if self.phase != Phase::PreparingRebalance {
            return Decision::default();
        }
        let mut stays = self.members.values().filter(|member| member.stays_after_join_phase()).peekable();
        if stays.peek().is_none() {
            let record = GroupMetadata {
                protocol_type: self.protocol_type.clone().unwrap_or_else(|| "".into()),
                generation: self.generation.wrapping_add(1),
                protocol: None,
                leader: None,
                state_timestamp: now.timestamp_ms,
                members: Vec::new(),
            };
            return Decision { record: Some(record), ..Decision::default() };
        }
        let somebody_joined = stays.any(Member::is_joining);
        Decision::note(if somebody_joined { Note::JoinCompleted } else { Note::JoinPostponed })
    }

    pub(super) fn note_join_postponed(&mut self, now: Now) -> Effects {
        self.drop_absent_members();
        self.initial_delay = None;
        Effects { wake_at_ms: Some(self.wait_for_joins(now)), ..Effects::default() }
    }

    pub(super) fn note_join_completed(&mut self, now: Now) -> Effects {
        self.drop_absent_members();
        self.initial_delay = None;
        self.join_deadline_ms = None;
        self.elect_joined_leader();
        self.generation = self.generation.wrapping_add(1);
        self.protocol = self.choose_protocol();
        self.subscribed_topics = self.read_subscriptions();
        self.phase = Phase::CompletingRebalance;
        self.state_timestamp = Some(now.timestamp_ms);
        let mut effects = self.answer_joins(now);
        let deadline_ms = now.monotonic_ms + self.rebalance_timeout_ms();
        self.sync_deadline_ms = Some(deadline_ms);
        effects.wake_at(deadline_ms);
        effects
    }

    fn answer_joins(&mut self, now: Now) -> Effects {
        let mut effects = Effects::default();
        let joining: Vec<(usize, JoinReply)> = self
            .members
            .iter()
            .enumerate()
            .filter(|(_, (_, member))| member.is_joining())
            .map(|(index, (member_id, _))| (index, self.join_reply(member_id)))
            .collect();
        for (index, reply) in joining {
            if let Some(waiting) = self.members.get_index_mut(index).and_then(|(_, member)| member.join_waits.take()) {
                effects.replies.push((waiting, Reply::Join(reply)));
            }
        }
        for member in self.members.values_mut() {
            member.is_new = false;
            member.has_synced = false;
            member.extend_session(now.monotonic_ms);
            effects.wake_at(member.session_deadline_ms);
        }
        effects
    }

    /// Absent members have nothing that waits: who waits for a JoinGroup is not absent, and a SyncGroup was answered when the
    /// rebalance began.
    fn drop_absent_members(&mut self) {
        let absent: Vec<Arc<str>> = self
            .members
            .iter()
            .filter(|(_, member)| !member.stays_after_join_phase())
            .map(|(member_id, _)| member_id.clone())
            .collect();
        for member_id in absent {
            self.remove_member(&member_id, ErrorCode::UNKNOWN_MEMBER_ID);
        }
    }

    fn elect_joined_leader(&mut self) {
        let present = self.leader.as_ref().and_then(|leader| self.members.get(leader)).is_some_and(Member::is_joining);
        if !present {
            self.leader =
                self.members.iter().find(|(_, member)| member.is_joining()).map(|(member_id, _)| member_id.clone());
        }
    }

    /// Each member votes for the first of its protocols that everybody knows; most votes win, and among equals the one that the
    /// longest-standing member voted for.
    pub(super) fn choose_protocol(&self) -> Option<Arc<str>> {
        let candidates = self.common_protocols();
        let mut votes: IndexMap<&Arc<str>, usize> = IndexMap::new();
        for member in self.members.values() {
            if let Some(vote) = member.protocols.iter().find(|protocol| candidates.contains(&*protocol.name)) {
                *votes.entry(&vote.name).or_default() += 1;
            }
        }
        let most = votes.values().copied().max()?;
        votes.into_iter().find(|(_, count)| *count == most).map(|(name, _)| name.clone())
    }

    /// The protocols that all members know. In proportion to what the members sent, whatever they sent.
    pub(super) fn common_protocols(&self) -> HashSet<&str> {
        let mut members = self.members.values().map(Member::protocol_names);
        let Some(mut common) = members.next() else { return HashSet::new() };
        for known in members {
            common.retain(|protocol| known.contains(protocol));
        }
        common
    }

    /// The topics that consumers name in their subscriptions; `None` for other protocol types and where one cannot be read.
    pub(super) fn read_subscriptions(&self) -> Option<BTreeSet<Arc<str>>> {
        if !self.is_consumer_group() {
            return None;
        }
        if self.members.is_empty() {
            return Some(BTreeSet::new());
        }
        let protocol = self.protocol.as_deref()?;
        let mut topics = BTreeSet::new();
        for member in self.members.values() {
            read_subscription(&member.metadata(protocol), &mut topics)?;
        }
        Some(topics)
    }

    /// Takes a member out; whatever it waits for is answered with `code`.
    pub(super) fn remove_member(&mut self, member_id: &str, code: ErrorCode) -> Effects {
        let mut effects = Effects::default();
        self.pending_joins.remove(member_id);
        let Some(member) = self.members.shift_remove(member_id) else { return effects };
        if let Some(instance_id) = &member.instance_id {
            self.static_members.remove(instance_id);
        }
        if let Some(waiting) = member.join_waits {
            effects.replies.push((waiting, Reply::Join(JoinReply::refused(code, "".into()))));
        }
        if let Some(waiting) = member.sync_waits {
            effects.replies.push((waiting, Reply::Sync(SyncReply::refused(code))));
        }
        if self.is_leader(member_id) {
            self.leader = self.members.keys().next().cloned();
        }
        effects
    }

    /// After members have gone: a settled group rebalances, one that prepares may be complete now.
    pub(super) fn go_on_without(&mut self, now: Now) -> Effects {
        match self.phase {
            Phase::Stable | Phase::CompletingRebalance => self.prepare_rebalance(now),
            Phase::PreparingRebalance => self.go_on_if_all_joined(),
            Phase::Empty => Effects::default(),
        }
    }

    /// The group as a record would tell it.
    pub fn metadata(&self, state_timestamp: TimestampMs) -> GroupMetadata {
        let protocol = self.protocol.as_deref().unwrap_or_default();
        GroupMetadata {
            protocol_type: self.protocol_type.clone().unwrap_or_else(|| "".into()),
            generation: self.generation,
            protocol: self.protocol.clone(),
            leader: self.leader.clone(),
            state_timestamp,
            members: self.members.iter().map(|(id, member)| member.to_metadata(id, protocol)).collect(),
        }
    }
}

impl Member {
    fn stays_after_join_phase(&self) -> bool {
        self.is_joining() || self.instance_id.is_some()
    }

    fn to_metadata(&self, member_id: &Arc<str>, protocol: &str) -> MemberMetadata {
        MemberMetadata {
            member_id: member_id.clone(),
            instance_id: self.instance_id.clone(),
            client_id: self.client_id.clone(),
            client_host: self.client_host.clone(),
            rebalance_timeout_ms: self.rebalance_timeout_ms,
            session_timeout_ms: self.session_timeout_ms,
            subscription: self.metadata(protocol),
            assignment: self.assignment.clone(),
        }
    }
}

/// The embedded consumer protocol's subscription begins with a version and the list of topics in every version.
fn read_subscription(metadata: &[u8], topics: &mut BTreeSet<Arc<str>>) -> Option<()> {
    let mut reader = Reader::new(metadata);
    reader.i16("subscription version").ok().filter(|version| *version >= 0)?;
    for _ in 0..reader.count("topics").ok()? {
        topics.insert(reader.string("topic").ok()?.into());
    }
    Some(())
}
