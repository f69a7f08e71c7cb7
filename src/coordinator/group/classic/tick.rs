//! Time passes: sessions end, join and sync phases run out. Deadlines are kept beside what they belong to; a tick finds out what is
//! due, so a tick too early or too often does nothing.

use std::sync::Arc;

use super::{ClassicGroup, Phase};
use crate::base::{ErrorCode, MonotonicMs};
use crate::coordinator::group::config::GroupConfig;
use crate::coordinator::group::words::{Effects, Now};

impl ClassicGroup {
    pub fn note_tick(&mut self, now: Now) -> Effects {
        let mut effects = self.end_sessions(now);
        effects.merge(self.end_sync_phase(now));
        effects.merge(self.end_join_phase(now));
        if let Some(next_ms) = self.next_deadline_ms() {
            effects.wake_at(next_ms);
        }
        effects
    }

    fn end_sessions(&mut self, now: Now) -> Effects {
        let is_over = |deadline_ms: MonotonicMs| deadline_ms <= now.monotonic_ms;
        let mut gone: Vec<Arc<str>> =
            self.pending_joins.iter().filter(|(_, at)| is_over(**at)).map(|(id, _)| id.clone()).collect();
        gone.extend(
            self.members.iter().filter(|(_, m)| m.session_ends_ms().is_some_and(is_over)).map(|(id, _)| id.clone()),
        );
        if gone.is_empty() { Effects::default() } else { self.note_gone(&gone, now) }
    }

    /// Members who joined but never asked for their assignment are dropped.
    fn end_sync_phase(&mut self, now: Now) -> Effects {
        if self.sync_deadline_ms.is_none_or(|deadline_ms| deadline_ms > now.monotonic_ms) {
            return Effects::default();
        }
        self.sync_deadline_ms = None;
        let silent: Vec<Arc<str>> =
            self.members.iter().filter(|(_, member)| !member.has_synced).map(|(id, _)| id.clone()).collect();
        if silent.is_empty() || !matches!(self.phase, Phase::CompletingRebalance | Phase::Stable) {
            return Effects::default();
        }
        self.note_gone(&silent, now)
    }

    fn end_join_phase(&mut self, now: Now) -> Effects {
        if self.join_deadline_ms.is_none_or(|deadline_ms| deadline_ms > now.monotonic_ms) {
            return Effects::default();
        }
        self.join_deadline_ms = None;
        if self.phase != Phase::PreparingRebalance {
            return Effects::default();
        }
        if self.extend_initial_delay(now) {
            return Effects::default();
        }
        Effects { complete_join: true, ..Effects::default() }
    }

    /// As long as new members keep coming, an empty group's first rebalance is put off, up to the rebalance timeout.
    fn extend_initial_delay(&mut self, now: Now) -> bool {
        let Some(delay) = &mut self.initial_delay else { return false };
        if !delay.member_added || delay.remaining_ms == 0 {
            self.initial_delay = None;
            return false;
        }
        let next_ms = delay.delay_ms.min(delay.remaining_ms);
        delay.remaining_ms -= next_ms;
        delay.member_added = false;
        self.join_deadline_ms = Some(now.monotonic_ms + next_ms);
        true
    }

    fn next_deadline_ms(&self) -> Option<MonotonicMs> {
        let sessions = self.members.values().filter_map(|member| member.session_ends_ms());
        let pending = self.pending_joins.values().copied();
        sessions.chain(pending).chain(self.join_deadline_ms).chain(self.sync_deadline_ms).min()
    }

    /// What could not be written when the join phase ended is tried again soon.
    pub fn note_completion_refused(&mut self, now: Now) -> Effects {
        const RETRY_AFTER_MS: MonotonicMs = 500;
        if self.phase != Phase::PreparingRebalance {
            return Effects::default();
        }
        let deadline_ms = now.monotonic_ms + RETRY_AFTER_MS;
        self.join_deadline_ms = Some(deadline_ms);
        Effects { wake_at_ms: Some(deadline_ms), ..Effects::default() }
    }

    /// A coordinator took over: every member has a full session time from now. A group that the settings no longer allow
    /// rebalances.
    pub fn note_loaded(&mut self, now: Now, config: &GroupConfig) -> Effects {
        let mut effects = Effects::default();
        for member in self.members.values_mut() {
            member.extend_session(now.monotonic_ms);
            effects.wake_at(member.session_deadline_ms);
        }
        if self.members.len() > config.size_max {
            effects.merge(self.prepare_rebalance(now));
        }
        effects
    }

    /// The coordinator moves away: everybody who waits is told to look for the new one.
    pub fn note_unloaded(&mut self) -> Effects {
        let mut effects = Effects::default();
        let members: Vec<Arc<str>> = self.members.keys().cloned().collect();
        for member_id in members {
            effects.merge(self.remove_member(&member_id, ErrorCode::NOT_COORDINATOR));
        }
        effects
    }
}
