//! What a handler knows of the request besides its body: who asks, over which connection, in which version.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use crate::api::data::turned_away::TurnedAway;
use crate::base::BrokerId;
use crate::peer::PeerIdentity;

/// Whom a listener is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// Clients and other brokers.
    Broker,
    /// Other nodes and those who administer the cluster (`controller.listener.names`).
    Controller,
}

/// What stays the same over a connection's life, but for what ApiVersions tells.
#[derive(Clone, Debug)]
pub struct ConnectionInfo {
    pub id: u64,
    pub peer: SocketAddr,
    /// The address the client reached us by. Told back to it when `advertised.listeners` is not set.
    pub local: SocketAddr,
    pub listener: Arc<str>,
    pub door: Door,
    /// `User:ANONYMOUS` on a listener without authentication.
    pub principal: Arc<str>,
    /// What the client said of itself in its first ApiVersions request (KIP-511).
    pub software: OnceLock<ClientSoftware>,
    /// The node of the cluster at the other end, once it has said so and was let in.
    pub peer_node: OnceLock<PeerIdentity>,
    /// The node that the client is connected to, when that is another one, which handed its request on.
    pub forwarded_by: Option<BrokerId>,
    /// Batches of idempotent producers that were turned away and have not come again.
    pub turned_away: Arc<TurnedAway>,
}

impl ConnectionInfo {
    /// A connection of which nothing more is known yet.
    pub fn new(id: u64, peer: SocketAddr, local: SocketAddr, listener: Arc<str>, door: Door) -> ConnectionInfo {
        ConnectionInfo {
            id,
            peer,
            local,
            listener,
            door,
            principal: "User:ANONYMOUS".into(),
            software: OnceLock::new(),
            peer_node: OnceLock::new(),
            forwarded_by: None,
            turned_away: Arc::default(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSoftware {
    pub name: Arc<str>,
    pub version: Arc<str>,
}

/// One request's envelope.
#[derive(Clone, Debug)]
pub struct RequestContext {
    pub connection: Arc<ConnectionInfo>,
    pub api_key: i16,
    pub api_version: i16,
    pub correlation_id: i32,
    /// As the client sent it; `None` for a null one.
    pub client_id: Option<Arc<str>>,
    /// `Clock::monotonic_nanos` when the frame was complete.
    pub received_nanos: u64,
}

impl RequestContext {
    pub fn client_id_or_empty(&self) -> &str {
        self.client_id.as_deref().unwrap_or("")
    }

    /// The peer's address as Kafka prints it in group descriptions: `/127.0.0.1`.
    pub fn client_host(&self) -> String {
        format!("/{}", self.connection.peer.ip())
    }
}
