//! Floor 0: the words everything else is written in. Pure: no clock, no I/O, no lock.

pub mod address;
pub mod error_code;
pub mod ids;
pub mod limits;
pub mod rules;
pub mod time;

pub use address::NodeAddress;
pub use error_code::ErrorCode;
pub use ids::{BrokerId, LeaderEpoch, Offset, PartitionIndex, ProducerEpoch, ProducerId, TopicId, TopicPartition};
pub use time::{MonotonicMs, TimestampMs};
