//! `barnabas healthcheck`: asks the node that runs with these settings on this machine whether it is ready, for containers that have no
//! other program in them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::base::NodeAddress;
use crate::config::BrokerSettings;
use crate::host::net::Stream;
use crate::host::{Host, task};

/// How long the node may take for its answer.
const ANSWER_MAX: Duration = Duration::from_secs(3);

/// As much as is read of the answer.
const ANSWER_BYTES_MAX: u64 = 4096;

/// What the node says of itself. The error is the reason why it is not ready, in one line.
pub fn run(host: &Host, settings: &BrokerSettings) -> Result<String, String> {
    let address = address(settings)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(ask(host, &address))
}

/// Where the node answers on this machine: whoever listens on every address does on this one, too.
fn address(settings: &BrokerSettings) -> Result<NodeAddress, String> {
    let Some((host, port)) = &settings.http_listener else {
        return Err("http.listener is switched off, so there is nobody to ask".to_owned());
    };
    if *port == 0 {
        return Err("http.listener has no port of its own (0), so it is not known where to ask".to_owned());
    }
    let own: Option<IpAddr> = match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(ip)) if ip.is_unspecified() => Some(Ipv4Addr::LOCALHOST.into()),
        Ok(IpAddr::V6(ip)) if ip.is_unspecified() => Some(Ipv6Addr::LOCALHOST.into()),
        _ => host.is_empty().then_some(Ipv4Addr::LOCALHOST.into()),
    };
    Ok(NodeAddress::new(own.map_or_else(|| host.clone(), |ip| ip.to_string()), *port))
}

async fn ask(host: &Host, address: &NodeAddress) -> Result<String, String> {
    let asked = task::timeout(ANSWER_MAX, async {
        let stream = host.net.connect(address).await?;
        exchange(stream).await
    });
    let answer = asked.await.unwrap_or_else(|| Err(std::io::ErrorKind::TimedOut.into()));
    read(&answer.map_err(|error| format!("{address} does not answer: {error}"))?)
}

async fn exchange(mut stream: Stream) -> std::io::Result<String> {
    stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// The last line of an answer of HTTP, if it is a good one.
fn read(answer: &str) -> Result<String, String> {
    let said = answer.trim_end().rsplit_once("\r\n\r\n").map_or(answer, |(_, body)| body);
    let said = said.lines().next().unwrap_or_default().to_owned();
    match answer.split_ascii_whitespace().nth(1) {
        Some("200") => Ok(said),
        Some("503") => Err(said),
        _ => Err(format!("an answer that is not a node's: {said}")),
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::Arc;

    use super::*;
    use crate::config::{Sources, load};
    use crate::host::net::ListenOptions;
    use crate::host::sim::{RuntimeClock, SimHost};

    fn at(listener: &str) -> Result<String, String> {
        let set = vec![format!("http.listener={listener}")];
        let loaded = load(&Sources { set, ..Sources::default() }, &*SimHost::new(1).disk).expect("good settings");
        address(&loaded.settings).map(|address| address.to_string())
    }

    #[test]
    fn the_node_is_asked_where_it_listens() {
        assert_eq!(at("0.0.0.0:9644").as_deref(), Ok("127.0.0.1:9644"));
        assert_eq!(at("[::]:9644").as_deref(), Ok("[::1]:9644"));
        assert_eq!(at("10.0.0.7:80").as_deref(), Ok("10.0.0.7:80"));
        assert!(at("").is_err_and(|why| why.contains("switched off")));
        assert!(at("0.0.0.0:0").is_err_and(|why| why.contains("no port")));
    }

    #[tokio::test(start_paused = true)]
    async fn the_verdict_is_the_nodes_own() {
        let host = SimHost::new(1).host_with(Arc::new(RuntimeClock::new(0)));
        let here = NodeAddress::new("127.0.0.1", 9644);
        assert!(ask(&host, &here).await.is_err_and(|why| why.contains("127.0.0.1:9644 does not answer")));
        let door = host.net.bind(SocketAddr::from(([0, 0, 0, 0], 9644)), ListenOptions::default()).unwrap();
        let answers = [
            ("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nready\n", Ok("ready".to_owned())),
            (
                "HTTP/1.1 503 Service Unavailable\r\n\r\nnot ready: reading the metadata\n",
                Err("not ready: reading the metadata".to_owned()),
            ),
            ("garbage", Err("an answer that is not a node's: garbage".to_owned())),
        ];
        for (answer, verdict) in answers {
            let node = async {
                let mut stream = door.accept().await.unwrap().stream.attach().unwrap();
                let mut request = [0; 20];
                stream.read_exact(&mut request).await.unwrap();
                assert_eq!(&request, b"GET /readyz HTTP/1.1");
                stream.write_all(answer.as_bytes()).await.unwrap();
                stream.shutdown().await.unwrap();
            };
            let (heard, ()) = tokio::join!(ask(&host, &here), node);
            assert_eq!(heard, verdict);
        }
        let (silent, _held) = tokio::join!(ask(&host, &here), door.accept());
        assert!(silent.is_err_and(|why| why.contains("does not answer")), "nobody is waited for for ever");
    }
}
