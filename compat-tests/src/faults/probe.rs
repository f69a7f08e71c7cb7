//! Raw questions to one node that may be dead, paused or half started: every call gives an answer in time or nothing.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::batch::{Stored, stored};
use crate::wire::{Api, Body, FETCH, FIND_COORDINATOR, METADATA, Reader, framed, request};

const LIMIT: Duration = Duration::from_millis(1500);
const FRAME_MAX: usize = 64 << 20;

/// A partition as a node's metadata has it.
#[derive(Clone, Debug)]
pub struct Partition {
    pub index: i32,
    pub leader: i32,
    pub epoch: i32,
    pub replicas: Vec<i32>,
    pub isr: Vec<i32>,
}

/// What a node says of the cluster and one topic.
#[derive(Clone, Debug)]
pub struct Picture {
    pub controller: i32,
    pub partitions: Vec<Partition>,
}

/// What a node serves of a partition.
#[derive(Clone, Debug)]
pub struct Part {
    pub error: i16,
    pub high_watermark: i64,
    pub batches: Vec<Stored>,
}

/// A connection to one node, opened when needed and dropped when it fails.
pub struct Probe {
    address: SocketAddr,
    socket: Option<TcpStream>,
    correlation: i32,
}

impl Probe {
    pub fn new(address: SocketAddr) -> Probe {
        Probe { address, socket: None, correlation: 0 }
    }

    /// Metadata, version 7.
    pub fn picture(&mut self, topic: &str) -> Option<Picture> {
        let mut r = self.call(METADATA, 7, &Body::new().i32(1).string(topic).bool(false))?;
        r.i32();
        r.array(|r| (r.i32(), r.string(), r.i32(), r.string()));
        r.string();
        let controller = r.i32();
        let topics = r.array(|r| {
            r.i16();
            r.string();
            r.bool();
            r.array(|r| {
                r.i16();
                let (index, leader, epoch) = (r.i32(), r.i32(), r.i32());
                let (replicas, isr) = (r.array(Reader::i32), r.array(Reader::i32));
                r.array(Reader::i32);
                Partition { index, leader, epoch, replicas, isr }
            })
        });
        Some(Picture { controller, partitions: topics.into_iter().next()? })
    }

    /// Fetch, version 11, without waiting; the epoch is the leader's that the node must agree to, or -1.
    pub fn fetch(&mut self, topic: &str, partition: i32, epoch: i32, offset: i64) -> Option<Part> {
        let body = Body::new().i32(-1).i32(0).i32(0).i32(1 << 20).i8(0).i32(0).i32(-1).i32(1).string(topic).i32(1);
        let body = body.i32(partition).i32(epoch).i64(offset).i64(-1).i32(1 << 20).i32(0).string("");
        let mut r = self.call(FETCH, 11, &body)?;
        r.i32();
        r.i16();
        r.i32();
        let topics = r.array(|r| {
            r.string();
            r.array(|r| {
                r.i32();
                let (error, high_watermark) = (r.i16(), r.i64());
                r.i64();
                r.i64();
                r.array(|r| (r.i64(), r.i64()));
                r.i32();
                let batches = stored(&r.bytes().unwrap_or_default());
                Part { error, high_watermark, batches }
            })
        });
        topics.into_iter().flatten().next()
    }

    /// FindCoordinator, version 2, for a group.
    pub fn coordinator(&mut self, group: &str) -> Option<i32> {
        let mut r = self.call(FIND_COORDINATOR, 2, &Body::new().string(group).i8(0))?;
        r.i32();
        let error = r.i16();
        r.string();
        (error == 0).then(|| r.i32())
    }

    fn call(&mut self, api: Api, version: i16, body: &Body) -> Option<Reader> {
        let answer = self.try_call(api, version, body);
        if answer.is_err() {
            self.socket = None;
        }
        answer.ok()
    }

    fn try_call(&mut self, api: Api, version: i16, body: &Body) -> std::io::Result<Reader> {
        self.correlation = self.correlation.wrapping_add(1);
        if self.socket.is_none() {
            let socket = TcpStream::connect_timeout(&self.address, LIMIT)?;
            socket.set_read_timeout(Some(LIMIT))?;
            socket.set_write_timeout(Some(LIMIT))?;
            socket.set_nodelay(true)?;
            self.socket = Some(socket);
        }
        let Some(socket) = &mut self.socket else { return Err(std::io::ErrorKind::NotConnected.into()) };
        socket.write_all(&framed(&request(api, version, self.correlation, body)))?;
        let mut length = [0; 4];
        socket.read_exact(&mut length)?;
        let length = usize::try_from(i32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length > FRAME_MAX {
            return Err(std::io::ErrorKind::InvalidData.into());
        }
        let mut frame = vec![0; length];
        socket.read_exact(&mut frame)?;
        let mut reader = Reader::new(frame);
        if reader.i32() != self.correlation {
            return Err(std::io::ErrorKind::InvalidData.into());
        }
        Ok(reader)
    }
}
