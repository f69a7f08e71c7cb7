//! Classic consumer groups (KIP-62, 345, 394, 429, 559, 800, 814): members agree on a protocol, one of them assigns, the coordinator
//! carries the assignment. Pure: each file holds one request's rules, this one what a group is.
//!
//! A group is durable only where it is settled: `GroupMetadata` is written when a leader's assignment arrives, when a static member is
//! replaced, and when the last member has gone. What happens in between lives in memory; a coordinator that takes over starts from the
//! last settled generation and the members find their way back.

mod describe;
mod join;
mod leave;
mod member;
mod rebalance;
mod replay;
mod sync;
mod tick;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use indexmap::IndexMap;

use super::words::{JoinReply, JoinedMember, MemberRef};
use crate::base::{ErrorCode, MonotonicMs, TimestampMs};

pub use member::Member;

/// The protocol type of ordinary consumers, whose subscriptions the coordinator can read.
pub const CONSUMER_PROTOCOL_TYPE: &str = "consumer";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No members. The group may hold offsets.
    Empty,
    /// Members are expected to join (again).
    PreparingRebalance,
    /// Everybody has joined; the leader's assignment is awaited.
    CompletingRebalance,
    /// Everybody has an assignment.
    Stable,
}

impl Phase {
    pub fn name(self) -> &'static str {
        match self {
            Phase::Empty => "Empty",
            Phase::PreparingRebalance => "PreparingRebalance",
            Phase::CompletingRebalance => "CompletingRebalance",
            Phase::Stable => "Stable",
        }
    }
}

/// The first rebalance of an empty group waits a little for more members (KIP-134).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct InitialDelay {
    delay_ms: MonotonicMs,
    remaining_ms: MonotonicMs,
    member_added: bool,
}

#[derive(Clone, Debug)]
pub struct ClassicGroup {
    phase: Phase,
    generation: i32,
    protocol_type: Option<Arc<str>>,
    protocol: Option<Arc<str>>,
    leader: Option<Arc<str>>,
    state_timestamp: Option<TimestampMs>,
    /// In the order of joining, so that who leads next and which protocol wins a tie is no matter of chance.
    members: IndexMap<Arc<str>, Member>,
    static_members: HashMap<Arc<str>, Arc<str>>,
    /// Ids handed out and not yet come back with, and until when they are waited for.
    pending_joins: HashMap<Arc<str>, MonotonicMs>,
    initial_delay: Option<InitialDelay>,
    join_deadline_ms: Option<MonotonicMs>,
    sync_deadline_ms: Option<MonotonicMs>,
    /// What consumers subscribe to; `None` when that cannot be known.
    subscribed_topics: Option<BTreeSet<Arc<str>>>,
}

impl Default for ClassicGroup {
    fn default() -> ClassicGroup {
        ClassicGroup {
            phase: Phase::Empty,
            generation: 0,
            protocol_type: None,
            protocol: None,
            leader: None,
            state_timestamp: None,
            members: IndexMap::new(),
            static_members: HashMap::new(),
            pending_joins: HashMap::new(),
            initial_delay: None,
            join_deadline_ms: None,
            sync_deadline_ms: None,
            subscribed_topics: None,
        }
    }
}

impl ClassicGroup {
    pub fn phase(&self) -> Phase {
        self.phase
    }

    pub fn generation(&self) -> i32 {
        self.generation
    }

    pub fn member_count(&self) -> usize {
        self.members.len()
    }

    pub fn leader(&self) -> Option<&Arc<str>> {
        self.leader.as_ref()
    }

    pub fn members(&self) -> impl Iterator<Item = (&Arc<str>, &Member)> {
        self.members.iter()
    }

    /// No members, and nobody on the way.
    pub fn is_deserted(&self) -> bool {
        self.phase == Phase::Empty && self.pending_joins.is_empty()
    }

    /// The rule that every request of a member passes: an instance id must be known (UNKNOWN_MEMBER_ID) and belong to this member id
    /// (FENCED_INSTANCE_ID), and the member id must be a member's (UNKNOWN_MEMBER_ID).
    pub fn validate_member(&self, member: MemberRef<'_>) -> Result<(), ErrorCode> {
        if let Some(instance_id) = member.instance_id {
            match self.static_members.get(instance_id) {
                None => return Err(ErrorCode::UNKNOWN_MEMBER_ID),
                Some(holder) if **holder != *member.member_id => return Err(ErrorCode::FENCED_INSTANCE_ID),
                Some(_) => {}
            }
        }
        if self.members.contains_key(member.member_id) { Ok(()) } else { Err(ErrorCode::UNKNOWN_MEMBER_ID) }
    }

    /// What a heartbeat is answered: NONE keeps the session, REBALANCE_IN_PROGRESS keeps it too and calls for a JoinGroup.
    pub fn decide_heartbeat(&self, member: MemberRef<'_>, generation: i32) -> ErrorCode {
        if let Err(code) = self.validate_member(member) {
            return code;
        }
        if generation != self.generation {
            return ErrorCode::ILLEGAL_GENERATION;
        }
        match self.phase {
            Phase::Empty => ErrorCode::UNKNOWN_MEMBER_ID,
            Phase::PreparingRebalance => ErrorCode::REBALANCE_IN_PROGRESS,
            Phase::CompletingRebalance | Phase::Stable => ErrorCode::NONE,
        }
    }

    /// A sign of life. The tick that was asked for earlier finds the later deadline and asks for another.
    pub fn note_alive(&mut self, member_id: &str, now_ms: MonotonicMs) {
        if let Some(member) = self.members.get_mut(member_id) {
            member.extend_session(now_ms);
        }
    }

    /// Whether an OffsetCommit of this member and generation is in order.
    pub fn decide_commit(&self, member: MemberRef<'_>, generation: i32) -> Result<(), ErrorCode> {
        if generation < 0 && self.phase == Phase::Empty {
            return Ok(());
        }
        if generation < 0 && member.member_id.is_empty() && member.instance_id.is_none() {
            return Err(ErrorCode::UNKNOWN_MEMBER_ID);
        }
        self.validate_member(member)?;
        if generation != self.generation {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        if self.phase == Phase::CompletingRebalance {
            return Err(ErrorCode::REBALANCE_IN_PROGRESS);
        }
        Ok(())
    }

    /// Whether a commit counts as a sign of life.
    pub fn commit_keeps_session(&self) -> bool {
        matches!(self.phase, Phase::Stable | Phase::PreparingRebalance)
    }

    pub fn is_consumer_group(&self) -> bool {
        self.protocol_type.as_deref() == Some(CONSUMER_PROTOCOL_TYPE)
    }

    /// Consumers whose subscription cannot be read are taken to subscribe to everything.
    pub fn is_subscribed_to(&self, topic: &str) -> bool {
        match &self.subscribed_topics {
            Some(topics) => topics.contains(topic),
            None => self.is_consumer_group(),
        }
    }

    /// Since when offsets of this group age: `None` while they do not.
    pub fn offsets_age_since(&self, commit_timestamp: TimestampMs) -> Option<TimestampMs> {
        match self.phase {
            _ if self.protocol_type.is_none() => Some(commit_timestamp),
            Phase::Empty => Some(self.state_timestamp.unwrap_or(commit_timestamp)),
            Phase::Stable if self.is_consumer_group() && self.subscribed_topics.is_some() => Some(commit_timestamp),
            _ => None,
        }
    }

    fn is_leader(&self, member_id: &str) -> bool {
        self.leader.as_deref() == Some(member_id)
    }

    fn all_joined(&self) -> bool {
        self.pending_joins.is_empty() && self.members.values().all(Member::is_joining)
    }

    fn rebalance_timeout_ms(&self) -> MonotonicMs {
        self.members.values().map(|member| member.rebalance_timeout_ms.max(0) as MonotonicMs).max().unwrap_or(0)
    }

    fn joined_members(&self) -> Vec<JoinedMember> {
        let protocol = self.protocol.as_deref().unwrap_or_default();
        self.members
            .iter()
            .map(|(member_id, member)| JoinedMember {
                member_id: member_id.clone(),
                instance_id: member.instance_id.clone(),
                metadata: member.metadata(protocol),
            })
            .collect()
    }

    /// The present generation as an answer to this member's JoinGroup.
    fn join_reply(&self, member_id: &Arc<str>) -> JoinReply {
        JoinReply {
            error: ErrorCode::NONE,
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            leader: self.leader.clone().unwrap_or_else(|| "".into()),
            skip_assignment: false,
            member_id: member_id.clone(),
            members: if self.is_leader(member_id) { self.joined_members() } else { Vec::new() },
        }
    }
}
