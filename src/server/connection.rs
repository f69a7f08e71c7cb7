//! One connection: frames in, answers out in the order of their requests, while the requests themselves run side by side.
//!
//! There is one task per connection and none per request. A turn reads what is there, starts every complete request, collects what
//! is answered, and writes it with one call. A request that changes something others may ask about (a topic created, a group joined)
//! holds back the requests behind it; Produce, Fetch and commits do not.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::api::answer::{Answer, LaterAnswer, Response};
use crate::api::context::{ConnectionInfo, RequestContext};
use crate::api::{Broker, Refused, dispatch};
use crate::base::limits::{REQUEST_BYTES_IN_FLIGHT_MAX, REQUESTS_IN_FLIGHT_MAX};
use crate::host::net::Stream;
use crate::host::task;
use crate::server::input::Input;
use crate::server::output::Output;
use crate::telemetry::{ListenerMetrics, Reason};
use crate::wire::frame::{FrameError, FrameLimit};

/// Why a connection ended.
#[derive(Debug)]
pub enum End {
    /// The peer closed its side, or the broker is stopping.
    Closed,
    Idle,
    Lost(io::Error),
    Refused {
        context: Option<Box<RequestContext>>,
        refused: Refused,
    },
}

/// A request whose answer is not on its way yet.
struct Slot {
    context: RequestContext,
    request_bytes: usize,
    barrier: bool,
    state: SlotState,
}

enum SlotState {
    Done(Option<Response>),
    Waiting(LaterAnswer),
}

pub struct Connection {
    stream: Stream,
    info: Arc<ConnectionInfo>,
    broker: Arc<Broker>,
    input: Input,
    slots: VecDeque<Slot>,
    bytes_in_flight: usize,
    output: Output,
    limit: FrameLimit,
    request_bytes_max: usize,
    peer_closed: bool,
    last_activity_nanos: u64,
    metrics: Arc<ListenerMetrics>,
    /// Handed to the output and not counted yet.
    sent_bytes: u64,
}

impl Connection {
    pub fn new(
        stream: Stream,
        info: Arc<ConnectionInfo>,
        broker: Arc<Broker>,
        request_bytes_max: usize,
        metrics: Arc<ListenerMetrics>,
    ) -> Connection {
        let last_activity_nanos = broker.host.clock.monotonic_nanos();
        Connection {
            stream,
            info,
            broker,
            input: Input::default(),
            slots: VecDeque::new(),
            bytes_in_flight: 0,
            output: Output::default(),
            limit: FrameLimit::first(request_bytes_max),
            request_bytes_max,
            peer_closed: false,
            last_activity_nanos,
            metrics,
            sent_bytes: 0,
        }
    }

    /// Serves until the peer leaves, is refused, is silent for `idle_max`, or `stopping` completes.
    pub async fn run(&mut self, idle_max: Duration, stopping: impl Future<Output = ()>) -> End {
        let mut stopping = std::pin::pin!(stopping);
        let mut stop = false;
        let mut idle = std::pin::pin!(task::sleep(idle_max));
        poll_fn(|context| {
            if !stop && stopping.as_mut().poll(context).is_ready() {
                stop = true;
            }
            if let Poll::Ready(end) = self.poll_turns(context, stop) {
                return Poll::Ready(end);
            }
            if stop && self.may_leave() {
                return Poll::Ready(End::Closed);
            }
            while idle.as_mut().poll(context).is_ready() {
                let silent = self.silent_for();
                if silent >= idle_max && self.is_at_rest() {
                    return Poll::Ready(End::Idle);
                }
                let again = idle_max.saturating_sub(silent).max(Duration::from_millis(10));
                idle.set(task::sleep(again));
            }
            Poll::Pending
        })
        .await
    }

    fn is_at_rest(&self) -> bool {
        self.slots.is_empty() && self.output.is_empty()
    }

    /// Whether the broker may stop as far as this connection goes: what is left waits for others to act, and nothing of it is half done.
    fn may_leave(&self) -> bool {
        self.output.is_empty() && self.slots.iter().all(|slot| dispatch::waits_for_others(slot.context.api_key))
    }

    fn silent_for(&self) -> Duration {
        Duration::from_nanos(self.broker.host.clock.monotonic_nanos().saturating_sub(self.last_activity_nanos))
    }

    /// Turns until nothing moves any more.
    fn poll_turns(&mut self, context: &mut Context<'_>, stop: bool) -> Poll<End> {
        loop {
            let mut moved = false;
            if !stop {
                match self.poll_requests(context) {
                    Ok(read) => moved |= read,
                    Err(end) => return self.last_words(context, end),
                }
            }
            match self.poll_answers(context) {
                Ok(answered) => moved |= answered,
                Err(end) => return self.last_words(context, end),
            }
            if !self.output.is_empty() {
                match self.output.poll_flush(&mut self.stream, context) {
                    Poll::Ready(Ok(())) => {
                        self.metrics.sent(std::mem::take(&mut self.sent_bytes));
                        moved = true;
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(End::Lost(error)),
                    Poll::Pending => {}
                }
            }
            if self.peer_closed && self.is_at_rest() {
                return Poll::Ready(End::Closed);
            }
            if !moved {
                return Poll::Pending;
            }
        }
    }

    /// What was answered before the refusal still goes out, as far as the socket takes it at once.
    fn last_words(&mut self, context: &mut Context<'_>, end: End) -> Poll<End> {
        let _ = self.output.poll_flush(&mut self.stream, context);
        Poll::Ready(end)
    }

    fn may_start_more(&self) -> bool {
        self.slots.len() < REQUESTS_IN_FLIGHT_MAX
            && self.bytes_in_flight < REQUEST_BYTES_IN_FLIGHT_MAX
            && !self.slots.back().is_some_and(|slot| slot.barrier)
    }

    /// Starts the requests that are complete; reads when there are none. Says whether anything happened.
    fn poll_requests(&mut self, context: &mut Context<'_>) -> Result<bool, End> {
        let mut moved = self.start_requests(context)?;
        if self.may_start_more() && !self.peer_closed {
            match self.input.poll_read(&mut self.stream, self.limit, context) {
                Poll::Ready(Ok(0)) => {
                    self.peer_closed = true;
                    moved = true;
                }
                Poll::Ready(Ok(count)) => {
                    self.metrics.received(count as u64);
                    self.start_requests(context)?;
                    moved = true;
                }
                Poll::Ready(Err(error)) => return Err(End::Lost(error)),
                Poll::Pending => {}
            }
        }
        Ok(moved)
    }

    fn start_requests(&mut self, context: &mut Context<'_>) -> Result<bool, End> {
        let mut moved = false;
        while self.may_start_more() {
            let frame = self.input.next_frame(self.limit).map_err(illegal_frame)?;
            let Some(frame) = frame else { break };
            self.limit = FrameLimit::later(self.request_bytes_max);
            self.last_activity_nanos = self.broker.host.clock.monotonic_nanos();
            let request_bytes = frame.len();
            let started = dispatch::start(&self.broker, &self.info, frame, self.last_activity_nanos)
                .map_err(|(context, refused)| End::Refused { context, refused })?;
            self.admit(context, started, request_bytes)?;
            moved = true;
        }
        Ok(moved)
    }

    fn admit(
        &mut self,
        context: &mut Context<'_>,
        started: dispatch::Started,
        request_bytes: usize,
    ) -> Result<(), End> {
        let state = match started.answer {
            Answer::Now(response) => SlotState::Done(Some(response)),
            Answer::Nothing => SlotState::Done(None),
            Answer::Close(refused) => return Err(End::Refused { context: Some(Box::new(started.context)), refused }),
            Answer::Later(mut later) => match later.as_mut().poll(context) {
                Poll::Ready(Ok(response)) => SlotState::Done(response),
                Poll::Ready(Err(refused)) => {
                    return Err(End::Refused { context: Some(Box::new(started.context)), refused });
                }
                Poll::Pending => SlotState::Waiting(later),
            },
        };
        let waiting = matches!(state, SlotState::Waiting(_));
        let slot = Slot { context: started.context, request_bytes, barrier: started.barrier && waiting, state };
        if self.slots.is_empty() && !waiting {
            self.send(slot);
        } else {
            self.bytes_in_flight += request_bytes;
            self.slots.push_back(slot);
        }
        Ok(())
    }

    /// Polls what waits and moves the answered requests at the front of the line to the output.
    fn poll_answers(&mut self, context: &mut Context<'_>) -> Result<bool, End> {
        for slot in &mut self.slots {
            if let SlotState::Waiting(later) = &mut slot.state
                && let Poll::Ready(answer) = later.as_mut().poll(context)
            {
                slot.barrier = false;
                match answer {
                    Ok(response) => slot.state = SlotState::Done(response),
                    Err(refused) => {
                        let context = Some(Box::new(slot.context.clone()));
                        return Err(End::Refused { context, refused });
                    }
                }
            }
        }
        let mut moved = self.send_out_of_order();
        while self.slots.front().is_some_and(|slot| matches!(slot.state, SlotState::Done(_))) {
            if let Some(slot) = self.slots.pop_front() {
                self.bytes_in_flight -= slot.request_bytes;
                self.send(slot);
                moved = true;
            }
        }
        Ok(moved)
    }

    /// Nodes find their requests by number, so what is answered need not wait for what is not: a heartbeat never waits for a topic.
    fn send_out_of_order(&mut self) -> bool {
        if self.slots.len() < 2 || self.info.peer_node.get().is_none() {
            return false;
        }
        let mut moved = false;
        while let Some(at) = self.slots.iter().position(|slot| matches!(slot.state, SlotState::Done(_))) {
            let Some(slot) = self.slots.remove(at) else { break };
            self.bytes_in_flight -= slot.request_bytes;
            self.send(slot);
            moved = true;
        }
        moved
    }

    fn send(&mut self, slot: Slot) {
        let now = self.broker.host.clock.monotonic_nanos();
        self.last_activity_nanos = now;
        if let SlotState::Done(response) = slot.state {
            dispatch::observe(&self.broker, &slot.context, slot.request_bytes, response.as_ref(), now);
            if let Some(response) = response {
                self.sent_bytes += response.size_bytes() as u64;
                self.output.push(response);
            }
        }
    }
}

fn illegal_frame(error: FrameError) -> End {
    let reason = match error {
        FrameError::Negative(_) => Reason::InvalidFrame,
        FrameError::TooLarge { .. } => Reason::FrameTooLarge,
    };
    End::Refused { context: None, refused: Refused::because(reason, error.to_string()) }
}
