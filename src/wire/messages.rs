//! The structs of requests and answers: `kafka-protocol`'s, with ours in place of those whose newest version the crate lacks.
//! This is the only door to the crate; other floors write `crate::wire::messages::...`.
//!
//! Texts and bytes of a decoded request share the memory of its frame: copy with [`detached`] what outlives the request.

use bytes::{Bytes, BytesMut};

pub use kafka_protocol::messages::*;
pub use kafka_protocol::protocol::StrBytes;
use kafka_protocol::protocol::{Decodable, Encodable};

pub use super::extended::add_raft_voter_request::{self, AddRaftVoterRequest};
pub use super::extended::add_raft_voter_response::{self, AddRaftVoterResponse};
pub use super::extended::api_versions_request::{self, ApiVersionsRequest};
pub use super::extended::delete_groups_response::{self, DeleteGroupsResponse};
pub use super::extended::describe_log_dirs_response::{self, DescribeLogDirsResponse};
pub use super::extended::describe_share_group_offsets_request::{self, DescribeShareGroupOffsetsRequest};
pub use super::extended::describe_share_group_offsets_response::{self, DescribeShareGroupOffsetsResponse};
pub use super::extended::offset_commit_request::{self, OffsetCommitRequest};
pub use super::extended::offset_commit_response::{self, OffsetCommitResponse};
pub use super::extended::offset_fetch_request::{self, OffsetFetchRequest};
pub use super::extended::offset_fetch_response::{self, OffsetFetchResponse};
pub use super::extended::read_share_group_state_summary_request::{self, ReadShareGroupStateSummaryRequest};
pub use super::extended::read_share_group_state_summary_response::{self, ReadShareGroupStateSummaryResponse};
pub use super::extended::share_acknowledge_request::{self, ShareAcknowledgeRequest};
pub use super::extended::share_acknowledge_response::{self, ShareAcknowledgeResponse};
pub use super::extended::share_fetch_request::{self, ShareFetchRequest};
pub use super::extended::share_fetch_response::{self, ShareFetchResponse};
pub use super::extended::streams_group_describe_request::{self, StreamsGroupDescribeRequest};
pub use super::extended::streams_group_describe_response::{self, StreamsGroupDescribeResponse};
pub use super::extended::streams_group_heartbeat_request::{self, StreamsGroupHeartbeatRequest};
pub use super::extended::streams_group_heartbeat_response::{self, StreamsGroupHeartbeatResponse};
pub use super::extended::streams_group_topology_description_update_request::{
    self, StreamsGroupTopologyDescriptionUpdateRequest,
};
pub use super::extended::streams_group_topology_description_update_response::{
    self, StreamsGroupTopologyDescriptionUpdateResponse,
};
pub use super::extended::txn_offset_commit_request::{self, TxnOffsetCommitRequest};
pub use super::extended::txn_offset_commit_response::{self, TxnOffsetCommitResponse};
pub use super::extended::unregister_controller_request::{self, UnregisterControllerRequest};
pub use super::extended::unregister_controller_response::{self, UnregisterControllerResponse};
pub use super::extended::write_share_group_state_request::{self, WriteShareGroupStateRequest};
pub use super::extended::write_share_group_state_response::{self, WriteShareGroupStateResponse};
pub use super::extended::write_txn_markers_request::{self, WriteTxnMarkersRequest};
pub use super::extended::write_txn_markers_response::{self, WriteTxnMarkersResponse};

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
    56 AlterPartitionRequest;
    57 UpdateFeaturesRequest;
    60 DescribeClusterRequest;
    61 DescribeProducersRequest;
    62 BrokerRegistrationRequest;
    63 BrokerHeartbeatRequest;
    64 UnregisterBrokerRequest;
    65 DescribeTransactionsRequest;
    66 ListTransactionsRequest;
    67 AllocateProducerIdsRequest;
    68 ConsumerGroupHeartbeatRequest;
    69 ConsumerGroupDescribeRequest;
    71 GetTelemetrySubscriptionsRequest;
    72 PushTelemetryRequest;
    73 AssignReplicasToDirsRequest;
    74 ListConfigResourcesRequest;
    75 DescribeTopicPartitionsRequest;
    76 ShareGroupHeartbeatRequest;
    77 ShareGroupDescribeRequest;
    81 RemoveRaftVoterRequest;
    83 InitializeShareGroupStateRequest;
    84 ReadShareGroupStateRequest;
    86 DeleteShareGroupStateRequest;
    91 AlterShareGroupOffsetsRequest;
    92 DeleteShareGroupOffsetsRequest;
}

response! {
    ProduceResponse;
    FetchResponse;
    ListOffsetsResponse newest_layout 10;
    MetadataResponse;
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
    AlterPartitionResponse;
    UpdateFeaturesResponse;
    DescribeClusterResponse;
    DescribeProducersResponse;
    BrokerRegistrationResponse;
    BrokerHeartbeatResponse;
    UnregisterBrokerResponse;
    DescribeTransactionsResponse;
    ListTransactionsResponse;
    ConsumerGroupHeartbeatResponse;
    ConsumerGroupDescribeResponse;
    GetTelemetrySubscriptionsResponse;
    PushTelemetryResponse;
    AllocateProducerIdsResponse;
    AssignReplicasToDirsResponse;
    ListConfigResourcesResponse;
    DescribeTopicPartitionsResponse;
    ShareGroupHeartbeatResponse;
    ShareGroupDescribeResponse;
    RemoveRaftVoterResponse;
    InitializeShareGroupStateResponse;
    ReadShareGroupStateResponse;
    DeleteShareGroupStateResponse;
    AlterShareGroupOffsetsResponse;
    DeleteShareGroupOffsetsResponse;
}
