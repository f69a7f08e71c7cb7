//! Floor 7: the doors. One file per Kafka API, in folders by who owns the state; `dispatch` is the table that leads to them and
//! `errors` the one place where lower floors' errors become Kafka codes.

pub mod answer;
pub mod broker;
pub mod brokers;
pub mod cluster;
pub mod configs;
pub mod context;
pub mod data;
pub mod dispatch;
pub mod errors;
pub mod gate;
pub mod groups;
pub mod outcomes;
pub mod peers;
pub mod refused;
pub mod topics;
pub mod transactions;

pub use broker::{AdvertisedListener, Broker, BrokerOptions};
pub use context::{ClientSoftware, ConnectionInfo, Door, RequestContext};
pub use gate::Gate;
pub use refused::Refused;
