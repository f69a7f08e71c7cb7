//! Floor 2, pure: bytes of the Kafka protocol to typed requests and typed answers to bytes. The only importer of `kafka-protocol`.
//!
//! The way in: [`frame::next_frame`] cuts, [`header::parse`] reads the header and finds the [`table::Api`], [`decode::decode_request`]
//! holds the body against the [`shape`] table and only then decodes it. The way out: [`encode::encode_response`], or
//! [`fetch_response::encode`] where record bytes must not be copied.

pub mod api_versions;
pub mod client;
pub mod decode;
pub mod encode;
pub mod envelope;
pub mod extended;
pub mod fetch_response;
pub mod frame;
pub mod header;
pub mod messages;
pub mod private;
pub mod response;
pub mod shape;
pub mod table;
