//! From the directories that were taken to the parts that work on them, and what it means for the node when one fails later.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::watch;

use crate::config::FlushPolicy;
use crate::host::Host;
use crate::replica::journal::{self, Journal};
use crate::replica::{Checkpoints, FoundDir, LogDirs, Partitions};
use crate::server::bring_up::Progress;
use crate::server::directories::{Directories, Directory};
use crate::server::node::StartError;

/// The log directories, ready for their partitions.
pub struct Opened {
    pub dirs: LogDirs,
    /// One for each, in their order.
    pub journals: Vec<Option<Journal>>,
    /// All of them were left in order.
    pub was_clean: bool,
}

/// Reads what the last run left beside the partitions.
pub fn open(host: &Host, directories: &Directories, policy: FlushPolicy) -> Result<Opened, StartError> {
    let (mut found, mut journals) = (Vec::new(), Vec::new());
    for Directory { path, identity } in &directories.logs {
        let checkpoints = Checkpoints::take(&*host.disk, path)?;
        journals.push(open_journal(host, path, checkpoints.clean_shutdown, policy)?);
        found.push(FoundDir { path: path.clone(), id: identity.directory_id, checkpoints });
    }
    let was_clean = found.iter().all(|dir| dir.checkpoints.clean_shutdown);
    let mut found = found.into_iter();
    let first = found.next().ok_or("there is no log directory")?;
    Ok(Opened { dirs: LogDirs::new(first, found.collect(), directories.missing.clone()), journals, was_clean })
}

fn open_journal(host: &Host, log_dir: &Path, clean: bool, policy: FlushPolicy) -> Result<Option<Journal>, StartError> {
    if !clean {
        let recovery = journal::recover(&*host.disk, log_dir)?;
        if recovery.entries > 0 {
            let (entries, skipped, bytes) = (recovery.entries, recovery.skipped, recovery.bytes);
            tracing::info!(entries, skipped, bytes, "replayed the flush journal");
        }
    }
    match policy {
        FlushPolicy::Sync => Ok(Some(Journal::create(&*host.disk, log_dir)?)),
        FlushPolicy::Interval | FlushPolicy::Os => {
            journal::discard(&*host.disk, log_dir)?;
            Ok(None)
        }
    }
}

/// `/data1, /data2`
pub fn shown(directories: &Directories) -> String {
    directories.logs.iter().map(|dir| dir.path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Acts on directories that fail. Without the one that holds the metadata, or without any, the node cannot go on.
pub async fn watch(
    partitions: Arc<Partitions>,
    metadata_dir: PathBuf,
    mut metadata_failed: watch::Receiver<bool>,
    progress: watch::Sender<Progress>,
) {
    let mut failures = partitions.dirs().failures();
    loop {
        tokio::select! {
            changed = failures.changed() => if changed.is_err() { return },
            changed = metadata_failed.changed() => if changed.is_err() { return },
        }
        partitions.note_failures();
        let why = end_of(&partitions, &metadata_dir, *metadata_failed.borrow());
        if let Some(why) = why {
            tracing::error!("{why}: this node stops; mend the disk or take it out of log.dirs, then start it again");
            progress.send_replace(Progress::Failed(why));
        }
    }
}

/// Why the node cannot go on.
fn end_of(partitions: &Partitions, metadata_dir: &Path, metadata_failed: bool) -> Option<String> {
    let shared = partitions.dirs().by_path(metadata_dir).and_then(|dir| dir.health.failure());
    if metadata_failed || shared.is_some() {
        return Some(format!("the directory with the metadata, {}, has failed", metadata_dir.display()));
    }
    partitions.failure().map(|reason| format!("all log directories have failed, the first with: {reason}"))
}
