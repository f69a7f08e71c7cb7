//! Every setting that Kafka 4.4 knows, as tables: topic, broker, group and client-metrics configs with type, default, bound, scope
//! and a sentence each. Values are parsed once here ([`Key::parse`]) and travel typed from then on ([`LogConfig`]).

pub mod broker;
pub mod client_metrics;
pub mod describe;
pub mod group;
pub mod key;
pub mod layers;
pub mod log_config;
pub mod throttled;
pub mod topic;
pub mod value;

pub use client_metrics::validate_client_metrics;
pub use group::validate_group;
pub use key::{Bound, Key, Kind, Scope};
pub use layers::{BrokerLayers, ConfigSource, Lookup, Synonym};
pub use log_config::{CleanupPolicy, CompressionType, LogConfig, MessageTimestampType};
pub use throttled::ThrottledReplicas;
pub use topic::validate_topic;
pub use value::Value;
