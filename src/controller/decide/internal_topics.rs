//! The topics in which coordinators keep their state. They start with the replication that the cluster can give now, so that a
//! single node works with no settings.

use super::create_topics::{Creation, NewTopic, TopicOutcome, create_topics};
use super::{Decision, TopicDefaults};
use crate::base::TopicId;
use crate::metadata::config::BrokerLayers;
use crate::metadata::{Image, topic_name};

/// How an internal topic is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InternalTopic {
    pub name: String,
    pub partitions: i32,
    /// Lowered to the number of live brokers.
    pub replication_factor: i16,
    pub configs: Vec<(String, String)>,
}

impl InternalTopic {
    /// `__consumer_offsets`: compacted, its segments small, its batches as the coordinator writes them.
    pub fn consumer_offsets(partitions: i32, replication_factor: i16, segment_bytes: i32) -> InternalTopic {
        InternalTopic {
            name: topic_name::CONSUMER_OFFSETS.to_owned(),
            partitions,
            replication_factor,
            configs: pairs(&[
                ("cleanup.policy", "compact"),
                ("compression.type", "producer"),
                ("segment.bytes", &segment_bytes.to_string()),
            ]),
        }
    }

    /// `__transaction_state`: compacted, uncompressed, never led by a replica that missed something.
    pub fn transaction_state(
        partitions: i32,
        replication_factor: i16,
        segment_bytes: i32,
        min_isr: i32,
    ) -> InternalTopic {
        InternalTopic {
            name: topic_name::TRANSACTION_STATE.to_owned(),
            partitions,
            replication_factor,
            configs: pairs(&[
                ("cleanup.policy", "compact"),
                ("compression.type", "uncompressed"),
                ("min.insync.replicas", &min_isr.max(1).to_string()),
                ("segment.bytes", &segment_bytes.to_string()),
                ("unclean.leader.election.enable", "false"),
            ]),
        }
    }

    /// `__share_group_state`: deleted by the coordinator itself, not by age.
    pub fn share_group_state(
        partitions: i32,
        replication_factor: i16,
        segment_bytes: i32,
        min_isr: i32,
    ) -> InternalTopic {
        InternalTopic {
            name: topic_name::SHARE_GROUP_STATE.to_owned(),
            partitions,
            replication_factor,
            configs: pairs(&[
                ("cleanup.policy", "delete"),
                ("compression.type", "producer"),
                ("min.insync.replicas", &min_isr.max(1).to_string()),
                ("retention.ms", "-1"),
                ("segment.bytes", &segment_bytes.to_string()),
            ]),
        }
    }
}

fn pairs(entries: &[(&str, &str)]) -> Vec<(String, String)> {
    entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Makes the topic when it is not there. The reply is `None` when it was.
pub fn ensure_internal_topic(
    image: &Image,
    wanted: &InternalTopic,
    below: BrokerLayers<'_>,
    id: TopicId,
    start: usize,
) -> Decision<Option<TopicOutcome>> {
    if image.topic(&wanted.name).is_some() {
        return Decision::unchanged(None);
    }
    let live = i16::try_from(image.live_brokers().count()).unwrap_or(i16::MAX);
    let replication_factor = wanted.replication_factor.clamp(1, live.max(1));
    let topic = NewTopic {
        name: wanted.name.clone(),
        partitions: wanted.partitions,
        replication_factor,
        assignments: Vec::new(),
        configs: wanted.configs.iter().map(|(name, value)| (name.clone(), Some(value.clone()))).collect(),
    };
    let defaults = TopicDefaults { partitions: wanted.partitions, replication_factor };
    let with = Creation { defaults, below, fresh_ids: &[id], start };
    let decision = create_topics(image, std::slice::from_ref(&topic), &with);
    Decision { records: decision.records, reply: decision.reply.into_iter().next() }
}
