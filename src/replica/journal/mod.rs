//! The flush journal: one file per log directory that makes small appends to many partitions durable with a single sync.
//!
//! `acks=all` must wait until the records are on the device. A `fdatasync` per partition costs the device once per file; with a
//! hundred producers on fifty partitions that is fifty waits a round. So a round of small appends is copied, with the place it
//! belongs to, behind one another into this file, and this file alone is synced. The segments themselves are synced later, all
//! at once, when the journal is full and begins again from its front.
//!
//! After a crash [`recover`] writes every entry of the current generation to its place again before any log is opened. Entries only
//! repeat bytes that were already written to the segment at the same place, so doing it twice, or doing it although the segment had
//! reached the device by itself, changes nothing. What is absent: the journal never holds anything that is not also in a segment, and
//! it is never read while the broker runs.

mod entry;
mod recovery;
mod writer;

pub use entry::Place;
pub use recovery::{JournalRecovery, recover};
pub use writer::{Journal, JournalError, discard};

/// The journal's file in the log directory.
pub const FILE_NAME: &str = "flush.journal";
