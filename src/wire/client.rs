//! Our side of the protocol as a client of other nodes: typed requests to frames, answer frames to typed answers. Only the APIs that
//! nodes use among themselves, each in the one version that every node of ours speaks or in the versions its caller names.
//!
//! An answer is held against a shape table before it is decoded, as requests are: a node that went mad must not take another one's
//! memory.

use std::fmt;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::protocol::{Decodable, Encodable};

use super::encode::{EncodeError, write_length};
use super::header::skip_tags;
use super::messages::{
    AllocateProducerIdsRequest, AllocateProducerIdsResponse, AlterPartitionRequest, AlterPartitionResponse,
    AssignReplicasToDirsRequest, AssignReplicasToDirsResponse, BrokerHeartbeatRequest, BrokerHeartbeatResponse,
    BrokerRegistrationRequest, BrokerRegistrationResponse, CreateTopicsRequest, CreateTopicsResponse, FetchRequest,
    FetchResponse,
};
use super::private;
use super::shape::{Field, ShapeError, answers, check_body};

/// Room for the common small request, so that it is written without growing.
const REQUEST_BYTES_USUAL: usize = 256;

/// The largest answer that is taken from another node.
pub const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;

/// A request that nodes send to one another, in flexible versions only.
pub trait NodeRequest {
    const KEY: i16;
    /// The version that is spoken among nodes of this build.
    const VERSION: i16;
    type Answer;

    /// The error is the crate's sentence.
    fn write(&self, buffer: &mut BytesMut) -> Result<(), String>;

    fn read_answer(body: Bytes) -> Result<Self::Answer, AnswerError>;
}

/// Why an answer of another node cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerError {
    Short,
    Shape(ShapeError),
    /// Passed the table and was refused by the decoder; the decoder's sentence.
    Decoder(String),
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnswerError::Short => f.write_str("the answer is shorter than its header"),
            AnswerError::Shape(error) => error.fmt(f),
            AnswerError::Decoder(sentence) => f.write_str(sentence),
        }
    }
}

impl std::error::Error for AnswerError {}

macro_rules! node_requests {
    ($($key:literal v $version:literal $request:ident -> $answer:ident, $shape:path;)*) => {
        $(impl NodeRequest for $request {
            const KEY: i16 = $key;
            const VERSION: i16 = $version;
            type Answer = $answer;

            fn write(&self, buffer: &mut BytesMut) -> Result<(), String> {
                self.encode(buffer, $version).map_err(|error| error.to_string())
            }

            fn read_answer(body: Bytes) -> Result<$answer, AnswerError> {
                checked(&$shape, $version, body, |body| $answer::decode(body, $version).map_err(|error| error.to_string()))
            }
        })*
    };
}

node_requests! {
    1 v 18 FetchRequest -> FetchResponse, answers::FETCH;
    19 v 7 CreateTopicsRequest -> CreateTopicsResponse, answers::CREATE_TOPICS;
    56 v 3 AlterPartitionRequest -> AlterPartitionResponse, answers::ALTER_PARTITION;
    62 v 4 BrokerRegistrationRequest -> BrokerRegistrationResponse, answers::BROKER_REGISTRATION;
    63 v 1 BrokerHeartbeatRequest -> BrokerHeartbeatResponse, answers::BROKER_HEARTBEAT;
    67 v 0 AllocateProducerIdsRequest -> AllocateProducerIdsResponse, answers::ALLOCATE_PRODUCER_IDS;
    73 v 0 AssignReplicasToDirsRequest -> AssignReplicasToDirsResponse, answers::ASSIGN_REPLICAS_TO_DIRS;
}

fn checked<T>(
    shape: &'static [Field],
    version: i16,
    mut body: Bytes,
    decode: impl FnOnce(&mut Bytes) -> Result<T, String>,
) -> Result<T, AnswerError> {
    check_body(shape, version, true, &body).map_err(AnswerError::Shape)?;
    decode(&mut body).map_err(AnswerError::Decoder)
}

/// The whole request frame, length prefix included.
pub fn encode_request<Q: NodeRequest>(correlation_id: i32, client_id: &str, request: &Q) -> Result<Bytes, EncodeError> {
    encode_frame(Q::KEY, Q::VERSION, correlation_id, client_id, |buffer| request.write(buffer))
}

/// The whole frame of a private request.
pub fn encode_private(
    api: private::PrivateApi,
    correlation_id: i32,
    client_id: &str,
    body: &[u8],
) -> Result<Bytes, EncodeError> {
    encode_frame(api.key(), private::VERSION, correlation_id, client_id, |buffer| {
        buffer.put_slice(body);
        Ok(())
    })
}

/// Request header version 2 and the body.
fn encode_frame(
    key: i16,
    version: i16,
    correlation_id: i32,
    client_id: &str,
    body: impl FnOnce(&mut BytesMut) -> Result<(), String>,
) -> Result<Bytes, EncodeError> {
    let mut buffer = BytesMut::with_capacity(REQUEST_BYTES_USUAL);
    buffer.put_i32(0);
    buffer.put_i16(key);
    buffer.put_i16(version);
    buffer.put_i32(correlation_id);
    let length = i16::try_from(client_id.len()).map_err(|_| EncodeError::TooLarge(client_id.len()))?;
    buffer.put_i16(length);
    buffer.put_slice(client_id.as_bytes());
    buffer.put_u8(0);
    body(&mut buffer).map_err(EncodeError::Encoder)?;
    write_length(&mut buffer, 0, 0)?;
    Ok(buffer.freeze())
}

/// Splits an answer frame, without its length prefix, into its correlation id and what follows.
pub fn correlation_id(mut frame: Bytes) -> Result<(i32, Bytes), AnswerError> {
    let id = frame.try_get_i32().map_err(|_| AnswerError::Short)?;
    Ok((id, frame))
}

/// The body of an answer with response header version 1, behind its correlation id.
pub fn body(mut rest: Bytes) -> Result<Bytes, AnswerError> {
    skip_tags(&mut rest).map_err(|_| AnswerError::Short)?;
    Ok(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::encode::encode_response;
    use crate::wire::frame::{FrameLimit, next_frame};
    use crate::wire::header;
    use crate::wire::messages::fetch_response::{FetchableTopicResponse, PartitionData};
    use crate::wire::messages::{BrokerId, RequestBody};
    use crate::wire::table::lookup;

    fn unframed(bytes: Bytes) -> Bytes {
        let mut buffer = BytesMut::from(&bytes[..]);
        let frame = next_frame(&mut buffer, FrameLimit::later(1 << 20)).unwrap().unwrap();
        assert!(buffer.is_empty());
        frame
    }

    #[test]
    fn what_a_node_asks_is_what_a_node_reads() {
        let request = BrokerHeartbeatRequest::default().with_broker_id(BrokerId(7)).with_broker_epoch(9);
        let frame = unframed(encode_request(5, "node-7", &request).unwrap());
        let (header, body) = header::parse(frame).unwrap();
        assert_eq!((header.api.name, header.version, header.correlation_id), ("BrokerHeartbeat", 1, 5));
        assert_eq!(header.client_id.as_deref(), Some("node-7"));
        header.api.check(header.version, &body).unwrap();
        assert_eq!(BrokerHeartbeatRequest::read(header.version, body).unwrap(), request);
    }

    #[test]
    fn what_a_node_answers_is_what_the_other_reads() {
        let partition = PartitionData::default().with_high_watermark(3).with_records(Some(Bytes::from_static(b"abc")));
        let topic = FetchableTopicResponse::default().with_partitions(vec![partition]);
        let answer = FetchResponse::default().with_session_id(4).with_responses(vec![topic]);
        let frame = unframed(encode_response(lookup(1).unwrap(), 18, 6, &answer).unwrap());
        let (id, rest) = correlation_id(frame).unwrap();
        assert_eq!(id, 6);
        assert_eq!(FetchRequest::read_answer(body(rest).unwrap()).unwrap(), answer);
    }

    #[test]
    fn counts_that_lie_are_refused_before_memory_is_taken() {
        // throttle, error, then an array of 2^28 - 2 topics in no bytes
        let lie = Bytes::from_static(&[0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f]);
        let error = AlterPartitionRequest::read_answer(lie).unwrap_err();
        assert!(matches!(error, AnswerError::Shape(_)), "{error}");
    }
}
