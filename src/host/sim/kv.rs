//! Key-value stores in memory, by the path they are opened at. What is in them stays between openings, until somebody damages it.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::host::{KeyValueStore, KvEdit};

type Trees = BTreeMap<&'static str, BTreeMap<Vec<u8>, Vec<u8>>>;

#[derive(Default)]
pub struct SimKv {
    stores: Mutex<HashMap<PathBuf, Arc<SimKvStore>>>,
}

impl SimKv {
    pub fn open(&self, path: &Path) -> io::Result<Arc<SimKvStore>> {
        let store = self.stores.lock().entry(path.to_owned()).or_default().clone();
        if store.state.lock().refuses_to_open { Err(io::Error::other("damaged")) } else { Ok(store) }
    }

    /// Everything in every store is gone, and so are faults.
    pub fn wipe(&self) {
        self.stores.lock().clear();
    }

    /// From now on nothing can be opened, until [`SimKv::wipe`].
    pub fn damage(&self) {
        for store in self.stores.lock().values() {
            store.state.lock().refuses_to_open = true;
        }
    }
}

#[derive(Default)]
struct State {
    trees: Trees,
    refuses_to_open: bool,
    /// Edits that still get through.
    edits_left: Option<usize>,
}

#[derive(Default)]
pub struct SimKvStore {
    state: Mutex<State>,
}

impl SimKvStore {
    /// Only so many further edits arrive, as when the process dies in the middle of [`KeyValueStore::apply`].
    pub fn cut_after(&self, edits: usize) {
        self.state.lock().edits_left = Some(edits);
    }

    /// Changes what is stored behind everybody's back.
    pub fn corrupt(&self, change: impl FnOnce(&mut BTreeMap<&'static str, BTreeMap<Vec<u8>, Vec<u8>>>)) {
        change(&mut self.state.lock().trees);
    }
}

impl KeyValueStore for SimKvStore {
    fn get(&self, tree: &'static str, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        Ok(self.state.lock().trees.get(tree).and_then(|tree| tree.get(key)).cloned())
    }

    fn scan(&self, tree: &'static str) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let state = self.state.lock();
        let entries = state.trees.get(tree).into_iter().flatten();
        Ok(entries.map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    fn apply(&self, edits: Vec<KvEdit>) -> io::Result<()> {
        let mut state = self.state.lock();
        for edit in edits {
            if let Some(left) = &mut state.edits_left {
                if *left == 0 {
                    return Err(io::Error::other("the process is gone"));
                }
                *left -= 1;
            }
            match edit {
                KvEdit::Put { tree, key, value } => drop(state.trees.entry(tree).or_default().insert(key, value)),
                KvEdit::Remove { tree, key } => drop(state.trees.entry(tree).or_default().remove(&key)),
                KvEdit::Clear { tree } => drop(state.trees.remove(tree)),
            }
        }
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}
