//! `quorum-state`: what this node has promised to others. It is whole or absent, and a restart without it is refused, because a
//! node that forgot its vote could vote twice.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::QuorumError;
use super::types::Vote;
use crate::base::BrokerId;
use crate::host::Disk;
use crate::host::disk::{read_file, write_file_atomically};

pub(super) const FILE: &str = "quorum-state";

const FORMAT: u32 = 1;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HardState {
    pub(super) format: u32,
    /// The newest term that this node has taken part in.
    pub(super) term: u64,
    /// Whom it voted for in that term.
    pub(super) voted_for: Option<BrokerId>,
    /// An index behind entries that the log has reached, and that no leader has asked to take back: a log that ends before it
    /// has lost entries, and is not just torn.
    pub(super) log_end: u64,
    /// This node began with nothing while the others had something. Until it has what they have, it neither votes nor campaigns.
    pub(super) joining: bool,
}

impl Default for HardState {
    fn default() -> HardState {
        HardState { format: FORMAT, term: 0, voted_for: None, log_end: 0, joining: false }
    }
}

impl HardState {
    pub(super) fn path(dir: &Path) -> PathBuf {
        dir.join(FILE)
    }

    /// The vote as the library knows it. That a leader was elected is not kept: the next word of the leader says so again, and a
    /// leader that restarts has to be elected anew.
    pub(super) fn vote(&self) -> Option<Vote> {
        let leader_id = openraft::LeaderId { term: self.term, voted_for: self.voted_for };
        (self.term > 0).then_some(Vote { leader_id, committed: false })
    }

    /// Takes a vote over. Answers whether that is anything a crash must not forget.
    pub(super) fn set_vote(&mut self, vote: &Vote) -> bool {
        let changed = (self.term, self.voted_for) != (vote.leader_id.term, vote.leader_id.voted_for);
        (self.term, self.voted_for) = (vote.leader_id.term, vote.leader_id.voted_for);
        changed
    }

    /// `None` when there is no such file.
    pub(super) fn load(disk: &dyn Disk, dir: &Path) -> Result<Option<HardState>, QuorumError> {
        let path = HardState::path(dir);
        if !disk.exists(&path) {
            return Ok(None);
        }
        let bytes =
            read_file(disk, &path).map_err(|error| QuorumError::storage("quorum-state cannot be read", &error))?;
        HardState::parse(&bytes).map(Some).map_err(|what| QuorumError::Damaged {
            file: path,
            position: 0,
            index: -1,
            what,
        })
    }

    /// A line of JSON, and a line with its checksum.
    fn parse(bytes: &[u8]) -> Result<HardState, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "not a text".to_owned())?;
        let (json, checksum) = text.split_once('\n').ok_or_else(|| "the checksum is missing".to_owned())?;
        if checksum.trim_end() != format!("{:08x}", crc32fast::hash(json.as_bytes())) {
            return Err("the checksum does not match".to_owned());
        }
        let state: HardState = serde_json::from_str(json).map_err(|error| error.to_string())?;
        if state.format == FORMAT { Ok(state) } else { Err(format!("format {}, expected {FORMAT}", state.format)) }
    }

    pub(super) fn save(&self, disk: &dyn Disk, dir: &Path) -> io::Result<()> {
        let json = serde_json::to_string(self)?;
        let content = format!("{json}\n{:08x}\n", crc32fast::hash(json.as_bytes()));
        write_file_atomically(disk, &HardState::path(dir), content.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flipped_bit_is_noticed() {
        let disk = crate::host::sim::SimHost::new(1).disk;
        let dir = Path::new("/data");
        disk.create_dir_all(dir).unwrap();
        assert_eq!(HardState::load(&*disk, dir), Ok(None));
        let state = HardState { term: 3, voted_for: Some(2), log_end: 17, ..HardState::default() };
        state.save(&*disk, dir).unwrap();
        assert_eq!(HardState::load(&*disk, dir), Ok(Some(state)));
        let whole = disk.content(&HardState::path(dir)).unwrap();
        for at in 0..whole.len() - 1 {
            disk.corrupt(&HardState::path(dir), |bytes| {
                bytes.clone_from(&whole);
                bytes[at] ^= 1;
            })
            .unwrap();
            assert!(matches!(HardState::load(&*disk, dir), Err(QuorumError::Damaged { .. })), "byte {at}");
        }
    }
}
