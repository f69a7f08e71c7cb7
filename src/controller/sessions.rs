//! Which brokers were heard of, and until when that holds. Volatile: a new controller begins with short sessions for all, so that a
//! broker that died together with the old controller is not waited for long.

use std::collections::BTreeMap;

use crate::base::{BrokerId, MonotonicMs};
use crate::metadata::{Image, NO_METADATA};

/// How long a new controller waits for the first heartbeat of a broker that it knows from the metadata.
pub const FIRST_SESSION_MS: u64 = 2_500;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Session {
    epoch: i64,
    expires: MonotonicMs,
    heard: MonotonicMs,
    /// It was named as silent since it was heard.
    named: bool,
    /// How far the broker said that it has the metadata.
    metadata_offset: i64,
    /// Where the records that moved its leaders away end, once it wants to stop.
    moved_at: Option<i64>,
}

#[derive(Clone, Debug, Default)]
pub struct Sessions {
    by_broker: BTreeMap<BrokerId, Session>,
    timeout_ms: u64,
}

impl Sessions {
    /// `timeout_ms`: `broker.session.timeout.ms`.
    pub fn new(timeout_ms: u64) -> Sessions {
        Sessions { by_broker: BTreeMap::new(), timeout_ms }
    }

    /// A controller takes over: every broker that serves has until `FIRST_SESSION_MS` from now to be heard. The controller's own
    /// broker is as alive as the controller; its session begins with its first heartbeat.
    pub fn take_over(&mut self, image: &Image, own_id: BrokerId, now: MonotonicMs) {
        let first_ms = FIRST_SESSION_MS.min(self.timeout_ms);
        self.by_broker.clear();
        for broker in image.live_brokers().filter(|broker| broker.id != own_id) {
            self.begin_for(broker.id, broker.epoch, now, first_ms);
        }
    }

    /// Nobody's controller any more.
    pub fn clear(&mut self) {
        self.by_broker.clear();
    }

    /// A broker registered. Its former incarnation has no session any more.
    pub fn registered(&mut self, id: BrokerId, epoch: i64, now: MonotonicMs) {
        if self.by_broker.get(&id).is_none_or(|session| session.epoch != epoch) {
            self.begin_for(id, epoch, now, self.timeout_ms);
        }
    }

    fn begin_for(&mut self, id: BrokerId, epoch: i64, now: MonotonicMs, lasts_ms: u64) {
        let expires = now.saturating_add(lasts_ms);
        let session =
            Session { epoch, expires, heard: now, named: false, metadata_offset: NO_METADATA, moved_at: None };
        self.by_broker.insert(id, session);
    }

    /// A heartbeat. An older incarnation's says nothing of the newer one.
    pub fn heard(&mut self, id: BrokerId, epoch: i64, metadata_offset: i64, now: MonotonicMs) {
        let expires = now.saturating_add(self.timeout_ms);
        match self.by_broker.get_mut(&id) {
            Some(session) if session.epoch > epoch => {}
            Some(session) if session.epoch == epoch => {
                session.expires = session.expires.max(expires);
                session.heard = now;
                session.named = false;
                session.metadata_offset = metadata_offset;
            }
            _ => {
                self.begin_for(id, epoch, now, self.timeout_ms);
                self.heard(id, epoch, metadata_offset, now);
            }
        }
    }

    /// The broker is gone, or fenced.
    pub fn end(&mut self, id: BrokerId, epoch: i64) {
        if self.by_broker.get(&id).is_some_and(|session| session.epoch == epoch) {
            self.by_broker.remove(&id);
        }
    }

    pub fn is_valid(&self, id: BrokerId, epoch: i64, now: MonotonicMs) -> bool {
        self.by_broker.get(&id).is_some_and(|session| session.epoch == epoch && now < session.expires)
    }

    /// The sessions that are over, as broker and epoch.
    pub fn expired(&self, now: MonotonicMs) -> Vec<(BrokerId, i64)> {
        let over = self.by_broker.iter().filter(|(_, session)| session.expires <= now);
        over.map(|(id, session)| (*id, session.epoch)).collect()
    }

    /// Brokers that were not heard for `silence_ms`, each once until it is heard again.
    pub fn newly_silent(&mut self, now: MonotonicMs, silence_ms: u64) -> Vec<BrokerId> {
        let is_silent = |session: &Session| !session.named && session.heard.saturating_add(silence_ms) <= now;
        let silent = self.by_broker.iter_mut().filter(|(_, session)| is_silent(session));
        silent
            .map(|(id, session)| {
                session.named = true;
                *id
            })
            .collect()
    }

    /// When the next session ends, if nobody is heard until then.
    pub fn next_expiry(&self) -> Option<MonotonicMs> {
        self.by_broker.values().map(|session| session.expires).min()
    }

    /// A broker's leaders were moved away by records that end at `offset`; the first time counts.
    pub fn moved_away(&mut self, id: BrokerId, offset: i64) {
        if let Some(session) = self.by_broker.get_mut(&id) {
            session.moved_at.get_or_insert(offset);
        }
    }

    pub fn moved_at(&self, id: BrokerId) -> Option<i64> {
        self.by_broker.get(&id)?.moved_at
    }

    /// How far the slowest of the brokers that serve and stay has the metadata; nobody to wait for: [`i64::MAX`].
    pub fn seen_by_all(&self, image: &Image) -> i64 {
        let others = self.by_broker.iter().filter(|(id, _)| image.is_active(**id));
        others.map(|(_, session)| session.metadata_offset).min().unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{BrokerRegistration, MetadataRecord};

    fn image(ids: &[BrokerId]) -> Image {
        let mut image = Image::empty();
        for id in ids {
            let broker = BrokerRegistration { id: *id, epoch: 7, ..BrokerRegistration::default() };
            image.apply(image.offset + 1, &MetadataRecord::Broker(broker)).unwrap();
        }
        image
    }

    #[test]
    fn a_session_lasts_from_the_last_heartbeat() {
        let mut sessions = Sessions::new(5_000);
        sessions.registered(1, 7, 0);
        sessions.heard(1, 7, 3, 4_000);
        assert!(sessions.is_valid(1, 7, 8_999));
        assert!(sessions.expired(8_999).is_empty());
        assert_eq!(sessions.expired(9_000), [(1, 7)]);
        assert_eq!(sessions.next_expiry(), Some(9_000));
    }

    #[test]
    fn a_new_controller_gives_others_short_sessions_and_none_to_itself() {
        let mut sessions = Sessions::new(5_000);
        sessions.take_over(&image(&[1, 2, 3]), 1, 100);
        assert_eq!(sessions.expired(100 + FIRST_SESSION_MS), [(2, 7), (3, 7)]);
        sessions.heard(2, 7, 0, 200);
        assert_eq!(sessions.expired(100 + FIRST_SESSION_MS), [(3, 7)]);
    }

    #[test]
    fn a_heartbeat_of_a_former_incarnation_counts_for_nothing() {
        let mut sessions = Sessions::new(5_000);
        sessions.registered(1, 8, 0);
        sessions.heard(1, 7, 3, 4_000);
        assert_eq!(sessions.expired(5_000), [(1, 8)]);
        sessions.end(1, 7);
        assert!(sessions.is_valid(1, 8, 0));
    }

    #[test]
    fn a_silent_broker_is_named_once_until_it_is_heard_again() {
        let mut sessions = Sessions::new(5_000);
        sessions.heard(1, 7, 0, 0);
        assert!(sessions.newly_silent(999, 1_000).is_empty());
        assert_eq!(sessions.newly_silent(1_000, 1_000), [1]);
        assert!(sessions.newly_silent(2_000, 1_000).is_empty());
        sessions.heard(1, 7, 0, 2_000);
        assert_eq!(sessions.newly_silent(3_000, 1_000), [1]);
    }

    #[test]
    fn the_slowest_active_broker_is_waited_for() {
        let image = image(&[1, 2]);
        let mut sessions = Sessions::new(5_000);
        assert_eq!(sessions.seen_by_all(&image), i64::MAX);
        sessions.heard(1, 7, 30, 0);
        sessions.heard(2, 7, 20, 0);
        sessions.heard(9, 7, 5, 0);
        assert_eq!(sessions.seen_by_all(&image), 20);
        sessions.moved_away(1, 40);
        sessions.moved_away(1, 50);
        assert_eq!(sessions.moved_at(1), Some(40));
    }
}
