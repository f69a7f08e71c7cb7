//! What a config can be set on.

use serde::{Deserialize, Serialize};

/// Kinds of config resources with Kafka's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResourceKind {
    Topic,
    Broker,
    BrokerLogger,
    ClientMetrics,
    Group,
}

impl ResourceKind {
    pub fn from_id(id: i8) -> Option<ResourceKind> {
        match id {
            2 => Some(ResourceKind::Topic),
            4 => Some(ResourceKind::Broker),
            8 => Some(ResourceKind::BrokerLogger),
            16 => Some(ResourceKind::ClientMetrics),
            32 => Some(ResourceKind::Group),
            _ => None,
        }
    }

    pub fn id(self) -> i8 {
        match self {
            ResourceKind::Topic => 2,
            ResourceKind::Broker => 4,
            ResourceKind::BrokerLogger => 8,
            ResourceKind::ClientMetrics => 16,
            ResourceKind::Group => 32,
        }
    }
}

/// One resource. A broker resource with an empty name is the default for all brokers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ConfigResource {
    pub kind: ResourceKind,
    pub name: String,
}

impl ConfigResource {
    pub fn new(kind: ResourceKind, name: impl Into<String>) -> ConfigResource {
        ConfigResource { kind, name: name.into() }
    }

    pub fn topic(name: impl Into<String>) -> ConfigResource {
        ConfigResource::new(ResourceKind::Topic, name)
    }

    pub fn group(name: impl Into<String>) -> ConfigResource {
        ConfigResource::new(ResourceKind::Group, name)
    }

    pub fn broker(id: crate::base::BrokerId) -> ConfigResource {
        ConfigResource::new(ResourceKind::Broker, id.to_string())
    }

    /// The dynamic default of every broker.
    pub fn broker_default() -> ConfigResource {
        ConfigResource::new(ResourceKind::Broker, "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_carry_kafkas_numbers() {
        for id in i8::MIN..=i8::MAX {
            if let Some(kind) = ResourceKind::from_id(id) {
                assert_eq!(kind.id(), id);
            }
        }
        assert_eq!(ResourceKind::from_id(2), Some(ResourceKind::Topic));
        assert_eq!(ResourceKind::from_id(1), None);
    }
}
