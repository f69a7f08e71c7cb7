//! What a log directory remembers between two runs: where recovery starts, where logs begin, and whether the last run ended well.

use std::path::Path;

use crate::host::Disk;
use crate::log::LogError;
use crate::log::checkpoints::{self, HIGH_WATERMARKS, LOG_START_OFFSETS, Offsets, RECOVERY_POINTS};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoints {
    pub clean_shutdown: bool,
    pub recovery_points: Offsets,
    /// Only of partitions whose log does not begin at 0.
    pub log_start_offsets: Offsets,
    /// Of partitions with more than one replica. Written by themselves: see [`save_high_watermarks`].
    pub high_watermarks: Offsets,
}

impl Checkpoints {
    /// Reads the files at start and takes the mark of a clean shutdown away: from now on a crash is a crash.
    pub fn take(disk: &dyn Disk, log_dir: &Path) -> Result<Checkpoints, LogError> {
        let read = |name| {
            let (offsets, damage) = checkpoints::read_offsets(disk, log_dir, name)?;
            if let Some(damage) = damage {
                tracing::warn!(%damage, "a checkpoint file is damaged; recovery checks more because of it");
            }
            Ok(offsets)
        };
        Ok(Checkpoints {
            recovery_points: read(RECOVERY_POINTS)?,
            log_start_offsets: read(LOG_START_OFFSETS)?,
            high_watermarks: read(HIGH_WATERMARKS)?,
            clean_shutdown: checkpoints::take_clean_shutdown(disk, log_dir)?,
        })
    }

    pub fn save(&self, disk: &dyn Disk, log_dir: &Path) -> Result<(), LogError> {
        let write = |name, offsets: &Offsets| {
            checkpoints::write_offsets(
                disk,
                log_dir,
                name,
                offsets.iter().map(|(partition, offset)| (partition, *offset)),
            )
        };
        write(RECOVERY_POINTS, &self.recovery_points)?;
        write(LOG_START_OFFSETS, &self.log_start_offsets)
    }
}

/// Writes `log-start-offset-checkpoint` alone.
pub fn save_log_starts(disk: &dyn Disk, log_dir: &Path, offsets: &Offsets) -> Result<(), LogError> {
    let offsets = offsets.iter().map(|(partition, offset)| (partition, *offset));
    checkpoints::write_offsets(disk, log_dir, LOG_START_OFFSETS, offsets)
}

/// Writes `replication-offset-checkpoint`.
pub fn save_high_watermarks(disk: &dyn Disk, log_dir: &Path, offsets: &Offsets) -> Result<(), LogError> {
    let offsets = offsets.iter().map(|(partition, offset)| (partition, *offset));
    checkpoints::write_offsets(disk, log_dir, HIGH_WATERMARKS, offsets)
}
