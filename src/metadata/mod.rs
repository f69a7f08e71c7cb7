//! Floor 2: the picture of the cluster, the only edits that exist, and the words it is configured in. Pure: an [`Image`] is
//! immutable once published, a [`MetadataRecord`] is one durable change, and applying the same records in the same order gives
//! the same image on every node.

mod apply;
mod broker;
pub mod config;
mod image;
mod record;
mod resource;
mod topic;
pub mod topic_name;

pub use apply::ApplyError;
pub use broker::{BrokerRegistration, Endpoint, FeatureRange};
pub use image::{ConfigOverrides, Image, NO_METADATA};
pub use record::MetadataRecord;
pub use resource::{ConfigResource, ResourceKind};
pub use topic::{PartitionState, Topic};

#[cfg(test)]
mod image_tests;
