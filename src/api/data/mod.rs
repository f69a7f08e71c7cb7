//! Records in, records out, and the look-ups beside them.

pub mod delete_records;
pub mod describe_producers;
pub mod fetch;
mod fetch_read;
pub mod fetch_session;
pub mod init_producer_id;
mod leader_hints;
pub mod list_offsets;
pub mod offset_for_leader_epoch;
mod preferred_reads;
pub mod produce;
pub mod producer_ids;
pub mod turned_away;
