//! AssignReplicasToDirs (key 73): a broker says in which of its directories replicas lie (KIP-858).

use std::sync::Arc;

use super::check_speaker;
use crate::api::cluster::quorum_refusal;
use crate::api::{Broker, Refused, RequestContext};
use crate::base::{ErrorCode, TopicId};
use crate::controller::decide::directories::{DirectoryAssignment, DirectoryOutcome};
use crate::wire::messages::assign_replicas_to_dirs_request::DirectoryData as Asked;
use crate::wire::messages::assign_replicas_to_dirs_response::{DirectoryData, PartitionData, TopicData};
use crate::wire::messages::{AssignReplicasToDirsRequest, AssignReplicasToDirsResponse};

pub async fn handle(
    broker: &Arc<Broker>,
    context: &RequestContext,
    request: AssignReplicasToDirsRequest,
) -> Result<AssignReplicasToDirsResponse, Refused> {
    let id = request.broker_id.0;
    if let Err(code) = check_speaker(context, id) {
        return Ok(failed(code));
    }
    let assignments = request.directories.iter().map(wanted).collect();
    Ok(match broker.controller.assign_directories(id, request.broker_epoch, assignments).await {
        Ok(Ok(outcomes)) => {
            AssignReplicasToDirsResponse::default().with_directories(outcomes.into_iter().map(told).collect())
        }
        Ok(Err(code)) => failed(code),
        Err(error) => failed(quorum_refusal(&error).code),
    })
}

fn failed(code: ErrorCode) -> AssignReplicasToDirsResponse {
    AssignReplicasToDirsResponse::default().with_error_code(code.code())
}

fn wanted(directory: &Asked) -> DirectoryAssignment {
    let topics = directory.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| partition.partition_index).collect();
        (TopicId(topic.topic_id), partitions)
    });
    DirectoryAssignment { directory: directory.id, topics: topics.collect() }
}

fn told((directory, topics): DirectoryOutcome) -> DirectoryData {
    let topics = topics.into_iter().map(|(topic_id, partitions)| {
        let partitions = partitions
            .into_iter()
            .map(|(index, code)| PartitionData::default().with_partition_index(index).with_error_code(code.code()));
        TopicData::default().with_topic_id(topic_id.0).with_partitions(partitions.collect())
    });
    DirectoryData::default().with_id(directory).with_topics(topics.collect())
}
