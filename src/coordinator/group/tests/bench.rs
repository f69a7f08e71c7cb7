//! The bench: machine, log, clock, and everybody who waits.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::base::{ErrorCode, MonotonicMs, TopicId};
use crate::coordinator::group::machine::{Arm, Machine};
use crate::coordinator::group::record::{GroupMetadata, Record};
use crate::coordinator::group::words::*;
use crate::coordinator::group::{Deletions, GroupConfig};

pub const GROUP: &str = "g";
/// A consumer's subscription to the topic `t`.
pub const SUBSCRIPTION: &[u8] = b"\0\0\0\0\0\x01\0\x01t\xff\xff\xff\xff";

pub struct Bench {
    pub machine: Machine,
    pub config: GroupConfig,
    pub now: Now,
    /// Keys and values, as they would stand in the partition.
    pub log: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    pub refuse_appends: bool,
    asked: u64,
    replies: BTreeMap<ReplyTo, Reply>,
    alarms: BTreeMap<Arc<str>, MonotonicMs>,
}

impl Bench {
    pub fn new() -> Bench {
        Bench {
            machine: Machine::default(),
            config: GroupConfig { initial_rebalance_delay_ms: 0, ..GroupConfig::default() },
            now: Now { monotonic_ms: 1_000, timestamp_ms: 1_700_000_000_000 },
            log: Vec::new(),
            refuse_appends: false,
            asked: 0,
            replies: BTreeMap::new(),
            alarms: BTreeMap::new(),
        }
    }

    // Asking.

    pub fn join(&mut self, join: Join) -> ReplyTo {
        let reply_to = self.reply_to();
        let group = join.group.clone();
        let decision = self.machine.decide_join(join, reply_to, self.now, &self.config);
        self.carry_out(&group, decision);
        reply_to
    }

    pub fn sync(&mut self, sync: Sync) -> ReplyTo {
        let reply_to = self.reply_to();
        let group = sync.group.clone();
        let decision = self.machine.decide_sync(sync, reply_to, self.now);
        self.carry_out(&group, decision);
        reply_to
    }

    pub fn leave(&mut self, members: &[(&str, Option<&str>)]) -> Vec<ErrorCode> {
        let reply_to = self.reply_to();
        let one = |(member_id, instance_id): &(&str, Option<&str>)| LeavingMember {
            member_id: Arc::from(*member_id),
            instance_id: instance_id.map(Arc::from),
            reason: None,
        };
        let leave = Leave { group: GROUP.into(), members: members.iter().map(one).collect() };
        let decision = self.machine.decide_leave(&leave, reply_to);
        self.carry_out(&GROUP.into(), decision);
        match self.replies.remove(&reply_to) {
            Some(Reply::Leave(codes)) => codes,
            other => panic!("{other:?}"),
        }
    }

    pub fn heartbeat(&mut self, member_id: &str, generation: i32) -> ErrorCode {
        self.heartbeat_as(member_id, None, generation)
    }

    pub fn heartbeat_as(&mut self, member_id: &str, instance_id: Option<&str>, generation: i32) -> ErrorCode {
        let code = self.machine.decide_heartbeat(GROUP, MemberRef { member_id, instance_id }, generation);
        if matches!(code, ErrorCode::NONE | ErrorCode::REBALANCE_IN_PROGRESS) {
            self.machine.note_alive(GROUP, member_id, self.now);
        }
        code
    }

    pub fn commit(&mut self, group: &str, generation: i32, member_id: &str, offset: i64) -> ErrorCode {
        self.commit_as(group, generation, MemberRef { member_id, instance_id: None }, true, offset)
    }

    pub fn commit_as(
        &mut self,
        group: &str,
        generation: i32,
        member: MemberRef<'_>,
        group_id_not_found_known: bool,
        offset: i64,
    ) -> ErrorCode {
        let offsets = [offset_of(TopicId::ZERO, offset)];
        let commit = CommitOffsets {
            group,
            generation,
            member,
            group_id_not_found_known,
            retention_ms: None,
            offsets: &offsets,
        };
        self.carry_out_commit(&commit)
    }

    /// An assign-only consumer's commit for the topic `t` that has this id.
    pub fn commit_for(&mut self, group: &str, topic_id: TopicId, offset: i64) {
        let offsets = [offset_of(topic_id, offset)];
        let nobody = MemberRef { member_id: "", instance_id: None };
        let commit = CommitOffsets {
            group,
            generation: -1,
            member: nobody,
            group_id_not_found_known: true,
            retention_ms: None,
            offsets: &offsets,
        };
        assert_eq!(self.carry_out_commit(&commit), ErrorCode::NONE);
    }

    fn carry_out_commit(&mut self, commit: &CommitOffsets<'_>) -> ErrorCode {
        let decided = match self.machine.decide_commit(commit, self.now, &self.config) {
            Ok(decided) => decided,
            Err(code) => return code,
        };
        for record in decided.into_iter().flatten() {
            self.append(record);
        }
        self.machine.note_commit(commit, self.now);
        ErrorCode::NONE
    }

    pub fn committed(&self, group: &str) -> Option<i64> {
        Some(self.machine.group(group)?.offsets.committed("t", 0)?.offset)
    }

    pub fn delete(&mut self, deletions: &Deletions) {
        let records: Vec<Record<'_>> = deletions.records().collect();
        for record in records {
            self.append(record);
        }
    }

    // Answers.

    pub fn is_answered(&self, reply_to: ReplyTo) -> bool {
        self.replies.contains_key(&reply_to)
    }

    pub fn joined(&mut self, reply_to: ReplyTo) -> JoinReply {
        match self.replies.remove(&reply_to) {
            Some(Reply::Join(reply)) => reply,
            other => panic!("{other:?}"),
        }
    }

    pub fn synced(&mut self, reply_to: ReplyTo) -> SyncReply {
        match self.replies.remove(&reply_to) {
            Some(Reply::Sync(reply)) => reply,
            other => panic!("{other:?}"),
        }
    }

    pub fn take_replies(&mut self) -> BTreeMap<ReplyTo, Reply> {
        std::mem::take(&mut self.replies)
    }

    // Time.

    /// Lets time pass, ticking as asked for on the way.
    pub fn pass(&mut self, ms: MonotonicMs) {
        let until = self.now.monotonic_ms + ms;
        while let Some((group, at_ms)) = self.next_alarm().filter(|(_, at_ms)| *at_ms <= until) {
            self.set_time(at_ms.max(self.now.monotonic_ms));
            self.alarms.remove(&group);
            self.tick(&group);
        }
        self.set_time(until);
    }

    pub fn tick(&mut self, group: &Arc<str>) {
        let effects = self.machine.note_tick(group, self.now);
        self.carry_on(group, effects);
    }

    fn next_alarm(&self) -> Option<(Arc<str>, MonotonicMs)> {
        self.alarms.iter().min_by_key(|(_, at_ms)| **at_ms).map(|(group, at_ms)| (group.clone(), *at_ms))
    }

    fn set_time(&mut self, monotonic_ms: MonotonicMs) {
        self.now.timestamp_ms += (monotonic_ms - self.now.monotonic_ms) as i64;
        self.now.monotonic_ms = monotonic_ms;
    }

    // The log.

    pub fn last_metadata(&self) -> Option<GroupMetadata> {
        self.log.iter().rev().find_map(|(key, value)| match Record::decode(key, value.as_deref()) {
            Ok(Some(Record::Group { value, .. })) => value,
            _ => None,
        })
    }

    /// A machine that has only read the log.
    pub fn reloaded(&self) -> Machine {
        let mut machine = Machine::default();
        for (key, value) in &self.log {
            if let Ok(Some(record)) = Record::decode(key, value.as_deref()) {
                machine.replay(record);
            }
        }
        machine
    }

    /// Another coordinator takes over from the log.
    pub fn fail_over(&mut self) {
        self.machine = self.reloaded();
        self.alarms.clear();
        for (group, effects) in self.machine.note_loaded(self.now, &self.config) {
            self.carry_on(&group, effects);
        }
    }

    fn append(&mut self, record: Record<'_>) {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        record.encode_key(&mut key);
        let has_value = record.encode_value(&mut value);
        self.machine.replay(record);
        self.log.push((key, has_value.then_some(value)));
    }

    fn reply_to(&mut self) -> ReplyTo {
        self.asked += 1;
        ReplyTo(self.asked)
    }

    fn answer(&mut self, replies: Vec<(ReplyTo, Reply)>) {
        for (reply_to, reply) in replies {
            assert!(self.replies.insert(reply_to, reply).is_none(), "{reply_to:?} is answered twice");
        }
    }

    fn carry_out(&mut self, group: &Arc<str>, decision: Decision) {
        let Decision { record, then, replies, .. } = decision;
        if let Some(metadata) = record {
            if self.refuse_appends {
                let code = ErrorCode::NOT_COORDINATOR;
                self.answer(replies.into_iter().map(|(to, reply)| (to, reply.refused(code))).collect());
                match then.and_then(|note| note.refused(code)) {
                    Some(reply) => self.answer(vec![reply]),
                    None => {
                        let effects = self.machine.note_completion_refused(group, self.now);
                        self.carry_on(group, effects);
                    }
                }
                return;
            }
            self.append(Record::Group { group, value: Some(metadata) });
        }
        self.answer(replies);
        if let Some(note) = then {
            let effects = self.machine.note(group, note, self.now, &self.config);
            self.carry_on(group, effects);
        }
    }

    fn carry_on(&mut self, group: &Arc<str>, effects: Effects) {
        self.answer(effects.replies);
        if let Some(at_ms) = effects.wake_at_ms
            && let Arm::Anew { .. } = self.machine.arm(group, at_ms)
        {
            self.alarms.insert(group.clone(), at_ms);
        }
        if effects.complete_join {
            let decision = self.machine.decide_complete_join(group, self.now);
            self.carry_out(group, decision);
        }
    }

    // Ready-made situations.

    /// One member, stable in generation 1, with the assignment `all`.
    pub fn with_stable_member() -> (Bench, Arc<str>) {
        let mut bench = Bench::new();
        let joined = bench.join(newcomer("a"));
        let member_id = bench.joined(joined).member_id;
        let synced = bench.sync(sync(&member_id, 1, &[(&member_id, "all")]));
        assert_eq!(bench.synced(synced).error, ErrorCode::NONE);
        (bench, member_id)
    }
}

fn offset_of(topic_id: TopicId, offset: i64) -> OffsetToCommit<'static> {
    OffsetToCommit { topic: "t", topic_id, partition: 0, offset, leader_epoch: -1, metadata: "" }
}

/// A v3 JoinGroup of a member that has no id yet and gets `id`.
pub fn newcomer(id: &str) -> Join {
    Join {
        group: GROUP.into(),
        member_id: "".into(),
        fresh_member_id: id.into(),
        instance_id: None,
        client_id: "client".into(),
        client_host: "/127.0.0.1".into(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 5_000,
        protocol_type: "consumer".into(),
        protocols: vec![protocol("range")],
        member_id_required: false,
        skip_assignment_known: true,
        reason: None,
    }
}

/// The JoinGroup of a member that has its id.
pub fn member(id: &str) -> Join {
    Join { member_id: id.into(), fresh_member_id: "".into(), ..newcomer(id) }
}

pub fn static_newcomer(id: &str, instance_id: &str) -> Join {
    Join { instance_id: Some(instance_id.into()), ..newcomer(id) }
}

pub fn protocol(name: &str) -> Protocol {
    Protocol { name: name.into(), metadata: Bytes::from_static(SUBSCRIPTION) }
}

pub fn protocols(names: &[&str]) -> Vec<Protocol> {
    names.iter().map(|name| protocol(name)).collect()
}

pub fn sync(member_id: &str, generation: i32, assignments: &[(&str, &str)]) -> Sync {
    Sync {
        group: GROUP.into(),
        generation,
        member_id: member_id.into(),
        instance_id: None,
        protocol_type: None,
        protocol: None,
        assignments: assignments
            .iter()
            .map(|(id, assignment)| (Arc::from(*id), Bytes::copy_from_slice(assignment.as_bytes())))
            .collect(),
    }
}
