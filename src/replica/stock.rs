//! Where a partition's replica lies when the node begins with it: in the directory where it is found, where it is said to lie, or, being
//! new, in the emptiest one.
//!
//! The rules that keep records: nothing is made anew while it may lie in a directory that is not there; of two copies the one counts that
//! lies where the metadata says; when the metadata does not decide, nobody does.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use uuid::Uuid;

use crate::base::TopicId;
use crate::base::TopicPartition;
use crate::host::{Disk, Host};
use crate::log::{future_of, read_topic_id};
use crate::replica::log_dirs::{LogDir, LogDirs};

/// The partition directories that were there at the start, by name.
#[derive(Default)]
pub(super) struct Stock {
    by_name: HashMap<String, Vec<Found>>,
}

#[derive(Clone)]
struct Found {
    dir: usize,
    path: PathBuf,
    is_future: bool,
}

/// Where a replica is to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    In {
        dir: usize,
        /// A copy of it that is being made in another directory.
        future: Option<(usize, PathBuf)>,
    },
    /// Nowhere for now; says why.
    Missing(Arc<str>),
}

impl Stock {
    pub(super) fn take(disk: &dyn Disk, dirs: &LogDirs) -> Stock {
        let mut stock = Stock::default();
        for dir in dirs.iter() {
            match disk.read_dir(&dir.path) {
                Ok(entries) => {
                    let names = entries.into_iter().filter(|entry| entry.is_dir).map(|entry| entry.name);
                    names.for_each(|name| stock.note(dir, &name));
                }
                Err(error) => dir.health.fail(&format!("cannot list {}: {error}", dir.path.display())),
            }
        }
        stock
    }

    fn note(&mut self, dir: &LogDir, name: &str) {
        let future = future_of(name);
        let becomes = future.unwrap_or(name);
        if TopicPartition::parse_dir_name(becomes).is_some() {
            let found = Found { dir: dir.index, path: dir.path.join(name), is_future: future.is_some() };
            self.by_name.entry(becomes.to_owned()).or_default().push(found);
        }
    }

    /// Finds the place of a partition, of which the metadata says that it lies in `assigned`. A copy that was to become the replica, and
    /// is the only one that is left, becomes it.
    pub(super) fn place(
        &mut self,
        host: &Host,
        dirs: &LogDirs,
        name: &TopicPartition,
        topic_id: TopicId,
        assigned: Option<Uuid>,
    ) -> Place {
        let mut found = self.by_name.remove(&name.dir_name()).unwrap_or_default();
        if let ([only], true) = (found.as_slice(), dirs.is_one())
            && !only.is_future
        {
            // There is nothing to choose from, and whoever opens it looks whose it is.
            return Place::In { dir: only.dir, future: None };
        }
        // Those of another topic of the name are set aside, by whoever finds them in his way or at the end of the start.
        let owner = |found: &Found| read_topic_id(&*host.disk, &found.path).ok().flatten();
        found.retain(|found| owner(found).is_none_or(|owner| owner == topic_id));
        let is_assigned = |dir: usize| assigned == Some(dirs.at(dir).id);
        let (futures, currents): (Vec<_>, Vec<_>) = found.into_iter().partition(|found| found.is_future);
        let future_beside = |dir: usize| {
            let future = futures.iter().find(|future| future.dir != dir);
            future.map(|future| (future.dir, future.path.clone()))
        };
        match currents.as_slice() {
            [] => {}
            [one] => return Place::In { dir: one.dir, future: future_beside(one.dir) },
            several => {
                return match several.iter().find(|found| is_assigned(found.dir)) {
                    // The end of a move was cut short.
                    Some(right) => Place::In { dir: right.dir, future: None },
                    None => refuse_copies(several),
                };
            }
        }
        if let Some(future) = futures.iter().find(|future| is_assigned(future.dir))
            && !dirs.some_are_offline()
        {
            return promote(host, dirs, name, future);
        }
        new_place(dirs, name, assigned)
    }
}

fn refuse_copies(copies: &[Found]) -> Place {
    let paths: Vec<String> = copies.iter().map(|found| found.path.display().to_string()).collect();
    let reason = format!(
        "found in {}, and the metadata says neither is its place: move all but the newest copy out of the log directories, then restart",
        paths.join(" and ")
    );
    tracing::error!("{reason}");
    Place::Missing(reason.into())
}

fn promote(host: &Host, dirs: &LogDirs, name: &TopicPartition, future: &Found) -> Place {
    let dir = dirs.at(future.dir);
    let renamed = host.disk.rename(&future.path, &dir.path.join(name.dir_name()));
    match renamed.and_then(|()| host.disk.sync_dir(&dir.path)) {
        Ok(()) => {
            tracing::warn!(partition = %name, dir = %dir.path.display(), "only the copy in the new log directory is left of a move; it is the replica now");
            Place::In { dir: dir.index, future: None }
        }
        Err(error) => {
            let reason = format!("cannot rename {}: {error}", future.path.display());
            dir.health.fail(&reason);
            Place::Missing(reason.into())
        }
    }
}

/// The place of one that is nowhere.
fn new_place(dirs: &LogDirs, name: &TopicPartition, assigned: Option<Uuid>) -> Place {
    let at = |dir: &LogDir| Place::In { dir: dir.index, future: None };
    if let Some(wished) = dirs.take_wish(name) {
        return at(wished);
    }
    // Nil is what the metadata says as long as it does not know.
    let Some(assigned) = assigned.filter(|assigned| !assigned.is_nil()) else { return at(dirs.emptiest()) };
    match dirs.by_id(assigned) {
        Some(dir) => at(dir),
        None if dirs.some_are_offline() => {
            let reason = "it lies in a log directory that is offline, or may lie there";
            tracing::warn!(partition = %name, directory_id = %assigned, "not served: {reason}");
            Place::Missing(reason.into())
        }
        // Its disk is gone for good: it is not in log.dirs any more.
        None => at(dirs.emptiest()),
    }
}
