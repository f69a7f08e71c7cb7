//! The directories of a node at its start: the one with the metadata, without which it is nobody, and those of `log.dirs`, of which some may
//! be out of order. Each is locked, and says in its `meta.properties` whose it is.

use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::base::BrokerId;
use crate::config::BrokerSettings;
use crate::host::Host;
use crate::log::checkpoints;
use crate::quorum;
use crate::server::data_directory::{self, NotTaken};
use crate::server::identity::{Identity, IdentityError};
use crate::server::node::StartError;

/// A directory with its identity.
#[derive(Clone, Debug)]
pub struct Directory {
    pub path: PathBuf,
    pub identity: Identity,
}

/// All that could be taken.
#[derive(Debug)]
pub struct Directories {
    pub metadata: Directory,
    /// Of `log.dirs`, in their order; never empty.
    pub logs: Vec<Directory>,
    /// Of `log.dirs`, those that cannot be used.
    pub missing: Vec<PathBuf>,
}

/// Held while nobody else may use the directories.
pub type Guards = Vec<Box<dyn Send + Sync>>;

/// Who the node is said to be.
struct Expected<'a> {
    node_id: BrokerId,
    cluster_id: Option<&'a str>,
}

impl Directories {
    /// Takes the directories that the settings name, and makes those that are not there.
    ///
    /// # Errors
    /// A sentence that says what to do: nothing is served from a directory that is somebody else's.
    pub fn take(host: &Host, settings: &BrokerSettings) -> Result<(Directories, Guards), StartError> {
        let first = settings.log_dirs.first().ok_or("log.dirs names no directory")?;
        let expected = Expected { node_id: settings.node_id, cluster_id: settings.cluster_id.as_deref() };
        let metadata_path = settings.metadata_log_dir.as_ref().unwrap_or(first);
        let mut guards = vec![data_directory::take(host, metadata_path).map_err(NotTaken::into_sentence)?];
        let metadata = expected.directory(host, metadata_path)?;
        let (mut logs, mut missing) = (Vec::new(), Vec::new());
        for path in &settings.log_dirs {
            if path == metadata_path {
                logs.push(metadata.clone());
                continue;
            }
            match data_directory::take(host, path) {
                Ok(guard) => {
                    guards.push(guard);
                    logs.push(expected.directory(host, path)?);
                }
                Err(NotTaken::Refused(sentence)) => return Err(sentence.into()),
                Err(NotTaken::Unusable(sentence)) => {
                    tracing::error!(
                        "{sentence}; going on without it: the replicas in it are offline until it is mended and the node restarted"
                    );
                    missing.push(path.clone());
                }
            }
        }
        if logs.is_empty() {
            return Err("none of the directories of log.dirs can be used".into());
        }
        let directories = Directories { metadata, logs, missing };
        directories.check(host)?;
        Ok((directories.of_one_cluster(), guards))
    }

    fn check(&self, host: &Host) -> Result<(), StartError> {
        let known = || self.logs.iter().filter(|dir| dir.identity.is_known);
        if !self.metadata.identity.is_known && !has_metadata(host, &self.metadata.path) {
            let with_metadata = known().find(|dir| has_metadata(host, &dir.path));
            if let Some(used) = with_metadata.or_else(|| known().next()) {
                return Err(lost_metadata(&self.metadata.path, used, with_metadata.is_some()).into());
            }
        }
        let all = || std::iter::once(&self.metadata).chain(&self.logs).filter(|dir| dir.identity.is_known);
        if let Some(one) = all().next() {
            let is_from_elsewhere = |dir: &&Directory| dir.identity.cluster_id != one.identity.cluster_id;
            if let Some(dir) = all().find(is_from_elsewhere) {
                return Err(IdentityError::MixedClusters {
                    dir: dir.path.display().to_string(),
                    found: dir.identity.cluster_id.clone(),
                    other: one.path.display().to_string(),
                    expected: one.identity.cluster_id.clone(),
                }
                .into());
            }
        }
        for (at, dir) in self.logs.iter().enumerate() {
            if let Some(twin) =
                self.logs.iter().take(at).find(|one| one.identity.directory_id == dir.identity.directory_id)
            {
                let (one, other) = (twin.path.display(), dir.path.display());
                return Err(format!(
                    "{one} and {other} have the same directory.id: one is a copy of the other; take it out of log.dirs"
                )
                .into());
            }
        }
        Ok(())
    }

    /// New directories become part of the cluster that the others belong to.
    fn of_one_cluster(mut self) -> Directories {
        let all = std::iter::once(&self.metadata).chain(&self.logs);
        let known = all.map(|dir| &dir.identity).find(|identity| identity.is_known);
        let cluster_id = known.unwrap_or(&self.metadata.identity).cluster_id.clone();
        for dir in std::iter::once(&mut self.metadata).chain(&mut self.logs).filter(|dir| !dir.identity.is_known) {
            dir.identity.cluster_id.clone_from(&cluster_id);
        }
        self
    }

    /// Holds every directory's identity against the cluster's.
    pub fn agreeing_with(mut self, cluster_id: &str) -> Result<Directories, IdentityError> {
        for dir in std::iter::once(&mut self.metadata).chain(&mut self.logs) {
            dir.identity = dir.identity.clone().agreeing_with(cluster_id)?;
        }
        Ok(self)
    }

    /// The ids of the log directories.
    pub fn ids(&self) -> Vec<Uuid> {
        self.logs.iter().map(|dir| dir.identity.directory_id).collect()
    }

    /// All of them, each once.
    pub fn all(&self) -> Vec<Directory> {
        let others = self.logs.iter().filter(|dir| dir.path != self.metadata.path);
        std::iter::once(&self.metadata).chain(others).cloned().collect()
    }

    /// The broker epoch of the run before, if it ended cleanly in all directories.
    pub fn previous_epoch(&self, host: &Host) -> Option<i64> {
        let used = self.logs.iter().filter(|dir| dir.identity.is_known);
        let mut epochs = used.map(|dir| checkpoints::clean_shutdown_epoch(&*host.disk, &dir.path));
        let first = epochs.next().flatten()?;
        (self.missing.is_empty() && epochs.all(|epoch| epoch == Some(first))).then_some(first)
    }

    /// Ids under which the node was registered last and that are in no directory now.
    pub fn note_lost(&self, registered: &[Uuid]) {
        let here = self.ids();
        let lost: Vec<String> = registered.iter().filter(|id| !here.contains(id)).map(Uuid::to_string).collect();
        if !lost.is_empty() && self.missing.is_empty() {
            tracing::warn!(
                lost = lost.join(", "),
                "log directories of the last run are not there any more: if a disk is not mounted, stop now and mount it, for replicas \
                 that were on it are made anew in the others"
            );
        }
    }
}

impl Expected<'_> {
    fn directory(&self, host: &Host, path: &Path) -> Result<Directory, IdentityError> {
        let identity = Identity::find(host, path, self.node_id, self.cluster_id)?;
        Ok(Directory { path: path.to_owned(), identity })
    }
}

fn has_metadata(host: &Host, dir: &Path) -> bool {
    host.disk.exists(&dir.join(quorum::DIRECTORY))
}

fn lost_metadata(metadata: &Path, used: &Directory, is_there: bool) -> String {
    let (metadata, used) = (metadata.display(), used.path.display());
    let what_to_do = if is_there {
        format!("set metadata.log.dir = {used}, where the metadata of this node is, or name it first in log.dirs")
    } else {
        "put the directory with the metadata back, and name it in metadata.log.dir or first in log.dirs".to_owned()
    };
    format!("{metadata} shall hold the metadata and is new, but {used} was used before: {what_to_do}")
}
