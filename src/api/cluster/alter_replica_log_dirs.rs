//! AlterReplicaLogDirs (key 34): moves replicas of this broker from one of its log directories to another (KIP-113). The answer comes when
//! the moves have begun; DescribeLogDirs shows how far they are.
//! v1 is the first one that is served, v2 is flexible.

use std::collections::HashMap;
use std::sync::Arc;

use crate::api::{Broker, Refused, RequestContext};
use crate::base::{ErrorCode, TopicPartition};
use crate::host::task;
use crate::replica::MoveRefused;
use crate::wire::messages::alter_replica_log_dirs_response::{
    AlterReplicaLogDirPartitionResult, AlterReplicaLogDirTopicResult,
};
use crate::wire::messages::{AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse, StrBytes};

pub async fn handle(
    broker: &Arc<Broker>,
    _context: &RequestContext,
    request: AlterReplicaLogDirsRequest,
) -> Result<AlterReplicaLogDirsResponse, Refused> {
    let wanted = wanted(&request);
    let moving = broker.clone();
    let outcomes = task::blocking(move || {
        let outcome = |(name, path): (TopicPartition, String)| {
            let outcome = moving.partitions.move_replica(&moving.flusher, &name, &path);
            if let Err(refused) = &outcome {
                tracing::info!(partition = %name, dir = path, %refused, "a replica is not moved to another log directory");
            }
            (name, code(outcome))
        };
        wanted.into_iter().map(outcome).collect::<Vec<_>>()
    });
    Ok(answer(outcomes.await))
}

/// Each partition once, in the order in which it is first named. What is named last counts.
fn wanted(request: &AlterReplicaLogDirsRequest) -> Vec<(TopicPartition, String)> {
    let mut wanted: Vec<(TopicPartition, String)> = Vec::new();
    let mut places = HashMap::new();
    for dir in &request.dirs {
        for topic in &dir.topics {
            for partition in &topic.partitions {
                let name = TopicPartition::new(topic.name.as_str(), *partition);
                let place = *places.entry(name.clone()).or_insert(wanted.len());
                match wanted.get_mut(place) {
                    Some((_, path)) => *path = dir.path.to_string(),
                    None => wanted.push((name, dir.path.to_string())),
                }
            }
        }
    }
    wanted
}

fn code(outcome: Result<(), MoveRefused>) -> ErrorCode {
    match outcome {
        Ok(()) => ErrorCode::NONE,
        Err(MoveRefused::NameTooLong) => ErrorCode::INVALID_TOPIC_EXCEPTION,
        Err(MoveRefused::NoSuchDirectory(_)) => ErrorCode::LOG_DIR_NOT_FOUND,
        Err(MoveRefused::Offline(_)) => ErrorCode::KAFKA_STORAGE_ERROR,
        Err(MoveRefused::NotHere) => ErrorCode::REPLICA_NOT_AVAILABLE,
        Err(MoveRefused::Unknown) => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
    }
}

fn answer(outcomes: Vec<(TopicPartition, ErrorCode)>) -> AlterReplicaLogDirsResponse {
    let mut results: Vec<AlterReplicaLogDirTopicResult> = Vec::new();
    let mut places = HashMap::new();
    for (name, code) in outcomes {
        let place = *places.entry(name.topic.clone()).or_insert(results.len());
        if place == results.len() {
            let topic = StrBytes::from_string(name.topic.to_string());
            results.push(AlterReplicaLogDirTopicResult::default().with_topic_name(topic.into()));
        }
        if let Some(topic) = results.get_mut(place) {
            topic.partitions.push(
                AlterReplicaLogDirPartitionResult::default()
                    .with_partition_index(name.partition)
                    .with_error_code(code.code()),
            );
        }
    }
    AlterReplicaLogDirsResponse::default().with_results(results)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::messages::alter_replica_log_dirs_request::{AlterReplicaLogDir, AlterReplicaLogDirTopic};

    #[test]
    fn each_partition_is_answered_once_and_goes_where_it_is_named_last() {
        let topic = |name: &'static str, partitions: &[i32]| {
            AlterReplicaLogDirTopic::default()
                .with_name(StrBytes::from_static_str(name).into())
                .with_partitions(partitions.to_vec())
        };
        let dir = |path: &'static str, topics| {
            AlterReplicaLogDir::default().with_path(StrBytes::from_static_str(path)).with_topics(topics)
        };
        let request = AlterReplicaLogDirsRequest::default()
            .with_dirs(vec![dir("/a", vec![topic("t", &[0, 1]), topic("u", &[0])]), dir("/b", vec![topic("t", &[1])])]);
        let wanted = wanted(&request);
        let told: Vec<_> = wanted.iter().map(|(name, path)| (name.dir_name(), path.as_str())).collect();
        assert_eq!(told, [("t-0".to_owned(), "/a"), ("t-1".to_owned(), "/b"), ("u-0".to_owned(), "/a")]);
        let answer = answer(wanted.into_iter().map(|(name, _)| (name, ErrorCode::NONE)).collect());
        let counts: Vec<_> = answer.results.iter().map(|topic| topic.partitions.len()).collect();
        assert_eq!(counts, [2, 1]);
    }
}
