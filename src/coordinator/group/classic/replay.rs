//! A settled group as its record tells it, at load and live alike. What only lives in memory (who waits, until when, the protocols
//! that were not chosen) is kept for members that the record still has.

use std::sync::Arc;

use indexmap::IndexMap;

use super::{ClassicGroup, Member, Phase};
use crate::coordinator::group::config::GroupConfig;
use crate::coordinator::group::record::{GroupMetadata, MemberMetadata};
use crate::coordinator::group::words::{Effects, Note, Now, Protocol};

impl ClassicGroup {
    pub fn replay(&mut self, metadata: GroupMetadata) {
        let GroupMetadata { protocol_type, generation, protocol, leader, state_timestamp, members } = metadata;
        let mut before = std::mem::take(&mut self.members);
        self.members = IndexMap::with_capacity(members.len());
        self.static_members.clear();
        for recorded in members {
            let member_id = recorded.member_id.clone();
            if let Some(instance_id) = &recorded.instance_id {
                self.static_members.insert(instance_id.clone(), member_id.clone());
            }
            let mut member = Member::from_record(recorded, protocol.as_ref());
            if let Some(live) = before.swap_remove(&member_id) {
                member.keep_alive(live, protocol.as_deref().unwrap_or_default());
            }
            self.members.insert(member_id, member);
        }
        debug_assert!(before.values().all(|gone| gone.join_waits.is_none() && gone.sync_waits.is_none()));
        self.phase = if self.members.is_empty() { Phase::Empty } else { Phase::Stable };
        self.generation = generation;
        self.protocol_type = (!protocol_type.is_empty()).then_some(protocol_type);
        self.protocol = protocol;
        self.leader = leader;
        self.state_timestamp = (state_timestamp != -1).then_some(state_timestamp);
        self.subscribed_topics = self.read_subscriptions();
        self.join_deadline_ms = None;
        self.initial_delay = None;
        if self.phase == Phase::Empty {
            self.sync_deadline_ms = None;
        }
    }

    /// The volatile half of a decision whose record, if it had one, is appended and replayed.
    pub fn note(&mut self, note: Note, now: Now, config: &GroupConfig) -> Effects {
        match note {
            Note::Join { join, how, reply_to } => self.note_join(*join, how, reply_to, now, config),
            Note::Sync { sync, how, reply_to } => self.note_sync(&sync, how, reply_to, now),
            Note::Leave { members, reply, reply_to } => self.note_leave(&members, reply, reply_to, now),
            Note::Evict { member_id } => self.note_gone(&[member_id], now),
            Note::JoinCompleted => self.note_join_completed(now),
            Note::JoinPostponed => self.note_join_postponed(now),
        }
    }
}

impl Member {
    /// Takes over what only lives in memory. The protocols that were not chosen are among it, unless the member has said something
    /// new since.
    fn keep_alive(&mut self, live: Member, protocol: &str) {
        if live.metadata(protocol) == self.metadata(protocol) {
            self.protocols = live.protocols;
        }
        self.join_waits = live.join_waits;
        self.sync_waits = live.sync_waits;
        self.has_synced = live.has_synced;
        self.is_new = live.is_new;
        self.session_deadline_ms = live.session_deadline_ms;
    }

    fn from_record(recorded: MemberMetadata, protocol: Option<&Arc<str>>) -> Member {
        let metadata = recorded.subscription;
        Member {
            instance_id: recorded.instance_id,
            client_id: recorded.client_id,
            client_host: recorded.client_host,
            session_timeout_ms: recorded.session_timeout_ms,
            rebalance_timeout_ms: recorded.rebalance_timeout_ms,
            protocols: protocol.map(|name| Protocol { name: name.clone(), metadata }).into_iter().collect(),
            assignment: recorded.assignment,
            join_waits: None,
            sync_waits: None,
            has_synced: true,
            is_new: false,
            session_deadline_ms: 0,
        }
    }
}
