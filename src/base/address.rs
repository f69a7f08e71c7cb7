//! Where a node of the cluster is reached by its peers.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use serde::{Deserialize, Serialize};

/// A host name or address as configured, and a port. An IPv6 address stands without brackets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeAddress {
    pub host: String,
    pub port: u16,
}

impl NodeAddress {
    pub fn new(host: impl Into<String>, port: u16) -> NodeAddress {
        NodeAddress { host: host.into(), port }
    }
}

impl fmt::Display for NodeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// The loopback address that a host is, if it is one; `localhost` and `::1` are 127.0.0.1.
pub fn loopback(host: &str) -> Option<IpAddr> {
    match host.parse::<IpAddr>() {
        Ok(ip @ IpAddr::V4(_)) => Some(ip).filter(IpAddr::is_loopback),
        Ok(ip) => ip.is_loopback().then_some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        Err(_) => host.eq_ignore_ascii_case("localhost").then_some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_address_gets_brackets() {
        assert_eq!(NodeAddress::new("broker-1", 9093).to_string(), "broker-1:9093");
        assert_eq!(NodeAddress::new("::1", 9093).to_string(), "[::1]:9093");
    }
}
