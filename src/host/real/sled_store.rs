//! The real key-value store, sled. For what can be rebuilt only: its flush is not a sync, so a power cut may take the newest edits.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::host::{KeyValueStore, KvEdit};

/// Page cache of the store; the metadata of a large cluster is a few MiB.
const CACHE_BYTES: u64 = 16 * 1024 * 1024;

/// sled behind the key-value seam. Its flush is not a sync, so it holds only what can be rebuilt.
pub struct SledStore(sled::Db, PathBuf);

impl Drop for SledStore {
    #[expect(clippy::disallowed_methods, reason = "this is the real machine's side of the seam")]
    fn drop(&mut self) {
        // sled syncs its file at its end, and panics when that fails.
        if File::open(self.1.join("db")).and_then(|file| file.sync_all()).is_err() {
            std::mem::forget(self.0.clone());
        }
    }
}

impl SledStore {
    pub fn open(path: &Path) -> io::Result<SledStore> {
        let config = sled::Config::new().path(path).cache_capacity(CACHE_BYTES).flush_every_ms(None);
        Ok(SledStore(config.open().map_err(io_error)?, path.to_owned()))
    }
}

impl KeyValueStore for SledStore {
    fn get(&self, tree: &'static str, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let value = self.0.open_tree(tree).map_err(io_error)?.get(key).map_err(io_error)?;
        Ok(value.map(|value| value.to_vec()))
    }

    fn scan(&self, tree: &'static str) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let tree = self.0.open_tree(tree).map_err(io_error)?;
        tree.iter().map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).map_err(io_error)).collect()
    }

    fn apply(&self, edits: Vec<KvEdit>) -> io::Result<()> {
        for edit in edits {
            match edit {
                KvEdit::Put { tree, key, value } => {
                    self.0.open_tree(tree).map_err(io_error)?.insert(key, value).map_err(io_error)?;
                }
                KvEdit::Remove { tree, key } => {
                    self.0.open_tree(tree).map_err(io_error)?.remove(key).map_err(io_error)?;
                }
                KvEdit::Clear { tree } => self.0.open_tree(tree).map_err(io_error)?.clear().map_err(io_error)?,
            }
        }
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        self.0.flush().map(drop).map_err(io_error)
    }
}

fn io_error(error: sled::Error) -> io::Error {
    io::Error::other(error)
}
