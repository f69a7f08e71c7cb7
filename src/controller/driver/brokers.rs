//! Brokers: registering, heartbeats, losing and fencing them.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Controller, Liveness};
use crate::base::{BrokerId, ErrorCode, TopicId};
use crate::controller::decide::brokers::unregister_broker;
use crate::controller::decide::heartbeat::{Heartbeat, HeartbeatReply, Stopping, fence, heartbeat};
use crate::controller::decide::registration::{Registration, register};
use crate::controller::decide::rules::Rules;
use crate::controller::decide::{Decision, Refusal};
use crate::host::task;
use crate::metadata::Image;
use crate::quorum::QuorumError;

/// Brokers that should be fenced and could not be, by the epoch for which that was said.
#[derive(Debug, Default)]
pub(super) struct Unfenced(BTreeMap<BrokerId, i64>);

impl Unfenced {
    /// Whether nobody has said yet that the broker cannot be fenced in this epoch.
    fn is_news(&mut self, id: BrokerId, epoch: i64) -> bool {
        self.0.insert(id, epoch) != Some(epoch)
    }

    fn clear(&mut self, id: BrokerId) {
        self.0.remove(&id);
    }

    /// The next time is news again.
    pub(super) fn clear_all(&mut self) {
        self.0.clear();
    }
}

/// Pauses before a broker that did not answer is looked at again.
const LOOK_AGAIN_AFTER_MS: [u64; 3] = [20, 50, 150];

impl Controller {
    /// Decides a BrokerRegistration request; answers the broker epoch.
    pub async fn register(&self, asked: Registration) -> Result<Result<i64, Refusal>, QuorumError> {
        self.must_be_active()?;
        let fresh_cluster_id = TopicId(self.shared.host.entropy.uuid()).to_string();
        let asked = Registration { fresh_cluster_id, ..asked };
        let id = asked.broker.id;
        let gone = self.former_is_gone(&asked).await;
        let controller = self.clone();
        let decide = move |image: &Image, rules: &Rules<'_>| {
            let former = image.broker(id).filter(|known| known.incarnation != asked.broker.incarnation);
            let is_alive =
                former.is_some_and(|former| gone != Some(former.epoch) && controller.is_heard(id, former.epoch));
            let decision = register(image, rules, &asked, is_alive);
            if let Ok(epoch) = decision.reply
                && id != controller.shared.options.node_id
            {
                // At once, so that whoever registers behind it in the same turn finds the id taken.
                let now = controller.shared.host.clock.monotonic_ms();
                controller.shared.sessions.lock().registered(id, epoch, now);
            }
            decision
        };
        let (reply, offset) = self.arrange(decide).await?;
        match &reply {
            Ok(epoch) => tracing::info!(broker = id, epoch, offset, "broker registered"),
            Err(refusal) => {
                let reason = refusal.message.as_deref().unwrap_or_default();
                tracing::warn!(broker = id, code = %refusal.code, reason, "a broker may not register");
            }
        }
        Ok(reply)
    }

    /// The epoch of a former incarnation that surely is no more: this node's own, or one that a look at its address did not find.
    async fn former_is_gone(&self, asked: &Registration) -> Option<i64> {
        let image = self.quorum().image();
        let former = image.broker(asked.broker.id).filter(|known| known.incarnation != asked.broker.incarnation)?;
        if former.id == self.shared.options.node_id {
            return Some(former.epoch);
        }
        if !self.is_heard(former.id, former.epoch) {
            return None;
        }
        let probe = self.shared.probe.get()?.clone();
        (probe.look(former.clone()).await == Liveness::Gone).then_some(former.epoch)
    }

    fn is_heard(&self, id: BrokerId, epoch: i64) -> bool {
        self.shared.sessions.lock().is_valid(id, epoch, self.shared.host.clock.monotonic_ms())
    }

    /// Decides a BrokerHeartbeat request. Most change nothing and need no turn.
    pub async fn heartbeat(&self, beat: Heartbeat) -> Result<Result<HeartbeatReply, ErrorCode>, QuorumError> {
        self.must_be_active()?;
        let image = self.quorum().image();
        let (id, epoch) = (beat.id, beat.epoch);
        if image.broker(id).is_none_or(|broker| broker.epoch != epoch) {
            return Ok(Err(ErrorCode::STALE_BROKER_EPOCH));
        }
        let now = self.shared.host.clock.monotonic_ms();
        self.shared.sessions.lock().heard(id, epoch, beat.metadata_offset, now);
        let Decision { records, reply } = heartbeat(&image, &self.rules(), &beat, self.stopping(&image, id));
        if records.is_empty() {
            return Ok(reply);
        }
        let controller = self.clone();
        let decide =
            move |image: &Image, rules: &Rules<'_>| heartbeat(image, rules, &beat, controller.stopping(image, beat.id));
        let (reply, offset) = self.arrange(decide).await?;
        match reply {
            Ok(told) if told.shutting_down => {
                self.shared.sessions.lock().moved_away(id, offset);
                tracing::info!(broker = id, "broker wants to stop; its leaders were moved");
            }
            Ok(told) if told.should_shut_down => tracing::info!(broker = id, "broker may stop"),
            Ok(told) if told.fenced => tracing::info!(broker = id, "broker asked to be fenced"),
            Ok(_) => tracing::info!(broker = id, "broker serves"),
            Err(_) => {}
        }
        Ok(reply)
    }

    fn stopping(&self, image: &Image, id: BrokerId) -> Option<Stopping> {
        image.broker(id).filter(|broker| broker.in_controlled_shutdown && !broker.fenced)?;
        let mut sessions = self.shared.sessions.lock();
        // A controller that took over does not know where they were moved: everything so far will do.
        sessions.moved_away(id, image.offset);
        Some(Stopping { moved_at: sessions.moved_at(id)?, seen_by_all: sessions.seen_by_all(image) })
    }

    pub async fn unregister_broker(&self, id: BrokerId) -> Result<Option<Refusal>, QuorumError> {
        let reply = self.arrange(move |image: &Image, rules: &Rules<'_>| unregister_broker(image, rules, id)).await?.0;
        if reply.is_none() {
            tracing::info!(broker = id, "broker unregistered");
        }
        Ok(reply)
    }

    /// A connection to or from a broker ended. On the active controller the broker is looked at, at once.
    pub fn note_connection_lost(&self, id: BrokerId) {
        if !self.is_active() || id == self.shared.options.node_id {
            return;
        }
        let Some(probe) = self.shared.probe.get().cloned() else { return };
        let Some(broker) = self.quorum().image().broker(id).filter(|broker| !broker.fenced).cloned() else { return };
        if !self.shared.looking.lock().insert(id) {
            return;
        }
        let controller = self.clone();
        tokio::spawn(async move {
            let epoch = broker.epoch;
            let mut liveness = probe.look(broker.clone()).await;
            for pause_ms in LOOK_AGAIN_AFTER_MS {
                if liveness != Liveness::Silent {
                    break;
                }
                // A process that is being killed may close its listener a moment after its connections.
                task::sleep(Duration::from_millis(pause_ms)).await;
                liveness = probe.look(broker.clone()).await;
            }
            controller.shared.looking.lock().remove(&id);
            if liveness == Liveness::Gone {
                controller.fence(id, epoch, "its process is gone").await;
            } else {
                tracing::debug!(broker = id, ?liveness, "a connection to a broker broke");
            }
        });
    }

    /// Fences a broker if it still runs under that epoch.
    pub(super) async fn fence(&self, id: BrokerId, epoch: i64, why: &'static str) {
        let decide = move |image: &Image, rules: &Rules<'_>| {
            let still = image.broker(id).is_some_and(|broker| broker.epoch == epoch);
            let records = if still { fence(image, rules, id) } else { Vec::new() };
            Decision { reply: records.len(), records }
        };
        match self.arrange(decide).await {
            Ok((0, _)) => self.end_session(id, epoch),
            Ok((records, _)) => {
                self.end_session(id, epoch);
                self.shared.counts.brokers_fenced.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(broker = id, epoch, partitions = records - 1, why, "broker fenced");
            }
            // Tried again at each look, which a controller without a majority does for long.
            Err(error) if self.shared.unfenced.lock().is_news(id, epoch) => {
                tracing::warn!(broker = id, epoch, %error, why, "a broker cannot be fenced; trying again");
            }
            Err(error) => tracing::debug!(broker = id, epoch, %error, why, "a broker still cannot be fenced"),
        }
    }

    fn end_session(&self, id: BrokerId, epoch: i64) {
        self.shared.sessions.lock().end(id, epoch);
        self.shared.unfenced.lock().clear(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_a_broker_cannot_be_fenced_is_said_once_in_its_epoch_until_it_could() {
        let mut unfenced = Unfenced::default();
        assert_eq!([5, 5, 6, 6].map(|epoch| unfenced.is_news(2, epoch)), [true, false, true, false]);
        assert!(unfenced.is_news(3, 6), "another one");
        unfenced.clear(2);
        assert_eq!([2, 3].map(|id| unfenced.is_news(id, 6)), [true, false]);
        unfenced.clear_all();
        assert!(unfenced.is_news(3, 6));
    }
}
