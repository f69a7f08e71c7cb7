//! Where a node of the cluster is reached by its peers.

use std::fmt;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_address_gets_brackets() {
        assert_eq!(NodeAddress::new("broker-1", 9093).to_string(), "broker-1:9093");
        assert_eq!(NodeAddress::new("::1", 9093).to_string(), "[::1]:9093");
    }
}
