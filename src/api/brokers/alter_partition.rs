//! AlterPartition (key 56): a leader proposes an in-sync set (KIP-497).
//! v2 names topics by id, v3 the members' broker epochs (KIP-903).

use std::sync::Arc;

use super::check_speaker;
use crate::api::cluster::quorum_refusal;
use crate::api::{Broker, Refused, RequestContext};
use crate::base::{ErrorCode, PartitionIndex, TopicId};
use crate::controller::decide::alter_partition::{AlterPartition, IsrOutcomes, NO_BROKER_EPOCH, NewIsr};
use crate::metadata::PartitionState;
use crate::wire::messages::alter_partition_request::PartitionData as Asked;
use crate::wire::messages::alter_partition_response::{PartitionData, TopicData};
use crate::wire::messages::{AlterPartitionRequest, AlterPartitionResponse, BrokerId};

/// The first version whose members carry their broker epochs.
const BROKER_EPOCHS_FROM: i16 = 3;
/// `LeaderRecoveryState` of the protocol (KIP-704).
const RECOVERING: i8 = 1;

pub async fn handle(
    broker: &Arc<Broker>,
    context: &RequestContext,
    request: AlterPartitionRequest,
) -> Result<AlterPartitionResponse, Refused> {
    if let Err(code) = check_speaker(context, request.broker_id.0) {
        return Ok(failed(code));
    }
    let outcomes = broker.controller.alter_partition(wanted(&request, context.api_version)).await;
    Ok(match outcomes {
        Ok(Ok(outcomes)) => answer(outcomes),
        Ok(Err(code)) => failed(code),
        Err(error) => failed(quorum_refusal(&error).code),
    })
}

fn failed(code: ErrorCode) -> AlterPartitionResponse {
    AlterPartitionResponse::default().with_error_code(code.code())
}

fn wanted(request: &AlterPartitionRequest, version: i16) -> AlterPartition {
    let topics = request.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| new_isr(partition, version)).collect();
        (TopicId(topic.topic_id), partitions)
    });
    AlterPartition { broker: request.broker_id.0, broker_epoch: request.broker_epoch, topics: topics.collect() }
}

fn new_isr(partition: &Asked, version: i16) -> NewIsr {
    let isr = if version >= BROKER_EPOCHS_FROM {
        partition.new_isr_with_epochs.iter().map(|member| (member.broker_id.0, member.broker_epoch)).collect()
    } else {
        partition.new_isr.iter().map(|id| (id.0, NO_BROKER_EPOCH)).collect()
    };
    NewIsr {
        partition: partition.partition_index,
        leader_epoch: partition.leader_epoch,
        partition_epoch: partition.partition_epoch,
        isr,
        recovering: partition.leader_recovery_state == RECOVERING,
    }
}

fn answer(outcomes: IsrOutcomes) -> AlterPartitionResponse {
    let topics = outcomes.into_iter().map(|(topic_id, partitions)| {
        let partitions = partitions.into_iter().map(|(index, outcome)| partition(index, outcome)).collect();
        TopicData::default().with_topic_id(topic_id.0).with_partitions(partitions)
    });
    AlterPartitionResponse::default().with_topics(topics.collect())
}

fn partition(index: PartitionIndex, outcome: Result<PartitionState, ErrorCode>) -> PartitionData {
    let data = PartitionData::default().with_partition_index(index);
    match outcome {
        Err(code) => data.with_error_code(code.code()),
        Ok(state) => data
            .with_leader_id(BrokerId(state.leader))
            .with_leader_epoch(state.leader_epoch)
            .with_isr(state.isr.iter().map(|id| BrokerId(*id)).collect())
            .with_leader_recovery_state(i8::from(state.recovering))
            .with_partition_epoch(state.partition_epoch),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::messages::alter_partition_request::BrokerState;

    #[test]
    fn members_carry_epochs_from_the_third_version_on() {
        let members = vec![BrokerState::default().with_broker_id(BrokerId(2)).with_broker_epoch(9)];
        let asked = Asked::default().with_new_isr(vec![BrokerId(1)]).with_new_isr_with_epochs(members);
        assert_eq!(new_isr(&asked, 2).isr, [(1, NO_BROKER_EPOCH)]);
        assert_eq!(new_isr(&asked, 3).isr, [(2, 9)]);
    }
}
