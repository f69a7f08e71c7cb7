//! A client's connection: requests out, answers back in their order.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::host::net::Stream;
use crate::host::task;
use crate::wire::client::{self, NodeRequest};
use crate::wire::frame::{FrameLimit, next_frame};

pub struct Line {
    stream: Stream,
    client_id: String,
    input: BytesMut,
    next_id: i32,
    owed: VecDeque<i32>,
}

impl Line {
    pub fn new(stream: Stream, client_id: &str) -> Line {
        Line { stream, client_id: client_id.to_owned(), input: BytesMut::new(), next_id: 1, owed: VecDeque::new() }
    }

    /// `None` when the connection is lost.
    pub async fn send<Q: NodeRequest>(&mut self, request: &Q) -> Option<()> {
        let frame = client::encode_request(self.next_id, &self.client_id, request).unwrap();
        self.owed.push_back(self.next_id);
        self.next_id += 1;
        self.stream.write_all(&frame).await.ok()
    }

    /// The answer to the oldest request that has none; `None` when the connection is lost.
    pub async fn receive<Q: NodeRequest>(&mut self) -> Option<Q::Answer> {
        loop {
            if let Some(frame) = next_frame(&mut self.input, FrameLimit::later(1 << 24)).unwrap() {
                let (id, rest) = client::correlation_id(frame).unwrap();
                assert_eq!(Some(id), self.owed.pop_front(), "answers come in the order of requests");
                return Some(Q::read_answer(client::body(rest).unwrap()).unwrap());
            }
            if self.stream.read_buf(&mut self.input).await.ok()? == 0 {
                return None;
            }
        }
    }

    /// `None` when the connection is lost or the answer takes too long; then the line is of no use any more.
    pub async fn ask<Q: NodeRequest>(&mut self, request: &Q, longest: Duration) -> Option<Q::Answer> {
        task::timeout(longest, async {
            self.send(request).await?;
            self.receive::<Q>().await
        })
        .await?
    }
}
