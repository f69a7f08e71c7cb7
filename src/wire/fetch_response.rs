//! The answer to Fetch v4 to v18, written by hand into pieces so that record bytes go from file to socket without being copied or even
//! touched here. v7 adds sessions (KIP-227), v11 the preferred replica (KIP-392), v12 diverging epochs (KIP-595), v13 topic ids (KIP-516),
//! v16 endpoints of new leaders (KIP-951).

use bytes::{BufMut, BytesMut};

use super::encode::{EncodeError, write_length};
use super::extended::write::{put_count, put_no_tags, put_text, put_varint, varint_bytes};
use super::header::write_response_header;
use super::messages::{StrBytes, TopicName};
use super::response::Piece;
use super::table::{Api, keys, lookup};
use crate::base::{BrokerId, LeaderEpoch, Offset, PartitionIndex, ProducerId, TopicId};

/// Room for the head of an answer and a few partitions.
const HEAD_BYTES_USUAL: usize = 512;

#[derive(Clone, Debug, Default)]
pub struct FetchReply {
    pub throttle_time_ms: i32,
    /// Since v7.
    pub error_code: i16,
    /// Since v7; 0 for no session.
    pub session_id: i32,
    pub topics: Vec<TopicReply>,
    /// Since v16: where the leaders named in `current_leader` listen.
    pub node_endpoints: Vec<NodeEndpoint>,
}

#[derive(Clone, Debug, Default)]
pub struct TopicReply {
    /// Until v12.
    pub name: TopicName,
    /// Since v13.
    pub id: TopicId,
    pub partitions: Vec<PartitionReply>,
}

#[derive(Clone, Debug)]
pub struct PartitionReply {
    pub partition: PartitionIndex,
    pub error_code: i16,
    pub high_watermark: Offset,
    pub last_stable_offset: Offset,
    /// Since v5.
    pub log_start_offset: Offset,
    /// Since v12.
    pub diverging_epoch: Option<DivergingEpoch>,
    /// Since v12.
    pub current_leader: Option<CurrentLeader>,
    /// `None` is written as null: what Kafka answers to `read_uncommitted`.
    pub aborted_transactions: Option<Vec<AbortedTransaction>>,
    /// Since v11; -1 for none. A partition that names one carries no records.
    pub preferred_read_replica: BrokerId,
    /// Whole or cut batches, in order. Nothing is written as no bytes, never as null (trap 3).
    pub records: Vec<Piece>,
}

impl PartitionReply {
    /// No records and no offsets, as Kafka answers an error.
    pub fn refused(partition: PartitionIndex, error_code: i16) -> PartitionReply {
        PartitionReply {
            partition,
            error_code,
            high_watermark: -1,
            last_stable_offset: -1,
            log_start_offset: -1,
            diverging_epoch: None,
            current_leader: None,
            aborted_transactions: None,
            preferred_read_replica: -1,
            records: Vec::new(),
        }
    }

    pub fn records_bytes(&self) -> usize {
        self.records.iter().map(Piece::len).sum()
    }
}

/// The largest epoch of ours at or below the one asked about, and where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DivergingEpoch {
    pub epoch: LeaderEpoch,
    pub end_offset: Offset,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurrentLeader {
    pub leader_id: BrokerId,
    pub leader_epoch: LeaderEpoch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbortedTransaction {
    pub producer_id: ProducerId,
    pub first_offset: Offset,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEndpoint {
    pub node_id: BrokerId,
    pub host: StrBytes,
    pub port: i32,
    pub rack: Option<StrBytes>,
}

/// The whole answer frame, length prefix included, as the pieces to write in order.
pub fn encode(version: i16, correlation_id: i32, reply: FetchReply) -> Result<Vec<Piece>, EncodeError> {
    let api = lookup(keys::FETCH).filter(|api| api.accepts(version));
    let api = api.ok_or_else(|| EncodeError::Encoder(format!("Fetch has no version {version}")))?;
    let mut writer = Writer::new(api, version);
    writer.reply(correlation_id, reply).map_err(EncodeError::Encoder)?;
    writer.finish()
}

/// Collects everything but records in one buffer and remembers where the records belong.
struct Writer {
    api: &'static Api,
    version: i16,
    flexible: bool,
    head: BytesMut,
    /// Position in `head` before which the piece is written.
    records: Vec<(usize, Piece)>,
    records_bytes: usize,
}

impl Writer {
    fn new(api: &'static Api, version: i16) -> Writer {
        Writer {
            api,
            version,
            flexible: api.is_flexible(version),
            head: BytesMut::with_capacity(HEAD_BYTES_USUAL),
            records: Vec::new(),
            records_bytes: 0,
        }
    }

    fn reply(&mut self, correlation_id: i32, reply: FetchReply) -> Result<(), String> {
        self.head.put_i32(0);
        write_response_header(&mut self.head, self.api, self.version, correlation_id);
        self.head.put_i32(reply.throttle_time_ms);
        if self.version >= 7 {
            self.head.put_i16(reply.error_code);
            self.head.put_i32(reply.session_id);
        }
        put_count(&mut self.head, self.flexible, Some(reply.topics.len()))?;
        for topic in reply.topics {
            self.topic(topic)?;
        }
        if self.version >= 16 && !reply.node_endpoints.is_empty() {
            self.endpoints(&reply.node_endpoints)
        } else {
            put_no_tags(&mut self.head, self.flexible);
            Ok(())
        }
    }

    fn topic(&mut self, topic: TopicReply) -> Result<(), String> {
        if self.version >= 13 {
            self.head.put_slice(topic.id.0.as_bytes());
        } else {
            put_text(&mut self.head, self.flexible, Some(&topic.name))?;
        }
        put_count(&mut self.head, self.flexible, Some(topic.partitions.len()))?;
        for partition in topic.partitions {
            self.partition(partition)?;
        }
        put_no_tags(&mut self.head, self.flexible);
        Ok(())
    }

    fn partition(&mut self, partition: PartitionReply) -> Result<(), String> {
        self.head.put_i32(partition.partition);
        self.head.put_i16(partition.error_code);
        self.head.put_i64(partition.high_watermark);
        self.head.put_i64(partition.last_stable_offset);
        if self.version >= 5 {
            self.head.put_i64(partition.log_start_offset);
        }
        self.aborted(partition.aborted_transactions.as_deref())?;
        if self.version >= 11 {
            self.head.put_i32(partition.preferred_read_replica);
        }
        let (diverging, leader) = (partition.diverging_epoch, partition.current_leader);
        self.records(partition.records)?;
        if self.flexible {
            self.partition_tags(diverging, leader);
        }
        Ok(())
    }

    fn aborted(&mut self, aborted: Option<&[AbortedTransaction]>) -> Result<(), String> {
        put_count(&mut self.head, self.flexible, aborted.map(<[_]>::len))?;
        for transaction in aborted.unwrap_or_default() {
            self.head.put_i64(transaction.producer_id);
            self.head.put_i64(transaction.first_offset);
            put_no_tags(&mut self.head, self.flexible);
        }
        Ok(())
    }

    fn records(&mut self, pieces: Vec<Piece>) -> Result<(), String> {
        let bytes = pieces.iter().map(Piece::len).sum();
        // Records are counted as arrays are: i32, or a varint of length + 1.
        put_count(&mut self.head, self.flexible, Some(bytes))?;
        self.records_bytes = self.records_bytes.saturating_add(bytes);
        let position = self.head.len();
        self.records.extend(pieces.into_iter().filter(|piece| !piece.is_empty()).map(|piece| (position, piece)));
        Ok(())
    }

    fn partition_tags(&mut self, diverging: Option<DivergingEpoch>, leader: Option<CurrentLeader>) {
        self.head.put_u8(u8::from(diverging.is_some()) + u8::from(leader.is_some()));
        if let Some(DivergingEpoch { epoch, end_offset }) = diverging {
            self.head.put_slice(&[0, 4 + 8 + 1]);
            self.head.put_i32(epoch);
            self.head.put_i64(end_offset);
            self.head.put_u8(0);
        }
        if let Some(CurrentLeader { leader_id, leader_epoch }) = leader {
            self.head.put_slice(&[1, 4 + 4 + 1]);
            self.head.put_i32(leader_id);
            self.head.put_i32(leader_epoch);
            self.head.put_u8(0);
        }
    }

    /// The only tagged field of the whole: number 0, its size, the array.
    fn endpoints(&mut self, endpoints: &[NodeEndpoint]) -> Result<(), String> {
        let mut content = BytesMut::new();
        put_count(&mut content, true, Some(endpoints.len()))?;
        for endpoint in endpoints {
            content.put_i32(endpoint.node_id);
            put_text(&mut content, true, Some(&endpoint.host))?;
            content.put_i32(endpoint.port);
            put_text(&mut content, true, endpoint.rack.as_deref())?;
            content.put_u8(0);
        }
        let size = u32::try_from(content.len()).map_err(|_| "too many endpoints".to_owned())?;
        self.head.reserve(2 + varint_bytes(size) + content.len());
        self.head.put_slice(&[1, 0]);
        put_varint(&mut self.head, size);
        self.head.put_slice(&content);
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<Piece>, EncodeError> {
        write_length(&mut self.head, 0, self.records_bytes)?;
        let mut head = self.head.freeze();
        let mut pieces = Vec::with_capacity(self.records.len() * 2 + 1);
        let mut written = 0;
        for (position, records) in self.records {
            if position > written {
                pieces.push(Piece::Bytes(head.split_to(position - written)));
                written = position;
            }
            pieces.push(records);
        }
        if !head.is_empty() {
            pieces.push(Piece::Bytes(head));
        }
        Ok(pieces)
    }
}
