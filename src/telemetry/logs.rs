//! The broker's own log: structured lines on standard error, filtered by level and target, as text or as one JSON object a line.
//!
//! Levels are kept once, in [`LogControl`]: what the process was started with and what was changed since (KIP-412). The running filter
//! is made of them, and DescribeConfigs shows them; they last until the process ends.

use std::collections::BTreeMap;
use std::fmt;

use parking_lot::Mutex;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, reload};

/// The logger above all others.
pub const ROOT_LOGGER: &str = "root";

/// Loggers that can be set besides the root: the program as a whole, and its floors that log.
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
    "barnabas.telemetry",
];

/// The variable that goes before `log.level`.
pub const ENVIRONMENT: &str = "RUST_LOG";

/// The variable that switches colours off (https://no-color.org).
const PLAIN: &str = "NO_COLOR";

/// The store below the metadata image. Its lines below INFO are about its own pages, and come only when asked for by target.
const STORE: &str = "sled";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

/// A filter that does not parse, or a process that has a log already.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error(
        "log filter {filter:?}: {reason}; expected one of off, error, warn, info, debug and trace, and behind it other levels for \
         single modules: `info,barnabas::coordinator=debug`"
    )]
    Filter { filter: String, reason: String },
    #[error("this process writes a log already")]
    Started,
}

/// What each target logs at, in capitals as Kafka shows it. [`ROOT_LOGGER`] stands for all that have nothing of their own.
type Levels = BTreeMap<String, String>;

/// The levels of a log, and the way to change them while it runs.
pub struct LogControl {
    levels: Mutex<Levels>,
    /// `None`: nobody listens.
    filter: Option<reload::Handle<Targets, Registry>>,
}

impl fmt::Debug for LogControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogControl").field("levels", &*self.levels.lock()).finish()
    }
}

impl LogControl {
    /// Levels without a log, for tests of what is above.
    pub fn detached(filter: &str) -> Result<LogControl, LogError> {
        Ok(LogControl { levels: Mutex::new(parse(filter)?), filter: None })
    }

    /// The filter for a subscriber, and what changes it.
    fn attached(filter: &str) -> Result<(reload::Layer<Targets, Registry>, LogControl), LogError> {
        let levels = parse(filter)?;
        let (layer, handle) = reload::Layer::new(targets(&levels));
        Ok((layer, LogControl { levels: Mutex::new(levels), filter: Some(handle) }))
    }

    /// Gives loggers new levels from the next line on, all at once; with `None` a logger follows the one above it again.
    pub fn change<'a>(&self, changes: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) {
        let mut levels = self.levels.lock();
        let mut changed = levels.clone();
        for (logger, level) in changes {
            match level {
                Some(level) => drop(changed.insert(target(logger), level.to_owned())),
                None => drop(changed.remove(&target(logger))),
            }
        }
        if changed == *levels {
            return;
        }
        match self.filter.as_ref().map_or(Ok(()), |filter| filter.reload(targets(&changed))) {
            Ok(()) => {
                tracing::info!(levels = shown(&changed), "log levels changed");
                *levels = changed;
            }
            Err(error) => tracing::warn!(%error, "log levels not changed"),
        }
    }

    /// Every logger with the level that it logs at.
    pub fn levels(&self) -> Vec<(&'static str, String)> {
        let levels = self.levels.lock();
        let loggers = std::iter::once(ROOT_LOGGER).chain(LOGGERS.iter().copied());
        loggers.map(|logger| (logger, level_of(&levels, logger).to_owned())).collect()
    }
}

/// Starts the process's log. `filter` is the `log.level` setting; the environment's `RUST_LOG` goes before it.
pub fn start(filter: &str, format: LogFormat) -> Result<LogControl, LogError> {
    let chosen = std::env::var(ENVIRONMENT).ok().filter(|from_env| !from_env.is_empty());
    let (filter, control) = LogControl::attached(chosen.as_deref().unwrap_or(filter))?;
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = match format {
        LogFormat::Text => {
            let plain = std::env::var_os(PLAIN).is_some_and(|set| !set.is_empty());
            let colours = !plain && std::io::IsTerminal::is_terminal(&std::io::stderr());
            lines.with_ansi(colours).boxed()
        }
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry().with(filter).with(lines).try_init().map_err(|_| LogError::Started)?;
    Ok(control)
}

/// Whether a log can be started with this filter.
pub fn check(filter: &str) -> Result<(), LogError> {
    parse(filter).map(drop)
}

fn parse(filter: &str) -> Result<Levels, LogError> {
    let parts: Vec<&str> = filter.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    let refused = |reason: String| LogError::Filter { filter: filter.to_owned(), reason };
    if parts.is_empty() {
        return Err(refused("it is empty".to_owned()));
    }
    // For the parser a lone word that is no level is a target: everything else would be switched off without a word.
    if let Some(word) = parts.iter().find(|part| !part.contains('=') && part.parse::<LevelFilter>().is_err()) {
        return Err(refused(format!("{word} is no level")));
    }
    let targets = parts.join(",").parse::<Targets>().map_err(|error| refused(error.to_string()))?;
    let shown = |level: LevelFilter| level.to_string().to_ascii_uppercase();
    let root = targets.default_level().map(|level| (ROOT_LOGGER.to_owned(), shown(level)));
    let own = targets.iter().map(|(target, level)| (target.to_owned(), shown(level)));
    Ok(own.chain(root).collect())
}

/// The consensus library speaks of each step and takes a node that is away for an error; the quorum says what matters of it. Who
/// wants it all gives it a level.
const QUIET: &str = "openraft";

/// `root=INFO barnabas::api=DEBUG`
fn shown(levels: &Levels) -> String {
    levels.iter().map(|(target, level)| format!("{target}={level}")).collect::<Vec<_>>().join(" ")
}

fn targets(levels: &Levels) -> Targets {
    let of_all = levels.get(ROOT_LOGGER).map_or(LevelFilter::OFF, |level| threshold(level));
    let own = levels.iter().filter(|(target, _)| *target != ROOT_LOGGER);
    let quiet = Targets::new().with_target(QUIET, LevelFilter::OFF);
    let quiet = quiet.with_target(STORE, of_all.min(LevelFilter::INFO));
    quiet.with_targets(own.map(|(target, level)| (target.clone(), threshold(level)))).with_default(of_all)
}

/// Nothing is worse than an error here, so FATAL shows errors.
fn threshold(level: &str) -> LevelFilter {
    if level == "FATAL" { LevelFilter::ERROR } else { level.parse().unwrap_or(LevelFilter::INFO) }
}

/// `barnabas.api` is `barnabas::api` in the code.
fn target(logger: &str) -> String {
    logger.replace('.', "::")
}

/// A logger without a level of its own has that of the nearest one above it.
fn level_of<'a>(levels: &'a Levels, logger: &str) -> &'a str {
    let target = target(logger);
    let above = std::iter::successors(Some(target.as_str()), |target| target.rsplit_once("::").map(|(above, _)| above));
    above.chain([ROOT_LOGGER]).find_map(|target| levels.get(target)).map_or("OFF", String::as_str)
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::Arc;

    use super::*;

    fn control(filter: &str) -> LogControl {
        LogControl::detached(filter).unwrap_or_else(|error| panic!("{error}"))
    }

    fn level(control: &LogControl, logger: &str) -> Option<String> {
        control.levels().into_iter().find(|(name, _)| *name == logger).map(|(_, level)| level)
    }

    #[test]
    fn filters_are_checked() {
        for good in ["info", "warn,barnabas::api=debug", "off", "INFO, hyper=warn"] {
            assert!(LogControl::detached(good).is_ok(), "{good}");
        }
        for bad in ["barnabas=loud", " , ", "verbose", "inf", "info,barnabas", "info,verbose,barnabas::api=debug"] {
            let error = LogControl::detached(bad).unwrap_err();
            assert!(error.to_string().contains(bad), "{error}");
        }
    }

    #[test]
    fn a_word_that_is_no_level_is_told_the_levels() {
        let error = LogControl::detached("verbose").unwrap_err().to_string();
        assert!(
            error.contains("verbose is no level") && error.contains("off, error, warn, info, debug and trace"),
            "{error}"
        );
    }

    #[test]
    fn the_stores_own_lines_come_when_asked_for() {
        let lets_through = |filter: &str| {
            let debug = tracing::Level::DEBUG;
            targets(&control(filter).levels.lock()).would_enable("sled::pagecache", &debug)
        };
        assert_eq!(["debug", "trace", "debug,sled=debug", "info"].map(lets_through), [false, false, true, false]);
    }

    #[test]
    fn what_the_process_was_started_with_is_shown() {
        let control = control("warn,barnabas=info,barnabas::api=debug");
        let shown = ["root", "barnabas", "barnabas.api", "barnabas.log"].map(|logger| level(&control, logger));
        assert_eq!(shown, ["WARN", "INFO", "DEBUG", "INFO"].map(|level| Some(level.to_owned())));
        assert_eq!(level(&self::control("barnabas=info"), "root").as_deref(), Some("OFF"));
    }

    #[test]
    fn a_logger_follows_the_one_above_it() {
        let control = control("info,barnabas::api=debug");
        control.change([("barnabas", Some("TRACE")), ("root", Some("FATAL")), ("barnabas.api", None)]);
        let shown = ["root", "barnabas.api", "barnabas.log"].map(|logger| level(&control, logger));
        assert_eq!(shown, ["FATAL", "TRACE", "TRACE"].map(|level| Some(level.to_owned())));
    }

    #[test]
    fn what_is_shown_is_what_the_filter_lets_through() {
        let control = control("warn,barnabas=info,barnabas::api=debug,hyper=error");
        control.change([("barnabas.log", Some("TRACE")), ("barnabas.quorum", Some("ERROR"))]);
        let filter = targets(&control.levels.lock());
        let all = [tracing::Level::ERROR, tracing::Level::WARN, tracing::Level::INFO, tracing::Level::DEBUG];
        for (logger, shown) in control.levels() {
            for one in all.into_iter().chain([tracing::Level::TRACE]) {
                let lets_through = filter.would_enable(&target(logger), &one);
                assert_eq!(lets_through, one <= threshold(&shown), "{logger} at {shown}: {one}");
            }
        }
    }

    /// Standard error of a test.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_change_counts_from_the_next_line_on() {
        let lines = Lines::default();
        let sink = lines.clone();
        let (filter, control) = LogControl::attached("info").unwrap_or_else(|error| panic!("{error}"));
        let writer = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(move || sink.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(filter).with(writer), || {
            let say = |word: &str| tracing::debug!(target: "barnabas::replica::flusher", "{word}");
            say("first");
            control.change([("barnabas.replica", Some("DEBUG"))]);
            say("second");
            control.change([("barnabas.replica", None)]);
            say("third");
            control.change([("root", Some("TRACE"))]);
            say("fourth");
        });
        let text = String::from_utf8_lossy(&lines.0.lock()).into_owned();
        let said = ["first", "second", "third", "fourth"].map(|word| text.contains(word));
        assert_eq!(said, [false, true, false, true], "{text}");
    }
}
