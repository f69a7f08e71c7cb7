//! What goes into the group machine and what comes out of it: requests and replies as plain values (api turns Kafka's messages into
//! them), and the decisions and effects between machine and driver.

use std::sync::Arc;

use bytes::Bytes;

use super::record::GroupMetadata;
use crate::base::{ErrorCode, LeaderEpoch, MonotonicMs, Offset, PartitionIndex, TimestampMs, TopicId};

/// A generation that says "I am no member" (an assign-only consumer or an administrator).
pub const NO_GENERATION: i32 = -1;

/// What time it is, in both senses. Deadlines are monotonic only; the wall clock stamps records and ages offsets.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    pub monotonic_ms: MonotonicMs,
    pub timestamp_ms: TimestampMs,
}

/// Names a reply that somebody waits for. Every one handed to the machine comes back exactly once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReplyTo(pub u64);

/// JoinGroup v0 to v9.
#[derive(Clone, Debug)]
pub struct Join {
    pub group: Arc<str>,
    /// Empty: give me one.
    pub member_id: Arc<str>,
    /// The id that a member without one gets. Ready-made, because the machine has no randomness.
    pub fresh_member_id: Arc<str>,
    pub instance_id: Option<Arc<str>>,
    pub client_id: Arc<str>,
    pub client_host: Arc<str>,
    pub session_timeout_ms: i32,
    pub rebalance_timeout_ms: i32,
    pub protocol_type: Arc<str>,
    /// In the member's order of preference.
    pub protocols: Vec<Protocol>,
    /// v4 and later (KIP-394): a member without an id is sent away with one, so that retries do not leave ghosts behind.
    pub member_id_required: bool,
    /// v9 and later (KIP-814): a static leader that restarts is told that it need not assign again.
    pub skip_assignment_known: bool,
    /// v8 and later (KIP-800): why. For the log only.
    pub reason: Option<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocol {
    pub name: Arc<str>,
    pub metadata: Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinReply {
    pub error: ErrorCode,
    pub generation: i32,
    pub protocol_type: Option<Arc<str>>,
    pub protocol: Option<Arc<str>>,
    pub leader: Arc<str>,
    pub skip_assignment: bool,
    pub member_id: Arc<str>,
    /// Filled for the leader only.
    pub members: Vec<JoinedMember>,
}

impl JoinReply {
    pub fn refused(error: ErrorCode, member_id: Arc<str>) -> JoinReply {
        JoinReply {
            error,
            generation: NO_GENERATION,
            protocol_type: None,
            protocol: None,
            leader: "".into(),
            skip_assignment: false,
            member_id,
            members: Vec::new(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedMember {
    pub member_id: Arc<str>,
    pub instance_id: Option<Arc<str>>,
    pub metadata: Bytes,
}

/// Who a member says it is, in SyncGroup, Heartbeat and LeaveGroup.
#[derive(Clone, Copy, Debug)]
pub struct MemberRef<'a> {
    pub member_id: &'a str,
    pub instance_id: Option<&'a str>,
}

/// SyncGroup v0 to v5.
#[derive(Clone, Debug)]
pub struct Sync {
    pub group: Arc<str>,
    pub generation: i32,
    pub member_id: Arc<str>,
    pub instance_id: Option<Arc<str>>,
    /// v5 and later (KIP-559); compared when given.
    pub protocol_type: Option<Arc<str>>,
    pub protocol: Option<Arc<str>>,
    pub assignments: Vec<(Arc<str>, Bytes)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncReply {
    pub error: ErrorCode,
    pub protocol_type: Option<Arc<str>>,
    pub protocol: Option<Arc<str>>,
    pub assignment: Bytes,
}

impl SyncReply {
    pub fn refused(error: ErrorCode) -> SyncReply {
        SyncReply { error, protocol_type: None, protocol: None, assignment: Bytes::new() }
    }
}

/// LeaveGroup: one member in v0 to v2, a list from v3 on (KIP-345).
#[derive(Clone, Debug)]
pub struct Leave {
    pub group: Arc<str>,
    pub members: Vec<LeavingMember>,
}

#[derive(Clone, Debug)]
pub struct LeavingMember {
    /// Empty with an instance id: an administrator removes whoever holds that instance id.
    pub member_id: Arc<str>,
    pub instance_id: Option<Arc<str>>,
    pub reason: Option<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Join(JoinReply),
    Sync(SyncReply),
    /// One code for each member of the request, in its order.
    Leave(Vec<ErrorCode>),
}

impl Reply {
    /// The same reply with a refusal in place of what it said.
    pub fn refused(self, code: ErrorCode) -> Reply {
        match self {
            Reply::Join(reply) => Reply::Join(JoinReply::refused(code, reply.member_id)),
            Reply::Sync(_) => Reply::Sync(SyncReply::refused(code)),
            Reply::Leave(codes) => Reply::Leave(vec![code; codes.len()]),
        }
    }
}

/// OffsetCommit v2 to v10, borrowed from the request: this is the coordinator's hot path.
#[derive(Clone, Copy, Debug)]
pub struct CommitOffsets<'a> {
    pub group: &'a str,
    pub generation: i32,
    pub member: MemberRef<'a>,
    /// v9 and later (KIP-848) say GROUP_ID_NOT_FOUND where older ones say ILLEGAL_GENERATION.
    pub group_id_not_found_known: bool,
    /// v2 to v4; `None` for -1.
    pub retention_ms: Option<i64>,
    pub offsets: &'a [OffsetToCommit<'a>],
}

#[derive(Clone, Copy, Debug)]
pub struct OffsetToCommit<'a> {
    pub topic: &'a str,
    pub topic_id: TopicId,
    pub partition: PartitionIndex,
    pub offset: Offset,
    pub leader_epoch: LeaderEpoch,
    pub metadata: &'a str,
}

/// What DescribeGroups v0 to v6 shows of a classic group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupDescription {
    pub state: &'static str,
    pub protocol_type: Arc<str>,
    pub protocol: Arc<str>,
    pub members: Vec<MemberDescription>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberDescription {
    pub member_id: Arc<str>,
    pub instance_id: Option<Arc<str>>,
    pub client_id: Arc<str>,
    pub client_host: Arc<str>,
    pub metadata: Bytes,
    pub assignment: Bytes,
}

/// What ListGroups v0 to v5 shows of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupListing {
    pub group: Arc<str>,
    pub protocol_type: Arc<str>,
    pub state: &'static str,
    pub kind: &'static str,
}

/// Which offsets OffsetFetch v1 to v10 asks for.
#[derive(Clone, Copy, Debug)]
pub struct TopicToFetch<'a> {
    pub topic: &'a str,
    /// Zero when there is no such topic now. An offset committed for a former topic of this name is not shown.
    pub topic_id: TopicId,
    pub partitions: &'a [PartitionIndex],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedTopic {
    pub topic: Arc<str>,
    pub partitions: Vec<FetchedOffset>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedOffset {
    pub partition: PartitionIndex,
    /// -1 when nothing is committed.
    pub offset: Offset,
    pub leader_epoch: LeaderEpoch,
    pub metadata: Box<str>,
    pub error: ErrorCode,
}

/// A durable change to one group and what follows once it is appended and replayed.
#[derive(Debug, Default)]
pub struct Decision {
    /// The group's new metadata, if it changes durably.
    pub record: Option<GroupMetadata>,
    /// What is answered tells of the record, or without one of an earlier one, so the answers wait until that is committed.
    pub reply_after_commit: bool,
    pub then: Option<Note>,
    pub replies: Vec<(ReplyTo, Reply)>,
}

impl Decision {
    pub fn reply(to: ReplyTo, reply: Reply) -> Decision {
        Decision { replies: vec![(to, reply)], ..Decision::default() }
    }

    pub fn note(note: Note) -> Decision {
        Decision { then: Some(note), ..Decision::default() }
    }
}

/// A change that lives in memory only and is lost with the coordinator, by design. Decided, then noted.
#[derive(Debug)]
pub enum Note {
    Join {
        join: Box<Join>,
        how: HowToJoin,
        reply_to: ReplyTo,
    },
    Sync {
        sync: Box<Sync>,
        how: HowToSync,
        reply_to: ReplyTo,
    },
    Leave {
        members: Vec<Arc<str>>,
        reply: Vec<ErrorCode>,
        reply_to: ReplyTo,
    },
    /// The group is full: a member or an id that was handed out is turned away.
    Evict {
        member_id: Arc<str>,
    },
    JoinCompleted,
    JoinPostponed,
}

impl Note {
    /// The answer to whoever asked for this, when it cannot be done after all.
    pub fn refused(self, code: ErrorCode) -> Option<(ReplyTo, Reply)> {
        match self {
            Note::Join { join, reply_to, .. } => {
                Some((reply_to, Reply::Join(JoinReply::refused(code, join.member_id))))
            }
            Note::Sync { reply_to, .. } => Some((reply_to, Reply::Sync(SyncReply::refused(code)))),
            Note::Leave { reply, reply_to, .. } => Some((reply_to, Reply::Leave(vec![code; reply.len()]))),
            Note::Evict { .. } | Note::JoinCompleted | Note::JoinPostponed => None,
        }
    }
}

/// How an accepted JoinGroup goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HowToJoin {
    /// An id is handed out; the member is expected back with it.
    HandOutId,
    /// A new member.
    Add { member_id: Arc<str> },
    /// A member that is there already, with possibly other protocols: the group rebalances.
    Update,
    /// A static member that restarted takes the place of its former self (KIP-345).
    Replace { old_member_id: Arc<str>, leader_shown: Option<Arc<str>>, rebalance: bool },
    /// Nothing changes: the present generation is the answer.
    Current,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HowToSync {
    /// Wait for the leader's assignment.
    Wait,
    /// The leader brought it, and the record that says so is replayed.
    Assigned,
    /// The group is settled already.
    Current,
}

/// What a note or a tick brings about.
#[derive(Debug, Default)]
pub struct Effects {
    pub replies: Vec<(ReplyTo, Reply)>,
    /// The group wants a tick at this time at the latest. Earlier ones do no harm.
    pub wake_at_ms: Option<MonotonicMs>,
    /// The join phase may be over: decide on it.
    pub complete_join: bool,
}

impl Effects {
    pub fn merge(&mut self, other: Effects) {
        self.replies.extend(other.replies);
        self.wake_at_ms = [self.wake_at_ms, other.wake_at_ms].into_iter().flatten().min();
        self.complete_join |= other.complete_join;
    }

    pub fn wake_at(&mut self, at_ms: MonotonicMs) {
        self.wake_at_ms = Some(self.wake_at_ms.map_or(at_ms, |earlier| earlier.min(at_ms)));
    }
}
