//! Floor 7: the doors. One file per Kafka API, in folders by who owns the state; `dispatch` is the table that leads to them and
//! `errors` the one place where lower floors' errors become Kafka codes.

pub mod broker;
pub mod context;
pub mod groups;
pub mod refused;

pub use broker::{AdvertisedListener, Broker, BrokerOptions};
pub use context::RequestContext;
pub use refused::Refused;
