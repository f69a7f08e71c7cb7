//! `quorum-state`: the newest leader epoch and an offset that the log is known to have reached. It is written at start and at a
//! clean stop, so a log that ends before it has lost records, and is not just torn.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::base::{BrokerId, LeaderEpoch, Offset};
use crate::host::Disk;
use crate::host::disk::{read_file, write_file_atomically};

pub(super) const FILE: &str = "quorum-state";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct QuorumState {
    pub(super) leader_id: BrokerId,
    pub(super) leader_epoch: LeaderEpoch,
    /// Exclusive.
    pub(super) end_offset: Offset,
}

impl QuorumState {
    /// `None` when there is no such file.
    pub(super) fn load(disk: &dyn Disk, dir: &Path) -> io::Result<Option<QuorumState>> {
        let path = dir.join(FILE);
        if !disk.exists(&path) {
            return Ok(None);
        }
        let bytes = read_file(disk, &path)?;
        serde_json::from_slice(&bytes).map(Some).map_err(io::Error::other)
    }

    pub(super) fn save(&self, disk: &dyn Disk, dir: &Path) -> io::Result<()> {
        write_file_atomically(disk, &dir.join(FILE), &serde_json::to_vec(self).map_err(io::Error::other)?)
    }
}
