//! Which error codes an answer carries, for the count of outcomes by API: one for each thing that was asked, the way Kafka counts.

use crate::wire::messages::*;

/// An answer that tells its error codes, 0 for what went well.
pub trait Outcomes {
    fn each(&self, note: &mut dyn FnMut(i16));
}

/// `Type: |response, note| expression` for each answer.
macro_rules! outcomes {
    ($($answer:ty: |$response:ident, $note:ident| $work:expr;)*) => {
        $(impl Outcomes for $answer {
            fn each(&self, $note: &mut dyn FnMut(i16)) {
                let $response = self;
                $work
            }
        })*
    };
}

/// Answers whose only code is their own, or that of each entry of one list.
macro_rules! plain {
    (own: [$($own:ty,)*] each: [$($list:ty => $field:ident,)*]) => {
        outcomes! {
            $($own: |response, note| note(response.error_code);)*
            $($list: |response, note| response.$field.iter().for_each(|one| note(one.error_code));)*
        }
    };
}

plain! {
    own: [
        AddRaftVoterResponse, AllocateProducerIdsResponse, ApiVersionsResponse, BrokerHeartbeatResponse,
        BrokerRegistrationResponse, DescribeAclsResponse, DescribeClusterResponse, DescribeQuorumResponse,
        HeartbeatResponse, InitProducerIdResponse, JoinGroupResponse, ListConfigResourcesResponse, ListGroupsResponse,
        ListTransactionsResponse, RemoveRaftVoterResponse, SyncGroupResponse, UnregisterBrokerResponse,
        UnregisterControllerResponse, UpdateFeaturesResponse,
    ]
    each: [
        AlterConfigsResponse => responses,
        ConsumerGroupDescribeResponse => groups,
        CreatePartitionsResponse => results,
        CreateTopicsResponse => topics,
        DeleteGroupsResponse => results,
        DeleteTopicsResponse => responses,
        DescribeConfigsResponse => results,
        DescribeGroupsResponse => groups,
        DescribeLogDirsResponse => results,
        DescribeTransactionsResponse => transaction_states,
        IncrementalAlterConfigsResponse => responses,
    ]
}

/// Topics with partitions, each partition with its code.
macro_rules! by_partition {
    ($topics:expr, $partitions:ident, $note:ident) => {
        $topics.iter().flat_map(|topic| &topic.$partitions).for_each(|partition| $note(partition.error_code))
    };
}

outcomes! {
    ProduceResponse: |response, note| by_partition!(response.responses, partition_responses, note);
    ListOffsetsResponse: |response, note| by_partition!(response.topics, partitions, note);
    DeleteRecordsResponse: |response, note| by_partition!(response.topics, partitions, note);
    AlterReplicaLogDirsResponse: |response, note| by_partition!(response.results, partitions, note);
    OffsetForLeaderEpochResponse: |response, note| by_partition!(response.topics, partitions, note);
    DescribeProducersResponse: |response, note| by_partition!(response.topics, partitions, note);
    OffsetCommitResponse: |response, note| by_partition!(response.topics, partitions, note);
    DescribeTopicPartitionsResponse: |response, note| response.topics.iter().for_each(|topic| note(topic.error_code));
    MetadataResponse: |response, note| {
        response.topics.iter().for_each(|topic| note(topic.error_code));
        by_partition!(response.topics, partitions, note);
    };
    FindCoordinatorResponse: |response, note| match response.coordinators.as_slice() {
        [] => note(response.error_code),
        each => each.iter().for_each(|one| note(one.error_code)),
    };
    LeaveGroupResponse: |response, note| {
        note(response.error_code);
        response.members.iter().for_each(|member| note(member.error_code));
    };
    AlterPartitionResponse: |response, note| {
        note(response.error_code);
        by_partition!(response.topics, partitions, note);
    };
    AssignReplicasToDirsResponse: |response, note| {
        note(response.error_code);
        response.directories.iter().for_each(|directory| by_partition!(directory.topics, partitions, note));
    };
    ElectLeadersResponse: |response, note| {
        note(response.error_code);
        by_partition!(response.replica_election_results, partition_result, note);
    };
    AlterPartitionReassignmentsResponse: |response, note| {
        note(response.error_code);
        by_partition!(response.responses, partitions, note);
    };
    ListPartitionReassignmentsResponse: |response, note| note(response.error_code);
    OffsetFetchResponse: |response, note| {
        note(response.error_code);
        by_partition!(response.topics, partitions, note);
        for group in &response.groups {
            note(group.error_code);
            by_partition!(group.topics, partitions, note);
        }
    };
    OffsetDeleteResponse: |response, note| {
        note(response.error_code);
        by_partition!(response.topics, partitions, note);
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(answer: &impl Outcomes) -> Vec<i16> {
        let mut codes = Vec::new();
        answer.each(&mut |code| codes.push(code));
        codes
    }

    #[test]
    fn every_partition_and_group_counts() {
        use offset_fetch_response::{
            OffsetFetchResponseGroup, OffsetFetchResponsePartitions, OffsetFetchResponseTopics,
        };
        let partition = |code| OffsetFetchResponsePartitions { error_code: code, ..Default::default() };
        let topic = OffsetFetchResponseTopics { partitions: vec![partition(3), partition(0)], ..Default::default() };
        let group = OffsetFetchResponseGroup { error_code: 16, topics: vec![topic], ..Default::default() };
        let answer = OffsetFetchResponse { groups: vec![group], ..Default::default() };
        assert_eq!(codes(&answer), [0, 16, 3, 0]);
    }

    #[test]
    fn one_coordinator_or_many() {
        let single = FindCoordinatorResponse::default().with_error_code(15);
        assert_eq!(codes(&single), [15]);
        let one = find_coordinator_response::Coordinator::default().with_error_code(24);
        assert_eq!(codes(&FindCoordinatorResponse::default().with_coordinators(vec![one.clone(), one])), [24, 24]);
    }
}
