//! What the active controller does unasked: fences brokers whose sessions end, gives leadership back to preferred replicas, elects
//! unclean leaders where that is allowed, and raises internal topics to the replication that the cluster can give by now. One task
//! for all of it.

use std::time::Duration;

use super::Controller;
use crate::base::{BrokerId, MonotonicMs};
use crate::controller::decide::elections::{balance_leaders, elect_unclean};
use crate::controller::decide::internal_topics::raise_internal_topic;
use crate::controller::decide::rules::Rules;
use crate::host::task;
use crate::metadata::Image;
use crate::quorum::Leadership;

/// The longest pause between two looks at the sessions.
const PAUSE_MS_MAX: u64 = 500;
const PAUSE_MS_MIN: u64 = 10;

/// A broker that was not heard for so long is looked at.
const SILENCE_MS: u64 = 1_500;

/// How often internal topics are looked at besides when brokers come.
const RAISE_INTERVAL_MS: u64 = 30_000;

/// After a pass that left work over.
const SOON_MS: u64 = 1_000;

/// When which work is due.
pub(super) struct Due {
    balance: MonotonicMs,
    unclean: MonotonicMs,
    raise: MonotonicMs,
    /// The brokers that were active at the last look.
    active: Vec<BrokerId>,
}

impl Controller {
    /// Works until it is dropped. One per node.
    pub async fn run(self) {
        let mut leadership = self.shared.leadership.clone();
        let mut due: Option<Due> = None;
        loop {
            let is_me = leadership.borrow_and_update().is_me;
            match (&mut due, is_me) {
                (None, true) => due = Some(self.take_over()),
                (Some(_), false) => {
                    self.shared.sessions.lock().clear();
                    due = None;
                }
                _ => {}
            }
            let pause_ms = match &mut due {
                Some(due) => self.tick(due).await,
                None => PAUSE_MS_MAX,
            };
            tokio::select! {
                () = changed(&mut leadership) => {}
                () = task::sleep(Duration::from_millis(pause_ms)) => {}
            }
        }
    }

    /// Begins a term: sessions for all, and a look at everybody, because nobody knows who died together with the last controller.
    pub(super) fn take_over(&self) -> Due {
        let (image, now) = (self.quorum().image(), self.shared.host.clock.monotonic_ms());
        self.shared.sessions.lock().take_over(&image, self.options().node_id, now);
        self.shared.unfenced.lock().clear_all();
        for broker in image.live_brokers() {
            self.note_connection_lost(broker.id);
        }
        let settings = self.options().settings;
        Due {
            balance: now.saturating_add(settings.balance_interval_ms),
            unclean: now.saturating_add(settings.unclean_interval_ms.min(RAISE_INTERVAL_MS)),
            raise: now.saturating_add(SOON_MS),
            active: Vec::new(),
        }
    }

    /// Does what is due; answers the pause until the next look in milliseconds.
    pub(super) async fn tick(&self, due: &mut Due) -> u64 {
        let now = self.shared.host.clock.monotonic_ms();
        let expired = self.shared.sessions.lock().expired(now);
        // One by one, so that leaders do not move to a broker that is fenced next.
        for (id, epoch) in expired {
            self.fence(id, epoch, "it was not heard within its session").await;
        }
        // A broken connection may have escaped us.
        let silent = self.shared.sessions.lock().newly_silent(now, SILENCE_MS);
        silent.into_iter().for_each(|id| self.note_connection_lost(id));
        let image = self.quorum().image();
        let active: Vec<BrokerId> =
            image.brokers().filter(|broker| broker.is_active()).map(|broker| broker.id).collect();
        if active != due.active {
            due.active = active;
            due.raise = due.raise.min(now.saturating_add(SOON_MS));
        }
        if due.balance <= now {
            due.balance = now.saturating_add(self.balance().await);
        }
        if due.unclean <= now {
            due.unclean = now.saturating_add(self.elect_unclean().await);
        }
        if due.raise <= now {
            due.raise = now.saturating_add(self.raise_internal_topics(&image).await);
        }
        self.pause_ms(now)
    }

    fn pause_ms(&self, now: MonotonicMs) -> u64 {
        let next = self.shared.sessions.lock().next_expiry();
        let until = next.map_or(PAUSE_MS_MAX, |expiry| expiry.saturating_sub(now));
        until.clamp(PAUSE_MS_MIN, PAUSE_MS_MAX)
    }

    async fn balance(&self) -> u64 {
        let interval_ms = self.options().settings.balance_interval_ms;
        if !self.options().settings.balances_leaders {
            return interval_ms;
        }
        let has_work = !balance_leaders(&self.quorum().image(), &self.rules()).records.is_empty();
        let more = has_work && self.arrange(balance_leaders).await.is_ok_and(|(more, _)| more);
        if more { SOON_MS } else { interval_ms }
    }

    async fn elect_unclean(&self) -> u64 {
        let interval_ms = self.options().settings.unclean_interval_ms;
        let has_work = !elect_unclean(&self.quorum().image(), &self.rules()).records.is_empty();
        let more = has_work && self.arrange(elect_unclean).await.is_ok_and(|(more, _)| more);
        if more { SOON_MS } else { interval_ms }
    }

    async fn raise_internal_topics(&self, image: &Image) -> u64 {
        let mut raised = false;
        let there = self.options().internal_topics.iter().filter(|wanted| image.topic(&wanted.name).is_some());
        for wanted in there.cloned() {
            let name = wanted.name.clone();
            if raise_internal_topic(image, &self.rules(), &wanted).records.is_empty() {
                continue;
            }
            match self
                .arrange(move |image: &Image, rules: &Rules<'_>| raise_internal_topic(image, rules, &wanted))
                .await
            {
                Ok(_) => {
                    raised = true;
                    tracing::info!(topic = name, "internal topic raised towards the replication it shall have");
                }
                Err(error) => tracing::warn!(topic = name, %error, "an internal topic cannot be raised"),
            }
        }
        if raised { SOON_MS } else { RAISE_INTERVAL_MS }
    }
}

/// Waits for a change; for ever when there will be none.
async fn changed(leadership: &mut tokio::sync::watch::Receiver<Leadership>) {
    if leadership.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}
