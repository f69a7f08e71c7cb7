//! What the controller decides, one file per matter. Each function reads an image and a request and says which records would
//! make the change and what the client is to be told; it changes nothing itself and knows no clock and no chance.

pub mod alter_partition;
pub mod brokers;
pub mod configs;
pub mod create_partitions;
pub mod create_topics;
pub mod delete_topics;
pub mod directories;
pub mod elections;
pub mod eligible;
pub mod features;
pub mod give_up;
pub mod heartbeat;
pub mod internal_topics;
pub mod partition_change;
pub mod placement;
pub mod producer_ids;
pub mod reassignments;
pub mod registration;
pub mod rules;

use std::collections::BTreeSet;

use crate::base::ErrorCode;
use crate::metadata::{Image, MetadataRecord};

/// New partitions that one request may ask for, over all its topics, as in Kafka.
pub const PARTITIONS_PER_REQUEST_MAX: i64 = 10_000;

/// Records to keep, and the answer to give once they are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision<R> {
    pub records: Vec<MetadataRecord>,
    pub reply: R,
}

impl<R> Decision<R> {
    /// An answer that changes nothing.
    pub fn unchanged(reply: R) -> Decision<R> {
        Decision { records: Vec::new(), reply }
    }
}

/// Records in the making, and the image as it is with them, for decisions whose later parts depend on the earlier ones.
#[derive(Clone, Debug)]
pub struct Draft {
    pub image: Image,
    pub records: Vec<MetadataRecord>,
}

impl Draft {
    pub fn of(image: &Image) -> Draft {
        Draft { image: image.clone(), records: Vec::new() }
    }

    /// Adds a record. One that contradicts the image is left out; decisions make none.
    pub fn push(&mut self, record: MetadataRecord) {
        let applied = self.image.apply(self.image.offset + 1, &record);
        debug_assert!(applied.is_ok(), "{applied:?}");
        if applied.is_ok() {
            self.records.push(record);
        }
    }

    pub fn extend(&mut self, records: Vec<MetadataRecord>) {
        for record in records {
            self.push(record);
        }
    }
}

/// Why one item of a request was not done: a Kafka code and a sentence for the person at the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub code: ErrorCode,
    pub message: Option<String>,
}

impl Refusal {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Refusal {
        Refusal { code, message: Some(message.into()) }
    }

    pub fn bare(code: ErrorCode) -> Refusal {
        Refusal { code, message: None }
    }
}

/// What a topic gets that does not say otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicDefaults {
    /// `num.partitions`
    pub partitions: i32,
    /// `default.replication.factor`
    pub replication_factor: i16,
}

/// Items that occur more than once.
fn duplicates<'a, T: Ord + 'a>(items: impl Iterator<Item = &'a T>) -> BTreeSet<&'a T> {
    let mut seen = BTreeSet::new();
    items.filter(|item| !seen.insert(*item)).collect()
}

#[cfg(test)]
mod tests;
