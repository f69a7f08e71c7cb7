//! The structs of requests and answers: `kafka-protocol`'s, with ours in place of those whose newest version the crate lacks.
//! This is the only door to the crate; other floors write `crate::wire::messages::...`.
//!
//! Texts and bytes of a decoded request share the memory of its frame: copy with [`detached`] what outlives the request.

use bytes::{Bytes, BytesMut};

pub use kafka_protocol::messages::*;
pub use kafka_protocol::protocol::StrBytes;
use kafka_protocol::protocol::{Decodable, Encodable};

pub use super::extended::api_versions_request::{self, ApiVersionsRequest};
pub use super::extended::delete_groups_response::{self, DeleteGroupsResponse};
pub use super::extended::describe_log_dirs_response::{self, DescribeLogDirsResponse};

/// A request that can be read from a body which passed the shape check.
pub trait RequestBody: Sized {
    const KEY: i16;

    /// The error is the crate's sentence.
    fn read(version: i16, body: Bytes) -> Result<Self, String>;
}

/// An answer that can be written behind its header.
pub trait ResponseBody {
    /// The error is the crate's sentence: a field that the version cannot carry.
    fn write(&self, version: i16, buffer: &mut BytesMut) -> Result<(), String>;
}

/// A copy with memory of its own, for texts that stay when the request is gone.
pub fn detached(text: &StrBytes) -> StrBytes {
    StrBytes::from_string(text.as_str().to_owned())
}

macro_rules! request {
    ($($key:literal $request:ident $(newest_layout $layout:literal)?;)*) => {
        $(impl RequestBody for $request {
            const KEY: i16 = $key;

            fn read(version: i16, mut body: Bytes) -> Result<Self, String> {
                $(let version = version.min($layout);)?
                Self::decode(&mut body, version).map_err(|error| error.to_string())
            }
        })*
    };
}

macro_rules! response {
    ($($response:ident $(newest_layout $layout:literal)?;)*) => {
        $(impl ResponseBody for $response {
            fn write(&self, version: i16, buffer: &mut BytesMut) -> Result<(), String> {
                $(let version = version.min($layout);)?
                self.encode(buffer, version).map_err(|error| error.to_string())
            }
        })*
    };
}

// `newest_layout`: later versions have the same layout and only mean more, so the crate's newest reads and writes them.
request! {
    0 ProduceRequest;
    1 FetchRequest;
    2 ListOffsetsRequest newest_layout 10;
    3 MetadataRequest;
    8 OffsetCommitRequest;
    9 OffsetFetchRequest;
    10 FindCoordinatorRequest;
    11 JoinGroupRequest;
    12 HeartbeatRequest;
    13 LeaveGroupRequest;
    14 SyncGroupRequest;
    15 DescribeGroupsRequest;
    16 ListGroupsRequest;
    17 SaslHandshakeRequest;
    19 CreateTopicsRequest;
    20 DeleteTopicsRequest;
    21 DeleteRecordsRequest;
    22 InitProducerIdRequest;
    23 OffsetForLeaderEpochRequest;
    24 AddPartitionsToTxnRequest;
    25 AddOffsetsToTxnRequest;
    26 EndTxnRequest;
    27 WriteTxnMarkersRequest;
    28 TxnOffsetCommitRequest;
    29 DescribeAclsRequest;
    30 CreateAclsRequest;
    31 DeleteAclsRequest;
    32 DescribeConfigsRequest;
    33 AlterConfigsRequest;
    34 AlterReplicaLogDirsRequest;
    35 DescribeLogDirsRequest newest_layout 4;
    36 SaslAuthenticateRequest;
    37 CreatePartitionsRequest;
    38 CreateDelegationTokenRequest;
    39 RenewDelegationTokenRequest;
    40 ExpireDelegationTokenRequest;
    41 DescribeDelegationTokenRequest;
    42 DeleteGroupsRequest newest_layout 2;
    43 ElectLeadersRequest;
    44 IncrementalAlterConfigsRequest;
    45 AlterPartitionReassignmentsRequest;
    46 ListPartitionReassignmentsRequest;
    47 OffsetDeleteRequest;
    48 DescribeClientQuotasRequest;
    49 AlterClientQuotasRequest;
    50 DescribeUserScramCredentialsRequest;
    51 AlterUserScramCredentialsRequest;
    55 DescribeQuorumRequest;
    57 UpdateFeaturesRequest;
    60 DescribeClusterRequest;
    61 DescribeProducersRequest;
    64 UnregisterBrokerRequest;
    65 DescribeTransactionsRequest;
    66 ListTransactionsRequest;
    68 ConsumerGroupHeartbeatRequest;
    69 ConsumerGroupDescribeRequest;
    71 GetTelemetrySubscriptionsRequest;
    72 PushTelemetryRequest;
    74 ListConfigResourcesRequest;
    75 DescribeTopicPartitionsRequest;
    76 ShareGroupHeartbeatRequest;
    77 ShareGroupDescribeRequest;
    78 ShareFetchRequest;
    79 ShareAcknowledgeRequest;
    80 AddRaftVoterRequest;
    81 RemoveRaftVoterRequest;
    83 InitializeShareGroupStateRequest;
    84 ReadShareGroupStateRequest;
    85 WriteShareGroupStateRequest;
    86 DeleteShareGroupStateRequest;
    87 ReadShareGroupStateSummaryRequest;
    90 DescribeShareGroupOffsetsRequest;
    91 AlterShareGroupOffsetsRequest;
    92 DeleteShareGroupOffsetsRequest;
}

response! {
    ProduceResponse;
    FetchResponse;
    ListOffsetsResponse newest_layout 10;
    MetadataResponse;
    OffsetCommitResponse;
    OffsetFetchResponse;
    FindCoordinatorResponse;
    JoinGroupResponse;
    HeartbeatResponse;
    LeaveGroupResponse;
    SyncGroupResponse;
    DescribeGroupsResponse;
    ListGroupsResponse;
    SaslHandshakeResponse;
    ApiVersionsResponse newest_layout 4;
    CreateTopicsResponse;
    DeleteTopicsResponse;
    DeleteRecordsResponse;
    InitProducerIdResponse;
    OffsetForLeaderEpochResponse;
    AddPartitionsToTxnResponse;
    AddOffsetsToTxnResponse;
    EndTxnResponse;
    WriteTxnMarkersResponse;
    TxnOffsetCommitResponse;
    DescribeAclsResponse;
    CreateAclsResponse;
    DeleteAclsResponse;
    DescribeConfigsResponse;
    AlterConfigsResponse;
    AlterReplicaLogDirsResponse;
    SaslAuthenticateResponse;
    CreatePartitionsResponse;
    CreateDelegationTokenResponse;
    RenewDelegationTokenResponse;
    ExpireDelegationTokenResponse;
    DescribeDelegationTokenResponse;
    ElectLeadersResponse;
    IncrementalAlterConfigsResponse;
    AlterPartitionReassignmentsResponse;
    ListPartitionReassignmentsResponse;
    OffsetDeleteResponse;
    DescribeClientQuotasResponse;
    AlterClientQuotasResponse;
    DescribeUserScramCredentialsResponse;
    AlterUserScramCredentialsResponse;
    DescribeQuorumResponse;
    UpdateFeaturesResponse;
    DescribeClusterResponse;
    DescribeProducersResponse;
    UnregisterBrokerResponse;
    DescribeTransactionsResponse;
    ListTransactionsResponse;
    ConsumerGroupHeartbeatResponse;
    ConsumerGroupDescribeResponse;
    GetTelemetrySubscriptionsResponse;
    PushTelemetryResponse;
    ListConfigResourcesResponse;
    DescribeTopicPartitionsResponse;
    ShareGroupHeartbeatResponse;
    ShareGroupDescribeResponse;
    ShareFetchResponse;
    ShareAcknowledgeResponse;
    AddRaftVoterResponse;
    RemoveRaftVoterResponse;
    InitializeShareGroupStateResponse;
    ReadShareGroupStateResponse;
    WriteShareGroupStateResponse;
    DeleteShareGroupStateResponse;
    ReadShareGroupStateSummaryResponse;
    DescribeShareGroupOffsetsResponse;
    AlterShareGroupOffsetsResponse;
    DeleteShareGroupOffsetsResponse;
}
