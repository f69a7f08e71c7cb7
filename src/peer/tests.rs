//! Lines over the simulated network, with a node at the other end that this file plays.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use uuid::Uuid;

use super::*;
use crate::base::NodeAddress;
use crate::host::net::{ListenOptions, Listener, Stream};
use crate::host::sim::{RuntimeClock, SimHost, SimNet};
use crate::wire::encode::encode_response;
use crate::wire::frame::{FrameLimit, next_frame};
use crate::wire::header::{self, RequestHeader};
use crate::wire::messages::{BrokerHeartbeatRequest, BrokerHeartbeatResponse, ResponseBody};
use crate::wire::private::PrivateApi;

const ONE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const TWO: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const SOON: Duration = Duration::from_millis(500);

fn identity(node_id: i32) -> PeerIdentity {
    PeerIdentity { node_id, incarnation: Uuid::from_u128(node_id.unsigned_abs().into()) }
}

struct World {
    net: SimNet,
    peers: Peers,
    door: Listener,
    address: NodeAddress,
}

fn world() -> World {
    let net = SimNet::new(7);
    let one = SimHost::on(&net, "one", ONE, 1).host_with(Arc::new(RuntimeClock::new(0)));
    let two = SimHost::on(&net, "two", TWO, 2).host();
    let peers = Peers::new(one, Arc::new(Myself::new(identity(1), "ours".into(), None)));
    let door = two.net.bind(SocketAddr::from(([0, 0, 0, 0], 9093)), ListenOptions::default()).unwrap();
    World { net, peers, door, address: NodeAddress::new("two", 9093) }
}

/// The other end of one connection.
struct Far {
    stream: Stream,
    input: BytesMut,
}

impl Far {
    async fn accept(door: &Listener) -> Far {
        let stream = door.accept().await.unwrap().stream.attach().unwrap();
        Far { stream, input: BytesMut::new() }
    }

    /// Accepts and lets the caller in, or not.
    async fn greeted(door: &Listener, refused: Option<&str>) -> (Far, Hello) {
        let mut far = Far::accept(door).await;
        let (header, body) = far.request().await.unwrap();
        assert_eq!(header.api.key, PrivateApi::PeerHello.key());
        let answer = HelloAnswer {
            refused: refused.map(str::to_owned),
            cluster_id: "ours".into(),
            identity: identity(2),
            version: "0".into(),
            leader: None,
        };
        far.answer(&header, &Raw(serde_json::to_vec(&answer).unwrap())).await;
        (far, serde_json::from_slice(&body).unwrap())
    }

    async fn request(&mut self) -> Option<(RequestHeader, Bytes)> {
        loop {
            if let Some(frame) = next_frame(&mut self.input, FrameLimit::later(1 << 20)).unwrap() {
                return Some(header::parse(frame).unwrap());
            }
            if self.stream.read_buf(&mut self.input).await.ok()? == 0 {
                return None;
            }
        }
    }

    async fn answer(&mut self, to: &RequestHeader, answer: &impl ResponseBody) {
        let frame = encode_response(to.api, to.version, to.correlation_id, answer).unwrap();
        self.stream.write_all(&frame).await.unwrap();
    }
}

struct Raw(Vec<u8>);

impl ResponseBody for Raw {
    fn write(&self, _: i16, buffer: &mut BytesMut) -> Result<(), String> {
        buffer.extend_from_slice(&self.0);
        Ok(())
    }
}

fn beat(epoch: i64) -> BrokerHeartbeatRequest {
    BrokerHeartbeatRequest::default().with_broker_epoch(epoch)
}

#[tokio::test(start_paused = true)]
async fn answers_find_their_requests_whatever_their_order() {
    let World { peers, door, address, .. } = world();
    let far = async {
        let (mut far, hello) = Far::greeted(&door, None).await;
        assert_eq!((hello.cluster_id.as_str(), hello.identity), ("ours", identity(1)));
        let (first, second) = (far.request().await.unwrap().0, far.request().await.unwrap().0);
        assert_eq!(first.client_id.as_deref(), Some("node-1"));
        far.answer(&second, &BrokerHeartbeatResponse::default().with_error_code(2)).await;
        far.answer(&first, &BrokerHeartbeatResponse::default().with_error_code(1)).await;
        std::future::pending::<()>().await;
    };
    let (first, second) = (beat(1), beat(2));
    let near = async {
        tokio::join!(
            peers.call(&address, Purpose::Control, &first, SOON),
            peers.call(&address, Purpose::Control, &second, SOON),
        )
    };
    let (one, two) = tokio::select! { both = near => both, () = far => unreachable!() };
    assert_eq!((one.unwrap().error_code, two.unwrap().error_code), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_broken_line_fails_what_is_under_way_and_tells_who_was_lost() {
    let World { net, peers, door, address } = world();
    let mut lost = peers.lost();
    let far = async {
        let (mut far, _) = Far::greeted(&door, None).await;
        far.request().await.unwrap();
        net.crash(TWO);
        far
    };
    let asked = beat(1);
    let (answer, _far) = tokio::join!(peers.call(&address, Purpose::Control, &asked, SOON), far);
    assert_eq!(answer, Err(PeerError::Lost(address.clone())));
    assert_eq!(lost.recv().await, Ok(2));
    let again = peers.call(&address, Purpose::Control, &beat(1), SOON).await.unwrap_err();
    assert_eq!(again, PeerError::NobodyThere(address.clone()));
    assert!(again.is_unsent());
}

#[tokio::test(start_paused = true)]
async fn what_stood_behind_a_request_that_would_not_go_out_was_certainly_not_sent() {
    let World { net, peers, door, address } = world();
    let far = async {
        let (far, _) = Far::greeted(&door, None).await;
        // Nobody reads, so the first request fills the connection and the second has no room.
        crate::host::task::sleep(Duration::from_millis(100)).await;
        net.crash(TWO);
        far
    };
    let large = vec![0; 1 << 20];
    let near = async {
        tokio::join!(
            peers.private(&address, Purpose::Control, PrivateApi::Forward, &large, SOON),
            peers.private(&address, Purpose::Control, PrivateApi::Forward, b"small", SOON),
        )
    };
    let ((first, second), _far) = tokio::join!(near, far);
    assert_eq!(first, Err(PeerError::Lost(address.clone())), "who knows");
    assert!(second.as_ref().is_err_and(PeerError::is_unsent), "{second:?}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_does_not_want_us_says_why() {
    let World { peers, door, address, .. } = world();
    let far = Far::greeted(&door, Some("another cluster"));
    let asked = beat(1);
    let (answer, _far) = tokio::join!(peers.call(&address, Purpose::Control, &asked, SOON), far);
    assert_eq!(answer, Err(PeerError::Refused { address, sentence: "another cluster".into() }));
}

#[tokio::test(start_paused = true)]
async fn a_silent_line_is_replaced() {
    let World { net, peers, door, address } = world();
    let far = async {
        let (mut far, _) = Far::greeted(&door, None).await;
        let request = far.request().await.unwrap().0;
        far.answer(&request, &BrokerHeartbeatResponse::default()).await;
        far.request().await.unwrap();
        net.cut(TWO, ONE);
        far
    };
    let near = async {
        peers.call(&address, Purpose::Control, &beat(1), SOON).await.unwrap();
        peers.call(&address, Purpose::Control, &beat(2), SOON).await
    };
    let (answer, mut old) = tokio::join!(near, far);
    assert_eq!(answer, Err(PeerError::TimedOut(address.clone())));
    crate::host::task::sleep(Duration::from_secs(5)).await;
    assert!(old.request().await.is_none(), "the old connection is closed");
    net.heal_all();
    let far = async {
        let (mut far, _) = Far::greeted(&door, None).await;
        let request = far.request().await.unwrap().0;
        far.answer(&request, &BrokerHeartbeatResponse::default()).await;
        far
    };
    let asked = beat(3);
    let (answer, _far) = tokio::join!(peers.call(&address, Purpose::Control, &asked, SOON), far);
    assert!(answer.is_ok());
}
