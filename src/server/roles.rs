//! What follows from a node's roles: which sockets it opens, under which addresses others reach it, and whom it finds the metadata
//! quorum by.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::api::Door;
use crate::base::address::loopback;
use crate::base::ids::NO_BROKER;
use crate::base::{BrokerId, NodeAddress};
use crate::config::BrokerSettings;
use crate::host::Host;
use crate::host::net::ListenOptions;
use crate::metadata::Endpoint;
use crate::server::listener::{ConnectionQuota, Listener};
use crate::server::node::StartError;
use crate::server::tuning::DescriptorShares;
use crate::telemetry::Telemetry;

pub fn resolve(host: &Host, setting: &str, name: &str, port: u16) -> Result<SocketAddr, StartError> {
    host.net.resolve(name, port).map_err(|error| format!("{setting}: cannot resolve {name}: {error}").into())
}

/// What to do about an address that cannot be listened on.
fn bind_hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => "; another broker may be running on it; set listeners",
        std::io::ErrorKind::PermissionDenied => "; ports below 1024 are the system's; set listeners",
        std::io::ErrorKind::AddrNotAvailable => "; this machine has no such address; set listeners",
        _ => "",
    }
}

/// Opens every listener, so that a port that is taken is told before anything else is done.
pub fn bind_all(host: &Host, settings: &BrokerSettings, telemetry: &Telemetry) -> Result<Vec<Listener>, StartError> {
    let sockets = &settings.sockets;
    let overrides = sockets.connections_per_ip_max_overrides.iter().map(|(ip, max)| (*ip, *max)).collect();
    let connections_max = sockets.connections_max.min(DescriptorShares::of_this_process().connections_max);
    let quota = Arc::new(ConnectionQuota::new(connections_max, sockets.connections_per_ip_max, overrides));
    let options = ListenOptions {
        backlog: i32::try_from(sockets.listen_backlog).unwrap_or(i32::MAX),
        send_buffer_bytes: sockets.send_buffer_bytes,
        receive_buffer_bytes: sockets.receive_buffer_bytes,
        keepalive_after: None,
    };
    let mut bound = Vec::new();
    for listener in &settings.listeners {
        let address = match &listener.host {
            Some(name) => resolve(host, "listeners", name, listener.port)?,
            None => SocketAddr::from(([0u16; 8], listener.port)),
        };
        let metrics = telemetry.listener(&listener.name);
        let door = if listener.is_controller { Door::Controller } else { Door::Broker };
        let socket =
            Listener::bind(host, listener.name.as_str().into(), door, address, options, quota.clone(), metrics)
                .map_err(|error| {
                    format!("cannot listen on {}://{address}: {error}{}", listener.name, bind_hint(&error))
                })?;
        bound.push(socket);
    }
    Ok(bound)
}

/// Where clients and other brokers reach this node. A node that is alone names no host that was not set anywhere: each client is told the
/// address it reached us by.
pub fn endpoints(host: &Host, settings: &BrokerSettings, listeners: &[Listener]) -> Result<Vec<Endpoint>, StartError> {
    let is_alone = settings.is_alone(&host.net.host_name());
    let mut endpoints = Vec::with_capacity(listeners.len());
    for listener in listeners.iter().filter(|listener| listener.door == Door::Broker) {
        let advertised = settings.advertised_listeners.iter().find(|one| *one.name == *listener.name);
        let (name, port) = match advertised {
            Some(advertised) => (advertised.host.clone(), advertised.port),
            None if is_alone => (own_name(settings, &listener.name), listener.local_addr()?.port()),
            None => (host_of(host, settings, &listener.name), listener.local_addr()?.port()),
        };
        endpoints.push(Endpoint {
            listener: listener.name.to_string(),
            protocol: "PLAINTEXT".to_owned(),
            host: name,
            port,
        });
    }
    Ok(endpoints)
}

/// The host that a listener is bound to, or the machine's name where it is bound to every address.
fn host_of(host: &Host, settings: &BrokerSettings, listener: &str) -> String {
    bound_host(settings, listener).unwrap_or_else(|| host.net.host_name())
}

/// `None`: every address.
fn bound_host(settings: &BrokerSettings, listener: &str) -> Option<String> {
    let bound = settings.listeners.iter().find(|one| one.name == *listener).and_then(|one| one.host.clone());
    bound.filter(|name| name != "0.0.0.0" && name != "::")
}

/// What a node that is alone is called by those who join it later, as far as its settings say: where a listener is bound, else the name
/// by which it names itself as controller.
fn own_name(settings: &BrokerSettings, listener: &str) -> String {
    let servers = settings.quorum.bootstrap_servers.iter().map(|server| server.host.clone());
    let mut names = servers.filter(|host| loopback(host).is_none());
    bound_host(settings, listener).or_else(|| names.next()).unwrap_or_default()
}

/// Where this node takes messages of the quorum: on its controller's listener, else on the one that brokers use among themselves.
pub fn quorum_address(
    host: &Host,
    settings: &BrokerSettings,
    listeners: &[Listener],
    endpoints: &[Endpoint],
) -> Result<NodeAddress, StartError> {
    if let Some((_, address)) = settings.quorum.voters.iter().find(|(id, _)| *id == settings.node_id) {
        return Ok(address.clone());
    }
    let controllers = listeners.iter().find(|listener| listener.door == Door::Controller);
    if let Some(listener) = controllers {
        let advertised = settings.advertised_listeners.iter().find(|one| *one.name == *listener.name);
        return Ok(match advertised {
            Some(advertised) => NodeAddress::new(advertised.host.clone(), advertised.port),
            None => NodeAddress::new(host_of(host, settings, &listener.name), listener.local_addr()?.port()),
        });
    }
    let endpoint = endpoints.iter().find(|endpoint| endpoint.listener == settings.inter_broker_listener);
    let endpoint = endpoint.ok_or("there is no listener that other nodes could reach this one by")?;
    let name =
        if endpoint.host.is_empty() { host_of(host, settings, &endpoint.listener) } else { endpoint.host.clone() };
    Ok(NodeAddress::new(name, endpoint.port))
}

/// Whether this node has a vote in a quorum that begins: a controller that names other controllers, and no voters, looks on until it is
/// added to the voters.
pub fn is_voter(host: &Host, settings: &BrokerSettings) -> bool {
    let is_named = !settings.quorum.voters.is_empty();
    settings.roles.controller && (is_named || !settings.was_told_of_others(&host.net.host_name()))
}

/// The voters that a new quorum begins with: this node alone where nobody else is named. A node without a vote names the others, as far
/// as it knows them.
pub fn first_voters(host: &Host, settings: &BrokerSettings, own: &NodeAddress) -> Vec<(BrokerId, NodeAddress)> {
    let quorum = &settings.quorum;
    if !quorum.voters.is_empty() {
        return quorum.voters.clone();
    }
    if is_voter(host, settings) {
        return vec![(settings.node_id, own.clone())];
    }
    quorum.bootstrap_servers.iter().map(|address| (NO_BROKER, address.clone())).collect()
}

/// Addresses at which somebody knows the active controller.
pub fn doors_to_the_quorum(settings: &BrokerSettings) -> Vec<NodeAddress> {
    let others = settings.quorum.voters.iter().filter(|(id, _)| *id != settings.node_id).map(|(_, address)| address);
    others.chain(&settings.quorum.bootstrap_servers).cloned().collect()
}
