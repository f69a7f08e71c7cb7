//! Settings that are read and checked, but that nothing acts on in this version. Whoever sets one is told so at the start; whoever
//! makes one do something takes its row out, and `tests/architecture/settings_in_use.rs` fails until that is done.

/// Name of the setting, and the field of [`super::BrokerSettings`] or [`crate::metadata::config::LogConfig`] that holds it. Sorted.
pub const IDLE: &[(&str, &str)] = &[
    ("log.cleaner.backoff.ms", "cleaner_backoff_ms"),
    ("log.cleaner.dedupe.buffer.size", "cleaner_dedupe_buffer_bytes"),
    ("log.cleaner.delete.retention.ms", "delete_retention_ms"),
    ("log.cleaner.enable", "cleaner_enable"),
    ("log.cleaner.io.max.bytes.per.second", "cleaner_bytes_per_second_max"),
    ("log.cleaner.max.compaction.lag.ms", "max_compaction_lag_ms"),
    ("log.cleaner.min.cleanable.ratio", "min_cleanable_dirty_ratio"),
    ("log.cleaner.min.compaction.lag.ms", "min_compaction_lag_ms"),
    ("log.cleaner.threads", "cleaner_threads"),
    ("log.flush.start.offset.checkpoint.interval.ms", "start_offset_checkpoint_interval_ms"),
    ("log.local.retention.bytes", "local_retention_bytes"),
    ("log.local.retention.ms", "local_retention_ms"),
    ("log.remote.copy.lag.bytes", "remote_copy_lag_bytes"),
    ("log.remote.copy.lag.ms", "remote_copy_lag_ms"),
    ("max.connection.creation.rate", "connections_per_second_max"),
    ("metadata.log.max.record.bytes.between.snapshots", "snapshot_after_bytes"),
    ("metadata.log.max.snapshot.interval.ms", "snapshot_interval_ms"),
    ("metadata.log.segment.bytes", "quorum.segment_bytes"),
    ("num.recovery.threads.per.data.dir", "recovery_threads_per_dir"),
    ("queued.max.request.bytes", "queued_request_bytes_max"),
    ("queued.max.requests", "queued_requests_max"),
];

/// Whether a setting of this name is read in vain.
pub fn is_idle(name: &str) -> bool {
    IDLE.binary_search_by(|(idle, _)| (*idle).cmp(name)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::names;
    use crate::config::settings;
    use crate::metadata::config::broker;

    #[test]
    fn the_table_is_sorted_and_names_settings() {
        assert!(IDLE.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for (name, _) in IDLE {
            assert!(broker::find(name).is_some(), "{name} is no setting");
        }
    }

    #[test]
    fn a_setting_that_nobody_even_reads_needs_no_row() {
        let (_, used) = settings::build(Default::default()).expect("the defaults are good");
        let read = names::read(&used);
        for (name, _) in IDLE {
            assert!(read.contains(name), "{name} has no effect anyway");
        }
    }
}
