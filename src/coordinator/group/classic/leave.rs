//! LeaveGroup: a member goes, or an administrator sends it away by instance id (KIP-345).

use std::sync::Arc;

use indexmap::IndexSet;

use super::ClassicGroup;
use crate::base::ErrorCode;
use crate::coordinator::group::words::{Decision, Effects, Leave, LeavingMember, MemberRef, Note, Now, Reply, ReplyTo};

impl ClassicGroup {
    pub fn decide_leave(&self, leave: &Leave, reply_to: ReplyTo) -> Decision {
        let mut leaving: IndexSet<Arc<str>> = IndexSet::new();
        let mut reply = Vec::with_capacity(leave.members.len());
        for member in &leave.members {
            reply.push(match self.who_leaves(member) {
                Ok(member_id) if leaving.insert(member_id.clone()) => ErrorCode::NONE,
                Ok(_) => ErrorCode::UNKNOWN_MEMBER_ID,
                Err(code) => code,
            });
        }
        if leaving.is_empty() {
            return Decision::reply(reply_to, Reply::Leave(reply));
        }
        Decision::note(Note::Leave { members: leaving.into_iter().collect(), reply, reply_to })
    }

    fn who_leaves(&self, member: &LeavingMember) -> Result<Arc<str>, ErrorCode> {
        if member.member_id.is_empty() {
            let holder = member.instance_id.as_ref().and_then(|instance_id| self.static_members.get(instance_id));
            return holder.cloned().ok_or(ErrorCode::UNKNOWN_MEMBER_ID);
        }
        if self.pending_joins.contains_key(&member.member_id) {
            return Ok(member.member_id.clone());
        }
        self.validate_member(MemberRef { member_id: &member.member_id, instance_id: member.instance_id.as_deref() })?;
        Ok(member.member_id.clone())
    }

    pub(super) fn note_leave(
        &mut self,
        members: &[Arc<str>],
        reply: Vec<ErrorCode>,
        reply_to: ReplyTo,
        now: Now,
    ) -> Effects {
        let mut effects = self.note_gone(members, now);
        effects.replies.push((reply_to, Reply::Leave(reply)));
        effects
    }

    /// Members, or ids that were only handed out, are gone. What they waited for is answered UNKNOWN_MEMBER_ID.
    pub(super) fn note_gone(&mut self, members: &[Arc<str>], now: Now) -> Effects {
        let mut effects = Effects::default();
        let count_before = self.members.len();
        for member_id in members {
            effects.merge(self.remove_member(member_id, ErrorCode::UNKNOWN_MEMBER_ID));
        }
        let only_pending_left = self.members.len() == count_before;
        effects.merge(if only_pending_left { self.go_on_if_all_joined() } else { self.go_on_without(now) });
        effects
    }
}
