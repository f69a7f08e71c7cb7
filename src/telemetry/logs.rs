//! The broker's own log: structured lines on standard error, filtered by level and target, as text or as one JSON object a line.

use std::fmt;

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

/// Changes a running log.
#[derive(Clone)]
pub struct LogControl {
    filter: reload::Handle<EnvFilter, Registry>,
}

impl fmt::Debug for LogControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogControl")
    }
}

impl LogControl {
    /// Replaces the filter from the next line on.
    pub fn set_filter(&self, filter: &str) -> Result<(), LogError> {
        self.filter.reload(parse(filter)?).map_err(|_| LogError::Started)
    }
}

/// Starts the process's log. `filter` is the `log.level` setting; the environment's `RUST_LOG` goes before it.
pub fn start(filter: &str, format: LogFormat) -> Result<LogControl, LogError> {
    let chosen = std::env::var(EnvFilter::DEFAULT_ENV).ok().filter(|from_env| !from_env.is_empty());
    let (filter, handle) = reload::Layer::new(parse(chosen.as_deref().unwrap_or(filter))?);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = match format {
        LogFormat::Text => {
            let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
            lines.with_ansi(colours).boxed()
        }
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry().with(filter).with(lines).try_init().map_err(|_| LogError::Started)?;
    Ok(LogControl { filter: handle })
}

/// Checks a filter without starting a log.
pub fn check(filter: &str) -> Result<(), LogError> {
    parse(filter).map(|_| ())
}

/// The consensus library speaks of each step and takes a node that is away for an error; the quorum says what matters of it. Who
/// wants it all names it in the filter.
const QUIET: &str = "openraft=off";

fn parse(filter: &str) -> Result<EnvFilter, LogError> {
    let complete = if filter.contains("openraft") { filter.to_owned() } else { format!("{filter},{QUIET}") };
    EnvFilter::try_new(complete)
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
}
