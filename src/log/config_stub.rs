//! The topic settings that the log reads, until `metadata::config` brings all of them. Names are the topic configs' own with
//! underscores; times are milliseconds, sizes bytes.

#[derive(Clone, Debug, PartialEq)]
pub struct LogConfig {
    pub segment_bytes: i32,
    pub segment_ms: i64,
    pub segment_jitter_ms: i64,
    pub segment_index_bytes: i32,
    pub index_interval_bytes: i32,
    pub retention_ms: i64,
    pub retention_bytes: i64,
    pub file_delete_delay_ms: i64,
    pub max_decompressed_message_bytes: i32,
    /// Whether `cleanup.policy` names `delete`.
    pub cleanup_delete: bool,
    /// Whether `cleanup.policy` names `compact`.
    pub cleanup_compact: bool,
}

impl Default for LogConfig {
    fn default() -> LogConfig {
        LogConfig {
            segment_bytes: 1 << 30,
            segment_ms: 7 * 24 * 3_600_000,
            segment_jitter_ms: 0,
            segment_index_bytes: 10 << 20,
            index_interval_bytes: 4096,
            retention_ms: 7 * 24 * 3_600_000,
            retention_bytes: -1,
            file_delete_delay_ms: 60_000,
            max_decompressed_message_bytes: i32::MAX - 8,
            cleanup_delete: true,
            cleanup_compact: false,
        }
    }
}
