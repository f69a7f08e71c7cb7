//! Listening sockets: accept, count, tune, and hand over to a shard.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::sync::watch;

use crate::api::Broker;
use crate::host::net::TcpListener;
use crate::host::task;
use crate::server::shard::{Accepted, Shards};
use crate::telemetry::{ListenerMetrics, Reason, Refusal};

/// A silent peer is asked whether it is still there after this long.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);

/// Room for connections that arrive together, whatever smaller number is set: a full queue costs a client a second.
const BACKLOG_MIN: i32 = 1024;

/// Pause after an accept failed for want of descriptors or memory, so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How many connections there may be (the limit of open files leaves some, and `max.connections`, `max.connections.per.ip`).
pub struct ConnectionQuota {
    connections_max: usize,
    per_ip_max: usize,
    /// `max.connections.per.ip.overrides`
    per_ip_overrides: HashMap<IpAddr, usize>,
    open: Mutex<OpenConnections>,
}

#[derive(Default)]
struct OpenConnections {
    total: usize,
    by_ip: HashMap<IpAddr, usize>,
}

impl ConnectionQuota {
    pub fn new(connections_max: usize, per_ip_max: usize, per_ip_overrides: HashMap<IpAddr, usize>) -> ConnectionQuota {
        ConnectionQuota { connections_max, per_ip_max, per_ip_overrides, open: Mutex::default() }
    }

    /// A place for one more connection of this address, given back when the permit is dropped.
    fn admit(self: &Arc<Self>, ip: IpAddr) -> Result<Permit, &'static str> {
        let mut open = self.open.lock();
        if open.total >= self.connections_max {
            return Err("max.connections, or what the limit of open files leaves for connections, is reached");
        }
        let per_ip_max = self.per_ip_overrides.get(&ip).copied().unwrap_or(self.per_ip_max);
        let of_ip = open.by_ip.entry(ip).or_default();
        if *of_ip >= per_ip_max {
            return Err("max.connections.per.ip is reached");
        }
        *of_ip += 1;
        open.total += 1;
        Ok(Permit { quota: self.clone(), ip })
    }
}

struct Permit {
    quota: Arc<ConnectionQuota>,
    ip: IpAddr,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut open = self.quota.open.lock();
        open.total -= 1;
        if let Some(of_ip) = open.by_ip.get_mut(&self.ip) {
            *of_ip -= 1;
            if *of_ip == 0 {
                open.by_ip.remove(&self.ip);
            }
        }
    }
}

/// Socket options of accepted connections; `None` leaves the system's choice.
#[derive(Clone, Copy, Debug)]
pub struct SocketOptions {
    /// `socket.listen.backlog.size`
    pub backlog: i32,
    /// `socket.send.buffer.bytes`
    pub send_buffer_bytes: Option<usize>,
    /// `socket.receive.buffer.bytes`
    pub receive_buffer_bytes: Option<usize>,
}

/// One bound listener.
pub struct Listener {
    pub name: Arc<str>,
    socket: TcpListener,
    options: SocketOptions,
    quota: Arc<ConnectionQuota>,
    metrics: Arc<ListenerMetrics>,
}

impl Listener {
    /// Binds at once; must be called inside a runtime.
    pub fn bind(
        name: Arc<str>,
        address: SocketAddr,
        options: SocketOptions,
        quota: Arc<ConnectionQuota>,
        metrics: Arc<ListenerMetrics>,
    ) -> io::Result<Listener> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        if address.is_ipv6() {
            socket.set_only_v6(false)?;
        }
        socket.bind(&address.into())?;
        socket.listen(options.backlog.max(BACKLOG_MIN))?;
        socket.set_nonblocking(true)?;
        let socket = TcpListener::from_std(socket.into())?;
        Ok(Listener { name, socket, options, quota, metrics })
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Accepts until `stopping` says so.
    pub async fn run(self, broker: Arc<Broker>, shards: Arc<Shards>, mut stopping: watch::Receiver<bool>) {
        loop {
            let accepted = tokio::select! {
                _ = stopping.wait_for(|stop| *stop) => return,
                accepted = self.socket.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    if let Err(error) = self.admit(&broker, &shards, stream, peer) {
                        tracing::debug!(%peer, %error, "an accepted connection was gone at once");
                    }
                }
                Err(error) => {
                    tracing::warn!(listener = %self.name, %error, "cannot accept a connection");
                    task::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn admit(
        &self,
        broker: &Broker,
        shards: &Shards,
        stream: crate::host::net::TcpStream,
        peer: SocketAddr,
    ) -> io::Result<()> {
        let permit = match self.quota.admit(peer.ip()) {
            Ok(permit) => permit,
            Err(limit) => {
                self.refuse(broker, peer, limit);
                return Ok(());
            }
        };
        let local = stream.local_addr()?;
        let stream = stream.into_std()?;
        self.tune(&stream)?;
        shards.admit(Accepted {
            stream,
            peer,
            local,
            listener: self.name.clone(),
            metrics: self.metrics.clone(),
            permit: Box::new(permit),
        });
        Ok(())
    }

    fn tune(&self, stream: &std::net::TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let socket = SockRef::from(stream);
        socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE_AFTER))?;
        if let Some(bytes) = self.options.send_buffer_bytes {
            socket.set_send_buffer_size(bytes)?;
        }
        if let Some(bytes) = self.options.receive_buffer_bytes {
            socket.set_recv_buffer_size(bytes)?;
        }
        Ok(())
    }

    fn refuse(&self, broker: &Broker, peer: SocketAddr, limit: &'static str) {
        let refusal = Refusal {
            peer,
            listener: &self.name,
            client_id: None,
            software_name: None,
            software_version: None,
            api_key: None,
            api_name: None,
            api_version: None,
            reason: Reason::TooManyConnections,
            detail: &limit,
        };
        broker.telemetry.refusals.refuse(&refusal, broker.host.clock.monotonic_ms());
    }
}
