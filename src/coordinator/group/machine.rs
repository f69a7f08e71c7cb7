//! The groups of one partition of `__consumer_offsets`: the pure machine. `decide` reads only and names the records to append;
//! `replay` applies a record, live and at load alike; `note` changes what lives in memory only.

use std::collections::HashMap;
use std::sync::Arc;

use super::classic::ClassicGroup;
use super::config::GroupConfig;
use super::offsets::{GroupOffsets, Position};
use super::record::{GroupMetadata, Record};
use super::words::{
    Decision, Effects, GroupListing, Join, JoinReply, Leave, MemberRef, Note, Now, Reply, ReplyTo, Sync, SyncReply,
};
use crate::base::{ErrorCode, MonotonicMs, ProducerId};

/// What a group is besides its offsets. Consumer-protocol, share and streams groups will be further kinds.
#[derive(Clone, Debug)]
pub enum GroupKind {
    /// Also a "simple" group: one that only holds offsets, with neither members nor a protocol type.
    Classic(ClassicGroup),
}

#[derive(Clone, Debug)]
pub struct Group {
    pub kind: GroupKind,
    pub offsets: GroupOffsets,
    /// The earliest tick that was asked for and has not come yet.
    armed_ms: Option<MonotonicMs>,
}

impl Group {
    fn simple() -> Group {
        Group { kind: GroupKind::Classic(ClassicGroup::default()), offsets: GroupOffsets::default(), armed_ms: None }
    }

    pub fn classic(&self) -> &ClassicGroup {
        let GroupKind::Classic(classic) = &self.kind;
        classic
    }

    fn classic_mut(&mut self) -> &mut ClassicGroup {
        let GroupKind::Classic(classic) = &mut self.kind;
        classic
    }
}

/// Each group has at most one tick coming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arm {
    AsItIs,
    Anew { instead_of_ms: Option<MonotonicMs> },
}

#[derive(Debug, Default)]
pub struct Machine {
    pub(super) groups: HashMap<Arc<str>, Group>,
    replayed: Position,
}

impl Machine {
    pub fn group(&self, group: &str) -> Option<&Group> {
        self.groups.get(group)
    }

    pub fn groups(&self) -> impl Iterator<Item = (&Arc<str>, &Group)> {
        self.groups.iter()
    }

    pub fn list(&self) -> impl Iterator<Item = GroupListing> {
        self.groups.iter().map(|(name, group)| group.classic().list(name))
    }

    // Decisions.

    /// JoinGroup. The first join of a group makes it, durably, whatever becomes of the join itself (as in Kafka).
    pub fn decide_join(&self, join: Join, reply_to: ReplyTo, now: Now, config: &GroupConfig) -> Decision {
        if !(config.session_timeout_ms_min..=config.session_timeout_ms_max).contains(&join.session_timeout_ms) {
            let refused = JoinReply::refused(ErrorCode::INVALID_SESSION_TIMEOUT, join.member_id);
            return Decision::reply(reply_to, Reply::Join(refused));
        }
        match self.groups.get(&join.group) {
            Some(group) => group.classic().decide_join(join, reply_to, now, config),
            None if join.member_id.is_empty() => {
                let new = ClassicGroup::default();
                let record = Some(new.metadata(now.timestamp_ms));
                Decision { record, ..new.decide_join(join, reply_to, now, config) }
            }
            None => {
                let refused = JoinReply::refused(ErrorCode::UNKNOWN_MEMBER_ID, join.member_id);
                Decision::reply(reply_to, Reply::Join(refused))
            }
        }
    }

    pub fn decide_sync(&self, sync: Sync, reply_to: ReplyTo, now: Now) -> Decision {
        match self.groups.get(&sync.group) {
            Some(group) => group.classic().decide_sync(sync, reply_to, now),
            None => Decision::reply(reply_to, Reply::Sync(SyncReply::refused(ErrorCode::UNKNOWN_MEMBER_ID))),
        }
    }

    pub fn decide_heartbeat(&self, group: &str, member: MemberRef<'_>, generation: i32) -> ErrorCode {
        match self.groups.get(group) {
            Some(group) => group.classic().decide_heartbeat(member, generation),
            None => ErrorCode::UNKNOWN_MEMBER_ID,
        }
    }

    pub fn decide_leave(&self, leave: &Leave, reply_to: ReplyTo) -> Decision {
        match self.groups.get(&leave.group) {
            Some(group) => group.classic().decide_leave(leave, reply_to),
            None => {
                let codes = vec![ErrorCode::UNKNOWN_MEMBER_ID; leave.members.len()];
                Decision::reply(reply_to, Reply::Leave(codes))
            }
        }
    }

    pub fn decide_complete_join(&self, group: &str, now: Now) -> Decision {
        self.groups.get(group).map(|group| group.classic().decide_complete_join(now)).unwrap_or_default()
    }

    // Durable changes.

    pub fn replay(&mut self, record: Record<'_>) {
        self.replayed += 1;
        match record {
            Record::Group { group, value: Some(metadata) } => self.replay_group(group, metadata),
            Record::Group { group, value: None } => self.replay_group_deletion(group),
            Record::Offset { key, value: Some(value) } => {
                let position = self.replayed;
                self.group_or_simple(key.group).offsets.replay_commit(key.topic, key.partition, &value, position);
            }
            Record::Offset { key, value: None } => {
                if let Some(group) = self.groups.get_mut(key.group) {
                    group.offsets.replay_deletion(key.topic, key.partition);
                }
            }
        }
    }

    /// A record from a transactional batch: an offset waits for the transaction's end. (Nothing else is written in transactions.)
    pub fn replay_pending(&mut self, producer: ProducerId, record: Record<'_>) {
        self.replayed += 1;
        if let Record::Offset { key, value: Some(value) } = record {
            let position = self.replayed;
            let offsets = &mut self.group_or_simple(key.group).offsets;
            offsets.replay_pending(producer, key.topic, key.partition, &value, position);
        }
    }

    /// The control record that ends a transaction. All groups of this partition that took part in it are settled.
    pub fn replay_end(&mut self, producer: ProducerId, committed: bool) {
        for group in self.groups.values_mut().filter(|group| group.offsets.has_pending()) {
            group.offsets.replay_end(producer, committed);
        }
    }

    fn replay_group(&mut self, group: &str, metadata: GroupMetadata) {
        self.group_or_simple(group).classic_mut().replay(metadata);
    }

    /// A group that still has offsets stays as a simple one until they go too: records may come in any order.
    fn replay_group_deletion(&mut self, name: &str) {
        if let Some(group) = self.groups.get_mut(name) {
            if group.offsets.is_empty() && !group.offsets.has_pending() {
                self.groups.remove(name);
            } else {
                group.kind = GroupKind::Classic(ClassicGroup::default());
            }
        }
    }

    fn group_or_simple(&mut self, name: &str) -> &mut Group {
        let name = match self.groups.get_key_value(name) {
            Some((name, _)) => name.clone(),
            None => name.into(),
        };
        self.groups.entry(name).or_insert_with(Group::simple)
    }

    // Volatile changes.

    pub fn note(&mut self, group: &str, note: Note, now: Now, config: &GroupConfig) -> Effects {
        match self.groups.get_mut(group) {
            Some(group) => group.classic_mut().note(note, now, config),
            // Cannot happen between decide and note; if it did, nobody shall wait for ever.
            None => Effects {
                replies: note.refused(ErrorCode::UNKNOWN_MEMBER_ID).into_iter().collect(),
                ..Effects::default()
            },
        }
    }

    pub fn note_alive(&mut self, group: &str, member_id: &str, now: Now) {
        if let Some(group) = self.groups.get_mut(group) {
            group.classic_mut().note_alive(member_id, now.monotonic_ms);
        }
    }

    pub fn note_tick(&mut self, group: &str, now: Now) -> Effects {
        let Some(group) = self.groups.get_mut(group) else { return Effects::default() };
        if group.armed_ms.is_some_and(|at_ms| at_ms <= now.monotonic_ms) {
            group.armed_ms = None;
        }
        group.classic_mut().note_tick(now)
    }

    pub fn note_completion_refused(&mut self, group: &str, now: Now) -> Effects {
        self.groups.get_mut(group).map(|group| group.classic_mut().note_completion_refused(now)).unwrap_or_default()
    }

    /// Whether a tick must be asked for so that one comes by `at_ms`; remembers that it was. A later one asked for before is then
    /// of no use any more.
    pub fn arm(&mut self, group: &str, at_ms: MonotonicMs) -> Arm {
        let Some(group) = self.groups.get_mut(group) else { return Arm::AsItIs };
        if group.armed_ms.is_some_and(|armed_ms| armed_ms <= at_ms) {
            return Arm::AsItIs;
        }
        Arm::Anew { instead_of_ms: group.armed_ms.replace(at_ms) }
    }

    /// The whole partition is replayed: sessions start anew.
    pub fn note_loaded(&mut self, now: Now, config: &GroupConfig) -> Vec<(Arc<str>, Effects)> {
        self.groups
            .iter_mut()
            .filter(|(_, group)| group.classic().member_count() > 0)
            .map(|(name, group)| (name.clone(), group.classic_mut().note_loaded(now, config)))
            .collect()
    }

    /// Everybody who waits is answered NOT_COORDINATOR. The machine is of no use afterwards.
    pub fn note_unloaded(&mut self) -> Effects {
        let mut effects = Effects::default();
        for group in self.groups.values_mut() {
            effects.merge(group.classic_mut().note_unloaded());
        }
        effects
    }
}
