//! The only edits that exist. Each record is an effect, not a command: applying it needs no decision, so that an old and a new
//! binary make the same image of it. Written as JSON; unknown fields are ignored, an unknown kind is an error.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{BrokerRegistration, ConfigResource, PartitionState};
use crate::base::{BrokerId, PartitionIndex, ProducerId, TopicId};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum MetadataRecord {
    /// The cluster's identity: the first record of all.
    Cluster {
        cluster_id: String,
    },
    /// A broker as it registered; replaces an earlier registration of the same id.
    Broker(BrokerRegistration),
    BrokerFenced {
        id: BrokerId,
        fenced: bool,
    },
    BrokerRemoved {
        id: BrokerId,
    },
    /// A new topic with all its partitions.
    Topic {
        id: TopicId,
        name: String,
        partitions: Vec<PartitionState>,
    },
    /// Partitions added behind the existing ones; `first` is the index of the first of them.
    PartitionsAdded {
        topic_id: TopicId,
        first: PartitionIndex,
        partitions: Vec<PartitionState>,
    },
    /// The new state of one partition.
    Partition {
        topic_id: TopicId,
        partition: PartitionIndex,
        state: PartitionState,
    },
    /// Every partition that `leader` leads begins its next leader epoch, as after a restart of that broker.
    LeadershipRenewed {
        leader: BrokerId,
    },
    /// The topic is gone, and so are its configs.
    TopicRemoved {
        id: TopicId,
    },
    /// One config of one resource; without a value it returns to what it inherits.
    Config {
        resource: ConfigResource,
        name: String,
        value: Option<String>,
    },
    /// Producer ids below `next` belong to somebody.
    ProducerIds {
        broker: BrokerId,
        next: ProducerId,
    },
    /// The finalized level of a feature; 0 takes the feature away.
    Feature {
        name: String,
        level: i16,
    },
    /// A log directory of a broker holds the replica now (KIP-858).
    ReplicaDirectory {
        topic_id: TopicId,
        partition: PartitionIndex,
        broker: BrokerId,
        directory: Uuid,
    },
}

impl MetadataRecord {
    /// The record's stored form.
    pub fn to_json(&self) -> Vec<u8> {
        // Strings, integers and lists only: nothing that JSON cannot say.
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub fn from_json(bytes: &[u8]) -> Result<MetadataRecord, serde_json::Error> {
        serde_json::from_slice(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_fields_are_ignored() {
        let text = br#"{"type":"feature","name":"group.version","level":1,"since":"later"}"#;
        let expected = MetadataRecord::Feature { name: "group.version".into(), level: 1 };
        assert_eq!(MetadataRecord::from_json(text).unwrap(), expected);
    }

    #[test]
    fn an_unknown_kind_is_an_error() {
        let error = MetadataRecord::from_json(br#"{"type":"from-the-future"}"#).unwrap_err();
        assert!(error.to_string().contains("from-the-future"), "{error}");
    }

    #[test]
    fn the_stored_form_of_a_topic_stays() {
        let partition = PartitionState::new(vec![1], vec![]);
        let record = MetadataRecord::Topic { id: TopicId::ZERO, name: "t".into(), partitions: vec![partition] };
        let text = r#"{"type":"topic","id":"00000000-0000-0000-0000-000000000000","name":"t","partitions":[{"replicas":[1],"isr":[1],"leader":1,"leader_epoch":0,"partition_epoch":0}]}"#;
        assert_eq!(String::from_utf8(record.to_json()).unwrap(), text);
        assert_eq!(MetadataRecord::from_json(text.as_bytes()).unwrap(), record);
    }
}
