//! Floor 2, pure: the picture of the cluster and the words it is configured in.

pub mod config;
