//! Bodies to typed requests: held against the shape table first, so that the decoder behind it never meets a length that lies.

use std::fmt;

use bytes::Bytes;

use super::messages::{self, RequestBody};
use super::shape::ShapeError;
use super::table::lookup;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The key is in no table.
    UnknownApi(i16),
    Shape(ShapeError),
    /// Passed the table and was refused by the decoder; the decoder's sentence.
    Decoder(String),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::UnknownApi(key) => write!(f, "unknown API key {key}"),
            DecodeError::Shape(error) => error.fmt(f),
            DecodeError::Decoder(sentence) => f.write_str(sentence),
        }
    }
}

impl std::error::Error for DecodeError {}

/// The request in `body`. Bytes behind it are ignored, as Kafka ignores them. Record bytes stay slices of `body`.
pub fn decode_request<R: RequestBody>(version: i16, body: Bytes) -> Result<R, DecodeError> {
    let api = lookup(R::KEY).ok_or(DecodeError::UnknownApi(R::KEY))?;
    api.check(version, &body).map_err(DecodeError::Shape)?;
    R::read(version, body).map_err(DecodeError::Decoder)
}

/// Decodes a request of any API and drops it: for fuzzing, and for tests that ask every version.
pub fn decode_and_drop(key: i16, version: i16, body: Bytes) -> Result<(), DecodeError> {
    macro_rules! requests {
        ($($request:ident)*) => {
            match key {
                $(messages::$request::KEY => decode_request::<messages::$request>(version, body).map(drop),)*
                _ => Err(DecodeError::UnknownApi(key)),
            }
        };
    }
    requests! {
        ProduceRequest
        FetchRequest
        ListOffsetsRequest
        MetadataRequest
        OffsetCommitRequest
        OffsetFetchRequest
        FindCoordinatorRequest
        JoinGroupRequest
        HeartbeatRequest
        LeaveGroupRequest
        SyncGroupRequest
        DescribeGroupsRequest
        ListGroupsRequest
        SaslHandshakeRequest
        ApiVersionsRequest
        CreateTopicsRequest
        DeleteTopicsRequest
        DeleteRecordsRequest
        InitProducerIdRequest
        OffsetForLeaderEpochRequest
        AddPartitionsToTxnRequest
        AddOffsetsToTxnRequest
        EndTxnRequest
        WriteTxnMarkersRequest
        TxnOffsetCommitRequest
        DescribeAclsRequest
        CreateAclsRequest
        DeleteAclsRequest
        DescribeConfigsRequest
        AlterConfigsRequest
        AlterReplicaLogDirsRequest
        DescribeLogDirsRequest
        SaslAuthenticateRequest
        CreatePartitionsRequest
        CreateDelegationTokenRequest
        RenewDelegationTokenRequest
        ExpireDelegationTokenRequest
        DescribeDelegationTokenRequest
        DeleteGroupsRequest
        ElectLeadersRequest
        IncrementalAlterConfigsRequest
        AlterPartitionReassignmentsRequest
        ListPartitionReassignmentsRequest
        OffsetDeleteRequest
        DescribeClientQuotasRequest
        AlterClientQuotasRequest
        DescribeUserScramCredentialsRequest
        AlterUserScramCredentialsRequest
        DescribeQuorumRequest
        AlterPartitionRequest
        UpdateFeaturesRequest
        DescribeClusterRequest
        DescribeProducersRequest
        BrokerRegistrationRequest
        BrokerHeartbeatRequest
        UnregisterBrokerRequest
        DescribeTransactionsRequest
        ListTransactionsRequest
        AllocateProducerIdsRequest
        ConsumerGroupHeartbeatRequest
        ConsumerGroupDescribeRequest
        GetTelemetrySubscriptionsRequest
        PushTelemetryRequest
        AssignReplicasToDirsRequest
        ListConfigResourcesRequest
        DescribeTopicPartitionsRequest
        ShareGroupHeartbeatRequest
        ShareGroupDescribeRequest
        ShareFetchRequest
        ShareAcknowledgeRequest
        AddRaftVoterRequest
        RemoveRaftVoterRequest
        InitializeShareGroupStateRequest
        ReadShareGroupStateRequest
        WriteShareGroupStateRequest
        DeleteShareGroupStateRequest
        ReadShareGroupStateSummaryRequest
        StreamsGroupHeartbeatRequest
        StreamsGroupDescribeRequest
        DescribeShareGroupOffsetsRequest
        AlterShareGroupOffsetsRequest
        DeleteShareGroupOffsetsRequest
        StreamsGroupTopologyDescriptionUpdateRequest
        UnregisterControllerRequest
    }
}
