//! A log that takes the place of another one with the same records, as when a replica moves to another disk.

use std::path::Path;
use std::sync::Arc;

use super::error::{Context, LogError, SYNC};
use super::partition_log::Log;

impl Log {
    /// Renames the log's directory to `dir`, in the same parent; the name is durable when this returns. Readers go on.
    pub fn rename_dir(&mut self, dir: &Path) -> Result<(), LogError> {
        self.home.rename(dir)?;
        match dir.parent() {
            Some(parent) => self.env.host.disk.sync_dir(parent).context(SYNC, parent),
            None => Ok(()),
        }
    }

    /// From now on readers of `old` read this log. Both hold the same records; what only memory knows of them is `old`'s.
    ///
    /// # Errors
    /// `OffsetOutOfRange` when they do not: nothing has changed then.
    pub fn take_over_from(&mut self, old: &Log) -> Result<(), LogError> {
        if (self.log_start_offset, self.log_end_offset) != (old.log_start_offset, old.log_end_offset) {
            let (start, end) = (old.log_start_offset, old.log_end_offset);
            return Err(LogError::OffsetOutOfRange { offset: self.log_end_offset, start, end });
        }
        self.epochs = Arc::clone(&old.epochs);
        self.epochs_unsaved |= old.epochs_unsaved;
        self.epoch_assigned |= old.epoch_assigned;
        self.producers.clone_from(&old.producers);
        // One that is there knows only the producers of the records that were copied.
        self.snapshots.retain(|snapshot| *snapshot != self.log_end_offset);
        self.published = Arc::clone(&old.published);
        self.publish();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{future_dir_name, future_of};

    #[test]
    fn a_future_replicas_name_says_which_partition_it_becomes() {
        let unique = "0123456789abcdef0123456789abcdef";
        let name = future_dir_name("a.b-c-3", unique).expect("short enough");
        assert_eq!(name, "a.b-c-3.0123456789abcdef0123456789abcdef-future");
        assert_eq!(future_of(&name), Some("a.b-c-3"));
        for other in ["a-3", "a-3.x-future", "a-3.0123456789abcdef0123456789abcdef-delete", "a-future"] {
            assert_eq!(future_of(other), None, "{other}");
        }
        assert_eq!(future_dir_name(&format!("{}-0", "t".repeat(220)), unique), None);
    }
}
