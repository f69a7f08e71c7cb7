//! The controller at work: takes turns, so that each decision sees what the one before it changed, and answers when the records are
//! durable and the new image is published.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::{Mutex, watch};

use super::decide::brokers::{Registering, register_broker, unregister_broker};
use super::decide::create_partitions::{MorePartitions, PartitionsOutcome, create_partitions};
use super::decide::create_topics::{Creation, NewTopic, TopicOutcome, create_topics};
use super::decide::delete_topics::{DeleteOutcome, TopicRef, delete_topics};
use super::decide::features::{FeatureUpdate, update_features};
use super::decide::internal_topics::{InternalTopic, ensure_internal_topic};
use super::decide::producer_ids::{ProducerIdBlock, allocate_producer_ids};
use super::decide::{Decision, Refusal, TopicDefaults};
use crate::base::{BrokerId, TopicId};
use crate::host::Host;
use crate::metadata::Image;
use crate::metadata::config::BrokerLayers;
use crate::quorum::{Quorum, QuorumError};

/// What the controller needs of this node's settings.
#[derive(Clone, Debug)]
pub struct ControllerOptions {
    pub node_id: BrokerId,
    pub defaults: TopicDefaults,
    /// Every property set at start, by Kafka's name.
    pub static_properties: Arc<BTreeMap<String, String>>,
}

/// Cheap to clone.
#[derive(Clone)]
pub struct Controller {
    host: Host,
    quorum: Quorum,
    options: ControllerOptions,
    turn: Arc<Mutex<()>>,
    /// The metadata offset that has taken effect on this node; `None` where nothing has to take effect.
    applied: Option<watch::Receiver<i64>>,
}

impl Controller {
    pub fn new(host: Host, quorum: Quorum, options: ControllerOptions) -> Controller {
        Controller { host, quorum, options, turn: Arc::new(Mutex::new(())), applied: None }
    }

    /// From now on a change is answered when this node has acted on it too: a topic that was made can be written to at once.
    pub fn answering_when_applied(self, applied: watch::Receiver<i64>) -> Controller {
        Controller { applied: Some(applied), ..self }
    }

    pub fn quorum(&self) -> &Quorum {
        &self.quorum
    }

    pub fn options(&self) -> &ControllerOptions {
        &self.options
    }

    /// Decides on the newest image and keeps the records. Goes through to its end even when the caller is dropped meanwhile, so that
    /// no decision is made beside one that is still being written. Answers the reply and the offset at which it holds.
    pub async fn change<R: Send + 'static>(
        &self,
        decide: impl FnOnce(&Image) -> Decision<R> + Send + 'static,
    ) -> Result<(R, i64), QuorumError> {
        let (quorum, turn, applied) = (self.quorum.clone(), self.turn.clone(), self.applied.clone());
        let work = tokio::spawn(async move {
            let _turn = turn.lock().await;
            let Decision { records, reply } = decide(&quorum.image());
            let offset = quorum.propose(records).await?;
            if let Some(mut applied) = applied {
                // An error means that the node is stopping; the change is durable all the same.
                let _ = applied.wait_for(|applied| *applied >= offset).await;
            }
            Ok((reply, offset))
        });
        match work.await {
            Ok(result) => result,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err(QuorumError::Closed),
        }
    }

    /// Decides and throws the records away: what a client that only validates is told.
    fn look<R>(&self, decide: impl FnOnce(&Image) -> Decision<R>) -> R {
        decide(&self.quorum.image()).reply
    }

    pub async fn create_topics(
        &self,
        topics: Vec<NewTopic>,
        validate_only: bool,
    ) -> Result<Vec<TopicOutcome>, QuorumError> {
        let fresh_ids: Vec<TopicId> = topics.iter().map(|_| self.fresh_topic_id()).collect();
        let start = self.random_start();
        let options = self.options.clone();
        let decide = move |image: &Image| {
            let below = BrokerLayers::of(image, options.node_id, &*options.static_properties);
            let with = Creation { defaults: options.defaults, below, fresh_ids: &fresh_ids, start };
            create_topics(image, &topics, &with)
        };
        if validate_only {
            return Ok(self.look(decide));
        }
        let (outcomes, _) = self.change(decide).await?;
        for outcome in &outcomes {
            if let Ok(created) = &outcome.result {
                tracing::info!(topic = outcome.name, id = %created.id, partitions = created.partitions, "topic created");
                let policy = created.configs.get("cleanup.policy").map(String::as_str).unwrap_or_default();
                if policy.contains("compact") {
                    tracing::warn!(
                        topic = outcome.name,
                        "the topic has cleanup.policy={policy}, but compaction is not there yet: every record stays"
                    );
                }
            }
        }
        Ok(outcomes)
    }

    pub async fn delete_topics(&self, topics: Vec<TopicRef>) -> Result<Vec<DeleteOutcome>, QuorumError> {
        let (outcomes, _) = self.change(move |image| delete_topics(image, &topics)).await?;
        for outcome in outcomes.iter().filter(|outcome| outcome.refusal.is_none()) {
            tracing::info!(topic = outcome.name.as_deref().unwrap_or_default(), id = %outcome.id, "topic deleted");
        }
        Ok(outcomes)
    }

    pub async fn create_partitions(
        &self,
        topics: Vec<MorePartitions>,
        validate_only: bool,
    ) -> Result<Vec<PartitionsOutcome>, QuorumError> {
        let start = self.random_start();
        let decide = move |image: &Image| create_partitions(image, &topics, start);
        if validate_only {
            return Ok(self.look(decide));
        }
        let (outcomes, _) = self.change(decide).await?;
        let image = self.quorum.image();
        for outcome in outcomes.iter().filter(|outcome| outcome.refusal.is_none()) {
            let partitions = image.topic(&outcome.name).map(|topic| topic.partition_count());
            tracing::info!(topic = outcome.name, partitions, "partitions added");
        }
        Ok(outcomes)
    }

    /// Makes one of the coordinators' topics when it is not there. `Ok(None)`: it was.
    pub async fn ensure_internal_topic(&self, name: &str) -> Result<Option<TopicOutcome>, QuorumError> {
        if self.quorum.image().topic(name).is_some() {
            return Ok(None);
        }
        let Some(wanted) = InternalTopic::from_properties(name, &self.options.static_properties) else {
            return Ok(None);
        };
        let (id, start, options) = (self.fresh_topic_id(), self.random_start(), self.options.clone());
        let decide = move |image: &Image| {
            let below = BrokerLayers::of(image, options.node_id, &*options.static_properties);
            ensure_internal_topic(image, &wanted, below, id, start)
        };
        Ok(self.change(decide).await?.0)
    }

    /// `None` when there are no more ids.
    pub async fn allocate_producer_ids(&self) -> Result<Option<ProducerIdBlock>, QuorumError> {
        let node_id = self.options.node_id;
        Ok(self.change(move |image| allocate_producer_ids(image, node_id)).await?.0)
    }

    /// Registers this or another broker; answers the broker epoch.
    pub async fn register_broker(&self, broker: Registering) -> Result<i64, QuorumError> {
        Ok(self.change(move |image| register_broker(image, &broker)).await?.0)
    }

    pub async fn unregister_broker(&self, id: BrokerId) -> Result<Option<Refusal>, QuorumError> {
        Ok(self.change(move |image| unregister_broker(image, id)).await?.0)
    }

    pub async fn update_features(
        &self,
        updates: Vec<FeatureUpdate>,
        validate_only: bool,
    ) -> Result<Result<(), Refusal>, QuorumError> {
        let decide = move |image: &Image| update_features(image, &updates);
        if validate_only {
            return Ok(self.look(decide));
        }
        Ok(self.change(decide).await?.0)
    }

    fn fresh_topic_id(&self) -> TopicId {
        TopicId(self.host.entropy.uuid())
    }

    fn random_start(&self) -> usize {
        let mut bytes = [0; 4];
        self.host.entropy.fill(&mut bytes);
        usize::try_from(u32::from_be_bytes(bytes)).unwrap_or(0)
    }
}
