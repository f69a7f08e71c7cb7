//! Levels of this process's log, per floor of the code (KIP-412). They last until the process ends.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::controller::decide::configs::{LogLevelChange, ROOT_LOGGER};

/// Loggers that can be set besides the root: the program as a whole, and its floors.
pub const LOGGERS: &[&str] = &[
    "barnabas",
    "barnabas.admin",
    "barnabas.api",
    "barnabas.controller",
    "barnabas.coordinator",
    "barnabas.host",
    "barnabas.log",
    "barnabas.quorum",
    "barnabas.replica",
    "barnabas.server",
];

/// Puts a filter into effect; the sentence says why it was refused.
pub type SetFilter = Box<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// The levels, and the way to the running log.
pub struct LogLevels {
    /// What the process was started with.
    initial: String,
    set: Mutex<BTreeMap<String, String>>,
    set_filter: SetFilter,
}

impl LogLevels {
    /// `initial` is the filter that the log runs with.
    pub fn new(initial: impl Into<String>, set_filter: SetFilter) -> LogLevels {
        LogLevels { initial: initial.into(), set: Mutex::new(BTreeMap::new()), set_filter }
    }

    /// Levels that nobody listens to, for tests.
    pub fn detached() -> LogLevels {
        LogLevels::new("info", Box::new(|_| Ok(())))
    }

    /// Makes the changes, all of them with one new filter.
    pub fn change(&self, changes: &[LogLevelChange]) {
        if changes.is_empty() {
            return;
        }
        let mut set = self.set.lock();
        for change in changes {
            match &change.level {
                Some(level) => drop(set.insert(change.logger.clone(), level.clone())),
                None => drop(set.remove(&change.logger)),
            }
        }
        let filter = filter(&self.initial, &set);
        match (self.set_filter)(&filter) {
            Ok(()) => tracing::info!(filter, "log levels changed"),
            Err(error) => tracing::warn!(filter, error, "log levels not changed"),
        }
    }

    /// Every logger with the level that it logs at.
    pub fn levels(&self) -> Vec<(&'static str, String)> {
        let set = self.set.lock();
        let root = set.get(ROOT_LOGGER).cloned().unwrap_or_else(|| root_level(&self.initial));
        let own = |logger: &str| set.get(logger).cloned();
        let level = |logger: &&'static str| {
            let parent = if *logger == "barnabas" { None } else { own("barnabas") };
            (*logger, own(logger).or(parent).unwrap_or_else(|| root.clone()))
        };
        std::iter::once((ROOT_LOGGER, root.clone())).chain(LOGGERS.iter().map(level)).collect()
    }
}

/// The level without a target in a filter such as `info,barnabas::api=debug`.
fn root_level(filter: &str) -> String {
    let bare = filter.split(',').map(str::trim).find(|part| !part.is_empty() && !part.contains('='));
    bare.unwrap_or("info").to_ascii_uppercase()
}

/// Later directives go before earlier ones.
fn filter(initial: &str, set: &BTreeMap<String, String>) -> String {
    let directive = |(logger, level): (&String, &String)| {
        let level = if level == "FATAL" { "error".to_owned() } else { level.to_ascii_lowercase() };
        if logger == ROOT_LOGGER { level } else { format!("{}={level}", logger.replace('.', "::")) }
    };
    std::iter::once(initial.to_owned()).chain(set.iter().map(directive)).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn change(logger: &str, level: Option<&str>) -> LogLevelChange {
        LogLevelChange { logger: logger.to_owned(), level: level.map(str::to_owned) }
    }

    fn level(levels: &LogLevels, logger: &str) -> Option<String> {
        levels.levels().into_iter().find(|(name, _)| *name == logger).map(|(_, level)| level)
    }

    #[test]
    fn changes_become_one_filter() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = seen.clone();
        let levels = LogLevels::new(
            "info,hyper=warn",
            Box::new(move |filter: &str| {
                sink.lock().push(filter.to_owned());
                Ok(())
            }),
        );
        levels.change(&[change("root", Some("FATAL")), change("barnabas.api", Some("DEBUG"))]);
        levels.change(&[change("barnabas.api", None)]);
        assert_eq!(*seen.lock(), ["info,hyper=warn,barnabas::api=debug,error", "info,hyper=warn,error"]);
    }

    #[test]
    fn a_logger_follows_the_one_above_it() {
        let levels = LogLevels::detached();
        assert_eq!(level(&levels, "barnabas.api").as_deref(), Some("INFO"));
        levels.change(&[change("barnabas", Some("TRACE")), change("root", Some("WARN"))]);
        assert_eq!(level(&levels, "barnabas.api").as_deref(), Some("TRACE"));
        assert_eq!(level(&levels, "root").as_deref(), Some("WARN"));
    }
}
