//! One line to another node: connects when something is to be said, says who we are, sends requests one behind the other and hands
//! answers to those who wait for them, in whichever order they come.
//!
//! A line that breaks fails everything that is under way and begins anew with the next request. A line whose other end says nothing at
//! all while it owes an answer is broken by us: packets may be lost without a trace.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::{mpsc, oneshot};

use super::error::PeerError;
use super::hello::HelloAnswer;
use super::pool::Shared;
use crate::base::{BrokerId, NodeAddress};
use crate::host::net::Stream;
use crate::host::task;
use crate::wire::client::{self, ANSWER_BYTES_MAX, AnswerError};
use crate::wire::frame::{FrameLimit, next_frame, read_room_bytes};
use crate::wire::private::PrivateApi;

/// How long connecting and greeting may take.
const MEET_MAX: Duration = Duration::from_secs(2);

/// Silence of the other end, while it owes an answer that it has to give at once, after which the line is given up.
const SILENCE_MAX: Duration = Duration::from_secs(3);

/// Pauses between attempts to connect; what is asked meanwhile fails at once.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(250);

/// A line without requests for this long is closed, in case that its node is gone for good.
const IDLE_MAX: Duration = Duration::from_secs(300);

/// Answers that may be owed at once.
const PENDING_MAX: usize = 1024;

const LIMIT: FrameLimit = FrameLimit::later(ANSWER_BYTES_MAX);

/// A request on its way.
pub struct Call {
    /// With a correlation id that the line replaces.
    pub frame: Bytes,
    /// Whoever else is there does not get it.
    pub node: Option<BrokerId>,
    /// The answer may take long without meaning that something is wrong.
    pub is_patient: bool,
    pub reply: oneshot::Sender<Result<Bytes, PeerError>>,
}

pub struct Line {
    shared: Arc<Shared>,
    address: NodeAddress,
    calls: mpsc::Receiver<Call>,
    pause: Duration,
    /// The last complaint that was logged: each is logged once.
    complaint: Option<String>,
}

impl Line {
    pub fn new(shared: Arc<Shared>, address: NodeAddress, calls: mpsc::Receiver<Call>) -> Line {
        Line { shared, address, calls, pause: PAUSE_FIRST, complaint: None }
    }

    /// Ends when nothing was asked for a long time.
    pub async fn run(mut self) {
        while let Some(Some(first)) = task::timeout(IDLE_MAX, self.calls.recv()).await {
            let met = task::timeout(MEET_MAX, meet(&self.shared, &self.address)).await;
            match met.unwrap_or_else(|| Err(self.unreachable("no answer"))) {
                Ok((stream, answer)) => {
                    self.pause = PAUSE_FIRST;
                    self.complaint = None;
                    self.converse(stream, answer.identity.node_id, first).await;
                }
                Err(error) => {
                    self.complain(&error);
                    self.refuse(first, error).await;
                }
            }
        }
    }

    fn unreachable(&self, why: &str) -> PeerError {
        PeerError::Unreachable { address: self.address.clone(), why: why.to_owned() }
    }

    fn complain(&mut self, error: &PeerError) {
        let sentence = error.to_string();
        if self.complaint.as_ref() == Some(&sentence) {
            return;
        }
        match error {
            PeerError::Refused { .. } => tracing::error!(node = %self.address, "{sentence}"),
            _ => tracing::info!(node = %self.address, "{sentence}"),
        }
        self.complaint = Some(sentence);
    }

    /// Fails what was and what is asked until it is time to try again.
    async fn refuse(&mut self, first: Call, error: PeerError) {
        let _ = first.reply.send(Err(error.clone()));
        let pause = task::sleep(self.pause);
        tokio::pin!(pause);
        loop {
            tokio::select! {
                () = &mut pause => break,
                call = self.calls.recv() => match call {
                    Some(call) => drop(call.reply.send(Err(error.clone()))),
                    None => return,
                },
            }
        }
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }

    async fn converse(&mut self, stream: Stream, node: BrokerId, first: Call) {
        let (reading, writing) = tokio::io::split(stream);
        let now = self.shared.host.clock.monotonic_nanos();
        let mut conversation = Conversation {
            address: self.address.clone(),
            node,
            reading,
            writing,
            input: BytesMut::new(),
            output: BytesMut::new(),
            pending: HashMap::new(),
            next_id: 1,
            sent_bytes: 0,
            heard_nanos: now,
        };
        conversation.add(first, now);
        let end = conversation.run(&mut self.calls, &self.shared).await;
        match end {
            End::Idle => {}
            End::Broken(why) => {
                tracing::debug!(node, address = %self.address, why, "a connection to a node broke");
                self.shared.note_lost(node);
            }
            End::Silent => {
                tracing::info!(node, address = %self.address, "no answer for {SILENCE_MAX:?}; connecting anew");
            }
        }
        let sent_bytes = conversation.sent_bytes;
        for (_, owed) in conversation.pending.drain() {
            let error = if owed.begins_at >= sent_bytes {
                self.unreachable("the connection broke before the request was sent")
            } else {
                PeerError::Lost(self.address.clone())
            };
            let _ = owed.reply.send(Err(error));
        }
    }
}

/// An answer that the other end owes.
struct Owed {
    reply: oneshot::Sender<Result<Bytes, PeerError>>,
    is_patient: bool,
    sent_nanos: u64,
    /// How many bytes were sent on the connection before the request's first one.
    begins_at: u64,
}

enum End {
    Idle,
    Broken(String),
    Silent,
}

struct Conversation {
    address: NodeAddress,
    /// Who is there.
    node: BrokerId,
    reading: ReadHalf<Stream>,
    writing: WriteHalf<Stream>,
    input: BytesMut,
    output: BytesMut,
    pending: HashMap<i32, Owed>,
    next_id: i32,
    /// Handed to the network so far, since the greeting.
    sent_bytes: u64,
    /// When something was last heard.
    heard_nanos: u64,
}

impl Conversation {
    async fn run(&mut self, calls: &mut mpsc::Receiver<Call>, shared: &Shared) -> End {
        let mut look = std::pin::pin!(task::sleep(SILENCE_MAX));
        let mut idle_looks = 0;
        loop {
            let room = read_room_bytes(&self.input, LIMIT).unwrap_or_default();
            self.input.reserve(room);
            tokio::select! {
                read = self.reading.read_buf(&mut self.input) => match read {
                    Ok(0) => return End::Broken("closed by the other node".to_owned()),
                    Ok(_) => {
                        self.heard_nanos = shared.host.clock.monotonic_nanos();
                        if let Err(why) = self.take_answers() {
                            return End::Broken(why);
                        }
                    }
                    Err(error) => return End::Broken(error.to_string()),
                },
                written = self.writing.write_buf(&mut self.output), if !self.output.is_empty() => match written {
                    Ok(0) => return End::Broken("nothing more can be sent".to_owned()),
                    Ok(count) => self.sent_bytes += bytes_count(count),
                    Err(error) => return End::Broken(error.to_string()),
                },
                call = calls.recv(), if self.pending.len() < PENDING_MAX => match call {
                    Some(call) => {
                        idle_looks = 0;
                        self.add(call, shared.host.clock.monotonic_nanos());
                    }
                    None => return End::Idle,
                },
                () = &mut look => {
                    let now = shared.host.clock.monotonic_nanos();
                    if self.is_silent(now) {
                        return End::Silent;
                    }
                    idle_looks = if self.pending.is_empty() { idle_looks + 1 } else { 0 };
                    if SILENCE_MAX * 4 * idle_looks >= IDLE_MAX {
                        return End::Idle;
                    }
                    look.set(task::sleep(SILENCE_MAX / 4));
                }
            }
        }
    }

    /// Puts the request behind what is to be sent, under a correlation id of its own.
    fn add(&mut self, call: Call, now_nanos: u64) {
        if call.node.is_some_and(|node| node != self.node) {
            let why = format!("node {} is there", self.node);
            let _ = call.reply.send(Err(PeerError::Unreachable { address: self.address.clone(), why }));
            return;
        }
        let id = self.next_id;
        self.next_id = if id == i32::MAX { 1 } else { id + 1 };
        let start = self.output.len();
        self.output.extend_from_slice(&call.frame);
        // Behind the length, the key and the version.
        if let Some(place) = self.output.get_mut(start + 8..start + 12) {
            place.copy_from_slice(&id.to_be_bytes());
        }
        let begins_at = self.sent_bytes + bytes_count(start);
        let owed = Owed { reply: call.reply, is_patient: call.is_patient, sent_nanos: now_nanos, begins_at };
        self.pending.insert(id, owed);
    }

    fn take_answers(&mut self) -> Result<(), String> {
        while let Some(frame) = next_frame(&mut self.input, LIMIT).map_err(|error| error.to_string())? {
            let (id, rest) = client::correlation_id(frame).map_err(|error| error.to_string())?;
            let owed = self.pending.remove(&id).ok_or_else(|| format!("an answer to no request ({id})"))?;
            // Whoever stopped waiting does not want it any more.
            let _ = owed.reply.send(client::body(rest).map_err(PeerError::Answer));
        }
        Ok(())
    }

    fn is_silent(&self, now_nanos: u64) -> bool {
        let limit = u64::try_from(SILENCE_MAX.as_nanos()).unwrap_or(u64::MAX);
        let impatient = self.pending.values().filter(|owed| !owed.is_patient);
        impatient.map(|owed| owed.sent_nanos).min().is_some_and(|oldest| {
            now_nanos.saturating_sub(oldest) >= limit && now_nanos.saturating_sub(self.heard_nanos) >= limit
        })
    }
}

fn bytes_count(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Connects and greets. Without a time limit of its own.
pub async fn meet(shared: &Shared, address: &NodeAddress) -> Result<(Stream, HelloAnswer), PeerError> {
    let unreachable = |why: String| PeerError::Unreachable { address: address.clone(), why };
    let connected = shared.host.net.connect(address).await;
    let mut stream = connected.map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused => PeerError::NobodyThere(address.clone()),
        _ => unreachable(error.to_string()),
    })?;
    let body = serde_json::to_vec(&shared.myself.hello()).unwrap_or_default();
    let frame = client::encode_private(PrivateApi::PeerHello, 0, &shared.client_id, &body)?;
    stream.write_all(&frame).await.map_err(|error| unreachable(error.to_string()))?;
    let frame = read_frame(&mut stream).await.map_err(unreachable)?;
    let (_, rest) = client::correlation_id(frame)?;
    let answer: HelloAnswer = serde_json::from_slice(&client::body(rest)?)
        .map_err(|error| AnswerError::Decoder(format!("the answer to PeerHello: {error}")))?;
    match answer.refused {
        Some(sentence) => Err(PeerError::Refused { address: address.clone(), sentence }),
        None => Ok((stream, answer)),
    }
}

/// The one frame that the other end has to say before anything else.
async fn read_frame(stream: &mut Stream) -> Result<Bytes, String> {
    const HELLO_BYTES_MAX: usize = 64 * 1024;
    let limit = FrameLimit::later(HELLO_BYTES_MAX);
    let mut input = BytesMut::new();
    loop {
        if let Some(frame) = next_frame(&mut input, limit).map_err(|error| error.to_string())? {
            return Ok(frame);
        }
        match stream.read_buf(&mut input).await {
            Ok(0) => {
                return Err("the connection was closed before the greeting; is this a node of the cluster?".to_owned());
            }
            Ok(_) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
}
