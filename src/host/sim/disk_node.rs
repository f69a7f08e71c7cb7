//! A file or directory of the simulated disk: what programs see of it, what a power cut would leave, and how the one becomes the
//! other.

use std::collections::BTreeMap;

use super::SimEntropy;

/// What a device writes whole or not at all.
pub(super) const SECTOR_BYTES: usize = 512;

/// How a machine goes down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// The process alone dies: the system still has every write.
    Process,
    /// The power goes: nothing unsynced survives.
    PowerLosesAll,
    /// The power goes: of what was unsynced any sectors and any names survive, as the seed has it.
    PowerLosesSome,
}

pub(super) enum Node {
    File(FileNode),
    Dir(DirNode),
}

#[derive(Default)]
pub(super) struct FileNode {
    pub(super) seen: Vec<u8>,
    pub(super) durable: Vec<u8>,
    pub(super) unsynced: Vec<Edit>,
    /// Bytes from the file's begin on that have their room, whether written or not.
    pub(super) reserved: usize,
}

pub(super) enum Edit {
    Write { position: usize, bytes: Vec<u8> },
    SetLen(usize),
}

#[derive(Default)]
pub(super) struct DirNode {
    pub(super) seen: BTreeMap<String, usize>,
    pub(super) durable: BTreeMap<String, usize>,
}

impl FileNode {
    fn apply(content: &mut Vec<u8>, edit: &Edit) {
        match edit {
            Edit::SetLen(len) => content.resize(*len, 0),
            Edit::Write { position, bytes } => {
                let end = position + bytes.len();
                if content.len() < end {
                    content.resize(end, 0);
                }
                if let Some(target) = content.get_mut(*position..end) {
                    target.copy_from_slice(bytes);
                }
            }
        }
    }

    pub(super) fn used_bytes(&self) -> usize {
        self.seen.len().max(self.reserved)
    }

    pub(super) fn edit(&mut self, edit: Edit) {
        if let Edit::SetLen(_) = edit {
            self.reserved = 0;
        }
        FileNode::apply(&mut self.seen, &edit);
        self.unsynced.push(edit);
    }

    pub(super) fn sync(&mut self) {
        // The same as copying what is seen, in time proportional to what is new.
        for edit in std::mem::take(&mut self.unsynced) {
            FileNode::apply(&mut self.durable, &edit);
        }
    }

    pub(super) fn crash(&mut self, how: Crash, entropy: &SimEntropy) {
        match how {
            Crash::Process => return self.sync(),
            Crash::PowerLosesAll => {}
            Crash::PowerLosesSome => self.keep_some(entropy),
        }
        self.seen.clone_from(&self.durable);
        self.unsynced.clear();
    }

    /// Any subset of the unsynced sectors reaches the device; the length may be anything between.
    fn keep_some(&mut self, entropy: &SimEntropy) {
        for edit in std::mem::take(&mut self.unsynced) {
            match edit {
                Edit::SetLen(_) if entropy.below(2) == 0 => {}
                Edit::SetLen(len) => self.durable.resize(len, 0),
                Edit::Write { position, bytes } => {
                    let mut at = 0;
                    while at < bytes.len() {
                        let to_border = SECTOR_BYTES - (position + at) % SECTOR_BYTES;
                        let to = bytes.len().min(at + to_border);
                        if entropy.below(3) > 0 {
                            let part = bytes.get(at..to).unwrap_or_default().to_vec();
                            FileNode::apply(&mut self.durable, &Edit::Write { position: position + at, bytes: part });
                        }
                        at = to;
                    }
                }
            }
        }
    }
}

impl DirNode {
    pub(super) fn crash(&mut self, how: Crash, entropy: &SimEntropy) {
        match how {
            Crash::Process => self.durable.clone_from(&self.seen),
            Crash::PowerLosesAll => self.seen.clone_from(&self.durable),
            Crash::PowerLosesSome => {
                let names: Vec<String> = self.seen.keys().chain(self.durable.keys()).cloned().collect();
                for name in names {
                    if entropy.below(2) == 0 {
                        match self.seen.get(&name) {
                            Some(&id) => self.durable.insert(name, id),
                            None => self.durable.remove(&name),
                        };
                    }
                }
                self.seen.clone_from(&self.durable);
            }
        }
    }
}
