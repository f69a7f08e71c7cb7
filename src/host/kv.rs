//! The key-value seam: a store for what can be rebuilt from elsewhere. Never the only copy of anything.

use std::io;
use std::path::Path;
use std::sync::Arc;

/// Opens the store of a directory.
pub type StoreOpener = Arc<dyn Fn(&Path) -> io::Result<Arc<dyn KeyValueStore>> + Send + Sync>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KvEdit {
    Put { tree: &'static str, key: Vec<u8>, value: Vec<u8> },
    Remove { tree: &'static str, key: Vec<u8> },
    Clear { tree: &'static str },
}

pub trait KeyValueStore: Send + Sync {
    fn get(&self, tree: &'static str, key: &[u8]) -> io::Result<Option<Vec<u8>>>;

    /// All entries of a tree in key order.
    fn scan(&self, tree: &'static str) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>>;

    /// Applies all edits or, after a crash, none or a prefix: callers put a position last and check it.
    fn apply(&self, edits: Vec<KvEdit>) -> io::Result<()>;

    fn flush(&self) -> io::Result<()>;
}
