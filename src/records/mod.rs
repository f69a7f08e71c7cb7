//! Floor 1, pure: the record batch v2 (KIP-98) as a view over bytes. Headers are read in place, batches are checked, rewritten
//! only when a topic's settings ask for it, built, and walked; nothing here knows of files, sockets or time.
//!
//! | file | what it is |
//! |---|---|
//! | `header` | the 61 bytes at the head of a batch, and its attribute bits |
//! | `batches` | cutting a byte slice into batches |
//! | `crc` | CRC-32C over what is behind the CRC field |
//! | `varint`, `source`, `record` | one record and its fields |
//! | `client` | cutting out the one batch that a Produce request has for a partition |
//! | `walk`, `validate` | checking a client's batch, its records one by one |
//! | `rewrite` | other times or another codec, where the topic asks |
//! | `iterate` | reading a batch's records |
//! | `codec/` | the five codecs, both ways, with bounded output |
//! | `builder` | making a batch |
//! | `control` | control records: transaction markers, leader changes |
//! | `error` | what can be wrong with a batch, and Kafka's code for it |

mod batches;
mod builder;
mod client;
mod codec;
mod control;
#[cfg(test)]
mod craft;
mod crc;
mod cursor;
mod error;
mod header;
mod iterate;
mod record;
mod rewrite;
mod source;
mod validate;
mod varint;
mod walk;

pub use batches::Batches;
pub use builder::BatchBuilder;
pub use client::single_batch;
pub use codec::Codec;
pub use control::{ControlKind, end_transaction_marker};
pub use crc::{crc_is_valid, crc_of, stamp_crc};
pub use error::{RecordError, RecordIssue};
pub use header::{Attributes, BATCH_HEADER_BYTES, BatchHeader, LENGTH_OVERHEAD_BYTES, TimestampType};
pub use iterate::{RecordIter, Records, records};
pub use record::{Headers, Record};
pub use validate::{
    AppendRules, DECOMPRESSED_BATCH_BYTES_MAX, DECOMPRESSED_BATCH_RATIO_MAX, RECORD_ISSUES_MAX, TargetCodec, Validated,
    validate,
};
