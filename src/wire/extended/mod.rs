//! Messages that Kafka 4.4 serves in a version which `kafka-protocol` lacks, or that it lacks altogether, with the same names in the
//! same style as the crate's. [`super::messages`] puts them in the crate's place.

pub(in crate::wire) mod codec;
pub(super) mod write;

pub mod add_raft_voter_request;
pub mod add_raft_voter_response;
pub mod api_versions_request;
pub mod delete_groups_response;
pub mod describe_log_dirs_response;
pub mod describe_share_group_offsets_request;
pub mod describe_share_group_offsets_response;
pub mod offset_commit_request;
pub mod offset_commit_response;
pub mod offset_fetch_request;
pub mod offset_fetch_response;
pub mod read_share_group_state_summary_request;
pub mod read_share_group_state_summary_response;
pub mod share_acknowledge_request;
pub mod share_acknowledge_response;
pub mod share_fetch_request;
pub mod share_fetch_response;
pub mod streams_group_describe_request;
pub mod streams_group_describe_response;
pub mod streams_group_heartbeat_request;
pub mod streams_group_heartbeat_response;
pub mod streams_group_topology_description_update_request;
pub mod streams_group_topology_description_update_response;
pub mod txn_offset_commit_request;
pub mod txn_offset_commit_response;
pub mod unregister_controller_request;
pub mod unregister_controller_response;
pub mod write_share_group_state_request;
pub mod write_share_group_state_response;
pub mod write_txn_markers_request;
pub mod write_txn_markers_response;

use bytes::{Bytes, BytesMut};

use super::messages::{RequestBody, ResponseBody};
use codec::{read_message, write_message};

macro_rules! requests {
    ($($key:literal $request:path;)*) => {
        $(impl RequestBody for $request {
            const KEY: i16 = $key;

            fn read(version: i16, body: Bytes) -> Result<Self, String> {
                read_message($key, version, body)
            }
        })*
    };
}

macro_rules! responses {
    ($($key:literal $response:path;)*) => {
        $(impl ResponseBody for $response {
            fn write(&self, version: i16, buffer: &mut BytesMut) -> Result<(), String> {
                write_message($key, version, self, buffer)
            }
        })*
    };
}

requests! {
    8 offset_commit_request::OffsetCommitRequest;
    9 offset_fetch_request::OffsetFetchRequest;
    18 api_versions_request::ApiVersionsRequest;
    27 write_txn_markers_request::WriteTxnMarkersRequest;
    28 txn_offset_commit_request::TxnOffsetCommitRequest;
    78 share_fetch_request::ShareFetchRequest;
    79 share_acknowledge_request::ShareAcknowledgeRequest;
    80 add_raft_voter_request::AddRaftVoterRequest;
    85 write_share_group_state_request::WriteShareGroupStateRequest;
    87 read_share_group_state_summary_request::ReadShareGroupStateSummaryRequest;
    88 streams_group_heartbeat_request::StreamsGroupHeartbeatRequest;
    89 streams_group_describe_request::StreamsGroupDescribeRequest;
    90 describe_share_group_offsets_request::DescribeShareGroupOffsetsRequest;
    93 streams_group_topology_description_update_request::StreamsGroupTopologyDescriptionUpdateRequest;
    94 unregister_controller_request::UnregisterControllerRequest;
}

responses! {
    8 offset_commit_response::OffsetCommitResponse;
    9 offset_fetch_response::OffsetFetchResponse;
    27 write_txn_markers_response::WriteTxnMarkersResponse;
    28 txn_offset_commit_response::TxnOffsetCommitResponse;
    35 describe_log_dirs_response::DescribeLogDirsResponse;
    42 delete_groups_response::DeleteGroupsResponse;
    78 share_fetch_response::ShareFetchResponse;
    79 share_acknowledge_response::ShareAcknowledgeResponse;
    80 add_raft_voter_response::AddRaftVoterResponse;
    85 write_share_group_state_response::WriteShareGroupStateResponse;
    87 read_share_group_state_summary_response::ReadShareGroupStateSummaryResponse;
    88 streams_group_heartbeat_response::StreamsGroupHeartbeatResponse;
    89 streams_group_describe_response::StreamsGroupDescribeResponse;
    90 describe_share_group_offsets_response::DescribeShareGroupOffsetsResponse;
    93 streams_group_topology_description_update_response::StreamsGroupTopologyDescriptionUpdateResponse;
    94 unregister_controller_response::UnregisterControllerResponse;
}

#[cfg(test)]
mod tests {
    use super::codec::Value;
    use super::*;

    /// Bytes from Apache Kafka's own codec; the file says how they are filled.
    const FACTS: &str = include_str!("../../../tests/wire_facts/messages.txt");

    fn round_trip<T: Value>(key: i16, version: i16, bytes: Bytes) -> Bytes {
        let message: T = read_message(key, version, bytes).unwrap();
        let mut written = BytesMut::new();
        write_message(key, version, &message, &mut written).unwrap();
        written.freeze()
    }

    fn request(key: i16, version: i16, bytes: Bytes) -> Bytes {
        match key {
            8 => round_trip::<offset_commit_request::OffsetCommitRequest>(key, version, bytes),
            9 => round_trip::<offset_fetch_request::OffsetFetchRequest>(key, version, bytes),
            18 => round_trip::<api_versions_request::ApiVersionsRequest>(key, version, bytes),
            27 => round_trip::<write_txn_markers_request::WriteTxnMarkersRequest>(key, version, bytes),
            28 => round_trip::<txn_offset_commit_request::TxnOffsetCommitRequest>(key, version, bytes),
            78 => round_trip::<share_fetch_request::ShareFetchRequest>(key, version, bytes),
            79 => round_trip::<share_acknowledge_request::ShareAcknowledgeRequest>(key, version, bytes),
            80 => round_trip::<add_raft_voter_request::AddRaftVoterRequest>(key, version, bytes),
            85 => round_trip::<write_share_group_state_request::WriteShareGroupStateRequest>(key, version, bytes),
            87 => round_trip::<read_share_group_state_summary_request::ReadShareGroupStateSummaryRequest>(
                key, version, bytes,
            ),
            88 => round_trip::<streams_group_heartbeat_request::StreamsGroupHeartbeatRequest>(key, version, bytes),
            89 => round_trip::<streams_group_describe_request::StreamsGroupDescribeRequest>(key, version, bytes),
            90 => round_trip::<describe_share_group_offsets_request::DescribeShareGroupOffsetsRequest>(
                key, version, bytes,
            ),
            93 => round_trip::<
                streams_group_topology_description_update_request::StreamsGroupTopologyDescriptionUpdateRequest,
            >(key, version, bytes),
            94 => round_trip::<unregister_controller_request::UnregisterControllerRequest>(key, version, bytes),
            _ => panic!("request {key}"),
        }
    }

    fn response(key: i16, version: i16, bytes: Bytes) -> Bytes {
        match key {
            8 => round_trip::<offset_commit_response::OffsetCommitResponse>(key, version, bytes),
            9 => round_trip::<offset_fetch_response::OffsetFetchResponse>(key, version, bytes),
            27 => round_trip::<write_txn_markers_response::WriteTxnMarkersResponse>(key, version, bytes),
            28 => round_trip::<txn_offset_commit_response::TxnOffsetCommitResponse>(key, version, bytes),
            35 => round_trip::<describe_log_dirs_response::DescribeLogDirsResponse>(key, version, bytes),
            42 => round_trip::<delete_groups_response::DeleteGroupsResponse>(key, version, bytes),
            78 => round_trip::<share_fetch_response::ShareFetchResponse>(key, version, bytes),
            79 => round_trip::<share_acknowledge_response::ShareAcknowledgeResponse>(key, version, bytes),
            80 => round_trip::<add_raft_voter_response::AddRaftVoterResponse>(key, version, bytes),
            85 => round_trip::<write_share_group_state_response::WriteShareGroupStateResponse>(key, version, bytes),
            87 => round_trip::<read_share_group_state_summary_response::ReadShareGroupStateSummaryResponse>(
                key, version, bytes,
            ),
            88 => round_trip::<streams_group_heartbeat_response::StreamsGroupHeartbeatResponse>(key, version, bytes),
            89 => round_trip::<streams_group_describe_response::StreamsGroupDescribeResponse>(key, version, bytes),
            90 => round_trip::<describe_share_group_offsets_response::DescribeShareGroupOffsetsResponse>(
                key, version, bytes,
            ),
            93 => round_trip::<
                streams_group_topology_description_update_response::StreamsGroupTopologyDescriptionUpdateResponse,
            >(key, version, bytes),
            94 => round_trip::<unregister_controller_response::UnregisterControllerResponse>(key, version, bytes),
            // Written by the crate or by hand elsewhere, or the same in every version that the crate lacks.
            _ => bytes,
        }
    }

    fn from_hex(hex: &str) -> Bytes {
        let hex = hex.trim_matches('-');
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    #[test]
    fn what_kafka_wrote_is_read_and_written_back_to_the_same_bytes() {
        for line in FACTS.lines().filter(|line| !line.starts_with('#')) {
            let [direction, key, version, hex] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let (key, version, bytes) = (key.parse().unwrap(), version.parse().unwrap(), from_hex(hex));
            let written = match (direction, key) {
                ("request", 35 | 42) => continue,
                ("request", _) => request(key, version, bytes.clone()),
                _ => response(key, version, bytes.clone()),
            };
            assert_eq!(written, bytes, "{direction} {key} v{version}");
        }
    }
}
