//! The settings of the group coordinator, under Kafka's property names.

use crate::base::MonotonicMs;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    /// `group.initial.rebalance.delay.ms`: an empty group waits this long for more members before its first generation.
    pub initial_rebalance_delay_ms: u64,
    /// `group.min.session.timeout.ms`
    pub session_timeout_ms_min: i32,
    /// `group.max.session.timeout.ms`
    pub session_timeout_ms_max: i32,
    /// `group.max.size`: members of one group.
    pub size_max: usize,
    /// `offset.metadata.max.bytes` (counted in UTF-16 units, as Kafka counts).
    pub offset_metadata_max: usize,
    /// `offsets.retention.minutes`, in milliseconds.
    pub offsets_retention_ms: i64,
    /// `offsets.retention.check.interval.ms`
    pub retention_check_interval_ms: u64,
}

/// A member that has not yet had an answer to its first JoinGroup cannot know its id, so it cannot send heartbeats: this bounds how
/// long it is waited for (Kafka's constant).
pub const NEW_MEMBER_JOIN_TIMEOUT_MS: MonotonicMs = 300_000;

/// Ids that one group has handed out and that nobody has come back with. They are forgotten after the session time, so only somebody
/// who asks for ids without end gets here.
pub const PENDING_JOINS_MAX: usize = 10_000;

impl Default for GroupConfig {
    fn default() -> GroupConfig {
        GroupConfig {
            initial_rebalance_delay_ms: 3_000,
            session_timeout_ms_min: 6_000,
            session_timeout_ms_max: 1_800_000,
            size_max: i32::MAX as usize,
            offset_metadata_max: 4_096,
            offsets_retention_ms: 10_080 * 60_000,
            retention_check_interval_ms: 600_000,
        }
    }
}
