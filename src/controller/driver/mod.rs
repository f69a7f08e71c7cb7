//! The controller at work: takes turns, so that each decision sees what the one before it changed, and answers when the records are
//! durable and the new image is published. It decides only while this node is the active controller; what it knows beyond the
//! metadata, who was heard of and when, is volatile and begins anew with each term.

mod background;
mod brokers;
mod doubt;
mod partitions;
mod probe;
mod settings;
mod topics;
mod turns;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::sync::watch;

use self::brokers::Unfenced;
use self::turns::Turns;
use super::decide::internal_topics::InternalTopic;
use super::decide::rules::Rules;
use super::decide::{Decision, TopicDefaults};
use super::sessions::Sessions;
use crate::base::BrokerId;
use crate::host::Host;
use crate::metadata::Image;
use crate::quorum::{Leadership, Quorum, QuorumError};

pub use doubt::doubting;
pub use probe::{BrokerProbe, Liveness};
pub use settings::ControllerSettings;
pub use turns::ControllerCounts;

/// What the controller needs of this node's settings.
#[derive(Clone, Debug)]
pub struct ControllerOptions {
    pub node_id: BrokerId,
    pub settings: ControllerSettings,
    pub defaults: TopicDefaults,
    /// How the coordinators' topics are to be made.
    pub internal_topics: Vec<InternalTopic>,
    /// Every property set at start, by Kafka's name.
    pub static_properties: Arc<BTreeMap<String, String>>,
}

/// Cheap to clone.
#[derive(Clone)]
pub struct Controller {
    shared: Arc<Shared>,
}

struct Shared {
    host: Host,
    quorum: Quorum,
    options: ControllerOptions,
    leadership: watch::Receiver<Leadership>,
    turns: Turns,
    sessions: Mutex<Sessions>,
    probe: OnceLock<Arc<dyn BrokerProbe>>,
    /// Brokers that are being looked at.
    looking: Mutex<BTreeSet<BrokerId>>,
    unfenced: Mutex<Unfenced>,
    counts: Arc<ControllerCounts>,
}

impl Controller {
    /// Must be called on a runtime.
    pub fn new(host: Host, quorum: Quorum, options: ControllerOptions) -> Controller {
        let session_timeout_ms = options.settings.session_timeout_ms;
        let leadership = quorum.leadership();
        let counts = Arc::new(ControllerCounts::default());
        let turns = Turns::start(quorum.clone(), leadership.clone(), counts.clone(), options.clone());
        let shared = Shared {
            host,
            quorum,
            options,
            leadership,
            turns,
            sessions: Mutex::new(Sessions::new(session_timeout_ms)),
            probe: OnceLock::new(),
            looking: Mutex::new(BTreeSet::new()),
            unfenced: Mutex::default(),
            counts,
        };
        Controller { shared: Arc::new(shared) }
    }

    /// How brokers are looked at whose connection broke. The first call counts.
    pub fn look_with(&self, probe: Arc<dyn BrokerProbe>) {
        let _ = self.shared.probe.set(probe);
    }

    pub fn quorum(&self) -> &Quorum {
        &self.shared.quorum
    }

    pub fn options(&self) -> &ControllerOptions {
        &self.shared.options
    }

    pub fn counts(&self) -> &ControllerCounts {
        &self.shared.counts
    }

    /// Whether this node is the active controller.
    pub fn is_active(&self) -> bool {
        self.shared.leadership.borrow().is_me
    }

    /// Decides on the newest image and keeps the records. Goes through to its end even when the caller is dropped meanwhile, so that
    /// no decision is made beside one that is still being written. Answers the reply and the offset at which it holds. A decision
    /// may be made more than once, when the image moves on before it could be kept.
    pub async fn change<R: Send + 'static>(
        &self,
        decide: impl FnMut(&Image) -> Decision<R> + Send + 'static,
    ) -> Result<(R, i64), QuorumError> {
        self.shared.turns.take(decide).await
    }

    /// The same with the rules that elections go by.
    async fn arrange<R: Send + 'static>(
        &self,
        mut decide: impl FnMut(&Image, &Rules<'_>) -> Decision<R> + Send + 'static,
    ) -> Result<(R, i64), QuorumError> {
        let (node_id, fixed) = (self.shared.options.node_id, self.shared.options.static_properties.clone());
        self.shared.turns.take(move |image| decide(image, &Rules { node_id, fixed: &*fixed })).await
    }

    /// Decides and throws the records away: what a client that only validates is told.
    fn look<R>(&self, mut decide: impl FnMut(&Image) -> Decision<R>) -> R {
        decide(&self.shared.quorum.image()).reply
    }

    fn rules(&self) -> Rules<'_> {
        Rules { node_id: self.shared.options.node_id, fixed: &*self.shared.options.static_properties }
    }

    /// # Errors
    /// On a node that is not the active controller, and in doubt ([`doubting`]).
    pub fn must_be_active(&self) -> Result<(), QuorumError> {
        doubt::must_be_certain()?;
        self.shared.leadership.borrow().must_be_me()
    }
}
