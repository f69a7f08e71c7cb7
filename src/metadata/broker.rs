//! A broker as the cluster knows it: where it can be reached, on which rack it stands, and which registration of it is the
//! newest. Registrations outlive the process; whether the broker answers is the `fenced` flag.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::base::BrokerId;

/// One advertised listener.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// The listener's name, `PLAINTEXT` for example.
    pub listener: String,
    /// `PLAINTEXT`, `SSL`, `SASL_PLAINTEXT` or `SASL_SSL`.
    pub protocol: String,
    /// Empty when no host is advertised: each client is then told the address it reached the broker by.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    pub port: u16,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerRegistration {
    pub id: BrokerId,
    /// Another one for each start of the process.
    pub incarnation: Uuid,
    /// Grows with each registration of this id; a request that carries an older one is stale (KIP-497).
    #[serde(default)]
    pub epoch: i64,
    #[serde(default)]
    pub endpoints: Vec<Endpoint>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rack: Option<String>,
    /// The ids of its log directories (KIP-858).
    #[serde(default)]
    pub directories: Vec<Uuid>,
    /// A fenced broker is registered but leads nothing.
    #[serde(default)]
    pub fenced: bool,
    /// It asked to stop: it is in no in-sync set, leads nothing new and gets no new replicas.
    #[serde(default, skip_serializing_if = "super::topic::is_false")]
    pub in_controlled_shutdown: bool,
    /// The feature levels it can run at; one that says nothing of a feature can run at level 0 only (KIP-584).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<FeatureRange>,
}

/// The levels of one feature that a broker can run at, both ends included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureRange {
    pub name: String,
    pub min: i16,
    pub max: i16,
}

impl BrokerRegistration {
    /// Whether it may lead and be in in-sync sets.
    pub fn is_active(&self) -> bool {
        !self.fenced && !self.in_controlled_shutdown
    }

    /// The endpoint of a listener, if the broker has that one.
    pub fn endpoint(&self, listener: &str) -> Option<&Endpoint> {
        self.endpoints.iter().find(|endpoint| endpoint.listener == listener)
    }
}
