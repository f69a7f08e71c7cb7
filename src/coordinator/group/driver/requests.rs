//! One method for each API. Group-wide refusals (loading, not here, no such group) are `Err`; finer ones stand in the replies.

use std::sync::Arc;

use tokio::sync::oneshot;
use tracing::debug;

use super::GroupCoordinator;
use super::log::{CommitFailed, CommitWait};
use super::shard::{Active, Delivered, Surroundings};
use crate::base::{ErrorCode, PartitionIndex};
use crate::coordinator::group::words::{
    CommitOffsets, Decision, FetchedTopic, GroupDescription, GroupListing, Join, JoinReply, Leave, MemberRef, Reply,
    ReplyTo, Sync, SyncReply, TopicToFetch,
};

/// The part of a new member's id that comes from the client is cut here, so that the whole fits a protocol string.
const MEMBER_ID_PREFIX_BYTES_MAX: usize = 1_024;

impl GroupCoordinator {
    /// JoinGroup v0 to v9. Waits for the group's other members.
    pub async fn join(&self, mut join: Join) -> JoinReply {
        let member_id = join.member_id.clone();
        if join.group.is_empty() {
            return JoinReply::refused(ErrorCode::INVALID_GROUP_ID, member_id);
        }
        if member_id.is_empty() {
            join.fresh_member_id = self.fresh_member_id(&join);
        }
        let group = join.group.clone();
        debug!(%group, %member_id, reason = join.reason.as_deref(), "join");
        let decide = |active: &Active, reply_to, around: &Surroundings<'_>| {
            active.machine.decide_join(join, reply_to, around.now, around.config)
        };
        match self.ask(&group, decide).await {
            Ok(Reply::Join(reply)) => reply,
            Ok(_) => JoinReply::refused(mismatched(&group), member_id),
            Err(code) => JoinReply::refused(code, member_id),
        }
    }

    /// SyncGroup v0 to v5. Waits for the leader's assignment.
    pub async fn sync(&self, sync: Sync) -> SyncReply {
        if sync.group.is_empty() {
            return SyncReply::refused(ErrorCode::INVALID_GROUP_ID);
        }
        let group = sync.group.clone();
        let decide = |active: &Active, reply_to, around: &Surroundings<'_>| {
            active.machine.decide_sync(sync, reply_to, around.now)
        };
        match self.ask(&group, decide).await {
            Ok(Reply::Sync(reply)) => reply,
            Ok(_) => SyncReply::refused(mismatched(&group)),
            Err(code) => SyncReply::refused(code),
        }
    }

    /// Heartbeat v0 to v4. While the group is loading every heartbeat is fine: its sender may well be a member.
    pub fn heartbeat(&self, group: &str, member: MemberRef<'_>, generation: i32) -> ErrorCode {
        if group.is_empty() {
            return ErrorCode::INVALID_GROUP_ID;
        }
        let answered = self.with_group(group, |active, around| {
            let code = active.machine.decide_heartbeat(group, member, generation);
            if matches!(code, ErrorCode::NONE | ErrorCode::REBALANCE_IN_PROGRESS) {
                active.machine.note_alive(group, member.member_id, around.now);
            }
            code
        });
        match answered {
            Ok(code) => code,
            Err(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS) => ErrorCode::NONE,
            Err(code) => code,
        }
    }

    /// LeaveGroup v0 to v5: one code for each member named.
    pub async fn leave(&self, leave: Leave) -> Result<Vec<ErrorCode>, ErrorCode> {
        if leave.group.is_empty() {
            return Err(ErrorCode::INVALID_GROUP_ID);
        }
        let group = leave.group.clone();
        for member in &leave.members {
            debug!(%group, member_id = %member.member_id, reason = member.reason.as_deref(), "leave");
        }
        let decide = |active: &Active, reply_to, _: &Surroundings<'_>| active.machine.decide_leave(&leave, reply_to);
        match self.ask(&group, decide).await? {
            Reply::Leave(codes) => Ok(codes),
            _ => Err(mismatched(&group)),
        }
    }

    /// OffsetCommit v2 to v10: one code for each offset. The empty group name is a group like others here, for old assign-only
    /// consumers.
    pub async fn commit_offsets(&self, commit: &CommitOffsets<'_>) -> Result<Vec<ErrorCode>, ErrorCode> {
        let (codes, wait, load) = self.with_group(commit.group, |active, around| {
            let (codes, wait) = active.commit_offsets(commit, around)?;
            Ok((codes, wait, active.load()))
        })??;
        self.committed(commit.group, load, wait).await?;
        Ok(codes)
    }

    /// OffsetFetch v1 to v10, for one group. `None` asks for everything. A broker that is fenced tells nobody what it knew.
    pub async fn fetch_offsets(
        &self,
        group: &str,
        topics: Option<&[TopicToFetch<'_>]>,
        require_stable: bool,
    ) -> Result<Vec<FetchedTopic>, ErrorCode> {
        self.speaks_for_groups()?;
        let (fetched, wait, load) = self.with_group(group, |active, around| {
            let fetched = match topics {
                Some(topics) => active.machine.fetch(group, topics, require_stable),
                None => active.machine.fetch_all(group, require_stable),
            };
            (fetched, around.log.committed(around.partition), active.load())
        })?;
        self.committed(group, load, wait).await?;
        Ok(fetched)
    }

    /// OffsetDelete v0: one code for each partition.
    pub async fn delete_offsets(
        &self,
        group: &str,
        partitions: &[(&str, PartitionIndex)],
    ) -> Result<Vec<ErrorCode>, ErrorCode> {
        if group.is_empty() {
            return Err(ErrorCode::INVALID_GROUP_ID);
        }
        let (codes, wait, load) = self.with_group(group, |active, around| {
            let (codes, deletions) = active.machine.decide_delete_offsets(group, partitions)?;
            let wait = active.delete(&deletions, around).map_err(|refused| refused.code_for_offsets())?;
            Ok((codes, wait, active.load()))
        })??;
        self.committed(group, load, wait).await?;
        Ok(codes)
    }

    /// DeleteGroups v0 to v3, for one group.
    pub async fn delete_group(&self, group: &str) -> Result<(), ErrorCode> {
        let (wait, load) = self.with_group(group, |active, around| {
            let deletions = active.machine.decide_delete_group(group)?;
            let wait = active.delete(&deletions, around).map_err(|refused| refused.code_for_groups())?;
            Ok((wait, active.load()))
        })??;
        self.committed(group, load, wait).await
    }

    /// DescribeGroups v0 to v6, for one group; `None` when there is none of that name. A broker that is fenced tells nobody what it knew.
    pub fn describe(&self, group: &str) -> Result<Option<GroupDescription>, ErrorCode> {
        self.speaks_for_groups()?;
        self.with_group(group, |active, _| active.machine.group(group).map(|group| group.classic().describe()))
    }

    /// ListGroups v0 to v5: all groups that this broker coordinates, by name. COORDINATOR_LOAD_IN_PROGRESS while one partition is still
    /// loading, for a list with holes would be taken for the whole.
    pub fn list(&self) -> Result<Vec<GroupListing>, ErrorCode> {
        let mut groups: Vec<GroupListing> = Vec::new();
        for shard in self.shards.load().iter() {
            match shard.with(|active| groups.extend(active.machine.list())) {
                Ok(_) | Err(ErrorCode::NOT_COORDINATOR) => {}
                Err(code) => return Err(code),
            }
        }
        groups.sort_unstable_by(|a, b| a.group.cmp(&b.group));
        Ok(groups)
    }

    fn speaks_for_groups(&self) -> Result<(), ErrorCode> {
        if self.log.may_have_successors() { Err(ErrorCode::NOT_COORDINATOR) } else { Ok(()) }
    }

    /// Decides, carries the decision out, and waits for the reply, and for the commit that the reply speaks of.
    async fn ask(
        &self,
        group: &Arc<str>,
        decide: impl FnOnce(&Active, ReplyTo, &Surroundings<'_>) -> Decision,
    ) -> Result<Reply, ErrorCode> {
        let (receiver, load): (oneshot::Receiver<Delivered>, u64) = self.with_group(group, |active, around| {
            let (reply_to, receiver) = active.expect_reply();
            let decision = decide(active, reply_to, around);
            active.carry_out(group, decision, around);
            (receiver, active.load())
        })?;
        let Ok(Delivered { reply, commit }) = receiver.await else { return Err(ErrorCode::NOT_COORDINATOR) };
        if let Some(commit) = commit {
            let committed = commit.await;
            self.on_commit(group, load, committed)?;
        }
        Ok(reply)
    }

    async fn committed(&self, group: &str, load: u64, wait: Option<CommitWait>) -> Result<(), ErrorCode> {
        match wait {
            Some(wait) => {
                let committed = wait.await;
                self.on_commit(group, load, committed)
            }
            None => Ok(()),
        }
    }

    /// What the log lost, the machine must not know.
    fn on_commit(&self, group: &str, load: u64, committed: Result<(), CommitFailed>) -> Result<(), ErrorCode> {
        let Err(failed) = committed else { return Ok(()) };
        if failed == CommitFailed::Storage
            && let Some(shard) = self.partition_of(group).and_then(|partition| self.shard(partition))
        {
            self.distrust(&shard, load);
        }
        Err(match failed {
            CommitFailed::NotLeader | CommitFailed::Storage => ErrorCode::NOT_COORDINATOR,
            CommitFailed::TimedOut => ErrorCode::COORDINATOR_NOT_AVAILABLE,
        })
    }

    /// As Kafka makes them: instance id or client id, a dash, a random UUID.
    fn fresh_member_id(&self, join: &Join) -> Arc<str> {
        let prefix = join.instance_id.as_deref().unwrap_or(&join.client_id);
        let mut end = prefix.len().min(MEMBER_ID_PREFIX_BYTES_MAX);
        while !prefix.is_char_boundary(end) {
            end -= 1;
        }
        let prefix = prefix.get(..end).unwrap_or_default();
        format!("{prefix}-{}", self.host.entropy.uuid().hyphenated()).into()
    }
}

/// A reply of another kind than was asked for can only be a mistake of ours.
fn mismatched(group: &str) -> ErrorCode {
    tracing::error!(group, "a reply of the group is of another kind than the request");
    ErrorCode::UNKNOWN_SERVER_ERROR
}
