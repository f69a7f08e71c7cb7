//! Topics and features: requests of clients, and the internal topics that coordinators ask for.

use super::Controller;
use crate::base::TopicId;
use crate::controller::decide::Refusal;
use crate::controller::decide::create_partitions::{MorePartitions, PartitionsOutcome, create_partitions};
use crate::controller::decide::create_topics::{Creation, NewTopic, TopicOutcome, create_topics};
use crate::controller::decide::delete_topics::{DeleteOutcome, TopicRef, delete_topics};
use crate::controller::decide::features::{FeatureUpdate, update_features};
use crate::controller::decide::internal_topics::ensure_internal_topic;
use crate::metadata::Image;
use crate::metadata::config::BrokerLayers;
use crate::quorum::QuorumError;

impl Controller {
    pub async fn create_topics(
        &self,
        topics: Vec<NewTopic>,
        validate_only: bool,
    ) -> Result<Vec<TopicOutcome>, QuorumError> {
        let fresh_ids: Vec<TopicId> = topics.iter().map(|_| self.fresh_topic_id()).collect();
        let start = self.random_start();
        let options = self.options().clone();
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
        let image = self.quorum().image();
        for outcome in outcomes.iter().filter(|outcome| outcome.refusal.is_none()) {
            let partitions = image.topic(&outcome.name).map(|topic| topic.partition_count());
            tracing::info!(topic = outcome.name, partitions, "partitions added");
        }
        Ok(outcomes)
    }

    /// Makes one of the coordinators' topics when it is not there. `Ok(None)`: it was.
    pub async fn ensure_internal_topic(&self, name: &str) -> Result<Option<TopicOutcome>, QuorumError> {
        if self.quorum().image().topic(name).is_some() {
            return Ok(None);
        }
        let Some(wanted) = self.options().internal_topics.iter().find(|topic| topic.name == name).cloned() else {
            return Ok(None);
        };
        let (id, start, options) = (self.fresh_topic_id(), self.random_start(), self.options().clone());
        let decide = move |image: &Image| {
            let below = BrokerLayers::of(image, options.node_id, &*options.static_properties);
            ensure_internal_topic(image, &wanted, below, id, start)
        };
        Ok(self.change(decide).await?.0)
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
        TopicId(self.shared.host.entropy.uuid())
    }

    fn random_start(&self) -> usize {
        let mut bytes = [0; 4];
        self.shared.host.entropy.fill(&mut bytes);
        usize::try_from(u32::from_be_bytes(bytes)).unwrap_or(0)
    }
}
