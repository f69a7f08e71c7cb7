//! A raw connection and the primitive types of the Kafka protocol, written for these tests alone.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const ANSWER_MAX: Duration = Duration::from_secs(30);
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// The APIs these tests send by hand: key, and the first version with compact types and tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Api(pub i16, pub i16);

pub const PRODUCE: Api = Api(0, 9);
pub const FETCH: Api = Api(1, 12);
pub const LIST_OFFSETS: Api = Api(2, 6);
pub const METADATA: Api = Api(3, 9);
pub const OFFSET_COMMIT: Api = Api(8, 8);
pub const OFFSET_FETCH: Api = Api(9, 6);
pub const FIND_COORDINATOR: Api = Api(10, 3);
pub const JOIN_GROUP: Api = Api(11, 6);
pub const HEARTBEAT: Api = Api(12, 4);
pub const LEAVE_GROUP: Api = Api(13, 4);
pub const SYNC_GROUP: Api = Api(14, 4);
pub const DESCRIBE_GROUPS: Api = Api(15, 5);
pub const LIST_GROUPS: Api = Api(16, 3);
pub const API_VERSIONS: Api = Api(18, 3);
pub const CREATE_TOPICS: Api = Api(19, 5);
pub const DELETE_TOPICS: Api = Api(20, 4);
pub const INIT_PRODUCER_ID: Api = Api(22, 2);
pub const OFFSET_FOR_LEADER_EPOCH: Api = Api(23, 4);
pub const DESCRIBE_ACLS: Api = Api(29, 2);
pub const DESCRIBE_CONFIGS: Api = Api(32, 4);
pub const ALTER_CONFIGS: Api = Api(33, 2);
pub const ALTER_REPLICA_LOG_DIRS: Api = Api(34, 2);
pub const DESCRIBE_LOG_DIRS: Api = Api(35, 2);
pub const DELETE_GROUPS: Api = Api(42, 2);
pub const INCREMENTAL_ALTER_CONFIGS: Api = Api(44, 1);
pub const ALTER_PARTITION_REASSIGNMENTS: Api = Api(45, 0);
pub const DESCRIBE_CLUSTER: Api = Api(60, 0);

/// One TCP connection; requests are numbered, answers must come in their order.
pub struct Connection {
    socket: TcpStream,
    next_correlation: i32,
    open: std::collections::VecDeque<(i32, bool)>,
}

impl Connection {
    pub fn open(address: SocketAddr) -> Connection {
        let socket = TcpStream::connect_timeout(&address, CONNECT_MAX).expect("connect");
        socket.set_nodelay(true).expect("nodelay");
        socket.set_read_timeout(Some(ANSWER_MAX)).expect("read timeout");
        Connection { socket, next_correlation: 1, open: Default::default() }
    }

    /// Says hello with ApiVersions, as clients do; a broker may refuse a big frame on a connection that has not spoken yet.
    #[track_caller]
    pub fn greet(&mut self) {
        assert_eq!(self.call(API_VERSIONS, 0, &Body::new()).i16(), 0, "ApiVersions");
    }

    /// Correlation ids go on from here.
    pub fn number_from(&mut self, correlation: i32) {
        self.next_correlation = correlation;
    }

    /// Sends a request and waits for its answer.
    #[track_caller]
    pub fn call(&mut self, api: Api, version: i16, body: &Body) -> Reader {
        self.send(api, version, body);
        self.receive()
    }

    /// Sends a request; `receive` gives the answers in order.
    #[track_caller]
    pub fn send(&mut self, api: Api, version: i16, body: &Body) {
        let correlation = self.next_correlation;
        self.next_correlation = correlation.wrapping_add(1);
        let flexible = version >= api.1;
        self.send_bytes(&framed(&request(api, version, correlation, body)));
        // The header of an ApiVersions answer never has tags, so that any client can read it.
        self.open.push_back((correlation, flexible && api != API_VERSIONS));
    }

    /// Bytes as they are.
    #[track_caller]
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).expect("the broker takes what is sent");
    }

    /// The answer of the oldest open request, after its header.
    #[track_caller]
    pub fn receive(&mut self) -> Reader {
        let (correlation, tags) = self.open.pop_front().expect("an open request");
        let mut answer = Reader::new(self.frame());
        assert_eq!(answer.i32(), correlation, "correlation id");
        if tags {
            answer.tags();
        }
        answer
    }

    /// The next answer's bytes without the length.
    #[track_caller]
    pub fn frame(&mut self) -> Vec<u8> {
        let mut length = [0; 4];
        self.socket.read_exact(&mut length).expect("the length of an answer");
        let length = usize::try_from(i32::from_be_bytes(length)).expect("a length that is not negative");
        let mut frame = vec![0; length];
        self.socket.read_exact(&mut frame).expect("the whole answer");
        frame
    }

    /// True when the broker closes the connection within `limit` without another byte.
    pub fn is_closed_within(&mut self, limit: Duration) -> bool {
        self.socket.set_read_timeout(Some(limit)).expect("read timeout");
        let closed = match self.socket.read(&mut [0; 1]) {
            Ok(count) => count == 0,
            Err(e) => !matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        };
        self.socket.set_read_timeout(Some(ANSWER_MAX)).expect("read timeout");
        closed
    }

    /// True when an answer starts to arrive within `limit`.
    pub fn has_answer_within(&mut self, limit: Duration) -> bool {
        self.socket.set_read_timeout(Some(limit)).expect("read timeout");
        let some = matches!(self.socket.peek(&mut [0; 1]), Ok(1));
        self.socket.set_read_timeout(Some(ANSWER_MAX)).expect("read timeout");
        some
    }
}

/// A request's bytes: header in the form its version wants, then the body.
pub fn request(api: Api, version: i16, correlation: i32, body: &Body) -> Vec<u8> {
    let mut head = Body::new().i16(api.0).i16(version).i32(correlation).string("compat");
    if version >= api.1 {
        head = head.tags();
    }
    [head.0, body.0.clone()].concat()
}

/// The same with its length before it.
pub fn framed(bytes: &[u8]) -> Vec<u8> {
    let length = i32::try_from(bytes.len()).expect("a frame under 2 GiB");
    [&length.to_be_bytes(), bytes].concat()
}

/// A request body in the making; each call appends one field.
#[derive(Clone, Debug, Default)]
pub struct Body(pub Vec<u8>);

impl Body {
    pub fn new() -> Body {
        Body::default()
    }

    pub fn raw(mut self, bytes: &[u8]) -> Body {
        self.0.extend_from_slice(bytes);
        self
    }

    pub fn i8(self, value: i8) -> Body {
        self.raw(&value.to_be_bytes())
    }

    pub fn bool(self, value: bool) -> Body {
        self.i8(i8::from(value))
    }

    pub fn i16(self, value: i16) -> Body {
        self.raw(&value.to_be_bytes())
    }

    pub fn i32(self, value: i32) -> Body {
        self.raw(&value.to_be_bytes())
    }

    pub fn i64(self, value: i64) -> Body {
        self.raw(&value.to_be_bytes())
    }

    pub fn string(self, text: &str) -> Body {
        self.i16(i16::try_from(text.len()).expect("a short string")).raw(text.as_bytes())
    }

    pub fn null_string(self) -> Body {
        self.i16(-1)
    }

    pub fn bytes(self, bytes: &[u8]) -> Body {
        self.i32(i32::try_from(bytes.len()).expect("under 2 GiB")).raw(bytes)
    }

    pub fn null_bytes(self) -> Body {
        self.i32(-1)
    }

    pub fn uvarint(mut self, mut value: u32) -> Body {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
        self
    }

    pub fn compact_string(self, text: &str) -> Body {
        self.compact_bytes(text.as_bytes())
    }

    pub fn compact_bytes(self, bytes: &[u8]) -> Body {
        self.uvarint(u32::try_from(bytes.len()).expect("under 4 GiB") + 1).raw(bytes)
    }

    /// The null of any compact type.
    pub fn compact_null(self) -> Body {
        self.uvarint(0)
    }

    /// The count of a compact array.
    pub fn compact_array(self, count: u32) -> Body {
        self.uvarint(count + 1)
    }

    /// No tagged fields.
    pub fn tags(self) -> Body {
        self.uvarint(0)
    }
}

/// An answer read field by field; reading past its end fails the test.
#[derive(Clone, Debug)]
pub struct Reader {
    bytes: Vec<u8>,
    at: usize,
}

impl Reader {
    pub fn new(bytes: Vec<u8>) -> Reader {
        Reader { bytes, at: 0 }
    }

    #[track_caller]
    pub fn take(&mut self, count: usize) -> &[u8] {
        let end = self.at + count;
        assert!(end <= self.bytes.len(), "the answer ends {} bytes early", end - self.bytes.len());
        let taken = &self.bytes[self.at..end];
        self.at = end;
        taken
    }

    #[track_caller]
    fn fixed<const N: usize>(&mut self) -> [u8; N] {
        self.take(N).try_into().expect("N bytes")
    }

    #[track_caller]
    pub fn i8(&mut self) -> i8 {
        i8::from_be_bytes(self.fixed())
    }

    #[track_caller]
    pub fn bool(&mut self) -> bool {
        self.i8() != 0
    }

    #[track_caller]
    pub fn i16(&mut self) -> i16 {
        i16::from_be_bytes(self.fixed())
    }

    #[track_caller]
    pub fn i32(&mut self) -> i32 {
        i32::from_be_bytes(self.fixed())
    }

    #[track_caller]
    pub fn i64(&mut self) -> i64 {
        i64::from_be_bytes(self.fixed())
    }

    #[track_caller]
    pub fn uuid(&mut self) -> [u8; 16] {
        self.fixed()
    }

    #[track_caller]
    pub fn uvarint(&mut self) -> u32 {
        let mut value = 0;
        for shift in (0..32).step_by(7) {
            let byte = self.i8() as u8;
            value |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return value;
            }
        }
        panic!("a varint of more than five bytes");
    }

    #[track_caller]
    pub fn string(&mut self) -> Option<String> {
        let length = self.i16();
        usize::try_from(length).ok().map(|n| text(self.take(n)))
    }

    #[track_caller]
    pub fn compact_string(&mut self) -> Option<String> {
        let length = self.uvarint();
        (length > 0).then(|| text(self.take(length as usize - 1)))
    }

    #[track_caller]
    pub fn bytes(&mut self) -> Option<Vec<u8>> {
        let length = self.i32();
        usize::try_from(length).ok().map(|n| self.take(n).to_vec())
    }

    #[track_caller]
    pub fn compact_bytes(&mut self) -> Option<Vec<u8>> {
        let length = self.uvarint();
        (length > 0).then(|| self.take(length as usize - 1).to_vec())
    }

    /// The elements of an array, each read by `element`; a null array is empty.
    #[track_caller]
    pub fn array<T>(&mut self, mut element: impl FnMut(&mut Reader) -> T) -> Vec<T> {
        (0..self.i32().max(0)).map(|_| element(self)).collect()
    }

    #[track_caller]
    pub fn compact_array<T>(&mut self, mut element: impl FnMut(&mut Reader) -> T) -> Vec<T> {
        (1..self.uvarint().max(1)).map(|_| element(self)).collect()
    }

    #[track_caller]
    pub fn tags(&mut self) {
        for _ in 0..self.uvarint() {
            self.uvarint();
            let size = self.uvarint();
            self.take(size as usize);
        }
    }

    /// Fails when something was left unread.
    #[track_caller]
    pub fn end(&self) {
        assert_eq!(self.at, self.bytes.len(), "{} bytes left over", self.bytes.len() - self.at);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}
