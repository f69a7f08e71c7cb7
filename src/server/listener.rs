//! Listening sockets: accept, count, tune, and hand over to a shard.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::api::{Broker, Door};
use crate::host::net::{self, ListenOptions};
use crate::host::{Host, task};
use crate::server::shard::{Arrival, Shards};
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

/// One bound listener.
pub struct Listener {
    pub name: Arc<str>,
    pub door: Door,
    socket: net::Listener,
    quota: Arc<ConnectionQuota>,
    metrics: Arc<ListenerMetrics>,
}

impl Listener {
    /// Binds at once; must be called inside a runtime.
    pub fn bind(
        host: &Host,
        name: Arc<str>,
        door: Door,
        address: SocketAddr,
        options: ListenOptions,
        quota: Arc<ConnectionQuota>,
        metrics: Arc<ListenerMetrics>,
    ) -> io::Result<Listener> {
        let options = ListenOptions {
            backlog: options.backlog.max(BACKLOG_MIN),
            keepalive_after: Some(KEEPALIVE_AFTER),
            ..options
        };
        Ok(Listener { name, door, socket: host.net.bind(address, options)?, quota, metrics })
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
                Ok(accepted) => self.admit(&broker, &shards, accepted),
                // The connection was gone before anybody looked at it.
                Err(error) if is_of_one_connection(&error) => {
                    tracing::debug!(%error, "an accepted connection was gone at once")
                }
                Err(error) => {
                    tracing::warn!(listener = %self.name, %error, "cannot accept a connection");
                    task::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn admit(&self, broker: &Broker, shards: &Shards, accepted: net::Accepted) {
        match self.quota.admit(accepted.peer.ip()) {
            Ok(permit) => shards.admit(Arrival {
                accepted,
                listener: self.name.clone(),
                door: self.door,
                metrics: self.metrics.clone(),
                permit: Box::new(permit),
            }),
            Err(limit) => self.refuse(broker, accepted.peer, limit),
        }
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

fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::NotConnected
            | io::ErrorKind::InvalidInput
    )
}
