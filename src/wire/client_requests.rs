//! What clients send, for tests of whole nodes and for simulated clients: the same requests that real clients make. Tests only; nodes
//! never send these, so answers are not held against shape tables.

use bytes::{Bytes, BytesMut};
use kafka_protocol::protocol::{Decodable, Encodable};

use super::client::{AnswerError, NodeRequest};
use super::extended::codec::{read_message, write_message};
use super::messages::{
    AddRaftVoterRequest, AddRaftVoterResponse, DeleteRecordsRequest, DeleteRecordsResponse, ElectLeadersRequest,
    ElectLeadersResponse, FindCoordinatorRequest, FindCoordinatorResponse, HeartbeatRequest, HeartbeatResponse,
    InitProducerIdRequest, InitProducerIdResponse, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest,
    LeaveGroupResponse, ListOffsetsRequest, ListOffsetsResponse, MetadataRequest, MetadataResponse,
    OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse, ProduceRequest,
    ProduceResponse, RemoveRaftVoterRequest, RemoveRaftVoterResponse, SyncGroupRequest, SyncGroupResponse,
    UnregisterControllerRequest, UnregisterControllerResponse,
};

macro_rules! client_requests {
    ($($key:literal v $version:literal $request:ident -> $answer:ident by $write:path, $read:path;)*) => {
        $(impl NodeRequest for $request {
            const KEY: i16 = $key;
            const VERSION: i16 = $version;
            type Answer = $answer;

            fn write(&self, buffer: &mut BytesMut) -> Result<(), String> {
                $write($key, $version, self, buffer)
            }

            fn read_answer(body: Bytes) -> Result<$answer, AnswerError> {
                $read($key, $version, body).map_err(AnswerError::Decoder)
            }
        })*
    };
}

fn write<T: Encodable>(_: i16, version: i16, message: &T, buffer: &mut BytesMut) -> Result<(), String> {
    message.encode(buffer, version).map_err(|error| error.to_string())
}

fn read<T: Decodable>(_: i16, version: i16, mut body: Bytes) -> Result<T, String> {
    T::decode(&mut body, version).map_err(|error| error.to_string())
}

client_requests! {
    0 v 9 ProduceRequest -> ProduceResponse by write, read;
    2 v 10 ListOffsetsRequest -> ListOffsetsResponse by write, read;
    3 v 13 MetadataRequest -> MetadataResponse by write, read;
    8 v 9 OffsetCommitRequest -> OffsetCommitResponse by write_message, read_message;
    9 v 9 OffsetFetchRequest -> OffsetFetchResponse by write_message, read_message;
    10 v 6 FindCoordinatorRequest -> FindCoordinatorResponse by write, read;
    11 v 9 JoinGroupRequest -> JoinGroupResponse by write, read;
    12 v 4 HeartbeatRequest -> HeartbeatResponse by write, read;
    13 v 5 LeaveGroupRequest -> LeaveGroupResponse by write, read;
    14 v 5 SyncGroupRequest -> SyncGroupResponse by write, read;
    21 v 2 DeleteRecordsRequest -> DeleteRecordsResponse by write, read;
    22 v 5 InitProducerIdRequest -> InitProducerIdResponse by write, read;
    43 v 2 ElectLeadersRequest -> ElectLeadersResponse by write, read;
    80 v 0 AddRaftVoterRequest -> AddRaftVoterResponse by write_message, read_message;
    81 v 0 RemoveRaftVoterRequest -> RemoveRaftVoterResponse by write, read;
    94 v 0 UnregisterControllerRequest -> UnregisterControllerResponse by write_message, read_message;
}
