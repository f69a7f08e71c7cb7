//! Messages whose newest version Kafka 4.4 serves and `kafka-protocol` lacks, with the same field names and style as the crate's.
//! [`super::messages`] puts them in the crate's place.

pub mod api_versions_request;
pub mod delete_groups_response;
pub mod describe_log_dirs_response;
pub(super) mod write;
