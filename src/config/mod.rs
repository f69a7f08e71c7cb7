//! Floor 8: from config.toml, the environment and the command line to settings that are typed and checked.
//!
//! Names are Kafka's. What is set on the command line goes before the environment, that before the file, that before the default of the
//! image, that before the built-in one.
//! Every mistake is found before anything starts, and all of them are told at once.

mod environment;
mod file;
mod given;
mod idle;
mod image;
mod listeners;
mod names;
mod quorum;
mod reader;
mod settings;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::host::Disk;
use crate::telemetry::logs;

pub use given::{Given, GivenValue, Origin};
pub use idle::IDLE;
pub use listeners::{AdvertisedListener, Listener, SecurityProtocol};
pub use quorum::{ControllerSettings, LifecycleSettings, QuorumSettings, Roles};
pub use settings::{
    BrokerSettings, FetchSettings, FlushPolicy, FlushSettings, GroupSettings, InternalTopicSettings,
    InternalTopicsSettings, LogFormatSetting, LogSettings, ProducerSettings, ReplicationSettings, SocketSettings,
    TopicSettings,
};

/// The file that is read when none is named and it is there.
pub const FILE_NAME: &str = "config.toml";

/// Where settings come from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// `None`: [`FILE_NAME`] if it exists.
    pub file: Option<PathBuf>,
    /// All variables; those that are no settings are passed over.
    pub environment: Vec<(String, String)>,
    /// `key=value` each.
    pub set: Vec<String>,
}

/// Settings that have been read and found good.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub settings: BrokerSettings,
    pub given: Given,
    /// Sentences for the log.
    pub warnings: Vec<String>,
    /// The file that was read.
    pub file: Option<PathBuf>,
}

/// Everything that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", problems.join("\n"))]
pub struct ConfigError {
    /// A sentence each.
    pub problems: Vec<String>,
}

/// Reads and checks all settings.
///
/// # Errors
/// All that is wrong, by sentence.
pub fn load(sources: &Sources, disk: &dyn Disk) -> Result<Loaded, ConfigError> {
    let mut problems = Vec::new();
    let mut given = Given::default();
    let mut warnings = Vec::new();
    let file = file_to_read(sources, disk);
    if let Some(path) = &file {
        match file::read(path, disk) {
            Ok(values) => given.add(Origin::File(path.clone()), values),
            Err(problem) => problems.push(problem),
        }
    }
    let from_environment = environment::read(&sources.environment);
    problems.extend(from_environment.problems);
    warnings.extend(from_environment.warnings);
    for (variable, name, value) in from_environment.values {
        given.add(Origin::Environment(variable), [(name, value)]);
    }
    problems.extend(log_filter_problem(&sources.environment));
    for assignment in &sources.set {
        match assignment.split_once('=') {
            Some((name, value)) => given.add(Origin::CommandLine, [(name.trim().to_owned(), value.to_owned())]),
            None => problems.push(format!("--set {assignment}: expected key=value")),
        }
    }
    image::add_defaults(&mut given, from_environment.defaults);
    problems.extend(given.problems());
    if !problems.is_empty() {
        return Err(ConfigError { problems });
    }
    let properties: Arc<BTreeMap<String, String>> = Arc::new(given.properties());
    let (settings, used) = settings::build(properties)?;
    warnings.extend(names::without_effect(&given, &used));
    warnings.extend(too_many_copies(&settings));
    Ok(Loaded { settings, given, warnings, file })
}

/// The log's own variable goes before `log.level`, so it is looked at with it.
fn log_filter_problem(environment: &[(String, String)]) -> Option<String> {
    let (_, filter) = environment.iter().find(|(name, filter)| name == logs::ENVIRONMENT && !filter.is_empty())?;
    logs::check(filter).err().map(|error| format!("environment variable {}: {error}", logs::ENVIRONMENT))
}

/// More copies than a cluster of one node can hold: every topic that does not say how many itself would be refused.
fn too_many_copies(settings: &BrokerSettings) -> Option<String> {
    let copies = settings.topics.replication_factor_default;
    // What the machine calls itself is not known here; a node that names itself by that is not warned.
    (settings.is_alone("") && copies > 1).then(|| {
        format!(
            "default.replication.factor is {copies}, but there is one node: topics that are created without a number of copies, and \
             those that come into being by themselves, will be refused (INVALID_REPLICATION_FACTOR)"
        )
    })
}

/// The sentence for a name that is no setting, with the nearest one.
pub fn unknown_setting(name: &str) -> String {
    names::unknown(name)
}

fn file_to_read(sources: &Sources, disk: &dyn Disk) -> Option<PathBuf> {
    let default = || Some(PathBuf::from(FILE_NAME)).filter(|path| disk.exists(Path::new(path)));
    sources.file.clone().or_else(default)
}

/// Settings that do something in this version.
pub fn effective_names() -> std::collections::BTreeSet<&'static str> {
    match settings::build(Arc::default()) {
        Ok((_, used)) => names::with_effect(&used),
        Err(_) => std::collections::BTreeSet::new(),
    }
}
