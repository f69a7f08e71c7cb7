//! What clients send, for simulated ones: the same requests that real clients make, in the newest version that is served. Tests only; nodes
//! never send these, so answers are not held against shape tables.

use bytes::{Bytes, BytesMut};
use kafka_protocol::protocol::{Decodable, Encodable};

use super::client::{AnswerError, NodeRequest};
use super::extended::codec::{read_message, write_message};
use super::messages::{
    FindCoordinatorRequest, FindCoordinatorResponse, HeartbeatRequest, HeartbeatResponse, InitProducerIdRequest,
    InitProducerIdResponse, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, LeaveGroupResponse,
    ListOffsetsRequest, ListOffsetsResponse, MetadataRequest, MetadataResponse, OffsetCommitRequest,
    OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse, SyncGroupRequest, SyncGroupResponse,
};

macro_rules! client_requests {
    ($($key:literal v $version:literal $request:ident -> $answer:ident;)*) => {
        $(impl NodeRequest for $request {
            const KEY: i16 = $key;
            const VERSION: i16 = $version;
            type Answer = $answer;

            fn write(&self, buffer: &mut BytesMut) -> Result<(), String> {
                self.encode(buffer, $version).map_err(|error| error.to_string())
            }

            fn read_answer(mut body: Bytes) -> Result<$answer, AnswerError> {
                $answer::decode(&mut body, $version).map_err(|error| AnswerError::Decoder(error.to_string()))
            }
        })*
    };
}

client_requests! {
    2 v 10 ListOffsetsRequest -> ListOffsetsResponse;
    3 v 13 MetadataRequest -> MetadataResponse;
    10 v 6 FindCoordinatorRequest -> FindCoordinatorResponse;
    11 v 9 JoinGroupRequest -> JoinGroupResponse;
    12 v 4 HeartbeatRequest -> HeartbeatResponse;
    13 v 5 LeaveGroupRequest -> LeaveGroupResponse;
    14 v 5 SyncGroupRequest -> SyncGroupResponse;
    22 v 5 InitProducerIdRequest -> InitProducerIdResponse;
}

macro_rules! own_client_requests {
    ($($key:literal v $version:literal $request:ident -> $answer:ident;)*) => {
        $(impl NodeRequest for $request {
            const KEY: i16 = $key;
            const VERSION: i16 = $version;
            type Answer = $answer;

            fn write(&self, buffer: &mut BytesMut) -> Result<(), String> {
                write_message($key, $version, self, buffer)
            }

            fn read_answer(body: Bytes) -> Result<$answer, AnswerError> {
                read_message($key, $version, body).map_err(AnswerError::Decoder)
            }
        })*
    };
}

own_client_requests! {
    8 v 9 OffsetCommitRequest -> OffsetCommitResponse;
    9 v 9 OffsetFetchRequest -> OffsetFetchResponse;
}
