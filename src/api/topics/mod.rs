//! APIs about topics: what there is, and making, growing and deleting them.

pub mod alter_partition_reassignments;
pub mod create_partitions;
pub mod create_topics;
pub mod delete_topics;
pub mod describe_topic_partitions;
pub mod elect_leaders;
pub mod list_partition_reassignments;
pub mod metadata;
mod partition_view;

#[cfg(test)]
mod fixture;
