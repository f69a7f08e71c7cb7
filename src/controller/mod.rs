//! Floor 6: the controller. `decide` holds pure functions from an image and a request to records and a reply; `driver` takes
//! turns, asks the quorum to keep the records, and answers when they are durable and visible; `sessions` is what the active
//! controller remembers of brokers besides the metadata.

pub mod decide;
pub mod driver;
pub mod sessions;

pub use decide::{Decision, Refusal, TopicDefaults};
pub use driver::{
    BrokerProbe, Controller, ControllerCounts, ControllerOptions, ControllerSettings, Liveness, doubting,
};
