//! Tells the active controller in which of this broker's log directories replicas lie, where it believes something else (KIP-858): it must know
//! what a failed directory takes along.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::api::Broker;
use crate::api::peers::active;
use crate::base::{ErrorCode, PartitionIndex, TopicId};
use crate::host::task;
use crate::replica::Partition;
use crate::wire::messages::assign_replicas_to_dirs_request::{DirectoryData, PartitionData, TopicData};
use crate::wire::messages::{AssignReplicasToDirsRequest, AssignReplicasToDirsResponse};

/// Partitions in one request, as Kafka sends them.
const PARTITIONS_MAX: usize = 2_250;

const ASK_MAX: Duration = Duration::from_secs(5);

/// Pauses between attempts.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);

type Key = (TopicId, PartitionIndex);

/// Never ends.
pub async fn tell(broker: Arc<Broker>) {
    let mut pause = PAUSE_FIRST;
    let mut waiting: BTreeMap<Key, Arc<Partition>> = BTreeMap::new();
    loop {
        if waiting.is_empty() {
            broker.partitions.any_misplaced().await;
        }
        note(&mut waiting, broker.partitions.take_misplaced());
        let claims = claims(&broker, &waiting);
        waiting.retain(|key, _| claims.iter().any(|(claimed, _)| claimed == key));
        if claims.is_empty() {
            continue;
        }
        match ask(&broker, &claims).await {
            Some(settled) if !settled.is_empty() => {
                pause = PAUSE_FIRST;
                settled.iter().for_each(|key| {
                    waiting.remove(key);
                });
            }
            _ => {
                task::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }
}

fn note(waiting: &mut BTreeMap<Key, Arc<Partition>>, partitions: Vec<Arc<Partition>>) {
    for partition in partitions {
        let key = (partition.identity.topic_id, partition.identity.topic_partition.partition);
        waiting.insert(key, partition);
    }
}

/// What there is to tell now: some of it has been put right meanwhile.
fn claims(broker: &Broker, waiting: &BTreeMap<Key, Arc<Partition>>) -> Vec<(Key, Uuid)> {
    let claims = waiting.iter().filter_map(|(key, partition)| Some((*key, broker.partitions.claim_of(partition)?)));
    claims.collect()
}

/// Asks once. The partitions that need not be told again, or `None` when there was no answer.
async fn ask(broker: &Arc<Broker>, claims: &[(Key, Uuid)]) -> Option<Vec<Key>> {
    let epoch = broker.broker_epoch();
    if epoch < 0 {
        return None;
    }
    let some = claims.get(..claims.len().min(PARTITIONS_MAX)).unwrap_or_default();
    let request = request(broker.options.node_id, epoch, some);
    match active::ask(broker, &request, ASK_MAX).await {
        Ok(answer) if answer.error_code == 0 => Some(settled(&answer)),
        Ok(answer) => {
            tracing::debug!(error = answer.error_code, "the active controller does not take the places of replicas");
            None
        }
        Err(error) => {
            tracing::debug!(%error, "the active controller has not heard of the places of replicas");
            None
        }
    }
}

fn request(node_id: i32, epoch: i64, claims: &[(Key, Uuid)]) -> AssignReplicasToDirsRequest {
    let mut by_directory: BTreeMap<Uuid, BTreeMap<TopicId, Vec<PartitionIndex>>> = BTreeMap::new();
    for ((topic, partition), directory) in claims {
        by_directory.entry(*directory).or_default().entry(*topic).or_default().push(*partition);
    }
    let partition = |index: PartitionIndex| PartitionData::default().with_partition_index(index);
    let topic = |(topic, partitions): (TopicId, Vec<PartitionIndex>)| {
        TopicData::default().with_topic_id(topic.0).with_partitions(partitions.into_iter().map(partition).collect())
    };
    let directory = |(id, topics): (Uuid, BTreeMap<TopicId, Vec<PartitionIndex>>)| {
        DirectoryData::default().with_id(id).with_topics(topics.into_iter().map(topic).collect())
    };
    AssignReplicasToDirsRequest::default()
        .with_broker_id(node_id.into())
        .with_broker_epoch(epoch)
        .with_directories(by_directory.into_iter().map(directory).collect())
}

fn settled(answer: &AssignReplicasToDirsResponse) -> Vec<Key> {
    let mut settled = Vec::new();
    for topic in answer.directories.iter().flat_map(|directory| &directory.topics) {
        for partition in &topic.partitions {
            match ErrorCode(partition.error_code) {
                // It is gone, or not ours any more: the metadata says so here in a moment.
                ErrorCode::NONE
                | ErrorCode::UNKNOWN_TOPIC_ID
                | ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
                | ErrorCode::NOT_LEADER_OR_FOLLOWER => {
                    settled.push((TopicId(topic.topic_id), partition.partition_index));
                }
                error => tracing::debug!(%error, "the active controller does not take the place of a replica"),
            }
        }
    }
    settled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_groups_by_directory_and_topic() {
        let (a, b) = (TopicId(Uuid::from_u128(1)), TopicId(Uuid::from_u128(2)));
        let (one, two) = (Uuid::from_u128(101), Uuid::from_u128(102));
        let request = request(7, 9, &[((a, 0), one), ((a, 1), two), ((a, 2), one), ((b, 0), one)]);
        assert_eq!((request.broker_id.0, request.broker_epoch), (7, 9));
        let told: Vec<_> = request
            .directories
            .iter()
            .flat_map(|dir| dir.topics.iter().map(move |topic| (dir.id, topic)))
            .map(|(dir, topic)| (dir, topic.topic_id, topic.partitions.iter().map(|one| one.partition_index).collect()))
            .collect();
        let expected: Vec<(Uuid, Uuid, Vec<i32>)> =
            vec![(one, a.0, vec![0, 2]), (one, b.0, vec![0]), (two, a.0, vec![1])];
        assert_eq!(told, expected);
    }
}
