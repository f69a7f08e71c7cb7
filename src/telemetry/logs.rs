//! The broker's own log: structured lines on standard error, filtered by level and target, as text or as one JSON object a line.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, reload};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

/// A filter that does not parse, or a process that has a log already.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("log filter {filter:?}: {reason}; expected a level such as `info`, or `info,barnabas::api=debug`")]
    Filter { filter: String, reason: String },
    #[error("this process writes a log already")]
    Started,
}

/// The loggers whose level can be set by name at run time (KIP-412), besides [`ROOT`]: the broker's floors.
pub const LOGGERS: [&str; 14] = [
    "barnabas",
    "barnabas.admin",
    "barnabas.api",
    "barnabas.config",
    "barnabas.controller",
    "barnabas.coordinator",
    "barnabas.host",
    "barnabas.log",
    "barnabas.quorum",
    "barnabas.refused",
    "barnabas.replica",
    "barnabas.server",
    "barnabas.telemetry",
    "barnabas.wire",
];

/// The logger above all others.
pub const ROOT: &str = "root";

/// Changes a running log.
#[derive(Clone)]
pub struct LogControl {
    inner: Arc<Inner>,
}

struct Inner {
    filter: reload::Handle<EnvFilter, Registry>,
    levels: Mutex<Levels>,
}

impl LogControl {
    /// Sets a logger's level from the next line on; `None` makes it follow the one above it again. Levels are Kafka's: `TRACE`, `DEBUG`,
    /// `INFO`, `WARN`, `ERROR`, `FATAL`.
    pub fn set_level(&self, logger: &str, level: Option<&str>) -> Result<(), LogError> {
        let mut levels = self.inner.levels.lock();
        let mut changed = levels.clone();
        changed.set(logger, level);
        self.inner.filter.reload(parse(&changed.filter())?).map_err(|_| LogError::Started)?;
        *levels = changed;
        Ok(())
    }

    /// Replaces the whole filter from the next line on.
    pub fn set_filter(&self, filter: &str) -> Result<(), LogError> {
        self.inner.filter.reload(parse(filter)?).map_err(|_| LogError::Started)
    }

    /// Every logger with the level that is in force, the root first; the flag says that it was set at run time.
    pub fn levels(&self) -> Vec<(&'static str, String, bool)> {
        let levels = self.inner.levels.lock();
        std::iter::once(&ROOT)
            .chain(&LOGGERS)
            .map(|logger| (*logger, levels.of(logger), levels.is_set(logger)))
            .collect()
    }
}

/// The filter that the log started with and what was set since.
#[derive(Clone, Debug)]
struct Levels {
    started_with: String,
    set: BTreeMap<String, String>,
}

impl Levels {
    fn set(&mut self, logger: &str, level: Option<&str>) {
        match level {
            Some(level) => self.set.insert(logger.to_owned(), level.to_ascii_uppercase()),
            None => self.set.remove(logger),
        };
    }

    fn is_set(&self, logger: &str) -> bool {
        self.set.contains_key(logger)
    }

    /// As tracing reads it: later directives win over earlier ones of the same target.
    fn filter(&self) -> String {
        let mut filter = self.started_with.clone();
        for (logger, level) in &self.set {
            let level = if level == "FATAL" { "ERROR" } else { level };
            match logger.as_str() {
                ROOT => filter.push_str(&format!(",{level}")),
                logger => filter.push_str(&format!(",{}={level}", logger.replace('.', "::"))),
            }
        }
        filter
    }

    /// Its own level, or that of the nearest logger above it.
    fn of(&self, logger: &str) -> String {
        let mut name = logger;
        loop {
            if let Some(level) = self.set.get(name).cloned().or_else(|| self.at_start(name)) {
                return level;
            }
            name = match name.rsplit_once('.') {
                Some((above, _)) => above,
                None if name != ROOT => ROOT,
                None => return "ERROR".to_owned(),
            };
        }
    }

    fn at_start(&self, logger: &str) -> Option<String> {
        let target = logger.replace('.', "::");
        let of_directive = |directive: &str| match directive.split_once('=') {
            Some((name, level)) if name.trim() == target => Some(level.trim().to_ascii_uppercase()),
            None if logger == ROOT => Some(directive.trim().to_ascii_uppercase()),
            _ => None,
        };
        self.started_with.split(',').filter_map(of_directive).next_back()
    }
}

/// Starts the process's log. `filter` is the `log.level` setting; the environment's `RUST_LOG` goes before it.
pub fn start(filter: &str, format: LogFormat) -> Result<LogControl, LogError> {
    let chosen = std::env::var(EnvFilter::DEFAULT_ENV).ok().filter(|from_env| !from_env.is_empty());
    let started_with = chosen.as_deref().unwrap_or(filter);
    let levels = Levels { started_with: started_with.to_owned(), set: BTreeMap::new() };
    let (filter, handle) = reload::Layer::new(parse(started_with)?);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = match format {
        LogFormat::Text => {
            let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
            lines.with_ansi(colours).boxed()
        }
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry().with(filter).with(lines).try_init().map_err(|_| LogError::Started)?;
    Ok(LogControl { inner: Arc::new(Inner { filter: handle, levels: Mutex::new(levels) }) })
}

/// Checks a filter without starting a log.
pub fn check(filter: &str) -> Result<(), LogError> {
    parse(filter).map(|_| ())
}

fn parse(filter: &str) -> Result<EnvFilter, LogError> {
    EnvFilter::try_new(filter)
        .map_err(|error| LogError::Filter { filter: filter.to_owned(), reason: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_checked() {
        for good in ["info", "warn,barnabas::api=debug", "off"] {
            assert!(check(good).is_ok(), "{good}");
        }
        let error = check("barnabas=loud").unwrap_err();
        assert!(error.to_string().contains("barnabas=loud"), "{error}");
    }

    #[test]
    fn loggers_follow_the_one_above_until_they_are_set() {
        let mut levels = Levels { started_with: "info,barnabas::api=debug".to_owned(), set: BTreeMap::new() };
        let all =
            |levels: &Levels| ["root", "barnabas", "barnabas.api", "barnabas.log"].map(|logger| levels.of(logger));
        assert_eq!(all(&levels), ["INFO", "INFO", "DEBUG", "INFO"]);
        levels.set("barnabas", Some("warn"));
        levels.set("barnabas.log", Some("FATAL"));
        assert_eq!(all(&levels), ["INFO", "WARN", "DEBUG", "FATAL"]);
        assert_eq!(levels.filter(), "info,barnabas::api=debug,barnabas=WARN,barnabas::log=ERROR");
        assert!(check(&levels.filter()).is_ok());
        levels.set("barnabas.log", None);
        levels.set("root", Some("ERROR"));
        assert_eq!(all(&levels), ["ERROR", "WARN", "DEBUG", "WARN"]);
    }
}
