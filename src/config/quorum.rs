//! What a node is to the cluster (`process.roles`), how it finds the metadata quorum, and whether the two go together.

use super::listeners::Listeners;
use super::reader::Reader;
use crate::base::{BrokerId, NodeAddress};
use crate::metadata::config::value::{host_and_port, voter};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roles {
    pub broker: bool,
    pub controller: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumSettings {
    /// None: a controller is the only one, a broker finds them by `bootstrap_servers`.
    pub voters: Vec<(BrokerId, NodeAddress)>,
    pub bootstrap_servers: Vec<NodeAddress>,
    pub election_timeout_ms: u64,
    pub fetch_timeout_ms: u64,
    pub request_timeout_ms: u64,
    pub snapshot_after_bytes: u64,
    pub snapshot_interval_ms: u64,
    pub segment_bytes: u64,
}

/// How a broker keeps in touch with the active controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LifecycleSettings {
    pub heartbeat_interval_ms: u64,
    pub session_timeout_ms: u64,
    /// Hand leaderships over before stopping.
    pub controlled_shutdown: bool,
}

/// What the node goes by while it is the active controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerSettings {
    /// Leadership returns to the preferred replicas by itself.
    pub balances_leaders: bool,
    pub balance_interval_ms: u64,
    pub unclean_interval_ms: u64,
}

pub fn controller(reader: &Reader<'_>) -> ControllerSettings {
    let seconds: u64 = reader.number("leader.imbalance.check.interval.seconds");
    ControllerSettings {
        balances_leaders: reader.flag("auto.leader.rebalance.enable"),
        balance_interval_ms: seconds.saturating_mul(1_000),
        unclean_interval_ms: reader.number("unclean.leader.election.interval.ms"),
    }
}

pub fn roles(reader: &Reader<'_>) -> Roles {
    let roles = reader.list("process.roles");
    let has = |role: &str| roles.iter().any(|one| one == role);
    Roles { broker: has("broker"), controller: has("controller") }
}

pub fn lifecycle(reader: &Reader<'_>) -> LifecycleSettings {
    let settings = LifecycleSettings {
        heartbeat_interval_ms: reader.number("broker.heartbeat.interval.ms"),
        session_timeout_ms: reader.number("broker.session.timeout.ms"),
        controlled_shutdown: reader.flag("controlled.shutdown.enable"),
    };
    if settings.heartbeat_interval_ms == 0 {
        reader.problem("broker.heartbeat.interval.ms: 0 would be no pause at all; it must be at least 1");
    }
    if settings.session_timeout_ms < 2 * settings.heartbeat_interval_ms {
        reader.problem(
            "broker.session.timeout.ms must be at least twice broker.heartbeat.interval.ms, or one late heartbeat would fence a broker",
        );
    }
    settings
}

pub fn quorum(reader: &Reader<'_>) -> QuorumSettings {
    let voters = reader.list("controller.quorum.voters");
    let servers = reader.list("controller.quorum.bootstrap.servers");
    let address = |(host, port): (&str, u16)| NodeAddress::new(host, port);
    QuorumSettings {
        voters: voters
            .iter()
            .filter_map(|text| voter(text))
            .map(|(id, host, port)| (id, address((host, port))))
            .collect(),
        bootstrap_servers: servers.iter().filter_map(|text| host_and_port(text)).map(address).collect(),
        election_timeout_ms: reader.number("controller.quorum.election.timeout.ms"),
        fetch_timeout_ms: reader.number("controller.quorum.fetch.timeout.ms"),
        request_timeout_ms: reader.number("controller.quorum.request.timeout.ms"),
        snapshot_after_bytes: reader.number("metadata.log.max.record.bytes.between.snapshots"),
        snapshot_interval_ms: reader.number("metadata.log.max.snapshot.interval.ms"),
        segment_bytes: reader.number("metadata.log.segment.bytes"),
    }
}

/// Holds roles, voters and listeners against one another, by Kafka's rules and a few that make a cluster simpler: a controller without a
/// listener of its own is reached by the listener that brokers use among themselves.
pub fn check(reader: &Reader<'_>, node_id: BrokerId, roles: Roles, quorum: &QuorumSettings, listeners: &Listeners) {
    check_voters(reader, node_id, roles, quorum);
    check_listeners(reader, roles, listeners);
}

fn check_voters(reader: &Reader<'_>, node_id: BrokerId, roles: Roles, quorum: &QuorumSettings) {
    let ids: Vec<BrokerId> = quorum.voters.iter().map(|(id, _)| *id).collect();
    if let Some(twice) = ids.iter().enumerate().find(|(at, id)| ids.iter().take(*at).any(|other| other == *id)) {
        reader.problem(format!("controller.quorum.voters: node {} is named twice", twice.1));
    }
    let is_voter = ids.contains(&node_id);
    if roles.controller && !ids.is_empty() && !is_voter {
        reader.problem(format!(
            "node.id {node_id} has the controller role and must be one of controller.quorum.voters, which names {ids:?}"
        ));
    }
    if !roles.controller && is_voter {
        reader.problem(format!(
            "node.id {node_id} is one of controller.quorum.voters, but process.roles does not make it a controller: add the role, or take it off the voters"
        ));
    }
    if !roles.controller && ids.is_empty() && quorum.bootstrap_servers.is_empty() {
        reader.problem(
            "a node that is only a broker must be told where the controllers are: set controller.quorum.voters or controller.quorum.bootstrap.servers",
        );
    }
}

fn check_listeners(reader: &Reader<'_>, roles: Roles, listeners: &Listeners) {
    let of_controllers = listeners.listeners.iter().filter(|one| one.is_controller).count();
    let of_brokers = listeners.listeners.len() - of_controllers;
    // One that could not be read has been told of, and may be for clients.
    let all_were_read = reader.list("listeners").len() == listeners.listeners.len();
    if roles.broker && of_brokers == 0 && all_were_read {
        reader
            .problem("listeners: a broker needs a listener for clients; all of these are in controller.listener.names");
    }
    if !roles.broker && of_brokers > 0 {
        reader.problem(
            "listeners: a node that is only a controller has no clients; each of its listeners must be in controller.listener.names",
        );
    }
    if !roles.controller && of_controllers > 0 {
        reader.problem(
            "controller.listener.names: a node that is only a broker has no controller's listener; take it off listeners",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::listeners;
    use super::*;

    fn problems(pairs: &[(&str, &str)]) -> String {
        let properties = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let reader = Reader::new(&properties);
        let found = listeners::read(&reader);
        lifecycle(&reader);
        check(&reader, reader.number("node.id"), roles(&reader), &quorum(&reader), &found);
        reader.finish().1.join("\n")
    }

    const TWO_LISTENERS: (&str, &str) = ("listeners", "PLAINTEXT://:9092,CONTROLLER://:9093");
    const VOTERS: (&str, &str) = ("controller.quorum.voters", "1@a:9093,2@b:9093,3@c:9093");

    #[test]
    fn the_usual_nodes_are_good() {
        assert_eq!(problems(&[]), "");
        assert_eq!(problems(&[("node.id", "2"), TWO_LISTENERS, VOTERS]), "");
        assert_eq!(problems(&[("node.id", "2"), ("listeners", "PLAINTEXT://:9092"), VOTERS]), "");
        assert_eq!(problems(&[("node.id", "4"), ("process.roles", "broker"), VOTERS]), "");
        let servers = ("controller.quorum.bootstrap.servers", "a:9093");
        assert_eq!(problems(&[("node.id", "4"), ("process.roles", "broker"), servers]), "");
        assert_eq!(
            problems(&[("node.id", "3"), ("process.roles", "controller"), ("listeners", "CONTROLLER://:9093"), VOTERS]),
            ""
        );
    }

    #[test]
    fn roles_and_voters_must_agree() {
        assert!(
            problems(&[("node.id", "7"), TWO_LISTENERS, VOTERS]).contains("must be one of controller.quorum.voters")
        );
        assert!(problems(&[("process.roles", "broker"), VOTERS]).contains("add the role, or take it off the voters"));
        assert!(problems(&[("process.roles", "broker")]).contains("must be told where the controllers are"));
        let twice = ("controller.quorum.voters", "1@a:9093,1@b:9093");
        assert!(problems(&[TWO_LISTENERS, twice]).contains("node 1 is named twice"));
    }

    #[test]
    fn roles_and_listeners_must_agree() {
        assert!(problems(&[("listeners", "CONTROLLER://:9093")]).contains("needs a listener for clients"));
        let typing_error = problems(&[("listeners", "CONTROLLER://:9093,PLAINTET://:9092")]);
        assert!(typing_error.contains("PLAINTET") && !typing_error.contains("needs a listener"), "{typing_error}");
        assert!(problems(&[("process.roles", "controller"), TWO_LISTENERS]).contains("has no clients"));
        let broker = [("node.id", "4"), ("process.roles", "broker"), VOTERS, TWO_LISTENERS];
        assert!(problems(&broker).contains("has no controller's listener"));
    }

    #[test]
    fn a_session_is_longer_than_a_heartbeat() {
        assert!(problems(&[("broker.session.timeout.ms", "600")]).contains("at least twice"));
        assert!(problems(&[("broker.heartbeat.interval.ms", "0")]).contains("at least 1"));
    }
}
