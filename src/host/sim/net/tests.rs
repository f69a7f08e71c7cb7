//! The simulated network keeps TCP's promises and breaks what it is told to break.

use std::net::Ipv4Addr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::host::task;

const ONE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const TWO: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

async fn pair(net: &SimNet) -> (Stream, Stream) {
    let (one, two) = (net.machine("one", ONE), net.machine("two", TWO));
    let door = two.bind(SocketAddr::from(([0, 0, 0, 0], 9092)), ListenOptions::default()).unwrap();
    let near = one.connect(&NodeAddress::new("two", 9092)).await.unwrap();
    let far = door.accept().await.unwrap();
    assert_eq!((far.peer.ip(), far.local), (ONE, SocketAddr::new(TWO, 9092)));
    (near, far.stream.attach().unwrap())
}

async fn hears(stream: &mut Stream) -> Option<[u8; 3]> {
    let mut heard = [0; 3];
    let read = task::timeout(Duration::from_secs(1), stream.read_exact(&mut heard)).await?;
    read.ok().map(|_| heard)
}

#[tokio::test(start_paused = true)]
async fn bytes_arrive_in_order_and_then_the_end() {
    let (mut near, mut far) = pair(&SimNet::new(1)).await;
    near.write_all(b"abc").await.unwrap();
    near.write_all(b"def").await.unwrap();
    drop(near);
    let mut all = Vec::new();
    far.read_to_end(&mut all).await.unwrap();
    assert_eq!(all, b"abcdef");
    assert_eq!(far.write(b"x").await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
}

#[tokio::test(start_paused = true)]
async fn a_cut_is_silent_and_holds_bytes_back_until_it_is_healed() {
    let net = SimNet::new(2);
    let (mut near, mut far) = pair(&net).await;
    net.cut(ONE, TWO);
    near.write_all(b"abc").await.unwrap();
    assert_eq!(hears(&mut far).await, None);
    far.write_all(b"def").await.unwrap();
    assert_eq!(hears(&mut near).await, Some(*b"def"), "the other direction works");
    net.heal(ONE, TWO);
    assert_eq!(hears(&mut far).await, Some(*b"abc"));
}

#[tokio::test(start_paused = true)]
async fn a_cut_or_a_delay_at_one_door_leaves_the_others_alone() {
    let net = SimNet::new(6);
    let (mut near, mut far) = pair(&net).await;
    net.cut_at_door(ONE, TWO, 9093);
    near.write_all(b"abc").await.unwrap();
    assert_eq!(hears(&mut far).await, Some(*b"abc"));
    net.cut_at_door(ONE, TWO, 9092);
    near.write_all(b"def").await.unwrap();
    assert_eq!(hears(&mut far).await, None);
    net.heal(ONE, TWO);
    assert_eq!(hears(&mut far).await, Some(*b"def"));
    net.delay_at_door(ONE, TWO, 9092, Duration::from_secs(5));
    let began = task::moment();
    near.write_all(b"ghi").await.unwrap();
    far.read_exact(&mut [0; 3]).await.unwrap();
    assert!(began.elapsed() >= Duration::from_secs(5));
    net.hurry(ONE, TWO);
    far.write_all(b"jkl").await.unwrap();
    assert_eq!(hears(&mut near).await, Some(*b"jkl"), "the other direction never was slow");
}

#[tokio::test(start_paused = true)]
async fn a_crash_resets_connections_and_closes_doors() {
    let net = SimNet::new(3);
    let (mut near, _far) = pair(&net).await;
    net.crash(TWO);
    assert_eq!(near.read(&mut [0]).await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    let again = net.machine("one", ONE).connect(&NodeAddress::new("two", 9092)).await;
    assert_eq!(again.err().map(|error| error.kind()), Some(io::ErrorKind::ConnectionRefused));
}

#[tokio::test(start_paused = true)]
async fn connecting_through_a_cut_waits_for_it_to_be_healed() {
    let net = SimNet::new(4);
    let (_near, _far) = pair(&net).await;
    let one = net.machine("one", ONE);
    net.cut(TWO, ONE);
    let target = NodeAddress::new("two", 9092);
    assert!(task::timeout(Duration::from_secs(60), one.connect(&target)).await.is_none());
    net.heal_all();
    net.set_refusing(TWO, true);
    assert!(one.connect(&target).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_sender_waits_for_a_reader_that_does_not_read() {
    let (mut near, mut far) = pair(&SimNet::new(5)).await;
    let much = vec![7; 1 << 20];
    assert!(task::timeout(Duration::from_secs(1), near.write_all(&much)).await.is_none());
    let mut some = vec![0; 1 << 19];
    let (sent, read) = tokio::join!(near.write_all(&much[..1 << 18]), far.read_exact(&mut some));
    assert!(sent.is_ok() && read.is_ok());
}
