//! Taking the log directory for this process: it must be ours or empty, writable, and nobody else's at the moment.

use std::io;
use std::path::Path;

use crate::host::{Disk, Host};
use crate::log::checkpoints::META_PROPERTIES;
use crate::quorum;
use crate::replica::journal;

/// What may stand in a directory without `meta.properties`: what a file system puts at its root, our lock, and what the first start
/// writes before it writes down who it is.
const BEFORE_THE_FIRST_START: &[&str] = &["lost+found", LOCK, quorum::DIRECTORY, UNFINISHED_META, journal::FILE_NAME];

const LOCK: &str = ".lock";

/// `meta.properties` on its way to its name.
const UNFINISHED_META: &str = "meta.properties.tmp";

/// Names of strange files that a refusal shows.
const SHOWN_MAX: usize = 3;

/// Makes the directory where there is none and takes it until the guard is dropped.
///
/// # Errors
/// A sentence that says what to do about it.
pub fn take(host: &Host, dir: &Path) -> Result<Box<dyn Send + Sync>, NotTaken> {
    let disk = &*host.disk;
    make_for_good(disk, dir).map_err(|error| NotTaken::of(&error, cannot_make(dir, &error)))?;
    let guard = disk.lock_dir(dir).map_err(|error| NotTaken::of(&error, cannot_lock(dir, &error)))?;
    refuse_strange(disk, dir)?;
    Ok(guard)
}

/// Makes the directory where there is none, and every one above it, each durable under its name: what is synced in a directory whose own
/// name a power cut takes away is gone with it.
fn make_for_good(disk: &dyn Disk, dir: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = dir.ancestors().take_while(|dir| !disk.exists(dir)).collect();
    disk.create_dir_all(dir)?;
    for made in missing.into_iter().rev() {
        if let Some(parent) = made.parent() {
            disk.sync_dir(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })?;
        }
    }
    Ok(())
}

/// Why a directory was not taken; the sentence says what to do about it.
#[derive(Debug)]
pub enum NotTaken {
    /// Its disk is not there, or out of order.
    Unusable(String),
    /// It is somebody else's, or no directory.
    Refused(String),
}

impl NotTaken {
    fn of(error: &io::Error, sentence: String) -> NotTaken {
        match error.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory | io::ErrorKind::WouldBlock => {
                NotTaken::Refused(sentence)
            }
            _ => NotTaken::Unusable(sentence),
        }
    }

    pub fn into_sentence(self) -> String {
        match self {
            NotTaken::Unusable(sentence) | NotTaken::Refused(sentence) => sentence,
        }
    }
}

fn cannot_make(dir: &Path, error: &io::Error) -> String {
    let dir = dir.display();
    match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
            format!("{dir} is a file, or lies under one; set log.dirs to a directory")
        }
        io::ErrorKind::PermissionDenied => {
            format!("cannot make {dir}: {error}; make it for the user that barnabas runs as, or set log.dirs")
        }
        _ => format!("cannot make {dir}: {error}"),
    }
}

fn cannot_lock(dir: &Path, error: &io::Error) -> String {
    let dir = dir.display();
    match error.kind() {
        io::ErrorKind::WouldBlock => {
            format!("{dir} is in use by another process (another barnabas?); stop it or set log.dirs")
        }
        io::ErrorKind::NotADirectory => format!("{dir} is a file; set log.dirs to a directory"),
        io::ErrorKind::PermissionDenied => {
            format!("cannot write to {dir}: {error}; it must belong to the user that barnabas runs as, or set log.dirs")
        }
        io::ErrorKind::ReadOnlyFilesystem => format!("cannot write to {dir}: {error}; set log.dirs"),
        _ => format!("cannot lock {dir}: {error}"),
    }
}

/// Other people's files are not to be mixed with ours, and our logs without their identity are not to get another one.
fn refuse_strange(disk: &dyn Disk, dir: &Path) -> Result<(), NotTaken> {
    if disk.exists(&dir.join(META_PROPERTIES)) {
        return Ok(());
    }
    let cannot_read = |error| NotTaken::Unusable(format!("cannot read {}: {error}", dir.display()));
    let entries = disk.read_dir(dir).map_err(cannot_read)?;
    let is_strange = |name: &String| !BEFORE_THE_FIRST_START.contains(&name.as_str());
    let strange: Vec<String> = entries.into_iter().map(|entry| entry.name).filter(is_strange).collect();
    if strange.is_empty() {
        return Ok(());
    }
    let shown = strange.iter().take(SHOWN_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = if strange.len() > SHOWN_MAX { ", ..." } else { "" };
    Err(NotTaken::Refused(format!(
        "{} has no {META_PROPERTIES} and is not empty ({shown}{more}): it is no data directory of Barnabas; set log.dirs to an empty or \
         a new directory, or put {META_PROPERTIES} back if it is lost",
        dir.display()
    )))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::base::NodeAddress;
    use crate::controller::decide::TopicDefaults;
    use crate::controller::decide::features::supported_features;
    use crate::controller::decide::registration::Registration;
    use crate::controller::{Controller, ControllerOptions, ControllerSettings};
    use crate::host::OpenMode;
    use crate::host::sim::{Crash, SimHost, SimKv};
    use crate::metadata::BrokerRegistration;
    use crate::quorum::{NoTransport, Quorum, QuorumOptions, QuorumTiming};
    use crate::replica::Checkpoints;
    use crate::replica::journal::Journal;
    use crate::server::identity::Identity;

    const NODE: i32 = 1;

    fn dir() -> &'static Path {
        Path::new("/data")
    }

    fn put(sim: &SimHost, name: &str) {
        sim.disk.open(&dir().join(name), OpenMode::Create).expect("made");
    }

    /// What a start does to the directory until the partitions are opened, in the order of `Node::start`.
    async fn start(sim: &SimHost) -> Result<Identity, Box<dyn std::error::Error>> {
        let host = sim.host();
        let _guard = take(&host, dir()).map_err(NotTaken::into_sentence)?;
        let identity = Identity::find(&host, dir(), NODE, None)?;
        let kv = Arc::new(SimKv::default());
        let options = QuorumOptions {
            node_id: NODE,
            directory_id: identity.directory_id,
            must_exist: identity.is_known,
            store: Arc::new(move |path: &Path| Ok(kv.open(path)? as Arc<_>)),
            voters: Vec::new(),
            my_address: NodeAddress::default(),
            transport: Arc::new(NoTransport::default()),
            timing: QuorumTiming::default(),
        };
        let quorum = Quorum::open(&host, dir(), options).await?;
        Checkpoints::take(&*host.disk, dir())?;
        Journal::create(&*host.disk, dir())?;
        let defaults = TopicDefaults { partitions: 1, replication_factor: 1 };
        let options = ControllerOptions {
            node_id: NODE,
            settings: ControllerSettings::usual(),
            defaults,
            internal_topics: Vec::new(),
            static_properties: Arc::new(BTreeMap::new()),
        };
        let broker = BrokerRegistration {
            id: NODE,
            incarnation: host.entropy.uuid(),
            directories: vec![identity.directory_id],
            features: supported_features(),
            ..BrokerRegistration::default()
        };
        let asked = Registration {
            cluster_id: if identity.is_known { identity.cluster_id.clone() } else { String::new() },
            fresh_cluster_id: String::new(),
            broker,
            previous_epoch: None,
            remembered: Vec::new(),
        };
        let registered = Controller::new(host.clone(), quorum.clone(), options).register(asked).await?;
        registered.map_err(|refusal| format!("{refusal:?}"))?;
        let identity = identity.agreeing_with(&quorum.image().cluster_id)?;
        if !identity.is_known {
            identity.keep(&host, dir(), NODE)?;
        }
        Ok(identity)
    }

    #[tokio::test]
    async fn a_first_start_that_crashed_at_any_write_can_be_started_again() {
        let whole = SimHost::new(1);
        start(&whole).await.expect("a first start");
        let writes = whole.disk.write_count();
        assert!(writes > 5);
        for how in [Crash::PowerLosesAll, Crash::PowerLosesSome, Crash::Process] {
            for cut in 1..=writes {
                let sim = SimHost::new(cut);
                sim.disk.cut_power_at(cut);
                assert!(start(&sim).await.is_err(), "{how:?} at {cut}");
                sim.disk.crash(how);
                if let Err(error) = start(&sim).await {
                    panic!("{how:?} at {cut} of {writes}: {error}");
                }
            }
        }
    }

    #[tokio::test]
    async fn a_node_that_started_is_there_after_a_power_cut() {
        let sim = SimHost::new(1);
        let before = start(&sim).await.expect("a first start").cluster_id;
        sim.disk.crash(Crash::PowerLosesAll);
        let after = start(&sim).await.expect("a second start");
        assert!(after.is_known, "the directory that the first start made is gone");
        assert_eq!(after.cluster_id, before);
    }

    #[test]
    fn other_peoples_files_are_refused_by_name() {
        let sim = SimHost::new(1);
        sim.disk.create_dir_all(&dir().join("lost+found")).expect("made");
        put(&sim, LOCK);
        assert!(take(&sim.host(), dir()).is_ok());
        for name in ["a.txt", "b.txt", "c.txt", "d.txt"] {
            put(&sim, name);
        }
        let refused = take(&sim.host(), dir()).map(drop).expect_err("refused").into_sentence();
        assert!(refused.contains("(a.txt, b.txt, c.txt, ...)") && refused.contains("set log.dirs"), "{refused}");
        put(&sim, META_PROPERTIES);
        assert!(take(&sim.host(), dir()).is_ok());
    }

    #[test]
    fn refusals_say_what_to_do() {
        let sim = SimHost::new(1);
        let guard = take(&sim.host(), dir());
        let second = take(&sim.host(), dir()).map(drop).expect_err("taken").into_sentence();
        assert_eq!(second, "/data is in use by another process (another barnabas?); stop it or set log.dirs");
        drop(guard);
        put(&sim, "file");
        let file = take(&Host::real(), Path::new("/dev/null")).map(drop).expect_err("no directory").into_sentence();
        assert_eq!(file, "/dev/null is a file, or lies under one; set log.dirs to a directory");
        let denied = cannot_lock(dir(), &io::ErrorKind::PermissionDenied.into());
        assert!(
            denied.starts_with("cannot write to /data: ") && denied.contains("must belong to the user"),
            "{denied}"
        );
    }
}
